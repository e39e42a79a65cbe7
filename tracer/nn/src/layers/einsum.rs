//! Products of tensors by an equation.

use super::{Activation, Layer, Mode, Penalty, Regularizer, Weights, compute::input_for};
use crate::initializers::Initializer;
use ferroflow_tracer::{error::Result, ops, tensor::Tensor, variable::Variable};
use ferroflow_tracer_macros::Trackable;

/// A product of the input with a kernel by Einstein's sum convention, a bias, and an activation.
///
/// ```
/// use ferroflow_nn::{EinsumDense, EinsumOptions, Layer, Mode, Weights};
/// use ferroflow_tracer::Tensor;
/// # fn main() -> ferroflow_tracer::Result<()> {
/// let options = EinsumOptions { bias: Some(vec![4, 5]), ..EinsumOptions::default() };
/// let layer = EinsumDense::new(&mut Weights::new(), "abc,cde->abde", &[3, 4, 5], &options)?;
/// let y = layer.call(&Tensor::from([[[1.0f32, 2.0, 3.0]; 2]]), Mode::Inference)?;
/// assert_eq!(y.shape().to_string(), "[1,2,4,5]");
/// # Ok(())
/// # }
/// ```
///
/// Weights: `kernel` and `bias`, of the shapes that are given.
#[derive(Trackable, Debug, Clone)]
pub struct EinsumDense {
    #[trackable(also = "_kernel")]
    kernel: Variable,
    bias: Option<Variable>,
    regularization_losses: Option<Vec<Penalty>>,
    #[trackable(skip)]
    equation: String,
    #[trackable(skip)]
    activation: Activation,
}

/// The options of an [`EinsumDense`].
#[derive(Debug, Clone, PartialEq)]
pub struct EinsumOptions {
    /// The shape of the bias, which broadcasts to that of the result; without one there is none.
    pub bias: Option<Vec<usize>>,
    /// The activation of the result.
    pub activation: Activation,
    /// The initial values of the kernel.
    pub kernel_initializer: Initializer,
    /// The penalty added to the loss for the kernel.
    pub kernel_regularizer: Option<Regularizer>,
}

impl Default for EinsumOptions {
    fn default() -> EinsumOptions {
        EinsumOptions {
            bias: None,
            activation: Activation::Linear,
            kernel_initializer: Initializer::GLOROT_UNIFORM,
            kernel_regularizer: None,
        }
    }
}

impl EinsumDense {
    /// A layer of an equation such as `ab,bc->ac`, whose second operand is a kernel of this shape.
    ///
    /// # Errors
    ///
    /// As [`Weights::make`].
    pub fn new(
        weights: &mut Weights,
        equation: &str,
        kernel: &[usize],
        options: &EinsumOptions,
    ) -> Result<EinsumDense> {
        let kernel = weights.make("kernel", options.kernel_initializer, kernel)?;
        let bias = options.bias.as_ref();
        let bias = bias.map(|shape| weights.make("bias", Initializer::Zeros, shape));
        let penalty = options.kernel_regularizer.map(|by| vec![Penalty::new(&kernel, by)]);
        Ok(EinsumDense {
            kernel,
            bias: bias.transpose()?,
            regularization_losses: penalty,
            equation: equation.into(),
            activation: options.activation,
        })
    }

    /// The kernel.
    pub fn kernel(&self) -> &Variable {
        &self.kernel
    }
}

impl Layer for EinsumDense {
    #[track_caller]
    fn call(&self, x: &Tensor, _: Mode) -> Result<Tensor> {
        let _call = crate::called();
        let x = input_for(&self.kernel, x)?;
        let y = ops::einsum(&[&x, &self.kernel.read()?.cast(x.dtype())?], &self.equation)?;
        let y = match &self.bias {
            Some(bias) => (y + bias.read()?.cast(x.dtype())?)?,
            None => y,
        };
        self.activation.apply(&y)
    }
}
