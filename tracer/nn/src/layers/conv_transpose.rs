//! Transposed convolutions in one, two and three dimensions.

use super::{
    Activation, Layer, Mode, Penalty, Regularizer, Weights,
    compute::input_for,
    conv::ended,
    geometry::{
        Padding, check_dimensions, check_sizes, dilated, kernel_of, over_images, padding_name,
        window,
    },
    shapes::{DimSize, has_rank, operand, with_sizes, wrong},
};
use crate::initializers::Initializer;
use ferroflow_tracer::{error::Result, ops, tensor::Tensor, variable::Variable};
use ferroflow_tracer_macros::Trackable;

/// A transposed convolution over `N` dimensions, a bias, and an activation: the map of gradients of a
/// convolution from its result to its input, which makes sizes larger by its strides:
/// `[batch, ..sizes, inputs] → [batch, ..larger sizes, outputs]`.
///
/// Weights: `kernel` `[..window, outputs, inputs]`, `bias` `[outputs]`.
#[derive(Trackable, Debug, Clone)]
pub struct ConvTranspose<const N: usize> {
    kernel: Variable,
    bias: Option<Variable>,
    regularization_losses: Option<Vec<Penalty>>,
    #[trackable(skip)]
    window: [usize; N],
    #[trackable(skip)]
    options: ConvTransposeOptions<N>,
}

/// A transposed convolution of sequences: `[batch, steps, inputs]`.
pub type Conv1DTranspose = ConvTranspose<1>;
/// A transposed convolution of images: `[batch, height, width, inputs]`.
pub type Conv2DTranspose = ConvTranspose<2>;
/// A transposed convolution of volumes: `[batch, depth, height, width, inputs]`.
pub type Conv3DTranspose = ConvTranspose<3>;

/// The options of a [`ConvTranspose`].
#[derive(Debug, Clone, PartialEq)]
pub struct ConvTransposeOptions<const N: usize> {
    /// The factors of the sizes.
    pub strides: [usize; N],
    /// The distances of the elements of the window, with strides of 1.
    pub dilations: [usize; N],
    /// The padding of the convolution that is transposed: with [`Same`](Padding::Same) sizes are
    /// multiplied by the strides, with [`Valid`](Padding::Valid) they grow by the window too.
    pub padding: Padding,
    /// Elements added at the end of each dimension, fewer than its stride.
    pub output_padding: Option<[usize; N]>,
    /// The activation of the result.
    pub activation: Activation,
    /// Whether there is a bias.
    pub bias: bool,
    /// The initial values of the kernel.
    pub kernel_initializer: Initializer,
    /// The penalty added to the loss for the kernel.
    pub kernel_regularizer: Option<Regularizer>,
}

impl<const N: usize> Default for ConvTransposeOptions<N> {
    fn default() -> ConvTransposeOptions<N> {
        ConvTransposeOptions {
            strides: [1; N],
            dilations: [1; N],
            padding: Padding::Valid,
            output_padding: None,
            activation: Activation::Linear,
            bias: true,
            kernel_initializer: Initializer::GLOROT_UNIFORM,
            kernel_regularizer: None,
        }
    }
}

impl<const N: usize> ConvTranspose<N> {
    /// A layer with a window of this size.
    ///
    /// # Errors
    ///
    /// [`Error::Conversion`](ferroflow_tracer::Error::Conversion) for causal padding, dilations with
    /// strides, an output padding that is not below the strides, and more than three dimensions; as
    /// [`Weights::make`].
    pub fn new(
        weights: &mut Weights,
        window: [usize; N],
        inputs: usize,
        outputs: usize,
        options: &ConvTransposeOptions<N>,
    ) -> Result<ConvTranspose<N>> {
        options.check(&window)?;
        let shape: Vec<usize> = window.into_iter().chain([outputs, inputs]).collect();
        let kernel = weights.make("kernel", options.kernel_initializer, &shape)?;
        let bias = options.bias.then(|| weights.make("bias", Initializer::Zeros, &[outputs]));
        let penalty = options.kernel_regularizer.map(|by| vec![Penalty::new(&kernel, by)]);
        let (bias, options) = (bias.transpose()?, options.clone());
        Ok(ConvTranspose { kernel, bias, regularization_losses: penalty, window, options })
    }

    /// The kernel.
    pub fn kernel(&self) -> &Variable {
        &self.kernel
    }

    /// The bias.
    pub fn bias(&self) -> Option<&Variable> {
        self.bias.as_ref()
    }

    /// The sizes of the result.
    fn sizes(&self, x: &Tensor) -> Result<Vec<DimSize>> {
        let mut sizes = DimSize::of_all(x, 0..=N)?;
        for (axis, size) in sizes.iter_mut().skip(1).enumerate() {
            let (factor, more) = self.options.growth(self.window[axis], axis);
            *size = size.scaled(factor, more)?;
        }
        sizes.push(DimSize::Known(self.kernel.shape().dim(-2).unwrap_or_default()));
        Ok(sizes)
    }
}

impl<const N: usize> ConvTransposeOptions<N> {
    fn check(&self, window: &[usize; N]) -> Result<()> {
        check_dimensions(N, 3)?;
        check_sizes(&[window, &self.strides, &self.dilations])?;
        if self.padding == Padding::Causal {
            return Err(wrong("valid or same padding", "causal padding"));
        }
        let is_above_one = |sizes: &[usize; N]| sizes.iter().any(|&size| size > 1);
        if is_above_one(&self.strides) && is_above_one(&self.dilations) {
            let found = format!("strides {:?} and dilations {:?}", self.strides, self.dilations);
            return Err(wrong("strides or dilations of 1", found));
        }
        let more = self.output_padding.unwrap_or([0; N]);
        if more.iter().zip(&self.strides).any(|(more, stride)| more >= stride) {
            let found = format!("{more:?} with strides {:?}", self.strides);
            return Err(wrong("an output padding below the strides", found));
        }
        Ok(())
    }

    /// The factor of the size of a dimension, and the number of elements added to the product.
    fn growth(&self, window: usize, axis: usize) -> (i64, i64) {
        let (stride, dilation) = (self.strides[axis] as i64, self.dilations[axis] as i64);
        let reach = (window as i64 - 1) * dilation + 1;
        let end = self.output_padding.map(|more| more[axis] as i64);
        let more = match (self.padding, end) {
            (Padding::Same, None) => 0,
            (Padding::Same, Some(end)) => reach % 2 + end - stride,
            (Padding::Valid | Padding::Causal, None) => reach.max(stride) - stride,
            (Padding::Valid | Padding::Causal, Some(end)) => reach + end - stride,
        };
        (stride, more)
    }
}

impl<const N: usize> Layer for ConvTranspose<N> {
    #[track_caller]
    fn call(&self, x: &Tensor, _: Mode) -> Result<Tensor> {
        let _call = crate::called();
        has_rank(x, N + 2)?;
        let x = input_for(&self.kernel, x)?;
        let kernel = dilated(&self.kernel.read()?.cast(x.dtype())?, &self.options.dilations)?;
        let sizes = self.sizes(&x)?;
        // A sequence has a height of 1 as an image.
        let height = (N == 1).then_some(DimSize::Known(1));
        let of_images: Vec<DimSize> = sizes[..1].iter().cloned().chain(height).collect();
        let of_images = operand(&[&of_images[..], &sizes[1..]].concat())?;
        let (strides, padding) =
            (window(&self.options.strides, 1), padding_name(self.options.padding));
        let kernel = kernel_of::<N>(&kernel)?;
        let y = over_images::<N>(&x, |x| match N {
            3 => ops::conv3d_backprop_input_v2(&of_images, &kernel, x, &strides, padding),
            _ => ops::conv2d_backprop_input(&of_images, &kernel, x, &strides, padding),
        })?;
        let y = with_sizes(y, &sizes)?;
        ended(&y, self.bias.as_ref(), self.options.activation)
    }
}
