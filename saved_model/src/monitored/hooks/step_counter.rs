//! Hook that measures steps per second.

use crate::{
    error::Result,
    monitored::{
        event_file::EventFile,
        global_step::GlobalStep,
        hook::{SessionRunContext, SessionRunHook},
        scaffold::Scaffold,
        time::TimeSource,
        timer::{HookInterval, SecondOrStepTimer, SinceTrigger},
    },
    session::Session,
};
use ferroflow_runtime::EagerTensor;
use std::{path::Path, sync::Arc};

/// Counts steps, and every so many steps or seconds writes their number per second to an event
/// file, under the name of the global step with `/sec` behind.
#[derive(Debug)]
pub struct StepCounterHook {
    global_step: GlobalStep,
    events: Arc<EventFile>,
    time: Arc<dyn TimeSource>,
    timer: SecondOrStepTimer,
}

impl StepCounterHook {
    /// A hook that writes to a folder.
    ///
    /// # Errors
    ///
    /// When the graph has no global step.
    pub fn new(
        scaffold: &Scaffold,
        folder: impl AsRef<Path>,
        interval: HookInterval,
    ) -> Result<StepCounterHook> {
        Ok(StepCounterHook {
            global_step: scaffold.global_step_for("StepCounterHook")?,
            events: scaffold.event_file(folder),
            time: scaffold.time.clone(),
            timer: SecondOrStepTimer::new(interval),
        })
    }

    fn write(&self, step: i64, since: SinceTrigger) -> Result<()> {
        let tag = format!("{}/sec", self.global_step.variable());
        let per_second = since.steps as f64 / since.time.as_secs_f64();
        tracing::info!("{tag}: {per_second}");
        self.events.add_scalar(step, &tag, per_second as f32)
    }
}

impl SessionRunHook for StepCounterHook {
    fn begin(&mut self, scaffold: &mut Scaffold) -> Result<()> {
        self.events.begin(&scaffold.meta_graph)
    }

    fn after_run(&mut self, context: &mut SessionRunContext<'_>, _: &[EagerTensor]) -> Result<()> {
        let (step, now) = (self.global_step.read(context.session())?, self.time.now());
        if self.timer.is_due(step, now)
            && let Some(since) = self.timer.trigger(step, now)
        {
            self.write(step, since)?;
        }
        Ok(())
    }

    fn end(&mut self, _: &Session) -> Result<()> {
        self.events.flush()
    }
}
