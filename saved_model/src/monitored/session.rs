//! Monitored session: a session with hooks that is made again after failures.

use super::{
    creator::SessionCreator,
    error::MonitoredError,
    hook::{SessionRunArgs, SessionRunHook},
    hooked::Hooks,
    queue_runners::QueueRunners,
};
use crate::{
    error::{Error, Result},
    session::Session,
};
use ferroflow_ir::Code;
use ferroflow_runtime::EagerTensor;
use std::{fmt, sync::Arc};

/// Number of times in a row that a session is made again, if nothing else is said.
const MAX_RECOVERIES: u32 = 20;

/// Session of a training: it initialises or restores the model, calls hooks around each run, and is
/// made again when a run is aborted or something is unavailable.
///
/// Hooks end with [`run_until_stop`](MonitoredSession::run_until_stop) or
/// [`close`](MonitoredSession::close); a session that is dropped, as after an error, does not call
/// them.
pub struct MonitoredSession<'h> {
    creator: Box<dyn SessionCreator + 'h>,
    hooks: Hooks<'h>,
    /// `None` between a failure and the run that makes a new one.
    session: Option<RunningSession>,
    max_recoveries: u32,
    n_recoveries: u32,
}

/// Session whose queues are filled.
struct RunningSession {
    session: Arc<Session>,
    queue_runners: QueueRunners,
}

impl fmt::Debug for MonitoredSession<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MonitoredSession")
            .field("session", &self.session())
            .field("n_hooks", &self.hooks.list.len())
            .field("should_stop", &self.hooks.should_stop)
            .finish_non_exhaustive()
    }
}

impl<'h> MonitoredSession<'h> {
    /// A session with hooks. These begin before there is a session and see it when it is ready, in
    /// the order of the list.
    ///
    /// # Errors
    ///
    /// When the session cannot be made, or a hook fails.
    pub fn new(
        creator: impl SessionCreator + 'h,
        hooks: Vec<Box<dyn SessionRunHook + 'h>>,
    ) -> Result<MonitoredSession<'h>> {
        MonitoredSession::recovering(creator, hooks, MAX_RECOVERIES)
    }

    /// A session that is made again so many times in a row, until a run succeeds; with 0, failures
    /// are errors, as in TensorFlow's `SingularMonitoredSession`.
    ///
    /// # Errors
    ///
    /// As [`new`](MonitoredSession::new).
    pub fn recovering(
        creator: impl SessionCreator + 'h,
        mut hooks: Vec<Box<dyn SessionRunHook + 'h>>,
        max_recoveries: u32,
    ) -> Result<MonitoredSession<'h>> {
        let mut creator = Box::new(creator);
        hooks.iter_mut().try_for_each(|hook| hook.begin(creator.scaffold()))?;
        let hooks = Hooks { list: hooks, should_stop: false };
        let (session, n_recoveries) = (None, 0);
        let mut this = MonitoredSession { creator, hooks, session, max_recoveries, n_recoveries };
        this.recovered(|_, _| Ok(()))?;
        Ok(this)
    }

    /// Whether a hook or a step asked the session to stop, or a queue runner failed.
    pub fn should_stop(&self) -> bool {
        let is_fault = |error: &Error| !is_preemption(error);
        let running = self.session.as_ref();
        self.hooks.should_stop || running.is_some_and(|s| s.queue_runners.failed_with(is_fault))
    }

    /// The session, whose own runs call no hook; `None` after a failure, until the next run.
    pub fn session(&self) -> Option<&Session> {
        self.session.as_ref().map(|running| &*running.session)
    }

    /// Runs as [`Session::run`] does, with the hooks around. If the run is aborted or something is
    /// unavailable, the session is made again, from the newest checkpoint, and the run tried again.
    ///
    /// # Errors
    ///
    /// Errors of the run and of hooks; [`MonitoredError::RunAfterStop`].
    pub fn run(
        &mut self,
        feeds: &[(&str, EagerTensor)],
        fetches: &[&str],
        targets: &[&str],
    ) -> Result<Vec<EagerTensor>> {
        let args = SessionRunArgs::of_names(feeds, fetches, targets);
        self.recovered(|session, hooks| hooks.run(session, &args))
    }

    /// Runs a step that is made of several runs, with hooks and without. After a failure all of it
    /// is tried again.
    ///
    /// # Errors
    ///
    /// Those of the step.
    pub fn run_step_fn<R>(
        &mut self,
        mut step: impl FnMut(&mut StepContext<'_, 'h>) -> Result<R>,
    ) -> Result<R> {
        self.recovered(|session, hooks| step(&mut StepContext { session, hooks }))
    }

    /// Runs steps until one, or a hook, asks to stop, or the data end (a status `OutOfRange`); then
    /// the hooks end, as at the end of Python's `with` block.
    ///
    /// # Errors
    ///
    /// Any other error of a step, after which no hook ends, and errors of the hooks as they end.
    pub fn run_until_stop(mut self, mut step: impl FnMut(&mut Self) -> Result<()>) -> Result<()> {
        while !self.should_stop() {
            match step(&mut self) {
                Err(error) if is_end(&error) => break,
                result => result?,
            }
        }
        self.close()
    }

    /// Ends: the hooks are called with the session, then its queue runners end.
    ///
    /// # Errors
    ///
    /// Those of the hooks, and of queue runners, unless a new session might do better.
    pub fn close(mut self) -> Result<()> {
        let MonitoredSession { session, hooks, .. } = &mut self;
        let Some(RunningSession { session, queue_runners }) = session else { return Ok(()) };
        hooks.list.iter_mut().try_for_each(|hook| hook.end(session))?;
        let error = queue_runners.stop().filter(|error| !is_preemption(error));
        error.map_or(Ok(()), Err)
    }

    /// Does something with the session, which is made if there is none, and made again after a
    /// failure that a new one may not have.
    fn recovered<R>(
        &mut self,
        mut act: impl FnMut(&Session, &mut Hooks<'h>) -> Result<R>,
    ) -> Result<R> {
        loop {
            let result = self.create().and_then(|()| match &self.session {
                Some(running) => act(&running.session, &mut self.hooks),
                None => Err(MonitoredError::RunAfterStop.into()),
            });
            match result.map_err(|error| self.root_cause(error)) {
                Err(error) if is_preemption(&error) => self.drop_failed(error)?,
                result => {
                    self.n_recoveries = 0;
                    return result;
                }
            }
        }
    }

    /// Makes a session if there is none.
    fn create(&mut self) -> Result<()> {
        if self.session.is_some() {
            return Ok(());
        }
        let session = Arc::new(self.creator.create_session()?);
        self.hooks.should_stop = false;
        let queue_runners = QueueRunners::start(&session, &self.creator.scaffold().queue_runners)?;
        for hook in &mut self.hooks.list {
            hook.after_create_session(&session, self.creator.scaffold())?;
        }
        self.session = Some(RunningSession { session, queue_runners });
        Ok(())
    }

    /// The error of a queue runner that made a run fail, if a new session might do better.
    fn root_cause(&mut self, error: Error) -> Error {
        let failed =
            |running: &&mut RunningSession| running.queue_runners.failed_with(is_preemption);
        let running = self.session.as_mut().filter(failed);
        running.and_then(|running| running.queue_runners.stop()).unwrap_or(error)
    }

    /// Drops a session that failed, if it may be made again.
    fn drop_failed(&mut self, error: Error) -> Result<()> {
        self.session = None;
        if self.n_recoveries == self.max_recoveries {
            return Err(error);
        }
        self.n_recoveries += 1;
        tracing::warn!("the session failed and is made again: {error}");
        Ok(())
    }
}

/// Step of a training, as [`run_step_fn`](MonitoredSession::run_step_fn) calls it.
pub struct StepContext<'a, 'h> {
    session: &'a Session,
    hooks: &'a mut Hooks<'h>,
}

impl fmt::Debug for StepContext<'_, '_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StepContext").field("session", self.session).finish_non_exhaustive()
    }
}

impl<'a> StepContext<'a, '_> {
    /// The session, whose own runs call no hook.
    pub fn session(&self) -> &'a Session {
        self.session
    }

    /// Runs with the hooks around.
    ///
    /// # Errors
    ///
    /// As [`MonitoredSession::run`].
    pub fn run_with_hooks(
        &mut self,
        feeds: &[(&str, EagerTensor)],
        fetches: &[&str],
        targets: &[&str],
    ) -> Result<Vec<EagerTensor>> {
        self.hooks.run(self.session, &SessionRunArgs::of_names(feeds, fetches, targets))
    }

    /// Asks the session to stop; the step returns the error that comes back.
    #[must_use]
    pub fn request_stop(&mut self) -> Error {
        self.hooks.should_stop = true;
        MonitoredError::StopRequested.into()
    }
}

/// Whether a new session may do better.
fn is_preemption(error: &Error) -> bool {
    matches!(error.code(), Code::Aborted | Code::Unavailable)
}

/// Whether an error ends the loop of a training, which is not a fault.
fn is_end(error: &Error) -> bool {
    let is_stop = matches!(
        error,
        Error::Monitored(error) if matches!(**error, MonitoredError::StopRequested)
    );
    is_stop || error.code() == Code::OutOfRange
}
