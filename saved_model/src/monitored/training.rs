//! Sessions of trainings with the hooks that these mostly have.

use super::{
    creator::ChiefSessionCreator,
    hook::SessionRunHook,
    hooks::{CheckpointSaverHook, StepCounterHook, SummarySaverHook},
    scaffold::Scaffold,
    session::MonitoredSession,
    timer::HookInterval,
};
use crate::error::Result;
use ferroflow_runtime::Context;
use std::{path::PathBuf, time::Duration};

/// Folders and intervals of a training.
#[derive(Debug, Clone)]
pub struct MonitoredTrainingOptions {
    /// The folder of checkpoints, from the newest of which the training goes on.
    pub checkpoint_dir: Option<PathBuf>,
    /// The folder of event files; that of checkpoints, if `None`.
    pub summary_dir: Option<PathBuf>,
    /// Interval of checkpoints.
    pub save_checkpoint: HookInterval,
    /// Interval of summaries.
    pub save_summaries: HookInterval,
    /// Interval of the numbers of steps per second.
    pub log_step_count: HookInterval,
}

impl Default for MonitoredTrainingOptions {
    /// TensorFlow's intervals: checkpoints every ten minutes, the others every hundred steps.
    fn default() -> MonitoredTrainingOptions {
        MonitoredTrainingOptions {
            checkpoint_dir: None,
            summary_dir: None,
            save_checkpoint: HookInterval::Time(Duration::from_secs(600)),
            save_summaries: HookInterval::Steps(100),
            log_step_count: HookInterval::Steps(100),
        }
    }
}

/// The session of a chief that saves checkpoints, writes summaries and counts steps, as
/// TensorFlow's `MonitoredTrainingSession`. The hooks of the caller come after its own.
///
/// # Errors
///
/// As [`MonitoredSession::new`]; when there is a folder to write to and the graph has no global
/// step.
pub fn monitored_training_session<'h>(
    context: &Context,
    scaffold: Scaffold,
    hooks: Vec<Box<dyn SessionRunHook + 'h>>,
    options: &MonitoredTrainingOptions,
) -> Result<MonitoredSession<'h>> {
    let mut all = usual_hooks(&scaffold, options)?;
    all.extend(hooks);
    let mut chief = ChiefSessionCreator::new(context, scaffold);
    if let Some(folder) = &options.checkpoint_dir {
        chief = chief.checkpoint_dir(folder);
    }
    MonitoredSession::new(chief, all)
}

fn usual_hooks<'h>(
    scaffold: &Scaffold,
    options: &MonitoredTrainingOptions,
) -> Result<Vec<Box<dyn SessionRunHook + 'h>>> {
    let mut hooks: Vec<Box<dyn SessionRunHook + 'h>> = Vec::new();
    let is_wanted = |interval: HookInterval| interval != HookInterval::Never;
    if let Some(folder) = options.summary_dir.as_ref().or(options.checkpoint_dir.as_ref()) {
        if is_wanted(options.log_step_count) {
            hooks.push(Box::new(StepCounterHook::new(scaffold, folder, options.log_step_count)?));
        }
        if is_wanted(options.save_summaries) {
            hooks.push(Box::new(SummarySaverHook::new(scaffold, folder, options.save_summaries)?));
        }
    }
    if let Some(folder) = &options.checkpoint_dir
        && is_wanted(options.save_checkpoint)
    {
        hooks.push(Box::new(CheckpointSaverHook::new(scaffold, folder, options.save_checkpoint)?));
    }
    Ok(hooks)
}
