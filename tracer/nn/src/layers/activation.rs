//! Functions of single numbers that layers end with.

use ferroflow_tracer::{error::Result, ops, tensor::Tensor};

/// What is applied to the results of a layer.
///
/// ```
/// use ferroflow_nn::Activation;
/// use ferroflow_tracer::Tensor;
/// # fn main() -> ferroflow_tracer::Result<()> {
/// let y = Activation::Relu.apply(&Tensor::from([-1.0f32, 2.0]))?;
/// assert_eq!(y.to_vec::<f32>()?, [0.0, 2.0]);
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub enum Activation {
    /// Nothing.
    #[default]
    Linear,
    /// `max(x, 0)`.
    Relu,
    /// `min(max(x, 0), 6)`.
    Relu6,
    /// `x` where it is positive, this part of it elsewhere.
    LeakyRelu(f32),
    /// `x` where it is positive, `exp(x) - 1` elsewhere.
    Elu,
    /// [`Elu`](Activation::Elu), scaled such that mean and variance are kept (Klambauer et al. 2017).
    Selu,
    /// `x·Φ(x)`, where `Φ` is the cumulative normal distribution (Hendrycks and Gimpel 2016).
    Gelu,
    /// `x·sigmoid(x)`.
    Silu,
    /// `log(1 + exp(x))`.
    Softplus,
    /// `1 / (1 + exp(-x))`.
    Sigmoid,
    /// Hyperbolic tangent.
    Tanh,
    /// `exp(x)` over its sum along the last dimension.
    Softmax,
}

impl Activation {
    /// The function of `x`.
    ///
    /// # Errors
    ///
    /// When `x` is not of floats.
    pub fn apply(self, x: &Tensor) -> Result<Tensor> {
        match self {
            Activation::Linear => Ok(x.clone()),
            Activation::Relu => x.relu(),
            Activation::Relu6 => ops::relu6(x),
            Activation::LeakyRelu(alpha) => ops::leaky_relu_with(x, &ops::LeakyReluAttrs { alpha }),
            Activation::Elu => ops::elu(x),
            Activation::Selu => ops::selu(x),
            Activation::Gelu => {
                let below = (ops::erf(&(x * std::f64::consts::FRAC_1_SQRT_2)?)? + 1.0)?;
                (x * 0.5)? * below
            }
            Activation::Silu => x * x.sigmoid()?,
            Activation::Softplus => ops::softplus(x),
            Activation::Sigmoid => x.sigmoid(),
            Activation::Tanh => x.tanh(),
            Activation::Softmax => x.softmax(),
        }
    }
}
