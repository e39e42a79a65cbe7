//! Vectors for numbers, and scores of numbers for vectors.

use super::{Embedding, Layer, LayerValue, Mode, Weights, compute::input_for, rows};
use crate::initializers::Initializer;
use ferroflow_runtime::trackable::{Description, Trackable};
use ferroflow_tracer::{error::Result, tensor::Tensor, variable::Variable};

/// An [`Embedding`] that goes the other way as well: [`reversed`](ReversibleEmbedding::reversed) scores
/// all numbers for a vector, as the last layer of language models does: `[.., size] → [.., count]`.
///
/// ```
/// use ferroflow_nn::{Layer, Mode, ReversibleEmbedding, Weights};
/// use ferroflow_tracer::Tensor;
/// # fn main() -> ferroflow_tracer::Result<()> {
/// let layer = ReversibleEmbedding::tied(&mut Weights::seeded(1), 9, 4)?;
/// let y = layer.call(&Tensor::from([[3, 5]]), Mode::Inference)?;
/// assert_eq!(layer.reversed(&y)?.shape().to_string(), "[1,2,9]");
/// # Ok(())
/// # }
/// ```
///
/// Weights: `embeddings` `[count, size]`, and `reverse_embeddings` `[size, count]` where the scores have
/// weights of their own.
#[derive(Debug, Clone)]
pub struct ReversibleEmbedding {
    embedding: Embedding,
    reverse_embeddings: Option<Variable>,
    soft_cap: Option<f64>,
}

impl ReversibleEmbedding {
    /// A layer whose scores are dot products with the vectors.
    ///
    /// # Errors
    ///
    /// As [`Weights::make`].
    pub fn tied(weights: &mut Weights, count: usize, size: usize) -> Result<ReversibleEmbedding> {
        let embedding = Embedding::new(weights, count, size)?;
        Ok(ReversibleEmbedding { embedding, reverse_embeddings: None, soft_cap: None })
    }

    /// A layer whose scores have weights of their own.
    ///
    /// # Errors
    ///
    /// As [`Weights::make`].
    pub fn untied(weights: &mut Weights, count: usize, size: usize) -> Result<ReversibleEmbedding> {
        let tied = ReversibleEmbedding::tied(weights, count, size)?;
        let first = Initializer::RandomUniform { low: -0.05, high: 0.05 };
        let reverse = weights.make("reverse_embeddings", first, &[size, count])?;
        Ok(ReversibleEmbedding { reverse_embeddings: Some(reverse), ..tied })
    }

    /// The same layer, for which the number 0 is padding ([`Embedding::mask_zero`]).
    #[must_use]
    pub fn mask_zero(self) -> ReversibleEmbedding {
        ReversibleEmbedding { embedding: self.embedding.mask_zero(), ..self }
    }

    /// The same layer, whose scores are `cap·tanh(score / cap)`.
    #[must_use]
    pub fn with_soft_cap(self, cap: f64) -> ReversibleEmbedding {
        ReversibleEmbedding { soft_cap: Some(cap), ..self }
    }

    /// The score of each number: `[.., size] → [.., count]`.
    ///
    /// # Errors
    ///
    /// When the last dimension has another size.
    pub fn reversed(&self, x: &Tensor) -> Result<Tensor> {
        let x = input_for(self.embedding.embeddings(), x)?;
        let kernel = match &self.reverse_embeddings {
            Some(kernel) => kernel.read()?,
            None => self.embedding.embeddings().read()?.transpose(&[1, 0])?,
        };
        let scores = rows::times(&x, &kernel.cast(x.dtype())?)?;
        match self.soft_cap {
            Some(cap) => (scores / cap)?.tanh()? * cap,
            None => Ok(scores),
        }
    }
}

impl Layer for ReversibleEmbedding {
    #[track_caller]
    fn call(&self, x: &Tensor, mode: Mode) -> Result<Tensor> {
        let _call = crate::called();
        self.embedding.call(x, mode)
    }

    #[track_caller]
    fn propagate(&self, x: &LayerValue, mode: Mode) -> Result<LayerValue> {
        let _call = crate::called();
        self.embedding.propagate(x, mode)
    }
}

impl Trackable for ReversibleEmbedding {
    fn describe(&self, object: &mut Description<'_>) {
        self.embedding.describe(object);
        if let Some(reverse) = &self.reverse_embeddings {
            object.child("reverse_embeddings", reverse);
        }
    }
}
