//! Normalization by root mean squares, and to vectors of length 1.

use super::{
    Layer, Mode, Weights,
    compute::{input, input_for, mean, unit, wide},
};
use crate::initializers::Initializer;
use ferroflow_tracer::{error::Result, ops, tensor::Tensor, variable::Variable};
use ferroflow_tracer_macros::Trackable;

/// Root mean square normalization (Zhang and Sennrich 2019): `x / √(mean(x²) + epsilon) · scale` over
/// the last dimension: `[.., size] → [.., size]`.
///
/// Weights: `scale` `[size]`.
#[doc(alias("RMSNormalization"))]
#[derive(Trackable, Debug, Clone)]
pub struct RmsNorm {
    scale: Variable,
    #[trackable(skip)]
    epsilon: f64,
}

impl RmsNorm {
    /// A layer over a last dimension of this size; 1e-6 is added to the mean.
    ///
    /// # Errors
    ///
    /// As [`Weights::make`].
    pub fn new(weights: &mut Weights, size: usize) -> Result<RmsNorm> {
        RmsNorm::with_epsilon(weights, size, 1e-6)
    }

    /// A layer that adds `epsilon` to the mean.
    ///
    /// # Errors
    ///
    /// As [`Weights::make`].
    pub fn with_epsilon(weights: &mut Weights, size: usize, epsilon: f64) -> Result<RmsNorm> {
        Ok(RmsNorm { scale: weights.make("scale", Initializer::Ones, &[size])?, epsilon })
    }

    /// The factors.
    pub fn scale(&self) -> &Variable {
        &self.scale
    }
}

impl Layer for RmsNorm {
    #[track_caller]
    fn call(&self, x: &Tensor, _: Mode) -> Result<Tensor> {
        let _call = crate::called();
        let x = input_for(&self.scale, x)?;
        let wide = x.cast(wide(x.dtype()))?;
        let inverse = ops::rsqrt(&(mean(&wide.square()?, &[-1])? + self.epsilon)?)?;
        let scale = self.scale.read()?.cast(wide.dtype())?;
        ((wide * inverse)? * scale)?.cast(x.dtype())
    }
}

/// Vectors divided by their lengths: `x / √Σx²` over some axes.
#[doc(alias("UnitNormalization"))]
#[derive(Trackable, Debug, Clone, PartialEq)]
pub struct UnitNorm {
    #[trackable(skip)]
    axes: Vec<i32>,
}

impl UnitNorm {
    /// A layer over these axes, of which negative ones count from the end.
    pub fn new(axes: impl Into<Vec<i32>>) -> UnitNorm {
        UnitNorm { axes: axes.into() }
    }
}

impl Default for UnitNorm {
    /// A layer over the last dimension.
    fn default() -> UnitNorm {
        UnitNorm::new([-1])
    }
}

impl Layer for UnitNorm {
    fn supports_masking(&self) -> bool {
        true
    }

    #[track_caller]
    fn call(&self, x: &Tensor, _: Mode) -> Result<Tensor> {
        let _call = crate::called();
        unit(&input(x)?, &self.axes, 1e-12)
    }
}
