//! The end of a training that gets no better.

use super::{Callback, CallbackResult, Direction, Logs, Monitor, Training};
use crate::Module;
use ferroflow_ir::{Code, HostTensor};
use ferroflow_runtime::trackable::{Description, Saveable, Trackable};
use ferroflow_tracer::Tensor;
use parking_lot::Mutex;
use std::{error::Error, ops::ControlFlow, sync::Arc};

/// Ends the training when a figure has been no better for some epochs.
///
/// The patience begins anew with each `fit`. Clones share what they have seen, so that one of them can be
/// an object of the checkpoints of the training: one that is resumed goes on with the best figure and
/// the epochs that were waited for. Callbacks that save come after this one.
///
/// ```
/// use ferroflow_nn::train::EarlyStopping;
/// use ferroflow_runtime::trackable::ObjectGraph;
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let stop = EarlyStopping::on("val_loss").patience(3);
/// let saved = stop.clone();
/// assert_eq!(ObjectGraph::of(&saved)?.nodes[0].saveables.len(), 1);
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct EarlyStopping {
    patience: u64,
    restores: bool,
    first_epoch: u64,
    best: Option<Vec<Tensor>>,
    seen: Arc<Mutex<SeenFigures>>,
}

/// History of the figure, as far as it matters.
#[derive(Debug)]
struct SeenFigures {
    monitor: Monitor,
    waited: u64,
    stopped: Option<u64>,
}

impl EarlyStopping {
    /// On a figure, by its name in the logs ([`Monitor::new`]), after one epoch that is no better.
    pub fn on(figure: &str) -> EarlyStopping {
        let monitor = Monitor::new(figure);
        let seen = SeenFigures { monitor, waited: 0, stopped: None };
        EarlyStopping {
            patience: 0,
            restores: false,
            first_epoch: 0,
            best: None,
            seen: Arc::new(Mutex::new(seen)),
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
        self.with_monitor(|monitor| monitor.min_delta(delta))
    }

    /// The direction in which the figure gets better.
    #[must_use]
    pub fn direction(self, direction: Direction) -> EarlyStopping {
        self.with_monitor(|monitor| monitor.direction(direction))
    }

    fn with_monitor(self, change: impl FnOnce(Monitor) -> Monitor) -> EarlyStopping {
        let mut seen = self.seen.lock();
        seen.monitor = change(seen.monitor.clone());
        drop(seen);
        self
    }

    /// Epochs before this one do not count.
    #[must_use]
    pub fn first_epoch(self, epoch: u64) -> EarlyStopping {
        EarlyStopping { first_epoch: epoch, ..self }
    }

    /// At the end the network has the weights of its best epoch again. They are not part of checkpoints:
    /// where a training is resumed they are known from the first better epoch on.
    #[must_use]
    pub fn restore_best_weights(self) -> EarlyStopping {
        EarlyStopping { restores: true, ..self }
    }

    /// The epoch after which the training was ended, if it was.
    pub fn stopped(&self) -> Option<u64> {
        self.seen.lock().stopped
    }

    /// The best figure.
    pub fn best(&self) -> Option<f64> {
        self.seen.lock().monitor.best()
    }
}

impl Callback for EarlyStopping {
    fn epoch_end(&mut self, training: &Training, epoch: u64, logs: &Logs) -> CallbackResult {
        if epoch < self.first_epoch {
            return Ok(ControlFlow::Continue(()));
        }
        let mut seen = self.seen.lock();
        if seen.monitor.is_best(logs)? {
            seen.waited = 0;
            if self.restores {
                let weights = training.network().variables()?;
                self.best = Some(weights.iter().map(|w| w.read()).collect::<Result<_, _>>()?);
            }
            return Ok(ControlFlow::Continue(()));
        }
        seen.waited += 1;
        if seen.waited < self.patience.max(1) {
            return Ok(ControlFlow::Continue(()));
        }
        seen.stopped = Some(epoch);
        Ok(ControlFlow::Break(()))
    }

    fn train_end(&mut self, training: &Training) -> Result<(), Box<dyn Error + Send + Sync>> {
        let mut seen = self.seen.lock();
        match self.best.take() {
            Some(best) => {
                for (weight, value) in training.network().variables()?.iter().zip(&best) {
                    weight.assign(value)?;
                }
            }
            None if self.restores && seen.monitor.best().is_some() => {
                tracing::warn!(
                    "the best epoch came before the training was resumed: its weights are not known"
                );
            }
            None => {}
        }
        seen.monitor.reset();
        seen.waited = 0;
        Ok(())
    }
}

impl Trackable for EarlyStopping {
    fn describe(&self, object: &mut Description<'_>) {
        object.saveable(Arc::new(SavedFigures(self.seen.clone())));
    }
}

/// State as checkpoints have it: the best figure or NaN, the epochs that were waited for, and the epoch
/// after which training was ended or -1.
struct SavedFigures(Arc<Mutex<SeenFigures>>);

impl Saveable for SavedFigures {
    fn name(&self) -> &str {
        "early_stopping"
    }

    fn tensors(&self) -> ferroflow_runtime::Result<Vec<(String, HostTensor)>> {
        let seen = self.0.lock();
        let best = seen.monitor.best().unwrap_or(f64::NAN);
        let stopped = seen.stopped.map_or(-1.0, |epoch| epoch as f64);
        let state = HostTensor::vector(&[best, seen.waited as f64, stopped])?;
        Ok(vec![(String::new(), state)])
    }

    fn restore(&self, values: Vec<HostTensor>) -> ferroflow_runtime::Result<()> {
        let state = values.first().map(HostTensor::as_slice::<f64>).transpose()?;
        let Some(&[best, waited, stopped]) = state else {
            let message = "the state of early stopping is three numbers".into();
            return Err(ferroflow_runtime::Error::Status { code: Code::InvalidArgument, message });
        };
        let mut seen = self.0.lock();
        seen.monitor.set_best((!best.is_nan()).then_some(best));
        seen.waited = waited as u64;
        seen.stopped = (stopped >= 0.0).then_some(stopped as u64);
        Ok(())
    }

    fn suffixes(&self) -> Vec<String> {
        vec![String::new()]
    }
}
