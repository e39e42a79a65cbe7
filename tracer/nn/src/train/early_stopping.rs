//! The end of a training that gets no better.

use super::{Callback, CallbackResult, Direction, Logs, Monitor, Training};
use crate::Module;
use ferroflow_tracer::Tensor;
use std::{error::Error, ops::ControlFlow};

/// Ends the training when a figure has been no better for some epochs.
///
/// The patience begins anew with each `fit`, also where a training is resumed.
#[derive(Debug, Clone)]
pub struct EarlyStopping {
    monitor: Monitor,
    patience: u64,
    restores: bool,
    first_epoch: u64,
    waited: u64,
    best: Option<Vec<Tensor>>,
    stopped: Option<u64>,
}

impl EarlyStopping {
    /// On a figure, by its name in the logs ([`Monitor::new`]), after one epoch that is no better.
    pub fn on(figure: &str) -> EarlyStopping {
        EarlyStopping {
            monitor: Monitor::new(figure),
            patience: 0,
            restores: false,
            first_epoch: 0,
            waited: 0,
            best: None,
            stopped: None,
        }
    }

    /// After so many epochs that are no better.
    #[must_use]
    pub fn patience(self, epochs: u64) -> EarlyStopping {
        EarlyStopping { patience: epochs, ..self }
    }

    /// A figure is better by at least this.
    #[must_use]
    pub fn min_delta(self, delta: f64) -> EarlyStopping {
        EarlyStopping { monitor: self.monitor.min_delta(delta), ..self }
    }

    /// The direction in which the figure gets better.
    #[must_use]
    pub fn direction(self, direction: Direction) -> EarlyStopping {
        EarlyStopping { monitor: self.monitor.direction(direction), ..self }
    }

    /// Epochs before this one do not count.
    #[must_use]
    pub fn first_epoch(self, epoch: u64) -> EarlyStopping {
        EarlyStopping { first_epoch: epoch, ..self }
    }

    /// At the end the network has the weights of its best epoch again.
    #[must_use]
    pub fn restore_best_weights(self) -> EarlyStopping {
        EarlyStopping { restores: true, ..self }
    }

    /// The epoch after which the training was ended, if it was.
    pub fn stopped(&self) -> Option<u64> {
        self.stopped
    }

    /// The best figure.
    pub fn best(&self) -> Option<f64> {
        self.monitor.best()
    }
}

impl Callback for EarlyStopping {
    fn epoch_end(&mut self, training: &Training, epoch: u64, logs: &Logs) -> CallbackResult {
        if epoch < self.first_epoch {
            return Ok(ControlFlow::Continue(()));
        }
        if self.monitor.is_best(logs)? {
            self.waited = 0;
            if self.restores {
                let weights = training.network().variables()?;
                self.best = Some(weights.iter().map(|w| w.read()).collect::<Result<_, _>>()?);
            }
            return Ok(ControlFlow::Continue(()));
        }
        self.waited += 1;
        if self.waited < self.patience.max(1) {
            return Ok(ControlFlow::Continue(()));
        }
        self.stopped = Some(epoch);
        Ok(ControlFlow::Break(()))
    }

    fn train_end(&mut self, training: &Training) -> Result<(), Box<dyn Error + Send + Sync>> {
        if let Some(best) = self.best.take() {
            for (weight, value) in training.network().variables()?.iter().zip(&best) {
                weight.assign(value)?;
            }
        }
        self.monitor.reset();
        self.waited = 0;
        Ok(())
    }
}
