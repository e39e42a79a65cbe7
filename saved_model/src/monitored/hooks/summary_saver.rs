//! Hook that writes summaries.

use crate::{
    error::Result,
    file::decode_message,
    monitored::{
        event_file::EventFile,
        global_step::GlobalStep,
        hook::{SessionRunArgs, SessionRunContext, SessionRunHook},
        scaffold::Scaffold,
        time::TimeSource,
        timer::{HookInterval, SecondOrStepTimer},
    },
    proto::{Summary, session_log::SessionStatus},
    session::Session,
};
use ferroflow_runtime::EagerTensor;
use std::{path::Path, sync::Arc};

/// Fetches serialized summaries with the first run and then every so many steps or seconds, and
/// writes them to an event file.
#[derive(Debug)]
pub struct SummarySaverHook {
    summary_op: Vec<String>,
    global_step: GlobalStep,
    events: Arc<EventFile>,
    time: Arc<dyn TimeSource>,
    timer: SecondOrStepTimer,
    /// The step that the next run is expected to end at; `None` before the first run.
    next_step: Option<i64>,
    is_requested: bool,
}

impl SummarySaverHook {
    /// A hook that writes the summaries of the scaffold to a folder.
    ///
    /// # Errors
    ///
    /// When the graph has no global step.
    pub fn new(
        scaffold: &Scaffold,
        folder: impl AsRef<Path>,
        interval: HookInterval,
    ) -> Result<SummarySaverHook> {
        Ok(SummarySaverHook {
            summary_op: scaffold.summary_op.clone(),
            global_step: scaffold.global_step_for("SummarySaverHook")?,
            events: scaffold.event_file(folder),
            time: scaffold.time.clone(),
            timer: SecondOrStepTimer::new(interval),
            next_step: None,
            is_requested: false,
        })
    }

    /// Writes the summaries in these tensors.
    #[must_use]
    pub fn summary_op<N: Into<String>>(self, tensors: impl IntoIterator<Item = N>) -> Self {
        SummarySaverHook { summary_op: tensors.into_iter().map(Into::into).collect(), ..self }
    }

    fn write(&self, step: i64, values: &[EagerTensor]) -> Result<()> {
        for (name, value) in self.summary_op.iter().zip(values) {
            for bytes in value.host()?.strings()? {
                let summary: Summary = decode_message(Path::new(name), bytes.clone())?;
                self.events.add_summary(step, summary)?;
            }
        }
        Ok(())
    }
}

impl SessionRunHook for SummarySaverHook {
    fn begin(&mut self, scaffold: &mut Scaffold) -> Result<()> {
        self.next_step = None;
        self.events.begin(&scaffold.meta_graph)
    }

    fn before_run(&mut self, _: &mut SessionRunContext<'_>) -> Result<SessionRunArgs> {
        let is_due = |step| self.timer.is_due(step, self.time.now());
        self.is_requested = self.next_step.is_none_or(is_due);
        let none = SessionRunArgs::default();
        Ok(if self.is_requested { SessionRunArgs::fetching(&self.summary_op) } else { none })
    }

    fn after_run(
        &mut self,
        context: &mut SessionRunContext<'_>,
        values: &[EagerTensor],
    ) -> Result<()> {
        let step = self.global_step.read(context.session())?;
        if self.next_step.is_none() {
            self.events.add_session_log(step, SessionStatus::Start, Path::new(""))?;
        }
        if self.is_requested {
            self.timer.trigger(step, self.time.now());
            self.write(step, values)?;
        }
        self.next_step = Some(step.saturating_add(1));
        Ok(())
    }

    fn end(&mut self, _: &Session) -> Result<()> {
        self.events.flush()
    }
}
