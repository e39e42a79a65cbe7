//! Queue runners: threads that fill the queues of a graph while its session lasts.

use super::error::MonitoredError;
use crate::{
    error::{Error, Result},
    proto::QueueRunnerDef,
    session::Session,
};
use ferroflow_ir::{Code, Error as IrError, budget::SharedBounds};
use ferroflow_runtime::{CallOptions, Cancellation};
use std::{
    mem,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
    thread::{self, JoinHandle},
};

/// The most threads that a graph may ask for.
const MAX_THREADS: usize = 1024;

/// The threads of a session; dropping it ends them.
///
/// A thread runs its op again and again. When an op says that the queue is closed, its thread ends,
/// and the last thread of a queue closes it; any other error ends all threads and cancels all
/// queues, so that no run waits for them.
#[derive(Debug)]
pub(super) struct QueueRunners {
    shared: Arc<RunnerState>,
    threads: Vec<JoinHandle<()>>,
}

#[derive(Debug)]
struct RunnerState {
    session: Arc<Session>,
    runners: Vec<QueueRunner>,
    stop: Cancellation,
    /// The first error of a thread.
    error: Mutex<Option<Error>>,
}

#[derive(Debug)]
struct QueueRunner {
    def: QueueRunnerDef,
    n_running: AtomicUsize,
}

impl QueueRunner {
    fn new(def: &QueueRunnerDef) -> QueueRunner {
        let n_running = AtomicUsize::new(def.enqueue_op_name.len());
        QueueRunner { def: def.clone(), n_running }
    }

    /// Whether an error says that the queue is closed.
    fn is_closed_by(&self, error: &Error) -> bool {
        match &self.def.queue_closed_exception_types[..] {
            [] => error.code() == Code::OutOfRange,
            codes => codes.contains(&error.code().number()),
        }
    }
}

impl QueueRunners {
    /// Begins a thread for each op, within the budget of this one.
    pub(super) fn start(session: &Arc<Session>, defs: &[QueueRunnerDef]) -> Result<QueueRunners> {
        check_count(defs)?;
        let shared = Arc::new(RunnerState {
            session: session.clone(),
            runners: defs.iter().map(QueueRunner::new).collect(),
            stop: Cancellation::new(),
            error: Mutex::default(),
        });
        let mut this = QueueRunners { shared, threads: Vec::new() };
        for (index, def) in defs.iter().enumerate() {
            for op in &def.enqueue_op_name {
                let (shared, op, bounds) =
                    (this.shared.clone(), op.clone(), SharedBounds::of_thread());
                let fill = move || {
                    let _entered = bounds.enter();
                    shared.fill(index, &op);
                };
                let thread = thread::Builder::new().spawn(fill);
                let failed = |source: std::io::Error| MonitoredError::NoThread {
                    queue: def.queue_name.clone(),
                    reason: source.to_string(),
                };
                this.threads.push(thread.map_err(failed)?);
            }
        }
        Ok(this)
    }

    /// Whether a thread failed with an error that this holds for.
    pub(super) fn failed_with(&self, is_meant: impl Fn(&Error) -> bool) -> bool {
        self.shared.error().as_ref().is_some_and(is_meant)
    }

    /// Ends the threads; returns the error of the first that failed.
    pub(super) fn stop(&mut self) -> Option<Error> {
        if !self.threads.is_empty() {
            self.shared.cancel();
        }
        for thread in mem::take(&mut self.threads) {
            drop(thread.join());
        }
        self.shared.error().take()
    }
}

impl Drop for QueueRunners {
    fn drop(&mut self) {
        drop(self.stop());
    }
}

impl RunnerState {
    fn error(&self) -> std::sync::MutexGuard<'_, Option<Error>> {
        self.error.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The life of a thread.
    fn fill(&self, index: usize, op: &str) {
        let runner = &self.runners[index];
        let Err(error) = self.run_until_stop(op) else { return };
        let is_closed = runner.is_closed_by(&error);
        let is_last = runner.n_running.fetch_sub(1, Ordering::AcqRel) == 1;
        match is_closed {
            true if is_last => self.run_ignoring(&runner.def.close_op_name),
            true => {}
            false if self.stop.is_cancelled() => {}
            false => self.fail(error),
        }
    }

    fn run_until_stop(&self, op: &str) -> Result<()> {
        let options =
            CallOptions { cancellation: Some(self.stop.clone()), ..CallOptions::default() };
        self.session.context().within(&options, || {
            while !self.stop.is_cancelled() {
                self.session.run(&[], &[], &[op])?;
            }
            Ok(())
        })
    }

    fn fail(&self, error: Error) {
        tracing::error!("a queue runner failed: {error}");
        self.error().get_or_insert(error);
        self.cancel();
    }

    /// Ends the runs of all threads, and all waits for the queues.
    fn cancel(&self) {
        self.stop.cancel();
        for runner in &self.runners {
            self.run_ignoring(&runner.def.cancel_op_name);
        }
    }

    /// Runs an op that closes a queue, which may be closed already.
    fn run_ignoring(&self, op: &str) {
        if !op.is_empty()
            && let Err(error) = self.session.run(&[], &[], &[op])
        {
            tracing::debug!("`{op}` failed: {error}");
        }
    }
}

fn check_count(defs: &[QueueRunnerDef]) -> Result<()> {
    let n_threads: usize = defs.iter().map(|def| def.enqueue_op_name.len()).sum();
    if n_threads <= MAX_THREADS {
        return Ok(());
    }
    let (what, needed) = ("the queue runners of a graph".into(), format!("{n_threads} threads"));
    Err(IrError::Limit { what, needed, limit: MAX_THREADS as u64 }.into())
}
