//! Learning rates that fall where a training gets no better.

use super::{Callback, CallbackResult, Logs, Monitor, Training};
use ferroflow_tracer::Variable;
use std::ops::ControlFlow;

/// Multiplies the learning rate by a factor when a figure has been no better for some epochs. The
/// optimizer has the variable as its [`LearningRate`](crate::optimizers::LearningRate). Defaults are those
/// of Keras.
#[derive(Debug, Clone)]
pub struct ReduceOnPlateau {
    rate: Variable,
    monitor: Monitor,
    factor: f64,
    patience: u64,
    cooldown: u64,
    min_rate: f64,
    waited: u64,
    cooling: u64,
}

impl ReduceOnPlateau {
    /// Of a learning rate, a scalar of `float32`, on a figure by its name in the logs; it is better by
    /// 0.0001 at least.
    pub fn new(rate: &Variable, figure: &str) -> ReduceOnPlateau {
        ReduceOnPlateau {
            rate: rate.clone(),
            monitor: Monitor::new(figure).min_delta(1e-4),
            factor: 0.1,
            patience: 10,
            cooldown: 0,
            min_rate: 0.0,
            waited: 0,
            cooling: 0,
        }
    }

    /// The factor of the rate, 0.1 unless set.
    #[must_use]
    pub fn factor(self, factor: f64) -> ReduceOnPlateau {
        ReduceOnPlateau { factor, ..self }
    }

    /// The epochs without a better one that are waited for, 10 unless set.
    #[must_use]
    pub fn patience(self, epochs: u64) -> ReduceOnPlateau {
        ReduceOnPlateau { patience: epochs, ..self }
    }

    /// The epochs after a change that do not count, 0 unless set.
    #[must_use]
    pub fn cooldown(self, epochs: u64) -> ReduceOnPlateau {
        ReduceOnPlateau { cooldown: epochs, ..self }
    }

    /// The smallest rate, 0 unless set.
    #[must_use]
    pub fn min_rate(self, rate: f64) -> ReduceOnPlateau {
        ReduceOnPlateau { min_rate: rate, ..self }
    }

    fn reduce(&mut self) -> Result<(), ferroflow_tracer::Error> {
        let now = self.rate.read()?.to_scalar::<f32>()?;
        let least = self.min_rate as f32;
        if now > least {
            self.rate.assign((now * self.factor as f32).max(least))?;
            (self.cooling, self.waited) = (self.cooldown, 0);
        }
        Ok(())
    }
}

impl Callback for ReduceOnPlateau {
    fn epoch_end(&mut self, _: &Training, _: u64, logs: &Logs) -> CallbackResult {
        let is_cooling = self.cooling > 0;
        if is_cooling {
            self.cooling -= 1;
            self.waited = 0;
        }
        if self.monitor.is_best(logs)? {
            self.waited = 0;
        } else if self.cooling == 0 {
            self.waited += 1;
            if self.waited >= self.patience {
                self.reduce()?;
            }
        }
        Ok(ControlFlow::Continue(()))
    }
}
