//! Heads and masks of attention.

use super::{Weights, relu::lowest, rows, shapes::DimSize};
use crate::initializers::Initializer;
use ferroflow_tracer::{error::Result, ops, tensor::Tensor, variable::Variable};
use ferroflow_tracer_macros::Trackable;

/// A matrix product into heads or out of them: `kernel` `[size, heads, head_size]` or
/// `[heads, head_size, size]`.
#[derive(Trackable, Debug, Clone)]
pub(super) struct Projection {
    #[trackable(also = "_kernel")]
    kernel: Variable,
    bias: Option<Variable>,
}

impl Projection {
    /// A projection, with a bias of this shape.
    pub(super) fn new(
        weights: &mut Weights,
        kernel: [usize; 3],
        bias: Option<&[usize]>,
    ) -> Result<Projection> {
        let kernel = weights.make("kernel", Initializer::GLOROT_UNIFORM, &kernel)?;
        let bias = bias.map(|shape| weights.make("bias", Initializer::Zeros, shape));
        Ok(Projection { kernel, bias: bias.transpose()? })
    }

    /// The kernel.
    pub(super) fn kernel(&self) -> &Variable {
        &self.kernel
    }

    /// `[batch, steps, size] → [batch, heads, steps, head_size]`.
    pub(super) fn split_heads(&self, x: &Tensor) -> Result<Tensor> {
        let kernel = self.kernel.read()?.cast(x.dtype())?;
        let [size, heads, head_size] = [0, 1, 2].map(|axis| rows::size(&kernel, axis));
        let (size, heads, head_size) = (size?, heads?, head_size?);
        let flat = x.reshape(&[-1, size])?.matmul(&kernel.reshape(&[size, heads * head_size])?)?;
        let flat = self.shifted(flat)?;
        rows::with_last(&flat, x, &[heads, head_size])?.transpose(&[0, 2, 1, 3])
    }

    /// `[batch, heads, steps, head_size] → [batch, steps, size]`, where `like` is
    /// `[batch, steps, _]`.
    pub(super) fn merged_heads(&self, x: &Tensor, like: &Tensor) -> Result<Tensor> {
        let kernel = self.kernel.read()?.cast(x.dtype())?;
        let [heads, head_size, size] = [0, 1, 2].map(|axis| rows::size(&kernel, axis));
        let (width, size) = (heads? * head_size?, size?);
        let flat = x.transpose(&[0, 2, 1, 3])?.reshape(&[-1, width])?;
        let flat = self.shifted(flat.matmul(&kernel.reshape(&[width, size])?)?)?;
        rows::with_last(&flat, like, &[size])
    }

    fn shifted(&self, flat: Tensor) -> Result<Tensor> {
        match &self.bias {
            Some(bias) => &flat + bias.read()?.cast(flat.dtype())?.reshape(&[-1])?,
            None => Ok(flat),
        }
    }
}

/// Scores that stay where the mask is true, and are too low to matter elsewhere.
pub(super) fn without(scores: &Tensor, mask: &Tensor) -> Result<Tensor> {
    scores + ((1.0 - mask.cast(scores.dtype())?)? * lowest(scores.dtype()))?
}

/// Whether a source is not later than a target: `[targets, sources]`.
pub(super) fn not_later(query: &Tensor, key: &Tensor) -> Result<Tensor> {
    steps(query)?.expand_dims(1)?.greater_equal(&steps(key)?)
}

/// Whether source and target are less than so many steps apart: `[targets, sources]`.
pub(super) fn near(query: &Tensor, key: &Tensor, window: usize) -> Result<Tensor> {
    (steps(query)?.expand_dims(1)? - steps(key)?)?.abs()?.less(window as i32)
}

/// The indices of the steps of `[batch, steps, ..]`.
fn steps(x: &Tensor) -> Result<Tensor> {
    ops::range(&Tensor::from(0), &DimSize::of(x, 1)?.tensor(), &Tensor::from(1))
}
