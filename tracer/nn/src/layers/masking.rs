//! Masks by the values of steps.

use super::{
    Layer, LayerValue, Mode,
    shapes::unfit,
    value::{any_differs, where_masked},
};
use ferroflow_tracer::{error::Result, tensor::Tensor};
use ferroflow_tracer_macros::Trackable;

/// A mask of the steps that are not padding: a step all of whose features equal `mask_value` does
/// not count, and becomes zeros. `[batch, steps, ..features] → [batch, steps, ..features]`; the mask
/// `[batch, steps]` reaches the layers behind it by [`Layer::propagate`].
///
/// ```
/// use ferroflow_nn::{Layer, Masking, Mode};
/// use ferroflow_tracer::{DType, Tensor};
/// # fn main() -> ferroflow_tracer::Result<()> {
/// let x = Tensor::from([[[1.0f32, -1.0], [-1.0, -1.0]]]);
/// let y = Masking { mask_value: -1.0 }.propagate(&x.into(), Mode::Inference)?;
/// assert_eq!(y.tensor.to_vec::<f32>()?, [1.0, -1.0, 0.0, 0.0]);
/// let mask = y.mask.expect("the layer makes one");
/// assert_eq!(mask.cast(DType::I32)?.to_vec::<i32>()?, [1, 0]);
/// # Ok(())
/// # }
/// ```
#[derive(Trackable, Debug, Clone, Copy, PartialEq, Default)]
pub struct Masking {
    /// The number that padding consists of.
    #[trackable(skip)]
    pub mask_value: f64,
}

impl Masking {
    fn mask(&self, x: &Tensor) -> Result<Tensor> {
        if x.shape().rank() == Some(0) {
            return Err(unfit("a tensor with a last dimension", x));
        }
        any_differs(x, self.mask_value)
    }
}

impl Layer for Masking {
    #[track_caller]
    fn call(&self, x: &Tensor, _: Mode) -> Result<Tensor> {
        let _call = crate::called();
        where_masked(&self.mask(x)?, x, &x.zeros_like()?)
    }

    #[track_caller]
    fn propagate(&self, x: &LayerValue, mode: Mode) -> Result<LayerValue> {
        let _call = crate::called();
        let mask = Some(self.mask(&x.tensor)?);
        Ok(LayerValue { mask, ..x.with_tensor(self.call(&x.tensor, mode)?) })
    }
}
