//! Hook that waits for a step.

use crate::{
    error::Result,
    monitored::{
        error::MonitoredError,
        global_step::GlobalStep,
        hook::{SessionRunArgs, SessionRunContext, SessionRunHook},
        scaffold::Scaffold,
        time::TimeSource,
    },
};
use std::{sync::Arc, time::Duration};

/// Time from one look at the global step to the next.
const POLL: Duration = Duration::from_millis(500);

/// Waits before the first run until the global step has reached a number, so that workers begin one
/// after the other.
#[derive(Debug)]
pub struct GlobalStepWaiterHook {
    global_step: GlobalStep,
    time: Arc<dyn TimeSource>,
    wait_until_step: i64,
    max_wait: Option<Duration>,
    has_begun: bool,
}

impl GlobalStepWaiterHook {
    /// A hook that waits for a step, however long that takes.
    ///
    /// # Errors
    ///
    /// When the graph has no global step.
    pub fn new(scaffold: &Scaffold, wait_until_step: i64) -> Result<GlobalStepWaiterHook> {
        Ok(GlobalStepWaiterHook {
            global_step: scaffold.global_step_for("GlobalStepWaiterHook")?,
            time: scaffold.time.clone(),
            wait_until_step,
            max_wait: None,
            has_begun: wait_until_step <= 0,
        })
    }

    /// Waits no longer than this, and fails then with [`MonitoredError::NeverReady`].
    #[must_use]
    pub fn max_wait(self, max_wait: Duration) -> GlobalStepWaiterHook {
        GlobalStepWaiterHook { max_wait: Some(max_wait), ..self }
    }

    fn check_time(&self, since: Duration, step: i64) -> Result<()> {
        let waited = self.time.now().saturating_sub(since);
        match self.max_wait {
            Some(max) if waited >= max => {
                let until = self.wait_until_step;
                let missing = format!("the global step is {step}, not yet {until}");
                Err(MonitoredError::NeverReady { waited, missing }.into())
            }
            _ => Ok(()),
        }
    }
}

impl SessionRunHook for GlobalStepWaiterHook {
    fn before_run(&mut self, context: &mut SessionRunContext<'_>) -> Result<SessionRunArgs> {
        let since = self.time.now();
        while !self.has_begun {
            let step = self.global_step.read(context.session())?;
            self.has_begun = step >= self.wait_until_step;
            if !self.has_begun {
                self.check_time(since, step)?;
                self.time.sleep(POLL)?;
            }
        }
        Ok(SessionRunArgs::default())
    }
}
