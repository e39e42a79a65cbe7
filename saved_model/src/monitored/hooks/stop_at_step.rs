//! Hook that stops at a step.

use crate::{
    error::Result,
    monitored::{
        global_step::GlobalStep,
        hook::{SessionRunContext, SessionRunHook},
        scaffold::Scaffold,
    },
    session::Session,
};
use ferroflow_runtime::EagerTensor;

/// Stops when the global step has reached a number, or after so many steps.
#[derive(Debug)]
pub struct StopAtStepHook {
    global_step: GlobalStep,
    num_steps: i64,
    last_step: Option<i64>,
}

impl StopAtStepHook {
    /// A hook that stops when so many steps were run after the first session was made.
    ///
    /// # Errors
    ///
    /// When the graph has no global step.
    pub fn num_steps(scaffold: &Scaffold, num_steps: i64) -> Result<StopAtStepHook> {
        let global_step = scaffold.global_step_for("StopAtStepHook")?;
        Ok(StopAtStepHook { global_step, num_steps, last_step: None })
    }

    /// A hook that stops when the global step is this or more.
    ///
    /// # Errors
    ///
    /// When the graph has no global step.
    pub fn last_step(scaffold: &Scaffold, last_step: i64) -> Result<StopAtStepHook> {
        let hook = StopAtStepHook::num_steps(scaffold, 0)?;
        Ok(StopAtStepHook { last_step: Some(last_step), ..hook })
    }
}

impl SessionRunHook for StopAtStepHook {
    fn after_create_session(&mut self, session: &Session, _: &Scaffold) -> Result<()> {
        if self.last_step.is_none() {
            let step = self.global_step.read(session)?;
            self.last_step = Some(step.saturating_add(self.num_steps));
        }
        Ok(())
    }

    fn after_run(&mut self, context: &mut SessionRunContext<'_>, _: &[EagerTensor]) -> Result<()> {
        let step = self.global_step.read(context.session())?;
        if self.last_step.is_some_and(|last| step >= last) {
            context.request_stop();
        }
        Ok(())
    }
}
