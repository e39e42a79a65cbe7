//! Normalisation of each example on its own.

use super::{
    Layer, Mode, Weights,
    compute::{input_for, wide},
};
use crate::initializers::Initializer;
use ferroflow_tracer::{error::Result, ops, tensor::Tensor, variable::Variable};
use ferroflow_tracer_macros::Trackable;

/// Subtracts the mean over the last dimension and divides by the deviation, then scales and shifts by
/// what is learned (Ba et al. 2016): `[.., size] → [.., size]`.
///
/// Weights: `gamma` and `beta`, both `[size]`.
#[derive(Trackable, Debug, Clone)]
pub struct LayerNorm {
    gamma: Variable,
    beta: Variable,
    #[trackable(skip)]
    epsilon: f64,
}

impl LayerNorm {
    /// A layer over a last dimension of this size; 0.001 is added to the variance.
    ///
    /// # Errors
    ///
    /// As [`Weights::make`].
    pub fn new(weights: &mut Weights, size: usize) -> Result<LayerNorm> {
        LayerNorm::with_epsilon(weights, size, 1e-3)
    }

    /// A layer that adds `epsilon` to the variance.
    ///
    /// # Errors
    ///
    /// As [`Weights::make`].
    pub fn with_epsilon(weights: &mut Weights, size: usize, epsilon: f64) -> Result<LayerNorm> {
        Ok(LayerNorm {
            gamma: weights.make("gamma", Initializer::Ones, &[size])?,
            beta: weights.make("beta", Initializer::Zeros, &[size])?,
            epsilon,
        })
    }
}

impl Layer for LayerNorm {
    fn call(&self, x: &Tensor, _: Mode) -> Result<Tensor> {
        let x = input_for(&self.gamma, x)?;
        let wide = x.cast(wide(x.dtype()))?;
        let mean = wide.mean(&[-1])?.expand_dims(-1)?;
        let variance = ops::squared_difference(&wide, &mean)?.mean(&[-1])?.expand_dims(-1)?;
        let inverse = ops::rsqrt(&(variance + self.epsilon)?)?;
        let normal = ((wide - mean)? * inverse)?;
        ((normal * self.gamma.read()?)? + self.beta.read()?)?.cast(x.dtype())
    }
}
