//! Hook that logs tensors.

use crate::{
    error::Result,
    monitored::{
        hook::{SessionRunArgs, SessionRunContext, SessionRunHook},
        scaffold::Scaffold,
        time::TimeSource,
        timer::{HookInterval, SecondOrStepTimer},
    },
    session::Session,
};
use ferroflow_runtime::EagerTensor;
use std::{fmt, sync::Arc};

/// Logs the values of tensors with the first run, then every so many runs or seconds, and at the
/// end, if that is asked for: `loss = 0.5, w = 2 (1.250 sec)`.
pub struct LoggingTensorHook {
    /// Names in the log, and those of the tensors.
    tensors: Vec<(String, String)>,
    log: Box<dyn FnMut(&str)>,
    time: Arc<dyn TimeSource>,
    interval: HookInterval,
    timer: SecondOrStepTimer,
    at_end: bool,
    n_runs: i64,
    is_due: bool,
}

impl fmt::Debug for LoggingTensorHook {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LoggingTensorHook")
            .field("tensors", &self.tensors)
            .field("timer", &self.timer)
            .field("at_end", &self.at_end)
            .finish_non_exhaustive()
    }
}

impl LoggingTensorHook {
    /// A hook that logs tensors, each with its name in the log, as events of `tracing`. Steps are
    /// counted by runs.
    pub fn new(
        scaffold: &Scaffold,
        tensors: &[(&str, &str)],
        interval: HookInterval,
    ) -> LoggingTensorHook {
        let owned = |&(tag, name): &(&str, &str)| (tag.to_string(), name.to_string());
        LoggingTensorHook {
            tensors: tensors.iter().map(owned).collect(),
            log: Box::new(|line| tracing::info!("{line}")),
            time: scaffold.time.clone(),
            interval,
            timer: SecondOrStepTimer::new(interval),
            at_end: false,
            n_runs: 0,
            is_due: false,
        }
    }

    /// Logs at the end, too.
    #[must_use]
    pub fn at_end(self) -> LoggingTensorHook {
        LoggingTensorHook { at_end: true, ..self }
    }

    /// Passes lines to a function.
    #[must_use]
    pub fn log_to(self, log: impl FnMut(&str) + 'static) -> LoggingTensorHook {
        LoggingTensorHook { log: Box::new(log), ..self }
    }

    fn names(&self) -> impl Iterator<Item = &str> {
        self.tensors.iter().map(|(_, name)| name.as_str())
    }

    fn log(&mut self, values: &[EagerTensor]) -> Result<()> {
        let since = self.timer.trigger(self.n_runs, self.time.now());
        let mut parts = Vec::new();
        for ((tag, _), value) in self.tensors.iter().zip(values) {
            parts.push(format!("{tag} = {}", value.host()?));
        }
        let elapsed = since.map(|since| format!(" ({:.3} sec)", since.time.as_secs_f64()));
        (self.log)(&format!("{}{}", parts.join(", "), elapsed.unwrap_or_default()));
        Ok(())
    }
}

impl SessionRunHook for LoggingTensorHook {
    fn begin(&mut self, _: &mut Scaffold) -> Result<()> {
        (self.timer, self.n_runs) = (SecondOrStepTimer::new(self.interval), 0);
        Ok(())
    }

    fn before_run(&mut self, _: &mut SessionRunContext<'_>) -> Result<SessionRunArgs> {
        self.is_due = self.timer.is_due(self.n_runs, self.time.now());
        let none = SessionRunArgs::default();
        Ok(if self.is_due { SessionRunArgs::fetching(self.names()) } else { none })
    }

    fn after_run(&mut self, _: &mut SessionRunContext<'_>, values: &[EagerTensor]) -> Result<()> {
        if self.is_due {
            self.log(values)?;
        }
        self.n_runs = self.n_runs.saturating_add(1);
        Ok(())
    }

    fn end(&mut self, session: &Session) -> Result<()> {
        if !self.at_end {
            return Ok(());
        }
        let names: Vec<&str> = self.names().collect();
        let values = session.run(&[], &names, &[])?;
        self.log(&values)
    }
}
