//! Attention by dot products and by sums, without heads.

use super::{
    Layer, LayerValue, Mode, SeedGenerator, Weights,
    compute::input_for_some,
    dropout::{check_rate, dropped},
    heads::not_later,
};
use crate::initializers::Initializer;
use ferroflow_ir::DType;
use ferroflow_tracer::{error::Result, ops, tensor::Tensor, variable::Variable};
use ferroflow_tracer_macros::Trackable;

/// Attention by dot products of queries with keys (Luong et al. 2015):
/// `[batch, targets, size] → [batch, targets, value size]`. As a [`Layer`] it attends to its own
/// input.
///
/// Weights, where the options ask for them: `scale` `[]`, the factor of the scores, and
/// `concat_score_weight` `[]`.
#[doc(alias("Attention"))]
#[derive(Trackable, Debug, Clone)]
pub struct DotProductAttention {
    scale: Option<Variable>,
    concat_score_weight: Option<Variable>,
    #[trackable(name = "_dropout_layer")]
    dropout: AttentionDropout,
}

/// Attention by sums of queries and keys (Bahdanau et al. 2015), whose scores are
/// `Σ scale·tanh(query + key)`: `[batch, targets, size] → [batch, targets, value size]`. As a
/// [`Layer`] it attends to its own input.
///
/// Weights: `scale` `[size]`.
#[derive(Trackable, Debug, Clone)]
pub struct AdditiveAttention {
    scale: Option<Variable>,
    #[trackable(name = "_dropout_layer")]
    dropout: AttentionDropout,
}

/// The options of a [`DotProductAttention`].
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct AttentionOptions {
    /// Whether there is a factor of the scores that is learned.
    pub scale: bool,
    /// The scores.
    pub score: ScoreMode,
    /// The part of the weights that is dropped in training.
    pub dropout: f64,
    /// The seed of what is dropped; 0 is none.
    pub seed: i64,
}

/// The scores of keys for queries.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ScoreMode {
    /// Dot products.
    #[default]
    Dot,
    /// `weight·Σ tanh(scale·(query + key))`.
    Concat,
}

/// Steps that take part in attention.
#[derive(Debug, Clone, Copy, Default)]
pub struct AttentionMasks<'a> {
    /// Whether a target has a result, otherwise zeros: `[batch, targets]`.
    pub query: Option<&'a Tensor>,
    /// Whether a source is attended to: `[batch, sources]`.
    pub value: Option<&'a Tensor>,
    /// Whether no target attends to a later source.
    pub causal: bool,
}

#[derive(Trackable, Debug, Clone)]
struct AttentionDropout {
    #[trackable(skip)]
    rate: f64,
    seed_generator: SeedGenerator,
}

impl DotProductAttention {
    /// A layer.
    ///
    /// # Errors
    ///
    /// [`Error::Conversion`](ferroflow_tracer::Error::Conversion) when the rate is not from 0 to
    /// below 1; as [`Weights::make`].
    pub fn new(weights: &mut Weights, options: &AttentionOptions) -> Result<DotProductAttention> {
        let AttentionOptions { scale, score, dropout, seed } = *options;
        check_rate(dropout)?;
        let mut make = |name: &str, is_there: bool| {
            is_there.then(|| weights.make(name, Initializer::Ones, &[])).transpose()
        };
        Ok(DotProductAttention {
            scale: make("scale", scale)?,
            concat_score_weight: make("concat_score_weight", score == ScoreMode::Concat)?,
            dropout: AttentionDropout::new(dropout, seed),
        })
    }

    /// The results for the queries `[batch, targets, size]` of values at keys, both
    /// `[batch, sources, _]`.
    ///
    /// # Errors
    ///
    /// When the shapes do not fit.
    pub fn attend(
        &self,
        [query, key, value]: [&Tensor; 3],
        masks: &AttentionMasks<'_>,
        mode: Mode,
    ) -> Result<Tensor> {
        let weight = self.scale.as_ref().or(self.concat_score_weight.as_ref());
        let float = |x: &Tensor| input_for_some(weight, x);
        let (query, key, value) = (float(query)?, float(key)?, float(value)?);
        let of = |weight: &Variable| weight.read()?.cast(query.dtype());
        let scale = |x: Tensor| match &self.scale {
            Some(scale) => x * of(scale)?,
            None => Ok(x),
        };
        let scores = match &self.concat_score_weight {
            Some(weight) => scale(pairs(&query, &key)?)?.tanh()?.sum(&[-1])? * of(weight)?,
            None => {
                let attrs = ops::BatchMatMulV2Attrs { adj_y: true, ..Default::default() };
                scale(ops::batch_matmul_v2_with(&query, &key, &attrs)?)
            }
        };
        self.dropout.chosen(&scores?, [&query, &key, &value], masks, mode)
    }
}

impl AdditiveAttention {
    /// A layer of queries and keys of this size.
    ///
    /// # Errors
    ///
    /// As [`Weights::make`].
    pub fn new(weights: &mut Weights, size: usize) -> Result<AdditiveAttention> {
        let scale = Some(weights.make("scale", Initializer::GLOROT_UNIFORM, &[size])?);
        Ok(AdditiveAttention { scale, dropout: AttentionDropout::new(0.0, 0) })
    }

    /// A layer of queries and keys whose elements all count the same.
    pub fn unscaled() -> AdditiveAttention {
        AdditiveAttention { scale: None, dropout: AttentionDropout::new(0.0, 0) }
    }

    /// The same layer, which drops this part of the weights in training, by a seed; 0 is none.
    ///
    /// # Errors
    ///
    /// [`Error::Conversion`](ferroflow_tracer::Error::Conversion) when the rate is not from 0 to
    /// below 1.
    pub fn with_dropout(self, rate: f64, seed: i64) -> Result<AdditiveAttention> {
        check_rate(rate)?;
        Ok(AdditiveAttention { dropout: AttentionDropout::new(rate, seed), ..self })
    }

    /// The results for the queries `[batch, targets, size]` of values at keys
    /// `[batch, sources, size]`.
    ///
    /// # Errors
    ///
    /// When the shapes do not fit.
    pub fn attend(
        &self,
        [query, key, value]: [&Tensor; 3],
        masks: &AttentionMasks<'_>,
        mode: Mode,
    ) -> Result<Tensor> {
        let float = |x: &Tensor| input_for_some(self.scale.as_ref(), x);
        let (query, key, value) = (float(query)?, float(key)?, float(value)?);
        let pairs = pairs(&query, &key)?.tanh()?;
        let pairs = match &self.scale {
            Some(scale) => (pairs * scale.read()?.cast(query.dtype())?)?,
            None => pairs,
        };
        self.dropout.chosen(&pairs.sum(&[-1])?, [&query, &key, &value], masks, mode)
    }
}

/// The sums of each query with each key: `[batch, targets, sources, size]`.
fn pairs(query: &Tensor, key: &Tensor) -> Result<Tensor> {
    query.expand_dims(-2)? + key.expand_dims(-3)?
}

impl AttentionDropout {
    fn new(rate: f64, seed: i64) -> AttentionDropout {
        AttentionDropout { rate, seed_generator: SeedGenerator::new(seed) }
    }

    /// The values that scores choose: `[batch, targets, sources] × [batch, sources, _]`.
    fn chosen(
        &self,
        scores: &Tensor,
        [query, key, value]: [&Tensor; 3],
        masks: &AttentionMasks<'_>,
        mode: Mode,
    ) -> Result<Tensor> {
        let mut weights = masks.masked(scores, query, key)?.softmax()?;
        if mode == Mode::Training && self.rate > 0.0 {
            weights = dropped(&weights, &weights.shape_tensor()?, self.rate, &self.seed_generator)?;
        }
        let found = weights.matmul(value)?;
        match masks.query {
            Some(mask) => mask.expand_dims(-1)?.select(found, 0.0),
            None => Ok(found),
        }
    }
}

impl<'a> AttentionMasks<'a> {
    /// The steps of a value that count, where it attends to itself.
    fn of(x: &'a LayerValue) -> AttentionMasks<'a> {
        AttentionMasks { query: x.mask.as_ref(), value: x.mask.as_ref(), causal: false }
    }

    /// Scores, those of sources that are not attended to being too low to matter.
    fn masked(&self, scores: &Tensor, query: &Tensor, key: &Tensor) -> Result<Tensor> {
        let value = self.value.map(|mask| mask.expand_dims(-2)).transpose()?;
        let causal = self.causal.then(|| not_later(query, key, 1)).transpose()?;
        let mask = match (value, causal) {
            (Some(value), Some(causal)) => value.logical_and(&causal)?,
            (Some(mask), None) | (None, Some(mask)) => mask,
            (None, None) => return Ok(scores.clone()),
        };
        let low = if scores.dtype() == DType::F16 { 65504.0 } else { 1e9 };
        mask.select(scores, (scores - low)?)
    }
}

impl Layer for DotProductAttention {
    #[track_caller]
    fn call(&self, x: &Tensor, mode: Mode) -> Result<Tensor> {
        let _call = crate::called();
        self.attend([x; 3], &AttentionMasks::default(), mode)
    }

    #[track_caller]
    fn propagate(&self, x: &LayerValue, mode: Mode) -> Result<LayerValue> {
        let _call = crate::called();
        Ok(x.with_tensor(self.attend([&x.tensor; 3], &AttentionMasks::of(x), mode)?))
    }
}

impl Layer for AdditiveAttention {
    #[track_caller]
    fn call(&self, x: &Tensor, mode: Mode) -> Result<Tensor> {
        let _call = crate::called();
        self.attend([x; 3], &AttentionMasks::default(), mode)
    }

    #[track_caller]
    fn propagate(&self, x: &LayerValue, mode: Mode) -> Result<LayerValue> {
        let _call = crate::called();
        Ok(x.with_tensor(self.attend([&x.tensor; 3], &AttentionMasks::of(x), mode)?))
    }
}
