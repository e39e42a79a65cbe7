//! Checkpoints of trainings.

use ferroflow_nn::train::{CallbackResult, Direction, Logs, Monitor, Training};
use ferroflow_saved_model::CheckpointManager;
use std::ops::ControlFlow;

/// Saves a checkpoint after each epoch, or after those that are the best so far, and within epochs where
/// that is asked for.
#[derive(Debug)]
pub struct Checkpoints<'m, 'a> {
    manager: &'m mut CheckpointManager<'a>,
    monitor: Option<Monitor>,
    n_batches: Option<usize>,
}

impl<'m, 'a> Checkpoints<'m, 'a> {
    /// After each epoch, by a manager of what is to be saved, such as the [`Trainer`](ferroflow_nn::train::Trainer).
    pub fn new(manager: &'m mut CheckpointManager<'a>) -> Checkpoints<'m, 'a> {
        Checkpoints { manager, monitor: None, n_batches: None }
    }

    /// Only after epochs whose figure is the best so far ([`Monitor::new`]).
    #[must_use]
    pub fn best(self, figure: &str) -> Checkpoints<'m, 'a> {
        Checkpoints { monitor: Some(Monitor::new(figure)), ..self }
    }

    /// Also after each `n` batches of an epoch: a training that is killed goes on with the batch after
    /// the last of them.
    #[must_use]
    pub fn each_batches(self, n: usize) -> Checkpoints<'m, 'a> {
        Checkpoints { n_batches: Some(n.max(1)), ..self }
    }

    /// The direction in which the figure gets better.
    #[must_use]
    pub fn direction(self, direction: Direction) -> Checkpoints<'m, 'a> {
        Checkpoints { monitor: self.monitor.map(|own| own.direction(direction)), ..self }
    }
}

impl ferroflow_nn::train::Callback for Checkpoints<'_, '_> {
    fn batch_end(&mut self, _: &Training, batch: usize, _: f64) -> CallbackResult {
        if self.n_batches.is_some_and(|n| (batch + 1).is_multiple_of(n)) {
            self.manager.save()?;
        }
        Ok(ControlFlow::Continue(()))
    }

    fn epoch_end(&mut self, _: &Training, _: u64, logs: &Logs) -> CallbackResult {
        let is_due = match &mut self.monitor {
            Some(monitor) => monitor.is_best(logs)?,
            None => true,
        };
        if is_due {
            self.manager.save()?;
        }
        Ok(ControlFlow::Continue(()))
    }
}
