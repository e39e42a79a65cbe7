//! Convolutions of each channel on its own.

use super::{ConvOptions, Layer, Mode, Padding, Weights, compute::input_for, conv::of_all};
use crate::initializers::Initializer;
use ferroflow_tracer::{error::Result, ops, tensor::Tensor, variable::Variable};
use ferroflow_tracer_macros::Trackable;

/// A convolution of each channel by filters of its own, a bias, and an activation:
/// `[batch, height, width, inputs] → [batch, height, width, inputs·multiplier]`.
///
/// Weights: `kernel` `[height, width, inputs, multiplier]` (Keras 2: `depthwise_kernel`), `bias`
/// `[inputs·multiplier]`.
#[derive(Trackable, Debug, Clone)]
pub struct DepthwiseConv2D {
    #[trackable(also = "depthwise_kernel")]
    kernel: Variable,
    bias: Option<Variable>,
    #[trackable(skip)]
    options: ConvOptions<2>,
}

impl DepthwiseConv2D {
    /// A layer with a window of this size. Of the options, groups and regularizers are those of
    /// other convolutions.
    ///
    /// # Errors
    ///
    /// As [`Weights::make`].
    pub fn new(
        weights: &mut Weights,
        window: [usize; 2],
        inputs: usize,
        multiplier: usize,
        options: &ConvOptions<2>,
    ) -> Result<DepthwiseConv2D> {
        let shape = [window[0], window[1], inputs, multiplier];
        let kernel = weights.make("kernel", options.kernel_initializer, &shape)?;
        let size = [inputs * multiplier];
        let bias = options.bias.then(|| weights.make("bias", Initializer::Zeros, &size));
        Ok(DepthwiseConv2D { kernel, bias: bias.transpose()?, options: options.clone() })
    }

    /// The kernel.
    pub fn kernel(&self) -> &Variable {
        &self.kernel
    }
}

impl Layer for DepthwiseConv2D {
    fn call(&self, x: &Tensor, _: Mode) -> Result<Tensor> {
        let ConvOptions { strides, dilations, padding, activation, .. } = &self.options;
        let padding = if *padding == Padding::Same { "SAME" } else { "VALID" };
        let attrs =
            ops::DepthwiseConv2dNativeAttrs { dilations: of_all(dilations), ..Default::default() };
        let x = input_for(&self.kernel, x)?;
        let kernel = self.kernel.read()?.cast(x.dtype())?;
        let y = ops::depthwise_conv2d_native_with(&x, &kernel, &of_all(strides), padding, &attrs)?;
        let y = match &self.bias {
            Some(bias) => ops::bias_add(&y, &bias.read()?.cast(x.dtype())?)?,
            None => y,
        };
        activation.apply(&y)
    }
}
