//! Attention with several heads.

use super::{
    Layer, LayerValue, Mode, SeedGenerator, Weights,
    compute::input_for,
    dropout::check_rate,
    heads::{HeadWeights, Projection, of_pairs},
};
use ferroflow_tracer::{error::Result, tensor::Tensor};
use ferroflow_tracer_macros::Trackable;

/// Scaled dot products of queries with keys choose values, in several heads (Vaswani et al. 2017).
///
/// As a [`Layer`] it attends to its own input: `[batch, steps, size] → [batch, steps, size]`.
///
/// Weights: `_query_dense` and `_key_dense` with `kernel` `[size, heads, key_size]` and `bias`
/// `[heads, key_size]`; `_value_dense` likewise, of `value_size`; `_output_dense` with `kernel`
/// `[heads, value_size, size]` and `bias` `[size]`.
#[derive(Trackable, Debug, Clone)]
pub struct MultiHeadAttention {
    #[trackable(name = "_query_dense")]
    query: Projection,
    #[trackable(name = "_key_dense")]
    key: Projection,
    #[trackable(name = "_value_dense")]
    value: Projection,
    #[trackable(name = "_output_dense")]
    output: Projection,
    #[trackable(name = "_dropout_layer")]
    weights: HeadWeights,
}

/// The options of a [`MultiHeadAttention`].
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct MultiHeadOptions {
    /// The size of the values of a head; without one it is that of the keys.
    pub value_size: Option<usize>,
    /// Whether projections have a bias.
    pub bias: bool,
    /// The part of the weights that is dropped in training.
    pub dropout: f64,
    /// The seed of what is dropped; 0 is none.
    pub seed: i64,
}

impl Default for MultiHeadOptions {
    fn default() -> MultiHeadOptions {
        MultiHeadOptions { value_size: None, bias: true, dropout: 0.0, seed: 0 }
    }
}

impl MultiHeadAttention {
    /// Attention of vectors of `size` by so many heads of `key_size`.
    ///
    /// # Errors
    ///
    /// As [`Weights::make`].
    pub fn new(
        weights: &mut Weights,
        size: usize,
        heads: usize,
        key_size: usize,
    ) -> Result<MultiHeadAttention> {
        let options = MultiHeadOptions::default();
        MultiHeadAttention::with_options(weights, size, [heads, key_size], &options)
    }

    /// Attention of vectors of `size` by so many heads of `key_size`.
    ///
    /// # Errors
    ///
    /// [`Error::Conversion`](ferroflow_tracer::Error::Conversion) when the rate is not from 0 to
    /// below 1; as [`Weights::make`].
    pub fn with_options(
        weights: &mut Weights,
        size: usize,
        [heads, key_size]: [usize; 2],
        options: &MultiHeadOptions,
    ) -> Result<MultiHeadAttention> {
        let MultiHeadOptions { value_size, bias, dropout, seed } = *options;
        check_rate(dropout)?;
        let value_size = value_size.unwrap_or(key_size);
        let mut projection = |kernel: [usize; 3], shape: &[usize]| {
            Projection::new(weights, kernel, bias.then_some(shape))
        };
        Ok(MultiHeadAttention {
            query: projection([size, heads, key_size], &[heads, key_size])?,
            key: projection([size, heads, key_size], &[heads, key_size])?,
            value: projection([size, heads, value_size], &[heads, value_size])?,
            output: projection([heads, value_size, size], &[size])?,
            weights: HeadWeights {
                dropout,
                seed_generator: SeedGenerator::new(seed),
                ..HeadWeights::default()
            },
        })
    }

    /// The same, where no step attends to a later one.
    #[must_use]
    pub fn causal(mut self) -> MultiHeadAttention {
        self.weights.causal = true;
        self
    }

    /// Attention of the queries `[batch, targets, size]` over `key` and `value`, both `[batch,
    /// sources, size]`. Where the mask, of a shape that broadcasts to `[batch, targets, sources]`,
    /// is false, a source is not attended to.
    ///
    /// # Errors
    ///
    /// When the shapes do not fit.
    pub fn attend(
        &self,
        query: &Tensor,
        key: &Tensor,
        value: &Tensor,
        mask: Option<&Tensor>,
    ) -> Result<Tensor> {
        self.attend_in(Mode::Inference, [query, key, value], mask)
    }

    /// As [`attend`](MultiHeadAttention::attend), with dropout in training.
    ///
    /// # Errors
    ///
    /// When the shapes do not fit.
    pub fn attend_in(
        &self,
        mode: Mode,
        [query, key, value]: [&Tensor; 3],
        mask: Option<&Tensor>,
    ) -> Result<Tensor> {
        let float = |x: &Tensor| input_for(self.query.kernel(), x);
        let (query, key, value) = (&float(query)?, &float(key)?, &float(value)?);
        let (q, k) = (self.query.split_heads(query)?, self.key.split_heads(key)?);
        let weights = self.weights.of(&q, &k, mask, mode)?;
        self.output.merged_heads(&weights.matmul(&self.value.split_heads(value)?)?, query)
    }
}

impl Layer for MultiHeadAttention {
    #[track_caller]
    fn call(&self, x: &Tensor, mode: Mode) -> Result<Tensor> {
        let _call = crate::called();
        self.attend_in(mode, [x; 3], None)
    }

    #[track_caller]
    fn propagate(&self, x: &LayerValue, mode: Mode) -> Result<LayerValue> {
        let _call = crate::called();
        let mask = x.mask.as_ref().map(of_pairs).transpose()?;
        Ok(x.with_tensor(self.attend_in(mode, [&x.tensor; 3], mask.as_ref())?))
    }
}
