//! Losses of the results of layers.

use super::{Layer, LayerValue, Mode, Regularizer};
use ferroflow_tracer::{error::Result, tensor::Tensor};
use ferroflow_tracer_macros::Trackable;

/// Passes its input on and adds a loss of it, for an example on average
/// ([`Regularizer::of_activity`]), by [`Layer::propagate`]: `[batch, ..] → [batch, ..]`.
///
/// ```
/// use ferroflow_nn::{ActivityRegularization, Layer, Mode, Regularizer};
/// use ferroflow_tracer::Tensor;
/// # fn main() -> ferroflow_tracer::Result<()> {
/// let layer = ActivityRegularization::new(Regularizer::l1(0.5));
/// let y = layer.propagate(&Tensor::from([[1.0f32, -2.0], [3.0, 0.0]]).into(), Mode::Training)?;
/// assert_eq!(y.losses[0].to_scalar::<f32>()?, 1.5);
/// # Ok(())
/// # }
/// ```
#[derive(Trackable, Debug, Clone, Copy, PartialEq)]
pub struct ActivityRegularization {
    #[trackable(skip)]
    regularizer: Regularizer,
}

impl ActivityRegularization {
    /// A layer that adds such a loss.
    pub fn new(regularizer: Regularizer) -> ActivityRegularization {
        ActivityRegularization { regularizer }
    }
}

impl Layer for ActivityRegularization {
    #[track_caller]
    fn call(&self, x: &Tensor, _: Mode) -> Result<Tensor> {
        let _call = crate::called();
        Ok(x.clone())
    }

    #[track_caller]
    fn propagate(&self, x: &LayerValue, _: Mode) -> Result<LayerValue> {
        let _call = crate::called();
        Ok(x.clone().with_loss(self.regularizer.of_activity(&x.tensor)?))
    }
}
