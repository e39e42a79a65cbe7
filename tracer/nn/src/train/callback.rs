//! Code that is called while a training goes on.

use super::{Logs, Training};
use ferroflow_tracer::Variable;
use std::{error::Error, ops::ControlFlow};

/// The end of a callback: whether training goes on, or an error that ends it.
pub type CallbackResult = Result<ControlFlow<()>, Box<dyn Error + Send + Sync>>;

/// Called while a training goes on. Each function may end the training by
/// [`ControlFlow::Break`], which is no error, or by an error.
pub trait Callback {
    /// Before an epoch, or what is left of one that is resumed ([`Training::batch`]); `n_batches` is how
    /// many it has in all, if that is known.
    ///
    /// # Errors
    ///
    /// The callback's own, which ends the training.
    fn epoch_begin(
        &mut self,
        training: &Training,
        epoch: u64,
        n_batches: Option<usize>,
    ) -> CallbackResult {
        let _ = (training, epoch, n_batches);
        Ok(ControlFlow::Continue(()))
    }

    /// After each step, with the loss of the batch.
    ///
    /// # Errors
    ///
    /// The callback's own, which ends the training.
    fn batch_end(&mut self, training: &Training, batch: usize, loss: f64) -> CallbackResult {
        let _ = (training, batch, loss);
        Ok(ControlFlow::Continue(()))
    }

    /// After an epoch and its validation.
    ///
    /// # Errors
    ///
    /// The callback's own, which ends the training.
    fn epoch_end(&mut self, training: &Training, epoch: u64, logs: &Logs) -> CallbackResult {
        let _ = (training, epoch, logs);
        Ok(ControlFlow::Continue(()))
    }

    /// After the last epoch, however the training came to its end without an error.
    ///
    /// # Errors
    ///
    /// The callback's own.
    fn train_end(&mut self, training: &Training) -> Result<(), Box<dyn Error + Send + Sync>> {
        let _ = training;
        Ok(())
    }
}

/// A function that is called after each epoch.
#[derive(Debug, Clone)]
pub struct EpochEnd<F>(pub F);

impl<F: FnMut(&Training, u64, &Logs) -> CallbackResult> Callback for EpochEnd<F> {
    fn epoch_end(&mut self, training: &Training, epoch: u64, logs: &Logs) -> CallbackResult {
        (self.0)(training, epoch, logs)
    }
}

/// Ends the training after a batch whose loss is no finite number.
#[derive(Debug, Clone, Copy, Default)]
pub struct StopOnNan;

impl Callback for StopOnNan {
    fn batch_end(&mut self, _: &Training, batch: usize, loss: f64) -> CallbackResult {
        if loss.is_finite() {
            return Ok(ControlFlow::Continue(()));
        }
        tracing::warn!(batch, loss, "the loss is no finite number: training ends");
        Ok(ControlFlow::Break(()))
    }
}

/// Sets the learning rate before each epoch: a function of the number of the epoch and the rate of the
/// one before; not before an epoch that is resumed, for which it was set. The optimizer has the variable as its
/// [`LearningRate`](crate::optimizers::LearningRate).
#[derive(Debug, Clone)]
pub struct RateSchedule<F> {
    rate: Variable,
    next: F,
}

impl<F: FnMut(u64, f64) -> f64> RateSchedule<F> {
    /// A schedule of a learning rate, a scalar of `float32`.
    pub fn new(rate: &Variable, next: F) -> RateSchedule<F> {
        RateSchedule { rate: rate.clone(), next }
    }
}

impl<F: FnMut(u64, f64) -> f64> Callback for RateSchedule<F> {
    fn epoch_begin(&mut self, training: &Training, epoch: u64, _: Option<usize>) -> CallbackResult {
        if training.n_batches_done()? > 0 {
            return Ok(ControlFlow::Continue(()));
        }
        let now = f64::from(self.rate.read()?.to_scalar::<f32>()?);
        self.rate.assign((self.next)(epoch, now) as f32)?;
        Ok(ControlFlow::Continue(()))
    }
}
