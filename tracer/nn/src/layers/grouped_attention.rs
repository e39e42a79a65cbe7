//! Attention in which several heads share keys and values.

use super::{
    Layer, LayerValue, Mode, SeedGenerator, Weights,
    compute::input_for,
    dropout::check_rate,
    heads::{HeadWeights, Projection, of_pairs},
    shapes::{repeated, wrong},
};
use ferroflow_tracer::{error::Result, tensor::Tensor};
use ferroflow_tracer_macros::Trackable;

/// Grouped query attention (Ainslie et al. 2023): scaled dot products in several heads, of which
/// groups share a head of keys and values. With one head of keys it is multi-query attention. As a
/// [`Layer`] it attends to its own input: `[batch, steps, size] → [batch, steps, size]`.
///
/// Weights: `_query_dense` with `kernel` `[size, query_heads, head_size]` and `bias`
/// `[query_heads, head_size]`; `_gate_dense` likewise, where there is a gate; `_key_dense` and
/// `_value_dense` with `kernel` `[size, key_heads, head_size]` and `bias` `[key_heads, head_size]`;
/// `_output_dense` with `kernel` `[query_heads, head_size, size]` and `bias` `[size]`.
#[derive(Trackable, Debug, Clone)]
pub struct GroupedQueryAttention {
    #[trackable(name = "_query_dense")]
    query: Projection,
    #[trackable(name = "_key_dense")]
    key: Projection,
    #[trackable(name = "_gate_dense")]
    gate: Option<Projection>,
    #[trackable(name = "_value_dense")]
    value: Projection,
    #[trackable(name = "_output_dense")]
    output: Projection,
    #[trackable(skip)]
    options: GroupedQueryOptions,
    #[trackable(name = "_dropout_layer")]
    weights: HeadWeights,
}

/// The options of a [`GroupedQueryAttention`].
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct GroupedQueryOptions {
    /// The number of heads of queries.
    pub query_heads: usize,
    /// The number of heads of keys and values, which divides that of queries.
    pub key_heads: usize,
    /// The size of the vectors of a head.
    pub head_size: usize,
    /// Whether projections have a bias.
    pub bias: bool,
    /// Whether results of heads are multiplied by a sigmoid of a projection of the queries.
    pub gate: bool,
    /// Whether no step attends to a later one.
    pub causal: bool,
    /// The distance from which on steps do not attend to each other.
    pub window: Option<usize>,
    /// The part of the weights that is dropped in training.
    pub dropout: f64,
    /// The seed of what is dropped; 0 is none.
    pub seed: i64,
}

impl GroupedQueryOptions {
    /// So many heads of this size, with biases and without masks.
    pub const fn new(
        query_heads: usize,
        key_heads: usize,
        head_size: usize,
    ) -> GroupedQueryOptions {
        GroupedQueryOptions {
            query_heads,
            key_heads,
            head_size,
            bias: true,
            gate: false,
            causal: false,
            window: None,
            dropout: 0.0,
            seed: 0,
        }
    }

    fn weights(&self) -> HeadWeights {
        let GroupedQueryOptions { causal, window, dropout, seed, .. } = *self;
        HeadWeights { causal, window, dropout, seed_generator: SeedGenerator::new(seed) }
    }

    fn check(&self) -> Result<()> {
        let GroupedQueryOptions { query_heads, key_heads, .. } = *self;
        check_rate(self.dropout)?;
        if key_heads == 0 || query_heads == 0 || !query_heads.is_multiple_of(key_heads) {
            let found = format!("{query_heads} of queries and {key_heads} of keys");
            return Err(wrong("heads of queries that can be divided among those of keys", found));
        }
        if self.window == Some(0) {
            return Err(wrong("a window of a step at least", "0"));
        }
        Ok(())
    }
}

impl GroupedQueryAttention {
    /// Attention of vectors of `size`.
    ///
    /// # Errors
    ///
    /// [`Error::Conversion`](ferroflow_tracer::Error::Conversion) when the heads of queries cannot
    /// be divided among those of keys, for an empty window, and when the rate is not from 0 to below
    /// 1; as [`Weights::make`].
    pub fn new(
        weights: &mut Weights,
        size: usize,
        options: &GroupedQueryOptions,
    ) -> Result<GroupedQueryAttention> {
        options.check()?;
        let GroupedQueryOptions { query_heads, key_heads, head_size, bias, gate, .. } = *options;
        let mut into = |heads: usize| {
            let shape = [heads, head_size];
            Projection::new(weights, [size, heads, head_size], bias.then_some(&shape))
        };
        Ok(GroupedQueryAttention {
            query: into(query_heads)?,
            key: into(key_heads)?,
            gate: gate.then(|| into(query_heads)).transpose()?,
            value: into(key_heads)?,
            output: {
                let kernel = [query_heads, head_size, size];
                Projection::new(weights, kernel, bias.then_some(&[size]))?
            },
            options: *options,
            weights: options.weights(),
        })
    }

    /// The results for the queries `[batch, targets, size]` of `value` at `key`, both
    /// `[batch, sources, size]`. Where the mask, of a shape that broadcasts to
    /// `[batch, targets, sources]`, is false, a source is not attended to.
    ///
    /// # Errors
    ///
    /// When the shapes do not fit.
    pub fn attend(
        &self,
        [query, key, value]: [&Tensor; 3],
        mask: Option<&Tensor>,
        mode: Mode,
    ) -> Result<Tensor> {
        let float = |x: &Tensor| input_for(self.query.kernel(), x);
        let (query, key, value) = (&float(query)?, &float(key)?, &float(value)?);
        let (q, k) = (self.query.split_heads(query)?, self.shared(&self.key, key)?);
        let found =
            self.weights.of(&q, &k, mask, mode)?.matmul(&self.shared(&self.value, value)?)?;
        let found = match &self.gate {
            Some(gate) => (found * gate.split_heads(query)?.sigmoid()?)?,
            None => found,
        };
        self.output.merged_heads(&found, query)
    }

    /// The heads of keys or values, each for all heads of queries that share it.
    fn shared(&self, projection: &Projection, x: &Tensor) -> Result<Tensor> {
        let n = self.options.query_heads / self.options.key_heads;
        let heads = projection.split_heads(x)?;
        if n == 1 { Ok(heads) } else { repeated(&heads, 1, n) }
    }
}

impl Layer for GroupedQueryAttention {
    #[track_caller]
    fn call(&self, x: &Tensor, mode: Mode) -> Result<Tensor> {
        let _call = crate::called();
        self.attend([x; 3], None, mode)
    }

    #[track_caller]
    fn propagate(&self, x: &LayerValue, mode: Mode) -> Result<LayerValue> {
        let _call = crate::called();
        let mask = x.mask.as_ref().map(of_pairs).transpose()?;
        Ok(x.with_tensor(self.attend([&x.tensor; 3], mask.as_ref(), mode)?))
    }
}
