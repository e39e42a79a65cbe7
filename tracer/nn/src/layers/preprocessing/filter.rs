//! Images at random in training: sharper and blurred.

use super::in_training::{
    ImageAugmentation, check_factor, check_range, chosen, clipped, drawn, factor_layers, for_each,
    in_training,
};
use crate::layers::{
    SeedGenerator,
    shapes::{DimSize, operand, wrong},
};
use ferroflow_tracer::{error::Result, ops, tensor::Tensor};
use ferroflow_tracer_macros::Trackable;

factor_layers! {
    /// In training, images of `[batch, height, width, channels]` made sharper or smoother, each by a
    /// random factor: below 0.5 they are smoothed, above it sharpened. Results are cut to the range of
    /// values.
    RandomSharpness, "factors";
}

/// In training, some images of `[batch, height, width, channels]` blurred by a Gaussian of random
/// deviations, the same for a batch. Results are cut to the range of values. Windows that are not
/// square differ from those of Keras, which mixes up their rows and columns.
///
/// ```
/// use ferroflow_nn::{BlurOptions, Layer, Mode, RandomGaussianBlur};
/// use ferroflow_tracer::Tensor;
/// # fn main() -> ferroflow_tracer::Result<()> {
/// let x = Tensor::from([[[0.0f32], [9.0], [0.0]]]);
/// let (factor, sigma) = ([1.0, 1.0], [1e3, 1e3]);
/// let options = BlurOptions { factor, sigma, ..BlurOptions::default() };
/// let y = RandomGaussianBlur::new(&options)?.call(&x, Mode::Training)?.to_vec::<f32>()?;
/// assert!(y.iter().all(|y| (y - 1.0).abs() < 1e-3));
/// # Ok(())
/// # }
/// ```
#[derive(Trackable, Debug, Clone)]
pub struct RandomGaussianBlur {
    #[trackable(skip)]
    options: BlurOptions,
    seed_generator: SeedGenerator,
}

/// The options of a [`RandomGaussianBlur`].
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct BlurOptions {
    /// The range of the probability with which an image is blurred.
    pub factor: [f64; 2],
    /// The height and width of the window, in pixels.
    pub window: [usize; 2],
    /// The range of deviations, in pixels.
    pub sigma: [f64; 2],
    /// The range of values.
    pub range: [f64; 2],
}

impl Default for BlurOptions {
    fn default() -> BlurOptions {
        BlurOptions { factor: [0.0, 1.0], window: [3, 3], sigma: [0.0, 1.0], range: [0.0, 255.0] }
    }
}

impl RandomGaussianBlur {
    /// A layer of these options.
    ///
    /// # Errors
    ///
    /// [`Error::Conversion`](ferroflow_tracer::Error::Conversion) when probabilities are not in order
    /// from 0 to 1, or deviations and the range of values are not in order; for an empty window.
    pub fn new(options: &BlurOptions) -> Result<RandomGaussianBlur> {
        check_factor(options.factor, options.range)?;
        check_range(options.sigma, [0.0, f64::MAX])?;
        if !options.window.iter().all(|size| (1..=1 << 12).contains(size)) {
            return Err(wrong("a window of 1 to 4096 pixels", format!("{:?}", options.window)));
        }
        Ok(RandomGaussianBlur { options: *options, seed_generator: SeedGenerator::default() })
    }
}

in_training!(RandomGaussianBlur);

impl ImageAugmentation for RandomSharpness {
    fn augmented(&self, x: &Tensor) -> Result<Tensor> {
        let factor = (for_each(x, 4, self.factor, &self.seed_generator)? * 2.0)?.cast(x.dtype())?;
        let (edge, center) = (1.0f32 / 13.0, 5.0f32 / 13.0);
        let mut window = [edge; 9];
        window[4] = center;
        let smooth = filtered(x, &Tensor::from_slice(&[3, 3], &window)?)?;
        clipped(&(x + ((1.0 - factor)? * (smooth - x)?)?)?, self.range)
    }
}

impl ImageAugmentation for RandomGaussianBlur {
    fn augmented(&self, x: &Tensor) -> Result<Tensor> {
        let BlurOptions { factor, window: [height, width], sigma, range } = self.options;
        let is_blurred = chosen(x, factor, &self.seed_generator)?;
        let sigma = (drawn(&Tensor::from([2]), sigma, &self.seed_generator)? + 1e-6)?;
        let rows = gaussian(height, &sigma.gather(&Tensor::from(1))?)?;
        let columns = gaussian(width, &sigma.gather(&Tensor::from(0))?)?;
        let window = (rows.expand_dims(1)? * columns)?;
        clipped(&is_blurred.select(&filtered(x, &window)?, x)?, range)
    }
}

/// The weights of a Gaussian around the middle, which add up to 1: `[size]`.
fn gaussian(size: usize, sigma: &Tensor) -> Result<Tensor> {
    let middle = (size as f32 - 1.0) / 2.0;
    let distances: Vec<f32> = (0..size).map(|n| n as f32 - middle).collect();
    let weights = ((Tensor::from(distances) / sigma)?.square()? * -0.5)?.exp()?;
    let total = weights.sum_all()?;
    weights / total
}

/// Each channel of images under a window of weights, with zeros around the images.
fn filtered(x: &Tensor, window: &Tensor) -> Result<Tensor> {
    let one = DimSize::Known(1);
    let times = operand(&[one.clone(), one.clone(), DimSize::of(x, 3)?, one])?;
    let filter = ops::tile(&window.cast(x.dtype())?.expand_dims(-1)?.expand_dims(-1)?, &times)?;
    ops::depthwise_conv2d_native(x, &filter, &[1, 1, 1, 1], "SAME")
}
