//! Hooks: code that runs around the runs of a monitored session.

use super::{error::MonitoredError, scaffold::Scaffold};
use crate::{error::Result, session::Session};
use ferroflow_runtime::EagerTensor;
use std::fmt;

/// Code that runs around the runs of a session. Every method does nothing, unless it is
/// implemented.
///
/// A method that fails ends the session as a failed run does: with an aborted or unavailable status
/// the session is made again and the run is tried again, and any other error comes back from
/// [`run`](super::MonitoredSession::run).
///
/// ```
/// use ferroflow_saved_model::{
///     Result,
///     monitored::{SessionRunArgs, SessionRunContext, SessionRunHook},
/// };
/// use ferroflow_runtime::EagerTensor;
///
/// /// Stops when the loss is small.
/// struct StopAtLoss(f32);
///
/// impl SessionRunHook for StopAtLoss {
///     fn before_run(&mut self, _: &mut SessionRunContext<'_>) -> Result<SessionRunArgs> {
///         Ok(SessionRunArgs::fetching(["loss:0"]))
///     }
///
///     fn after_run(
///         &mut self,
///         context: &mut SessionRunContext<'_>,
///         values: &[EagerTensor],
///     ) -> Result<()> {
///         if values[0].host()?.as_scalar::<f32>()? < self.0 {
///             context.request_stop();
///         }
///         Ok(())
///     }
/// }
/// ```
pub trait SessionRunHook {
    /// Called once, before there is a session: the graph may still be changed.
    ///
    /// # Errors
    ///
    /// Those of the hook.
    fn begin(&mut self, _scaffold: &mut Scaffold) -> Result<()> {
        Ok(())
    }

    /// Called with each new session, also one that was made after a failure.
    ///
    /// # Errors
    ///
    /// Those of the hook.
    fn after_create_session(&mut self, _session: &Session, _scaffold: &Scaffold) -> Result<()> {
        Ok(())
    }

    /// Called before each run; returns what to add to it.
    ///
    /// # Errors
    ///
    /// Those of the hook.
    fn before_run(&mut self, _context: &mut SessionRunContext<'_>) -> Result<SessionRunArgs> {
        Ok(SessionRunArgs::default())
    }

    /// Called after each run that succeeded, with the values of the tensors that
    /// [`before_run`](SessionRunHook::before_run) asked for, in its order.
    ///
    /// # Errors
    ///
    /// Those of the hook.
    fn after_run(
        &mut self,
        _context: &mut SessionRunContext<'_>,
        _values: &[EagerTensor],
    ) -> Result<()> {
        Ok(())
    }

    /// Called when the session ends without an error, or at the end of the data.
    ///
    /// # Errors
    ///
    /// Those of the hook.
    fn end(&mut self, _session: &Session) -> Result<()> {
        Ok(())
    }
}

/// A hook that the caller keeps, to ask it afterwards.
impl<H: SessionRunHook + ?Sized> SessionRunHook for &mut H {
    fn begin(&mut self, scaffold: &mut Scaffold) -> Result<()> {
        (**self).begin(scaffold)
    }

    fn after_create_session(&mut self, session: &Session, scaffold: &Scaffold) -> Result<()> {
        (**self).after_create_session(session, scaffold)
    }

    fn before_run(&mut self, context: &mut SessionRunContext<'_>) -> Result<SessionRunArgs> {
        (**self).before_run(context)
    }

    fn after_run(
        &mut self,
        context: &mut SessionRunContext<'_>,
        values: &[EagerTensor],
    ) -> Result<()> {
        (**self).after_run(context, values)
    }

    fn end(&mut self, session: &Session) -> Result<()> {
        (**self).end(session)
    }
}

/// Arguments of a run: of the caller, or those that a hook adds.
#[derive(Debug, Clone, Default)]
pub struct SessionRunArgs {
    /// The tensors to fetch.
    pub fetches: Vec<String>,
    /// The ops to run.
    pub targets: Vec<String>,
    /// The tensors to replace, and their values.
    pub feeds: Vec<(String, EagerTensor)>,
}

impl SessionRunArgs {
    /// Arguments that fetch these tensors.
    pub fn fetching<N: Into<String>>(fetches: impl IntoIterator<Item = N>) -> SessionRunArgs {
        let fetches = fetches.into_iter().map(Into::into).collect();
        SessionRunArgs { fetches, ..SessionRunArgs::default() }
    }

    /// Arguments that feed these values.
    pub fn feeding(feeds: Vec<(String, EagerTensor)>) -> SessionRunArgs {
        SessionRunArgs { feeds, ..SessionRunArgs::default() }
    }

    pub(super) fn of_names(
        feeds: &[(&str, EagerTensor)],
        fetches: &[&str],
        targets: &[&str],
    ) -> SessionRunArgs {
        let owned = |names: &[&str]| names.iter().map(|name| name.to_string()).collect();
        let feeds = feeds.iter().map(|(name, value)| (name.to_string(), value.clone())).collect();
        SessionRunArgs { fetches: owned(fetches), targets: owned(targets), feeds }
    }
}

/// A run, as its hooks see it.
pub struct SessionRunContext<'a> {
    session: &'a Session,
    original_args: &'a SessionRunArgs,
    stop_requested: bool,
}

impl fmt::Debug for SessionRunContext<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SessionRunContext")
            .field("original_args", self.original_args)
            .field("stop_requested", &self.stop_requested)
            .finish_non_exhaustive()
    }
}

impl<'a> SessionRunContext<'a> {
    pub(super) fn new(session: &'a Session, args: &'a SessionRunArgs) -> SessionRunContext<'a> {
        SessionRunContext { session, original_args: args, stop_requested: false }
    }

    /// The session, whose own runs call no hook.
    pub fn session(&self) -> &'a Session {
        self.session
    }

    /// The arguments of the caller.
    pub fn original_args(&self) -> &'a SessionRunArgs {
        self.original_args
    }

    /// Asks the session to stop after this run.
    pub fn request_stop(&mut self) {
        self.stop_requested = true;
    }

    /// Whether a hook asked the session to stop.
    pub fn stop_requested(&self) -> bool {
        self.stop_requested
    }
}

/// Error of a hook for a status code, such as one that makes the session be made again.
pub fn hook_error(code: ferroflow_ir::Code, message: impl Into<String>) -> crate::Error {
    MonitoredError::Hook { code, message: message.into() }.into()
}
