//! Attention with several heads.

use super::{
    Layer, Mode, Weights,
    compute::input_for,
    heads::{Projection, not_later, without},
};
use ferroflow_tracer::{error::Result, ops, tensor::Tensor};
use ferroflow_tracer_macros::Trackable;

/// Scaled dot products of queries with keys choose values, in several heads (Vaswani et al. 2017).
///
/// As a [`Layer`] it attends to its own input: `[batch, steps, size] → [batch, steps, size]`.
///
/// Weights: `_query_dense`, `_key_dense`, `_value_dense` with `kernel` `[size, heads, key_size]` and
/// `bias` `[heads, key_size]`; `_output_dense` with `kernel` `[heads, key_size, size]` and `bias`
/// `[size]`.
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
    #[trackable(skip)]
    key_size: usize,
    #[trackable(skip)]
    causal: bool,
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
        let mut projection =
            |kernel: [usize; 3], bias: &[usize]| Projection::new(weights, kernel, Some(bias));
        let (inner, of_heads) = ([size, heads, key_size], [heads, key_size]);
        Ok(MultiHeadAttention {
            query: projection(inner, &of_heads)?,
            key: projection(inner, &of_heads)?,
            value: projection(inner, &of_heads)?,
            output: projection([heads, key_size, size], &[size])?,
            key_size,
            causal: false,
        })
    }

    /// The same, where no step attends to a later one.
    #[must_use]
    pub fn causal(self) -> MultiHeadAttention {
        MultiHeadAttention { causal: true, ..self }
    }

    /// What the queries `[batch, targets, size]` find in `key` and `value`, both
    /// `[batch, sources, size]`. Where the mask, of a shape that broadcasts to
    /// `[batch, targets, sources]`, is false, a source is not attended to.
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
        let float = |x: &Tensor| input_for(self.query.kernel(), x);
        let (query, key, value) = (&float(query)?, &float(key)?, &float(value)?);
        let scale = 1.0 / (self.key_size as f64).sqrt();
        let q = (self.query.split_heads(query)? * scale)?;
        let k = self.key.split_heads(key)?;
        let attrs = ops::BatchMatMulV2Attrs { adj_y: true, ..Default::default() };
        let mut scores = ops::batch_matmul_v2_with(&q, &k, &attrs)?;
        if let Some(mask) = mask {
            scores = without(&scores, &mask.expand_dims(-3)?)?;
        }
        if self.causal {
            scores = without(&scores, &not_later(query, key)?)?;
        }
        let found = scores.softmax()?.matmul(&self.value.split_heads(value)?)?;
        self.output.merged_heads(&found, query)
    }
}

impl Layer for MultiHeadAttention {
    fn call(&self, x: &Tensor, _: Mode) -> Result<Tensor> {
        self.attend(x, x, x, None)
    }
}
