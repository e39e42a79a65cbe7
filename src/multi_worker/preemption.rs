//! Machines that are taken away: a checkpoint is written before, and training goes on from it elsewhere.

use super::MultiWorkerMirroredStrategy;
use crate::{
    Checkpoint, CheckpointManager, ManagerOptions, Tensor,
    distribute::{ReduceOp, replica_context},
    latest_checkpoint,
};
use ferroflow_ir::HostTensor;
use ferroflow_runtime::ResourceVariable;
use ferroflow_saved_model as saved_model;
use ferroflow_tracer as tracer;
use signal_hook::{SigId, consts::SIGTERM, flag, low_level};
use std::{
    io,
    ops::ControlFlow,
    path::PathBuf,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

/// Why a training that may be interrupted fails.
#[derive(Debug, thiserror::Error)]
pub enum PreemptionError {
    /// The signal of the system cannot be waited for.
    #[error("cannot wait for the signal that ends this process: {0}")]
    Signal(#[from] io::Error),
    /// The checkpoint cannot be restored or written.
    #[error(transparent)]
    Checkpoint(#[from] saved_model::Error),
    /// A step failed, or another process is gone.
    #[error(transparent)]
    Step(#[from] tracer::Error),
    /// The first process did not write the checkpoint, or wrote it where this one does not see it.
    #[error("task 0 left no checkpoint that this process sees")]
    Unwritten,
    /// Processes that restored different checkpoints.
    #[error(
        "the processes begin after {steps:?} steps: all must see the checkpoints of one folder"
    )]
    Steps {
        /// The steps after which each begins.
        steps: Vec<i64>,
    },
}

/// Checkpoint of a training in several processes, written when a system asks one of them to end (`SIGTERM`), as
/// schedulers do before they take a machine away. All processes leave after the same step. When they start
/// again they go on from there: what they learn is what they would have learned.
///
/// TensorFlow's `PreemptionCheckpointHandler` has the same purpose. Here all processes are of ferroflow, agree
/// by one reduction of a number after each step, and the first of them writes; all must see its folder when
/// they start.
///
/// ```no_run
/// use ferroflow::{
///     Checkpoint, Variable,
///     multi_worker::{MultiWorkerMirroredStrategy, PreemptionCheckpoint},
/// };
/// use std::ops::ControlFlow;
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let strategy = MultiWorkerMirroredStrategy::from_env()?;
/// let w = strategy.scope(|| Variable::new(1.0f32))?;
/// let checkpoint = Checkpoint::new().with("w", &w);
/// let mut training = PreemptionCheckpoint::restore(&strategy, checkpoint, "/shared/training")?;
/// while training.steps() < 1000 {
///     if let ControlFlow::Break(path) = training.run(|| w.assign_add(0.1f32))? {
///         println!("saved {}", path.display());
///         return Ok(());
///     }
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct PreemptionCheckpoint<'a> {
    strategy: &'a MultiWorkerMirroredStrategy,
    manager: CheckpointManager<'a>,
    folder: PathBuf,
    counter: ResourceVariable,
    steps: i64,
    is_asked: Arc<AtomicBool>,
    handler: SigId,
}

impl<'a> PreemptionCheckpoint<'a> {
    /// Restores the newest checkpoint of the folder, if there is one, and waits for the signal from now on.
    /// The number of steps is part of the checkpoint, as `preemption_steps`.
    ///
    /// # Errors
    ///
    /// When the checkpoint does not fit, when processes restore different ones, and when one is gone.
    pub fn restore(
        strategy: &'a MultiWorkerMirroredStrategy,
        checkpoint: Checkpoint<'a>,
        folder: impl Into<PathBuf>,
    ) -> Result<PreemptionCheckpoint<'a>, PreemptionError> {
        let folder = folder.into();
        let counter = ResourceVariable::new("preemption_steps", HostTensor::scalar(0i64));
        let checkpoint = checkpoint.with("preemption_steps", counter.clone());
        let manager =
            CheckpointManager::new(checkpoint, folder.clone(), ManagerOptions::default())?;
        manager.restore_or_initialize(|| Ok(()))?;
        let steps = counter.read().and_then(|value| Ok(value.as_scalar::<i64>()?));
        let steps = steps.map_err(tracer::Error::from)?;
        let all = strategy.values_from(|_| Ok(Tensor::from(&[steps][..])))?;
        let all = strategy.run(&all, |steps| replica_context()?.all_gather(&steps))?;
        let all = all.values()[0].to_vec::<i64>()?;
        if all.iter().any(|&other| other != steps) {
            return Err(PreemptionError::Steps { steps: all });
        }
        let is_asked = Arc::new(AtomicBool::new(false));
        let handler = flag::register(SIGTERM, is_asked.clone())?;
        Ok(PreemptionCheckpoint { strategy, manager, folder, counter, steps, is_asked, handler })
    }

    /// The number of steps that were run, those before the checkpoint included.
    pub fn steps(&self) -> i64 {
        self.steps
    }

    /// Runs a step. When a process was asked to end, the checkpoint is written, and its path is the
    /// [`ControlFlow::Break`] of all processes, which are then to end.
    ///
    /// # Errors
    ///
    /// Those of the step; when another process is gone, or the checkpoint cannot be written.
    pub fn run<R>(
        &mut self,
        step: impl FnOnce() -> tracer::Result<R>,
    ) -> Result<ControlFlow<PathBuf, R>, PreemptionError> {
        let result = step()?;
        self.steps += 1;
        let is_asked = self.is_asked.load(Ordering::Relaxed);
        if self.sum(i32::from(is_asked))? == 0 {
            return Ok(ControlFlow::Continue(result));
        }
        self.save().map(ControlFlow::Break)
    }

    /// Writes a checkpoint now, as all processes must at the same step. Returns its path when it is whole.
    ///
    /// # Errors
    ///
    /// When another process is gone, or the checkpoint cannot be written.
    pub fn save(&mut self) -> Result<PathBuf, PreemptionError> {
        self.counter.assign(HostTensor::scalar(self.steps)).map_err(tracer::Error::from)?;
        let written = match self.strategy.is_chief() {
            true => Some(self.manager.save()),
            false => None,
        };
        // Nobody leaves before the checkpoint is whole.
        let failed = self.sum(i32::from(matches!(written, Some(Err(_)))))?;
        match written {
            Some(path) => Ok(path?),
            None if failed == 0 => latest_checkpoint(&self.folder)
                .map_err(saved_model::Error::from)?
                .ok_or(PreemptionError::Unwritten),
            None => Err(PreemptionError::Unwritten),
        }
    }

    /// The sum of a number over all processes.
    fn sum(&self, number: i32) -> Result<i32, PreemptionError> {
        let all = self.strategy.values_from(|_| Ok(Tensor::from(number)))?;
        let sum = |number: Tensor| replica_context()?.all_reduce(ReduceOp::Sum, &number);
        Ok(self.strategy.run(&all, sum)?.values()[0].to_scalar::<i32>()?)
    }
}

impl Drop for PreemptionCheckpoint<'_> {
    fn drop(&mut self) {
        low_level::unregister(self.handler);
    }
}
