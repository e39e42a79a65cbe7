//! Vectors for numbers.

use super::{Layer, LayerValue, Mode, Weights};
use crate::initializers::Initializer;
use ferroflow_ir::DType;
use ferroflow_tracer::{error::Result, ops, tensor::Tensor, variable::Variable};
use ferroflow_tracer_macros::Trackable;

/// A vector for each number: `[..] → [.., size]`. Numbers that are neither `int32` nor `int64` are
/// cast to `int32`. Gradients are of the rows that were looked up
/// ([`IndexedSlices`](ferroflow_tracer::IndexedSlices)).
///
/// Weights: `embeddings` `[count, size]`.
#[derive(Trackable, Debug, Clone)]
pub struct Embedding {
    #[trackable(also = "_embeddings")]
    embeddings: Variable,
    #[trackable(skip)]
    masks_zero: bool,
}

impl Embedding {
    /// Vectors of this size for the numbers below `count`, from -0.05 to 0.05 at first.
    ///
    /// # Errors
    ///
    /// As [`Weights::make`].
    pub fn new(weights: &mut Weights, count: usize, size: usize) -> Result<Embedding> {
        let first = Initializer::RandomUniform { low: -0.05, high: 0.05 };
        let embeddings = weights.make("embeddings", first, &[count, size])?;
        Ok(Embedding { embeddings, masks_zero: false })
    }

    /// The same layer, for which the number 0 is padding: where it is found, the mask that reaches the
    /// layers behind it ([`Layer::propagate`]) is false.
    #[must_use]
    pub fn mask_zero(self) -> Embedding {
        Embedding { masks_zero: true, ..self }
    }

    /// The vectors.
    pub fn embeddings(&self) -> &Variable {
        &self.embeddings
    }
}

impl Layer for Embedding {
    #[track_caller]
    fn call(&self, x: &Tensor, _: Mode) -> Result<Tensor> {
        let _call = crate::called();
        let embeddings = self.embeddings.read()?;
        match x.dtype() {
            DType::I32 | DType::I64 => embeddings.gather(x),
            _ => embeddings.gather(&x.cast(DType::I32)?),
        }
    }

    #[track_caller]
    fn propagate(&self, x: &LayerValue, mode: Mode) -> Result<LayerValue> {
        let _call = crate::called();
        let y = x.with_unmasked(self.call(&x.tensor, mode)?).in_compute_dtype()?;
        if !self.masks_zero {
            return Ok(y);
        }
        let mask = ops::not_equal(&x.tensor, &x.tensor.zeros_like()?)?;
        Ok(LayerValue { mask: Some(mask), ..y })
    }
}
