//! Normalization of features by the statistics of a data set.

use super::{
    Layer, Mode, Weights,
    compute::{input, wide},
    shapes::{unfit, wrong},
};
use crate::{initializers::Initializer, state::state};
use ferroflow_ir::DType;
use ferroflow_tracer::{
    error::Result,
    ops::{self, IntoOperand},
    tensor::Tensor,
    variable::Variable,
};
use ferroflow_tracer_macros::Trackable;
use std::borrow::Borrow;

/// Features moved and scaled to mean 0 and variance 1, by statistics that are passed or taken from
/// data ([`adapt`](Normalization::adapt)): `(x - mean) / max(√variance, 1e-7)`, of any shape whose
/// last dimensions are those of the statistics.
///
/// ```
/// use ferroflow_nn::{Layer, Mode, Normalization, Weights};
/// use ferroflow_tracer::Tensor;
/// # fn main() -> ferroflow_tracer::Result<()> {
/// let data = Tensor::from([[1.0f32, 10.0], [3.0, 30.0]]);
/// let layer = Normalization::new(&mut Weights::new(), &[2])?;
/// layer.adapt([&data])?;
/// let y = layer.call(&data, Mode::Inference)?;
/// assert_eq!(y.to_vec::<f32>()?, [-1.0, -1.0, 1.0, 1.0]);
/// # Ok(())
/// # }
/// ```
///
/// Weights, none of them trained: `adapt_mean` and `adapt_variance`, both of the shape of the
/// statistics, and `count`, which stays 0. A layer of given statistics has none.
#[derive(Trackable, Debug, Clone)]
pub struct Normalization {
    adapt_mean: Option<Variable>,
    adapt_variance: Option<Variable>,
    count: Option<Variable>,
    #[trackable(skip)]
    given: Option<(Tensor, Tensor)>,
    #[trackable(skip)]
    sizes: Vec<usize>,
    #[trackable(skip)]
    inverts: bool,
}

impl Normalization {
    /// A layer with a mean and a variance for each position of the last dimensions, which are of
    /// these sizes: `[channels]` for each channel, `[]` for all elements together. Before it is
    /// adapted it changes nothing.
    ///
    /// # Errors
    ///
    /// As [`Weights::make`].
    pub fn new(weights: &mut Weights, sizes: &[usize]) -> Result<Normalization> {
        let (ones, zeros) = (Initializer::Ones, Initializer::Zeros);
        Ok(Normalization {
            adapt_mean: Some(weights.untrained("mean", zeros, sizes)?),
            adapt_variance: Some(weights.untrained("variance", ones, sizes)?),
            count: Some(state("count", Tensor::from(0i64))?),
            given: None,
            sizes: sizes.to_vec(),
            inverts: false,
        })
    }

    /// A layer of these statistics.
    ///
    /// # Errors
    ///
    /// [`Error::Conversion`](ferroflow_tracer::Error::Conversion) when their shapes differ.
    pub fn of(mean: impl Into<Tensor>, variance: impl Into<Tensor>) -> Result<Normalization> {
        let (mean, variance) = (mean.into(), variance.into());
        if mean.shape() != variance.shape() {
            return Err(unfit(&format!("a variance like the mean {}", mean.spec()), &variance));
        }
        let sizes = mean.shape().known().map(|shape| shape.dims().to_vec()).unwrap_or_default();
        let (adapt_mean, adapt_variance, count) = (None, None, None);
        let fixed = Some((mean, variance));
        Ok(Normalization { adapt_mean, adapt_variance, count, given: fixed, sizes, inverts: false })
    }

    /// The inverse layer: `mean + x · max(√variance, 1e-7)`.
    #[must_use]
    pub fn inverted(self) -> Normalization {
        Normalization { inverts: true, ..self }
    }

    /// Takes mean and variance from batches of data. Earlier statistics are forgotten.
    ///
    /// # Errors
    ///
    /// [`Error::Conversion`](ferroflow_tracer::Error::Conversion) for a layer of given statistics,
    /// without any batch, and for batches that do not end with its sizes; those of the batches.
    pub fn adapt<B: IntoOperand>(&self, batches: impl IntoIterator<Item = B>) -> Result<()> {
        let (Some(mean), Some(variance)) = (&self.adapt_mean, &self.adapt_variance) else {
            return Err(wrong("a layer that takes its statistics from data", "given statistics"));
        };
        let batches = batches.into_iter().map(|batch| {
            let batch = batch.into_operand(mean.dtype())?;
            self.statistics(&input(batch.borrow())?)
        });
        let all = batches.reduce(|all, batch| all?.and(batch?));
        let all = all.unwrap_or_else(|| Err(wrong("a batch of data at least", "none")))?;
        mean.assign(all.mean.cast(mean.dtype())?)?;
        variance.assign(all.variance.cast(variance.dtype())?)
    }

    fn statistics(&self, batch: &Tensor) -> Result<Statistics> {
        let shape = batch.shape().known();
        let outer = shape.as_ref().and_then(|shape| shape.dims().strip_suffix(&self.sizes[..]));
        let expected = || format!("a batch whose last dimensions are {:?}", self.sizes);
        let outer = outer.ok_or_else(|| unfit(&expected(), batch))?;
        let axes: Vec<i32> = (0..outer.len() as i32).collect();
        let wide = batch.cast(wide(batch.dtype()))?;
        let mean = wide.mean(&axes)?;
        let variance = ops::squared_difference(&wide, &mean)?.mean(&axes)?;
        Ok(Statistics { mean, variance, count: outer.iter().product() })
    }

    fn read(&self, dtype: DType) -> Result<(Tensor, Tensor)> {
        let (mean, variance) = match (&self.given, &self.adapt_mean, &self.adapt_variance) {
            (Some((mean, variance)), ..) => (mean.clone(), variance.clone()),
            (None, Some(mean), Some(variance)) => (mean.read()?, variance.read()?),
            (None, ..) => return Err(wrong("a layer with statistics", "none")),
        };
        let deviation = variance.cast(dtype)?.sqrt()?.maximum(1e-7)?;
        Ok((mean.cast(dtype)?, deviation))
    }
}

impl Layer for Normalization {
    fn supports_masking(&self) -> bool {
        true
    }

    #[track_caller]
    fn call(&self, x: &Tensor, _: Mode) -> Result<Tensor> {
        let _call = crate::called();
        let x = input(x)?;
        let (mean, deviation) = self.read(x.dtype())?;
        if self.inverts { mean + (x * deviation)? } else { (x - mean)? / deviation }
    }
}

/// Mean and variance of so many examples.
struct Statistics {
    mean: Tensor,
    variance: Tensor,
    count: usize,
}

impl Statistics {
    /// Those of the examples of both (Chan et al. 1979).
    fn and(self, other: Statistics) -> Result<Statistics> {
        let count = self.count + other.count;
        let part = other.count as f64 / count.max(1) as f64;
        let weighted = |a: Tensor, b: Tensor| (a * (1.0 - part))? + (b * part)?;
        let mean = weighted(self.mean.clone(), other.mean.clone())?;
        let around = |of: Statistics| of.variance + ops::squared_difference(&of.mean, &mean)?;
        let variance = weighted(around(self)?, around(other)?)?;
        Ok(Statistics { mean, variance, count })
    }
}
