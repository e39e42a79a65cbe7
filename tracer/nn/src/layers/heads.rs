//! Heads and masks of attention.

use super::{Mode, SeedGenerator, Weights, dropout::dropped, relu::lowest, rows, shapes::DimSize};
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

/// The sources that heads attend to, and the part of the weights that is dropped in training.
#[derive(Trackable, Debug, Clone, Default)]
pub(super) struct HeadWeights {
    /// Whether no target attends to a later source.
    #[trackable(skip)]
    pub(super) causal: bool,
    /// The distance from which on sources are not attended to.
    #[trackable(skip)]
    pub(super) window: Option<usize>,
    /// The part of the weights that is dropped.
    #[trackable(skip)]
    pub(super) dropout: f64,
    /// The seeds of what is dropped.
    pub(super) seed_generator: SeedGenerator,
}

impl HeadWeights {
    /// The softmax of scaled dot products of queries and keys, both `[batch, heads, _, head_size]`,
    /// where the mask, of a shape that broadcasts to `[batch, targets, sources]`, is true:
    /// `[batch, heads, targets, sources]`.
    pub(super) fn of(
        &self,
        query: &Tensor,
        key: &Tensor,
        mask: Option<&Tensor>,
        mode: Mode,
    ) -> Result<Tensor> {
        let scale = 1.0 / (rows::size(query, -1)? as f64).sqrt();
        let attrs = ops::BatchMatMulV2Attrs { adj_y: true, ..Default::default() };
        let mut scores = ops::batch_matmul_v2_with(&(query * scale)?, key, &attrs)?;
        if let Some(mask) = mask {
            scores = without(&scores, &mask.expand_dims(-3)?)?;
        }
        if self.causal {
            scores = without(&scores, &not_later(query, key, 2)?)?;
        }
        if let Some(window) = self.window {
            let distances = (steps(query, 2)?.expand_dims(1)? - steps(key, 2)?)?.abs()?;
            scores = without(&scores, &distances.less(window as i32)?)?;
        }
        let weights = scores.softmax()?;
        if mode == Mode::Inference || self.dropout == 0.0 {
            return Ok(weights);
        }
        dropped(&weights, &weights.shape_tensor()?, self.dropout, &self.seed_generator)
    }
}

/// Whether a target and a source both count: `[batch, steps] → [batch, steps, steps]`.
pub(super) fn of_pairs(mask: &Tensor) -> Result<Tensor> {
    mask.expand_dims(-1)?.logical_and(&mask.expand_dims(-2)?)
}

/// Scores that stay where the mask is true, and are too low to matter elsewhere.
fn without(scores: &Tensor, mask: &Tensor) -> Result<Tensor> {
    mask.select(scores, lowest(scores.dtype()))
}

/// Whether a source is not later than a target, by the steps of a dimension: `[targets, sources]`.
pub(super) fn not_later(query: &Tensor, key: &Tensor, axis: usize) -> Result<Tensor> {
    steps(query, axis)?.expand_dims(1)?.greater_equal(&steps(key, axis)?)
}

/// The indices of a dimension.
fn steps(x: &Tensor, axis: usize) -> Result<Tensor> {
    ops::range(&Tensor::from(0), &DimSize::of(x, axis)?.tensor(), &Tensor::from(1))
}
