//! Normalisation of each example on its own.

use super::{
    Layer, Mode, Weights,
    compute::{input_for_some, moments, wide},
};
use crate::initializers::Initializer;
use ferroflow_tracer::{error::Result, ops, tensor::Tensor, variable::Variable};
use ferroflow_tracer_macros::Trackable;

/// Subtracts the mean over the last dimensions and divides by the deviation, then scales and shifts by
/// what is learned (Ba et al. 2016): `[.., ..sizes] → [.., ..sizes]`.
///
/// Weights: `gamma` and `beta`, both `[..sizes]`, where the options ask for them.
#[derive(Trackable, Debug, Clone)]
pub struct LayerNorm {
    gamma: Option<Variable>,
    beta: Option<Variable>,
    #[trackable(skip)]
    n_axes: usize,
    #[trackable(skip)]
    epsilon: f64,
}

/// The options of a [`LayerNorm`].
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LayerNormOptions {
    /// The term added to the variance.
    pub epsilon: f64,
    /// Whether results are shifted.
    pub center: bool,
    /// Whether results are scaled.
    pub scale: bool,
}

impl Default for LayerNormOptions {
    fn default() -> LayerNormOptions {
        LayerNormOptions { epsilon: 1e-3, center: true, scale: true }
    }
}

impl LayerNorm {
    /// A layer over a last dimension of this size; 0.001 is added to the variance.
    ///
    /// # Errors
    ///
    /// As [`Weights::make`].
    pub fn new(weights: &mut Weights, size: usize) -> Result<LayerNorm> {
        LayerNorm::with_options(weights, &[size], &LayerNormOptions::default())
    }

    /// A layer that adds `epsilon` to the variance.
    ///
    /// # Errors
    ///
    /// As [`Weights::make`].
    pub fn with_epsilon(weights: &mut Weights, size: usize, epsilon: f64) -> Result<LayerNorm> {
        let options = LayerNormOptions { epsilon, ..LayerNormOptions::default() };
        LayerNorm::with_options(weights, &[size], &options)
    }

    /// A layer over the last dimensions, which are of these sizes.
    ///
    /// # Errors
    ///
    /// As [`Weights::make`].
    pub fn with_options(
        weights: &mut Weights,
        sizes: &[usize],
        options: &LayerNormOptions,
    ) -> Result<LayerNorm> {
        let LayerNormOptions { epsilon, center, scale } = *options;
        let mut make = |name: &str, first: Initializer, is_there: bool| {
            is_there.then(|| weights.make(name, first, sizes)).transpose()
        };
        Ok(LayerNorm {
            gamma: make("gamma", Initializer::Ones, scale)?,
            beta: make("beta", Initializer::Zeros, center)?,
            n_axes: sizes.len(),
            epsilon,
        })
    }
}

impl Layer for LayerNorm {
    fn supports_masking(&self) -> bool {
        true
    }

    #[track_caller]
    fn call(&self, x: &Tensor, _: Mode) -> Result<Tensor> {
        let _call = crate::called();
        let x = input_for_some(self.gamma.as_ref().or(self.beta.as_ref()), x)?;
        let wide = x.cast(wide(x.dtype()))?;
        let axes: Vec<i32> = (-(self.n_axes as i32)..0).collect();
        let (mean, variance) = moments(&wide, &axes)?;
        let inverse = ops::rsqrt(&(variance + self.epsilon)?)?;
        let mut y = ((&wide - mean)? * inverse)?;
        if let Some(gamma) = &self.gamma {
            y = (y * gamma.read()?.cast(wide.dtype())?)?;
        }
        if let Some(beta) = &self.beta {
            y = (y + beta.read()?.cast(wide.dtype())?)?;
        }
        y.cast(x.dtype())
    }
}
