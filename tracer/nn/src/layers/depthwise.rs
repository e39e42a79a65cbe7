//! Convolutions of each channel on its own, and mixed by a second kernel.

use super::{
    ConvOptions, Layer, Mode, Penalty, Weights,
    compute::input_for,
    conv::ended,
    geometry::{
        Padding, check_dimensions, check_sizes, kernel_of, over_images, padding_name, window,
    },
    shapes::wrong,
};
use crate::initializers::Initializer;
use ferroflow_tracer::{error::Result, ops, tensor::Tensor, variable::Variable};
use ferroflow_tracer_macros::Trackable;

/// A convolution of each channel by filters of its own, a bias, and an activation:
/// `[batch, ..sizes, inputs] → [batch, ..sizes, inputs·multiplier]`, over one or two dimensions.
///
/// Weights: `kernel` `[..window, inputs, multiplier]` (Keras 2: `depthwise_kernel`), `bias`
/// `[inputs·multiplier]`.
#[derive(Trackable, Debug, Clone)]
pub struct DepthwiseConv<const N: usize> {
    #[trackable(also = "depthwise_kernel")]
    kernel: Variable,
    bias: Option<Variable>,
    regularization_losses: Option<Vec<Penalty>>,
    #[trackable(skip)]
    options: ConvOptions<N>,
}

/// A convolution of each channel of sequences: `[batch, steps, inputs]`.
pub type DepthwiseConv1D = DepthwiseConv<1>;
/// A convolution of each channel of images: `[batch, height, width, inputs]`.
pub type DepthwiseConv2D = DepthwiseConv<2>;

impl<const N: usize> DepthwiseConv<N> {
    /// A layer with a window of this size.
    ///
    /// # Errors
    ///
    /// [`Error::Conversion`](ferroflow_tracer::Error::Conversion) for groups, causal padding, and
    /// more than two dimensions; as [`Weights::make`].
    pub fn new(
        weights: &mut Weights,
        window: [usize; N],
        inputs: usize,
        multiplier: usize,
        options: &ConvOptions<N>,
    ) -> Result<DepthwiseConv<N>> {
        check(&window, options)?;
        let shape: Vec<usize> = window.into_iter().chain([inputs, multiplier]).collect();
        let kernel = weights.make("kernel", options.kernel_initializer, &shape)?;
        let size = [inputs * multiplier];
        let bias = options.bias.then(|| weights.make("bias", Initializer::Zeros, &size));
        let penalty = options.kernel_regularizer.map(|by| vec![Penalty::new(&kernel, by)]);
        let (bias, options) = (bias.transpose()?, options.clone());
        Ok(DepthwiseConv { kernel, bias, regularization_losses: penalty, options })
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

impl<const N: usize> Layer for DepthwiseConv<N> {
    #[track_caller]
    fn call(&self, x: &Tensor, _: Mode) -> Result<Tensor> {
        let _call = crate::called();
        let x = input_for(&self.kernel, x)?;
        let y = by_channel(&x, &self.kernel.read()?.cast(x.dtype())?, &self.options)?;
        ended(&y, self.bias.as_ref(), self.options.activation)
    }
}

/// A convolution of each channel by filters of its own, the results mixed at each position by a
/// second kernel, a bias, and an activation: `[batch, ..sizes, inputs] → [batch, ..sizes, outputs]`,
/// over one or two dimensions.
///
/// Weights: `depthwise_kernel` `[..window, inputs, multiplier]`, `pointwise_kernel`
/// `[..1, inputs·multiplier, outputs]`, `bias` `[outputs]`.
#[derive(Trackable, Debug, Clone)]
pub struct SeparableConv<const N: usize> {
    depthwise_kernel: Variable,
    pointwise_kernel: Variable,
    bias: Option<Variable>,
    regularization_losses: Option<Vec<Penalty>>,
    #[trackable(skip)]
    options: ConvOptions<N>,
}

/// A separable convolution of sequences: `[batch, steps, inputs]`.
pub type SeparableConv1D = SeparableConv<1>;
/// A separable convolution of images: `[batch, height, width, inputs]`.
pub type SeparableConv2D = SeparableConv<2>;

impl<const N: usize> SeparableConv<N> {
    /// A layer with a window of this size and a number of filters for each channel. Both kernels
    /// have the initializer and the regularizer of the options.
    ///
    /// # Errors
    ///
    /// As [`DepthwiseConv::new`].
    pub fn new(
        weights: &mut Weights,
        window: [usize; N],
        [inputs, outputs]: [usize; 2],
        multiplier: usize,
        options: &ConvOptions<N>,
    ) -> Result<SeparableConv<N>> {
        check(&window, options)?;
        let first = options.kernel_initializer;
        let depthwise: Vec<usize> = window.into_iter().chain([inputs, multiplier]).collect();
        let pointwise: Vec<usize> =
            [1; N].into_iter().chain([inputs * multiplier, outputs]).collect();
        let depthwise_kernel = weights.make("depthwise_kernel", first, &depthwise)?;
        let pointwise_kernel = weights.make("pointwise_kernel", first, &pointwise)?;
        let bias = options.bias.then(|| weights.make("bias", Initializer::Zeros, &[outputs]));
        let penalties = options.kernel_regularizer.map(|by| {
            vec![Penalty::new(&depthwise_kernel, by), Penalty::new(&pointwise_kernel, by)]
        });
        Ok(SeparableConv {
            depthwise_kernel,
            pointwise_kernel,
            bias: bias.transpose()?,
            regularization_losses: penalties,
            options: options.clone(),
        })
    }
}

impl<const N: usize> Layer for SeparableConv<N> {
    #[track_caller]
    fn call(&self, x: &Tensor, _: Mode) -> Result<Tensor> {
        let _call = crate::called();
        let x = input_for(&self.depthwise_kernel, x)?;
        let of = |kernel: &Variable| kernel.read()?.cast(x.dtype());
        let y = by_channel(&x, &of(&self.depthwise_kernel)?, &self.options)?;
        let kernel = kernel_of::<N>(&of(&self.pointwise_kernel)?)?;
        let y = over_images::<N>(&y, |y| ops::conv2d(y, &kernel, &[1; 4], "VALID"))?;
        ended(&y, self.bias.as_ref(), self.options.activation)
    }
}

fn check<const N: usize>(window: &[usize; N], options: &ConvOptions<N>) -> Result<()> {
    check_dimensions(N, 2)?;
    check_sizes(&[window, &options.strides, &options.dilations])?;
    if options.padding == Padding::Causal {
        return Err(wrong("valid or same padding", "causal padding"));
    }
    if options.groups != 1 {
        return Err(wrong("a single group of channels", format!("{} groups", options.groups)));
    }
    Ok(())
}

/// A convolution of each channel by filters of its own.
fn by_channel<const N: usize>(
    x: &Tensor,
    kernel: &Tensor,
    options: &ConvOptions<N>,
) -> Result<Tensor> {
    // The op has one stride for both dimensions; along the height of a sequence any will do.
    let strides = window(&options.strides, options.strides[0]);
    let (kernel, padding) = (kernel_of::<N>(kernel)?, padding_name(options.padding));
    let dilations = window(&options.dilations, 1);
    let attrs = ops::DepthwiseConv2dNativeAttrs { dilations, ..Default::default() };
    over_images::<N>(x, |x| {
        ops::depthwise_conv2d_native_with(x, &kernel, &strides, padding, &attrs)
    })
}
