//! Attention with several heads.

use super::{Layer, Mode, Weights, compute::input_for, relu::lowest, rows};
use crate::initializers::Initializer;
use ferroflow_tracer::{error::Result, ops, tensor::Tensor, variable::Variable};
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
    heads: usize,
    #[trackable(skip)]
    key_size: usize,
    #[trackable(skip)]
    causal: bool,
}

#[derive(Trackable, Debug, Clone)]
struct Projection {
    #[trackable(also = "_kernel")]
    kernel: Variable,
    bias: Variable,
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
        let mut projection = |kernel: [usize; 3], bias: &[usize]| -> Result<Projection> {
            Ok(Projection {
                kernel: weights.make("kernel", Initializer::GLOROT_UNIFORM, &kernel)?,
                bias: weights.make("bias", Initializer::Zeros, bias)?,
            })
        };
        let (inner, of_heads) = ([size, heads, key_size], [heads, key_size]);
        Ok(MultiHeadAttention {
            query: projection(inner, &of_heads)?,
            key: projection(inner, &of_heads)?,
            value: projection(inner, &of_heads)?,
            output: projection([heads, key_size, size], &[size])?,
            heads,
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
        let float = |x: &Tensor| input_for(&self.query.kernel, x);
        let (query, key, value) = (&float(query)?, &float(key)?, &float(value)?);
        let scale = 1.0 / (self.key_size as f64).sqrt();
        let q = (self.heads_of(&self.query, query)? * scale)?;
        let k = self.heads_of(&self.key, key)?;
        let attrs = ops::BatchMatMulV2Attrs { adj_y: true, ..Default::default() };
        let mut scores = ops::batch_matmul_v2_with(&q, &k, &attrs)?;
        if let Some(mask) = mask {
            scores = without(&scores, &mask.expand_dims(-3)?)?;
        }
        if self.causal {
            scores = without(&scores, &not_later(query, key)?)?;
        }
        let found = scores.softmax()?.matmul(&self.heads_of(&self.value, value)?)?;
        self.out_of_heads(&found, query)
    }

    /// `[batch, steps, size] → [batch, heads, steps, key_size]`.
    fn heads_of(&self, projection: &Projection, x: &Tensor) -> Result<Tensor> {
        let (heads, key_size) = (self.heads as i64, self.key_size as i64);
        let kernel = projection.kernel.read()?.cast(x.dtype())?;
        let kernel = kernel.reshape(&[-1, heads * key_size])?;
        let bias = projection.bias.read()?.cast(x.dtype())?.reshape(&[-1])?;
        let flat = (x.reshape(&[-1, rows::size(&kernel, 0)?])?.matmul(&kernel)? + bias)?;
        rows::with_last(&flat, x, &[heads, key_size])?.transpose(&[0, 2, 1, 3])
    }

    /// `[batch, heads, steps, key_size] → [batch, steps, size]`.
    fn out_of_heads(&self, x: &Tensor, query: &Tensor) -> Result<Tensor> {
        let width = (self.heads * self.key_size) as i64;
        let kernel = self.output.kernel.read()?.cast(x.dtype())?.reshape(&[width, -1])?;
        let flat = x.transpose(&[0, 2, 1, 3])?.reshape(&[-1, width])?;
        let flat = (flat.matmul(&kernel)? + self.output.bias.read()?.cast(x.dtype())?)?;
        rows::with_last(&flat, query, &[rows::size(&kernel, 1)?])
    }
}

impl Layer for MultiHeadAttention {
    fn call(&self, x: &Tensor, _: Mode) -> Result<Tensor> {
        self.attend(x, x, x, None)
    }
}

/// Scores that stay where the mask is true, and are too low to matter elsewhere.
fn without(scores: &Tensor, mask: &Tensor) -> Result<Tensor> {
    scores + ((1.0 - mask.cast(scores.dtype())?)? * lowest(scores.dtype()))?
}

/// Whether a source is not later than a target: `[targets, sources]`.
fn not_later(query: &Tensor, key: &Tensor) -> Result<Tensor> {
    let steps = |x: &Tensor| {
        let n = match x.shape().dim(1) {
            Some(n) => Tensor::from(n as i32),
            None => x.shape_tensor()?.gather(&Tensor::from(1))?,
        };
        ops::range(&Tensor::from(0), &n, &Tensor::from(1))
    };
    steps(query)?.expand_dims(1)?.greater_equal(&steps(key)?)
}
