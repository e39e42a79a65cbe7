//! Normalisation by the statistics of batches.

use super::{
    Layer, LayerValue, Mode, Weights,
    compute::{input_for, wide},
    value::mask_of_rank,
};
use crate::{initializers::Initializer, losses::EPSILON};
use ferroflow_tracer::{
    error::{Error, Result},
    ops,
    tensor::Tensor,
    variable::Variable,
};
use ferroflow_tracer_macros::Trackable;

/// Subtracts the mean of each channel and divides by its deviation, then scales and shifts by what
/// is learned (Ioffe and Szegedy 2015): `[.., channels] → [.., channels]`.
///
/// In training the statistics are those of the batch, and averages of them move along; otherwise the
/// averages are taken. The variance is the biased one, as in Keras 3.
///
/// Weights: `gamma` and `beta` where the options ask for them, `moving_mean`, `moving_variance`, all
/// `[channels]`.
#[derive(Trackable, Debug, Clone)]
pub struct BatchNorm {
    gamma: Option<Variable>,
    beta: Option<Variable>,
    moving_mean: Variable,
    moving_variance: Variable,
    #[trackable(skip)]
    options: BatchNormOptions,
}

/// Options of a [`BatchNorm`].
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct BatchNormOptions {
    /// The part of the averages that a step of training keeps.
    pub momentum: f64,
    /// Number added to the variance.
    pub epsilon: f64,
    /// Whether results are shifted.
    pub center: bool,
    /// Whether results are scaled.
    pub scale: bool,
}

impl Default for BatchNormOptions {
    fn default() -> BatchNormOptions {
        BatchNormOptions { momentum: 0.99, epsilon: 1e-3, center: true, scale: true }
    }
}

impl BatchNorm {
    /// A layer over so many channels.
    ///
    /// # Errors
    ///
    /// As [`Weights::make`].
    pub fn new(weights: &mut Weights, channels: usize) -> Result<BatchNorm> {
        BatchNorm::with_options(weights, channels, &BatchNormOptions::default())
    }

    /// A layer over so many channels.
    ///
    /// # Errors
    ///
    /// As [`Weights::make`].
    pub fn with_options(
        weights: &mut Weights,
        channels: usize,
        options: &BatchNormOptions,
    ) -> Result<BatchNorm> {
        let (shape, options) = ([channels], *options);
        let mut make = |name: &str, first: Initializer, is_there: bool| {
            is_there.then(|| weights.make(name, first, &shape)).transpose()
        };
        Ok(BatchNorm {
            gamma: make("gamma", Initializer::Ones, options.scale)?,
            beta: make("beta", Initializer::Zeros, options.center)?,
            moving_mean: weights.untrained("moving_mean", Initializer::Zeros, &shape)?,
            moving_variance: weights.untrained("moving_variance", Initializer::Ones, &shape)?,
            options,
        })
    }

    /// Mean and variance of each channel of a batch, of the steps that count.
    fn statistics(&self, x: &Tensor, mask: Option<&Tensor>) -> Result<(Tensor, Tensor)> {
        let rank = x.shape().rank().ok_or_else(|| Error::Conversion {
            expected: "a tensor of known rank".into(),
            found: x.spec().to_string(),
        })?;
        let axes: Vec<i32> = (0..rank as i32 - 1).collect();
        if let Some(mask) = mask {
            let mask = mask_of_rank(mask, rank)?;
            let weights = ops::ones_like(x)?;
            let n = (mask.select(&weights, 0.0)?.sum(&axes)? + EPSILON)?;
            let mean = (mask.select(x, 0.0)?.sum(&axes)? / &n)?;
            let squares = ops::squared_difference(x, &mean)?;
            let variance = (mask.select(&squares, 0.0)?.sum(&axes)? / n)?;
            return Ok((mean, variance));
        }
        let mean = x.mean(&axes)?;
        let variance = ops::squared_difference(x, &mean)?.mean(&axes)?;
        Ok((mean, variance))
    }

    fn update(&self, average: &Variable, value: &Tensor) -> Result<()> {
        let change = ((average.read()? - value)? * (1.0 - self.options.momentum))?;
        average.assign_sub(&change)
    }

    fn normalized(&self, x: &Tensor, mask: Option<&Tensor>, mode: Mode) -> Result<Tensor> {
        let x = input_for(&self.moving_mean, x)?;
        let wide = x.cast(wide(x.dtype()))?;
        let (mean, variance) = match mode {
            Mode::Training => {
                let (mean, variance) = self.statistics(&wide, mask)?;
                self.update(&self.moving_mean, &mean.stop_gradient()?)?;
                self.update(&self.moving_variance, &variance.stop_gradient()?)?;
                (mean, variance)
            }
            Mode::Inference => (self.moving_mean.read()?, self.moving_variance.read()?),
        };
        let mut scale = ops::rsqrt(&(variance + self.options.epsilon)?)?;
        if let Some(gamma) = &self.gamma {
            scale = (scale * gamma.read()?)?;
        }
        let moved = (mean * &scale)?;
        let shift = match &self.beta {
            Some(beta) => (beta.read()? - moved)?,
            None => moved.neg()?,
        };
        ((wide * scale)? + shift)?.cast(x.dtype())
    }
}

impl Layer for BatchNorm {
    #[track_caller]
    fn call(&self, x: &Tensor, mode: Mode) -> Result<Tensor> {
        let _call = crate::called();
        self.normalized(x, None, mode)
    }

    #[track_caller]
    fn propagate(&self, x: &LayerValue, mode: Mode) -> Result<LayerValue> {
        let _call = crate::called();
        Ok(x.with_tensor(self.normalized(&x.tensor, x.mask.as_ref(), mode)?))
    }
}
