//! Worker processes that run cases, started again when they are lost.

use anyhow::{Context, Result};
use serde_json::Value;
use std::{
    collections::VecDeque,
    io::{BufRead, BufReader, Write},
    path::PathBuf,
    process::{Child, ChildStdin, Command, Stdio},
    sync::{
        Mutex,
        mpsc::{Receiver, RecvTimeoutError, channel},
    },
    time::Duration,
};

/// Program that workers run.
#[derive(Clone, Debug)]
pub(crate) struct WorkerProgram {
    pub(crate) path: PathBuf,
    pub(crate) arguments: Vec<String>,
}

/// A worker, running or to be started.
pub(crate) struct Worker {
    program: WorkerProgram,
    running: Option<Running>,
}

struct Running {
    child: Child,
    input: ChildStdin,
    lines: Receiver<String>,
}

/// Next message from a worker.
pub(crate) enum Reply {
    /// A line of its own.
    Line(Value),
    /// The process is gone, and how it went.
    Lost(String),
}

impl Worker {
    pub(crate) fn new(program: &WorkerProgram) -> Worker {
        Worker { program: program.clone(), running: None }
    }

    /// Hands a job to the worker.
    pub(crate) fn send(&mut self, job: &Value) -> Result<()> {
        if self.running.is_none() {
            self.running = Some(start(&self.program)?);
        }
        if let Some(running) = &mut self.running {
            // A worker that died since its last job is found out when its answer is read.
            let _ = writeln!(running.input, "{job}").and_then(|()| running.input.flush());
        }
        Ok(())
    }

    /// The next line of the worker; kills it if there is none for so long.
    pub(crate) fn next(&mut self, patience: Duration) -> Result<Reply> {
        let Some(mut running) = self.running.take() else {
            return Ok(Reply::Lost("no worker".into()));
        };
        match running.lines.recv_timeout(patience) {
            Ok(line) => {
                self.running = Some(running);
                let line = serde_json::from_str(&line).context("a worker answers in JSON")?;
                Ok(Reply::Line(line))
            }
            Err(RecvTimeoutError::Timeout) => {
                running.child.kill()?;
                running.child.wait()?;
                Ok(Reply::Lost(format!("no answer within {} s", patience.as_secs())))
            }
            Err(RecvTimeoutError::Disconnected) => {
                Ok(Reply::Lost(format!("crash, {}", running.child.wait()?)))
            }
        }
    }

    /// Ends the process at once, whatever it is doing.
    pub(crate) fn kill(&mut self) -> Result<()> {
        if let Some(Running { mut child, .. }) = self.running.take() {
            child.kill()?;
            child.wait()?;
        }
        Ok(())
    }

    /// Makes sure that the next job runs in a process of its own.
    pub(crate) fn stop(&mut self) -> Result<()> {
        if let Some(Running { mut child, input, .. }) = self.running.take() {
            drop(input);
            child.wait()?;
        }
        Ok(())
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        // At the end of its input a worker ends; whether it does so well is of no interest here.
        let _ = self.stop();
    }
}

/// Starts a worker. Its verifiers run, in release builds too.
fn start(program: &WorkerProgram) -> Result<Running> {
    let mut child = Command::new(&program.path)
        .args(&program.arguments)
        .env("FERROFLOW_VERIFY", "1")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .with_context(|| format!("cannot start {}", program.path.display()))?;
    let input = child.stdin.take().context("a worker has an input")?;
    let output = child.stdout.take().context("a worker has an output")?;
    let (sender, lines) = channel();
    std::thread::spawn(move || {
        for line in BufReader::new(output).lines().map_while(Result::ok) {
            if sender.send(line).is_err() {
                break;
            }
        }
    });
    Ok(Running { child, input, lines })
}

/// Does `each` with every job, on one worker per core.
pub(crate) fn on_workers<J: Send>(
    program: &WorkerProgram,
    jobs: Vec<J>,
    each: impl Fn(&mut Worker, J) -> Result<()> + Sync,
) -> Result<()> {
    let n_threads = std::thread::available_parallelism().map_or(1, |n| n.get());
    let queue = Mutex::new(VecDeque::from(jobs));
    let next = || queue.lock().expect("no thread panics with the queue").pop_front();
    std::thread::scope(|scope| {
        let run = || -> Result<()> {
            let mut worker = Worker::new(program);
            while let Some(job) = next() {
                each(&mut worker, job)?;
            }
            Ok(())
        };
        let threads: Vec<_> = (0..n_threads).map(|_| scope.spawn(run)).collect();
        threads.into_iter().try_for_each(|thread| thread.join().expect("threads do not panic"))
    })
}
