//! Convolutions in one, two and three dimensions.

use super::{
    Activation, Layer, Mode, Penalty, Regularizer, Weights,
    compute::input_for,
    geometry::{Padding, check_dimensions, check_sizes, convolved, dilated, padded},
    shapes::wrong,
};
use crate::initializers::Initializer;
use ferroflow_tracer::{error::Result, ops, tensor::Tensor, variable::Variable};
use ferroflow_tracer_macros::Trackable;

/// A convolution over `N` dimensions, a bias, and an activation:
/// `[batch, ..sizes, inputs] → [batch, ..sizes, outputs]`.
///
/// Weights: `kernel` `[..window, inputs / groups, outputs]`, `bias` `[outputs]`.
#[derive(Trackable, Debug, Clone)]
pub struct Conv<const N: usize> {
    #[trackable(also = "_kernel")]
    kernel: Variable,
    bias: Option<Variable>,
    regularization_losses: Option<Vec<Penalty>>,
    #[trackable(skip)]
    options: ConvOptions<N>,
}

/// A convolution over sequences: `[batch, steps, inputs]`.
pub type Conv1D = Conv<1>;
/// A convolution over images: `[batch, height, width, inputs]`.
pub type Conv2D = Conv<2>;
/// A convolution over volumes: `[batch, depth, height, width, inputs]`.
pub type Conv3D = Conv<3>;

/// Options of a [`Conv`].
#[derive(Debug, Clone, PartialEq)]
pub struct ConvOptions<const N: usize> {
    /// Steps of the window.
    pub strides: [usize; N],
    /// Distances of the elements of the window. As in TensorFlow there are gradients on CPUs only
    /// where they are 1, and in training.
    pub dilations: [usize; N],
    /// Padding at the edges.
    pub padding: Padding,
    /// Activation of the result.
    pub activation: Activation,
    /// Whether there is a bias.
    pub bias: bool,
    /// Number of groups of channels, each of which sees only its own.
    pub groups: usize,
    /// The first values of the kernel.
    pub kernel_initializer: Initializer,
    /// Regularizer of the kernel.
    pub kernel_regularizer: Option<Regularizer>,
}

impl<const N: usize> Default for ConvOptions<N> {
    fn default() -> ConvOptions<N> {
        ConvOptions {
            strides: [1; N],
            dilations: [1; N],
            padding: Padding::Valid,
            activation: Activation::Linear,
            bias: true,
            groups: 1,
            kernel_initializer: Initializer::GLOROT_UNIFORM,
            kernel_regularizer: None,
        }
    }
}

impl<const N: usize> Conv<N> {
    /// A layer with a window of this size.
    ///
    /// # Errors
    ///
    /// [`Error::Conversion`](ferroflow_tracer::Error::Conversion) when the channels do not make so many groups, for causal padding of
    /// what is no sequence, and for more than three dimensions; as [`Weights::make`].
    pub fn new(
        weights: &mut Weights,
        window: [usize; N],
        inputs: usize,
        outputs: usize,
        options: &ConvOptions<N>,
    ) -> Result<Conv<N>> {
        options.check(inputs, outputs)?;
        let shape: Vec<usize> =
            window.into_iter().chain([inputs / options.groups, outputs]).collect();
        let kernel = weights.make("kernel", options.kernel_initializer, &shape)?;
        let bias = options.bias.then(|| weights.make("bias", Initializer::Zeros, &[outputs]));
        let penalty = options.kernel_regularizer.map(|by| vec![Penalty::new(&kernel, by)]);
        let (bias, options) = (bias.transpose()?, options.clone());
        Ok(Conv { kernel, bias, regularization_losses: penalty, options })
    }

    /// The kernel.
    pub fn kernel(&self) -> &Variable {
        &self.kernel
    }

    /// The bias.
    pub fn bias(&self) -> Option<&Variable> {
        self.bias.as_ref()
    }
}

impl<const N: usize> ConvOptions<N> {
    fn check(&self, inputs: usize, outputs: usize) -> Result<()> {
        let groups = self.groups;
        check_dimensions(N, 3)?;
        check_sizes(&[&self.strides, &self.dilations])?;
        if groups == 0 || !inputs.is_multiple_of(groups) || !outputs.is_multiple_of(groups) {
            let found = format!("{inputs} inputs and {outputs} outputs in {groups} groups");
            return Err(wrong("channels that can be divided into groups", found));
        }
        if self.padding == Padding::Causal && N != 1 {
            return Err(wrong("causal padding of a sequence", format!("{N} dimensions")));
        }
        Ok(())
    }
}

impl<const N: usize> Layer for Conv<N> {
    #[track_caller]
    fn call(&self, x: &Tensor, mode: Mode) -> Result<Tensor> {
        let _call = crate::called();
        let x = input_for(&self.kernel, x)?;
        let kernel = self.kernel.read()?.cast(x.dtype())?;
        let ConvOptions { strides, dilations, padding, .. } = &self.options;
        // Dilated convolutions have no gradients on CPUs; those with a dilated kernel have.
        let (kernel, dilations) = match mode {
            Mode::Training => (dilated(&kernel, dilations)?, &[1; N]),
            Mode::Inference => (kernel, dilations),
        };
        let x = match padding {
            Padding::Causal => padded_before(&x, self)?,
            Padding::Valid | Padding::Same => x,
        };
        let y = convolved(&x, &kernel, strides, dilations, *padding)?;
        ended(&y, self.bias.as_ref(), self.options.activation)
    }
}

/// The end of a convolution: the bias is added, and the activation applied.
pub(super) fn ended(y: &Tensor, bias: Option<&Variable>, by: Activation) -> Result<Tensor> {
    match bias {
        Some(bias) => by.apply(&ops::bias_add(y, &bias.read()?.cast(y.dtype())?)?),
        None => by.apply(y),
    }
}

/// Zeros before the first step, as many as the window reaches back.
fn padded_before<const N: usize>(x: &Tensor, layer: &Conv<N>) -> Result<Tensor> {
    let window = layer.kernel.shape().dim(0).unwrap_or(1);
    let before = layer.options.dilations[0] * window.saturating_sub(1);
    padded(x, &[[0, 0], [before, 0], [0, 0]])
}
