//! Tensors between layers, with their masks and with the losses of layers.

use super::{
    DTypePolicy,
    shapes::{self, rank, with_shape},
};
use ferroflow_ir::DType;
use ferroflow_tracer::{error::Result, ops, tensor::Tensor};

/// A tensor between layers, with what goes along with it: a mask of its steps, and losses that layers
/// add ([`Layer::propagate`](super::Layer::propagate)).
///
/// ```
/// use ferroflow_nn::{Embedding, GlobalAveragePooling, Layer, LayerValue, Mode, Weights};
/// use ferroflow_tracer::{DType, Tensor};
/// # fn main() -> ferroflow_tracer::Result<()> {
/// let words = Embedding::new(&mut Weights::seeded(1), 9, 4)?.mask_zero();
/// let x = LayerValue::from(Tensor::from([[3, 5, 0, 0]]));
/// let y = words.propagate(&x, Mode::Inference)?;
/// let mask = y.mask.as_ref().expect("the layer makes one");
/// assert_eq!(mask.cast(DType::I32)?.to_vec::<i32>()?, [1, 1, 0, 0]);
/// // The mean of two steps, not of four.
/// let y = GlobalAveragePooling::default().propagate(&y, Mode::Inference)?;
/// assert_eq!((y.tensor.shape().to_string(), y.mask.is_none()), ("[1,4]".into(), true));
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct LayerValue {
    /// The tensor, `[batch, ..]`.
    pub tensor: Tensor,
    /// Whether a step counts, a bool: `[batch, steps]`. Without a mask all of them do.
    pub mask: Option<Tensor>,
    /// Scalars to add to the loss of the task, as from
    /// [`ActivityRegularization`](super::ActivityRegularization).
    pub losses: Vec<Tensor>,
    /// The dtype that layers compute in, where a [`DTypePolicy`](super::DTypePolicy) sets it.
    pub compute: Option<DType>,
}

impl LayerValue {
    /// A tensor whose steps count where the mask `[batch, steps]` is true.
    pub fn masked(tensor: Tensor, mask: Tensor) -> LayerValue {
        LayerValue { mask: Some(mask), ..LayerValue::from(tensor) }
    }

    /// Another tensor with the same mask and losses.
    #[must_use]
    pub fn with_tensor(&self, tensor: Tensor) -> LayerValue {
        LayerValue { tensor, ..self.clone() }
    }

    /// Another tensor with the same losses, without a mask.
    #[must_use]
    pub fn with_unmasked(&self, tensor: Tensor) -> LayerValue {
        LayerValue { tensor, mask: None, ..self.clone() }
    }

    /// The same value for layers that compute by a policy: floats are cast to its dtype.
    ///
    /// # Errors
    ///
    /// When the tensor cannot be cast.
    pub fn under(self, policy: DTypePolicy) -> Result<LayerValue> {
        LayerValue { compute: Some(policy.compute_dtype()), ..self }.in_compute_dtype()
    }

    /// The same value, floats being cast to the dtype that is computed in, if one is set.
    pub(super) fn in_compute_dtype(self) -> Result<LayerValue> {
        match self.compute {
            Some(dtype) if self.tensor.dtype().is_float() && self.tensor.dtype() != dtype => {
                Ok(LayerValue { tensor: self.tensor.cast(dtype)?, ..self })
            }
            _ => Ok(self),
        }
    }

    /// The same value with one loss more.
    #[must_use]
    pub fn with_loss(mut self, loss: Tensor) -> LayerValue {
        self.losses.push(loss);
        self
    }
}

impl From<Tensor> for LayerValue {
    fn from(tensor: Tensor) -> LayerValue {
        LayerValue { tensor, mask: None, losses: Vec::new(), compute: None }
    }
}

impl From<&Tensor> for LayerValue {
    fn from(tensor: &Tensor) -> LayerValue {
        tensor.clone().into()
    }
}

/// [`Layer::call`](super::Layer::call) of a layer that overrides
/// [`propagate`](super::Layer::propagate): the tensor that this returns.
macro_rules! call_by_propagate {
    () => {
        #[track_caller]
        fn call(
            &self,
            x: &::ferroflow_tracer::tensor::Tensor,
            mode: $crate::layers::Mode,
        ) -> ::ferroflow_tracer::error::Result<::ferroflow_tracer::tensor::Tensor> {
            let _call = $crate::called();
            Ok($crate::layers::Layer::propagate(self, &x.into(), mode)?.tensor)
        }
    };
}

pub(super) use call_by_propagate;

/// The mask with dimensions of size 1 behind its own, as many as `rank` asks for.
pub(super) fn mask_of_rank(mask: &Tensor, rank: usize) -> Result<Tensor> {
    let own = shapes::rank(mask)?;
    (own..rank).try_fold(mask.clone(), |mask, _| mask.expand_dims(-1))
}

/// The elements of `x` where the mask, of its first dimensions, is true; elsewhere those of `other`.
pub(super) fn where_masked(mask: &Tensor, x: &Tensor, other: &Tensor) -> Result<Tensor> {
    let chosen = mask_of_rank(mask, rank(x)?)?.select(x, other)?;
    with_shape(chosen, x.shape())
}

/// Whether any element of the last dimension differs from a number: `[.., size] → [..]`.
pub(super) fn any_differs(x: &Tensor, from: f64) -> Result<Tensor> {
    let from = ops::IntoOperand::into_operand(from, x.dtype())?;
    ops::any(&ops::not_equal(x, &from)?, &Tensor::from([-1]))
}
