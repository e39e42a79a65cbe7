//! Fully connected layers.

use super::{Activation, Layer, Mode, Penalty, Regularizer, Weights, compute::input_for, rows};
use crate::initializers::Initializer;
use ferroflow_tracer::{error::Result, tensor::Tensor, variable::Variable};
use ferroflow_tracer_macros::Trackable;

/// A matrix product, a bias, and an activation: `[.., inputs] → [.., units]`.
///
/// Weights: `kernel` `[inputs, units]`, `bias` `[units]`.
#[derive(Trackable, Debug, Clone)]
pub struct Dense {
    #[trackable(also = "_kernel")]
    kernel: Variable,
    bias: Option<Variable>,
    regularization_losses: Option<Vec<Penalty>>,
    #[trackable(skip)]
    activation: Activation,
}

/// Options of a [`Dense`].
#[derive(Debug, Clone, PartialEq)]
pub struct DenseOptions {
    /// Activation of the result.
    pub activation: Activation,
    /// Whether there is a bias.
    pub bias: bool,
    /// The first values of the kernel.
    pub kernel_initializer: Initializer,
    /// The first values of the bias.
    pub bias_initializer: Initializer,
    /// Regularizer of the kernel.
    pub kernel_regularizer: Option<Regularizer>,
}

impl Default for DenseOptions {
    fn default() -> DenseOptions {
        DenseOptions {
            activation: Activation::Linear,
            bias: true,
            kernel_initializer: Initializer::GLOROT_UNIFORM,
            bias_initializer: Initializer::Zeros,
            kernel_regularizer: None,
        }
    }
}

impl Dense {
    /// A layer with a bias and without an activation.
    ///
    /// # Errors
    ///
    /// As [`Weights::make`].
    pub fn new(weights: &mut Weights, inputs: usize, units: usize) -> Result<Dense> {
        Dense::with_options(weights, inputs, units, &DenseOptions::default())
    }

    /// A layer.
    ///
    /// # Errors
    ///
    /// As [`Weights::make`].
    pub fn with_options(
        weights: &mut Weights,
        inputs: usize,
        units: usize,
        options: &DenseOptions,
    ) -> Result<Dense> {
        let kernel = weights.make("kernel", options.kernel_initializer, &[inputs, units])?;
        let bias = options.bias.then(|| weights.make("bias", options.bias_initializer, &[units]));
        let penalty = options.kernel_regularizer.map(|by| vec![Penalty::new(&kernel, by)]);
        Ok(Dense {
            kernel,
            bias: bias.transpose()?,
            regularization_losses: penalty,
            activation: options.activation,
        })
    }

    /// The matrix.
    pub fn kernel(&self) -> &Variable {
        &self.kernel
    }

    /// The bias.
    pub fn bias(&self) -> Option<&Variable> {
        self.bias.as_ref()
    }
}

impl Layer for Dense {
    fn supports_masking(&self) -> bool {
        true
    }

    #[track_caller]
    fn call(&self, x: &Tensor, _: Mode) -> Result<Tensor> {
        let _call = crate::called();
        let x = input_for(&self.kernel, x)?;
        let y = rows::times(&x, &self.kernel.read()?.cast(x.dtype())?)?;
        let y = match &self.bias {
            Some(bias) => (y + bias.read()?.cast(x.dtype())?)?,
            None => y,
        };
        self.activation.apply(&y)
    }
}
