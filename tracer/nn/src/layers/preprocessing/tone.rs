//! Tones of images: spread, equalized, solarized, and of fewer bits.

use super::{
    image::over_batches,
    in_training::{
        ImageAugmentation, check_range, check_values, clipped, for_each, in_range, in_training,
    },
};
use crate::layers::{
    Layer, Mode, SeedGenerator,
    compute::{input, max},
    shapes::{DimSize, operand, reshaped, unfit, wrong},
};
use ferroflow_ir::DType;
use ferroflow_tracer::{error::Result, ops, tensor::Tensor};
use ferroflow_tracer_macros::Trackable;

/// Values of bytes.
const BYTES: [f64; 2] = [0.0, 255.0];

/// Images `[batch, height, width, channels]`, or one, whose channels are spread over the range of
/// values, each by its own least and largest: in training and in inference. A channel of one value
/// stays as it is.
///
/// ```
/// use ferroflow_nn::{AutoContrast, Layer, Mode};
/// use ferroflow_tracer::Tensor;
/// # fn main() -> ferroflow_tracer::Result<()> {
/// let x = Tensor::from([[[0.2f32], [0.3], [0.4]]]);
/// let y = AutoContrast::new([0.0, 1.0])?.call(&x, Mode::Inference)?.to_vec::<f32>()?;
/// assert!(y.iter().zip([0.0, 0.5, 1.0]).all(|(y, expected)| (y - expected).abs() < 1e-6));
/// # Ok(())
/// # }
/// ```
#[derive(Trackable, Debug, Clone, Copy, PartialEq)]
pub struct AutoContrast {
    #[trackable(skip)]
    range: [f64; 2],
}

impl AutoContrast {
    /// A layer for values of this range.
    ///
    /// # Errors
    ///
    /// [`Error::Conversion`](ferroflow_tracer::Error::Conversion) when it is not in order.
    pub fn new(range: [f64; 2]) -> Result<AutoContrast> {
        check_values(range)?;
        Ok(AutoContrast { range })
    }

    fn spread(self, original: &Tensor) -> Result<Tensor> {
        let x = in_range(original, self.range, BYTES)?;
        let low = max(&x.neg()?, &[1, 2])?.neg()?;
        let scale = (255.0 / (max(&x, &[1, 2])? - &low)?)?;
        let y = ((&x * &scale)? + (low.neg()? * &scale)?)?;
        let y = in_range(&clipped(&y, BYTES)?, BYTES, self.range)?;
        ops::is_nan(&y)?.select(original, &y)
    }
}

impl Layer for AutoContrast {
    #[track_caller]
    fn call(&self, x: &Tensor, _: Mode) -> Result<Tensor> {
        let _call = crate::called();
        over_batches(&input(x)?, |x| self.spread(x))
    }
}

/// In training, images `[batch, height, width, channels]` whose channels have about as many pixels
/// of each tone, by the histogram of the channel in the batch.
///
/// ```
/// use ferroflow_nn::{Equalization, Layer, Mode};
/// use ferroflow_tracer::Tensor;
/// # fn main() -> ferroflow_tracer::Result<()> {
/// let x = Tensor::from([[[10.0f32], [11.0], [12.0]]]);
/// let y = Equalization::new([0.0, 255.0])?.call(&x, Mode::Training)?;
/// assert_eq!(y.to_vec::<f32>()?, [0.0, 128.0, 255.0]);
/// # Ok(())
/// # }
/// ```
#[derive(Trackable, Debug, Clone, Copy, PartialEq)]
pub struct Equalization {
    #[trackable(skip)]
    range: [f64; 2],
    #[trackable(skip)]
    bins: usize,
}

impl Equalization {
    /// A layer of 256 tones, for values of this range.
    ///
    /// # Errors
    ///
    /// [`Error::Conversion`](ferroflow_tracer::Error::Conversion) when it is not in order.
    pub fn new(range: [f64; 2]) -> Result<Equalization> {
        check_values(range)?;
        Ok(Equalization { range, bins: 256 })
    }

    /// The same layer, with this many tones.
    ///
    /// # Errors
    ///
    /// [`Error::Conversion`](ferroflow_tracer::Error::Conversion) when there are not two at least.
    pub fn with_bins(self, bins: usize) -> Result<Equalization> {
        if !(2..=1 << 16).contains(&bins) {
            return Err(wrong("from 2 to 65536 tones", bins.to_string()));
        }
        Ok(Equalization { bins, ..self })
    }

    fn equalized(self, x: &Tensor) -> Result<Tensor> {
        let Some(n_channels) = x.shape().dim(3) else {
            return Err(unfit("images of a known number of channels", x));
        };
        let last = (self.bins - 1) as f64;
        let x = in_range(x, self.range, BYTES)?;
        // The bins of pixels are counted and looked up by formulas of their own in Keras.
        let counted = self.bin(&((&x * last)? / 255.0)?)?;
        let rows = counted.transpose(&[3, 0, 1, 2])?.reshape(&[n_channels as i64, -1])?;
        let n_bins = Tensor::from(self.bins as i32);
        let histogram = ops::dense_bincount(&rows, &n_bins, &Tensor::from(Vec::<i64>::new()))?;
        let (table, is_flat) = tones(&histogram)?;
        let first: Vec<i32> = (0..n_channels).map(|n| (n * self.bins) as i32).collect();
        let indices = (self.bin(&((&x / 255.0)? * last)?)? + Tensor::from(first))?;
        let y = table.reshape(&[-1])?.gather(&indices)?.cast(x.dtype())?;
        in_range(&is_flat.select(&x, &y)?, BYTES, self.range)
    }

    fn bin(self, scaled: &Tensor) -> Result<Tensor> {
        clipped(scaled, [0.0, (self.bins - 1) as f64])?.cast(DType::I32)
    }
}

/// The tone of each bin, `[channels, bins]`, and whether a channel has one tone only.
fn tones(histogram: &Tensor) -> Result<(Tensor, Tensor)> {
    let sums = ops::cumsum(histogram, &Tensor::from(1))?.cast(DType::F64)?;
    let total = max(&sums, &[1])?;
    let first = sums.greater(0.0)?.select(&sums, &total)?.neg()?;
    let first = max(&first, &[1])?.neg()?;
    let n_others = (total - &first)?.maximum(1.0)?;
    let table = (((&sums - &first)? * 255.0)? / n_others)?;
    let n_used = histogram.greater(&histogram.zeros_like()?)?.cast(DType::I32)?.sum(&[1])?;
    Ok((clipped(&ops::round(&table)?, BYTES)?, n_used.less(2)?))
}

impl Layer for Equalization {
    #[track_caller]
    fn call(&self, x: &Tensor, mode: Mode) -> Result<Tensor> {
        let _call = crate::called();
        let x = input(x)?;
        if mode == Mode::Inference {
            return Ok(x);
        }
        over_batches(&x, |x| self.equalized(x))
    }
}

/// In training, images of `[batch, height, width, channels]` to which a random number is added, and
/// whose values that are not below a random threshold are inverted.
#[derive(Trackable, Debug, Clone)]
pub struct Solarization {
    #[trackable(skip)]
    addition: [f64; 2],
    #[trackable(skip)]
    threshold: [f64; 2],
    #[trackable(skip)]
    range: [f64; 2],
    seed_generator: SeedGenerator,
}

impl Solarization {
    /// A layer for values of this range. On values scaled to those of bytes, additions and thresholds
    /// are from the first number to 255 times the second, as in Keras.
    ///
    /// # Errors
    ///
    /// [`Error::Conversion`](ferroflow_tracer::Error::Conversion) when the numbers are not in order
    /// from 0 to 1, or those of the range are not in order.
    pub fn new(addition: [f64; 2], threshold: [f64; 2], range: [f64; 2]) -> Result<Solarization> {
        check_range(addition, [0.0, 1.0])?;
        check_range(threshold, [0.0, 1.0])?;
        check_values(range)?;
        let seed_generator = SeedGenerator::default();
        Ok(Solarization { addition, threshold, range, seed_generator })
    }
}

impl ImageAugmentation for Solarization {
    fn augmented(&self, x: &Tensor) -> Result<Tensor> {
        let number = |[low, high]: [f64; 2]| {
            for_each(x, 4, [low, 255.0 * high], &self.seed_generator)?.cast(x.dtype())
        };
        let (addition, threshold) = (number(self.addition)?, number(self.threshold)?);
        let y = clipped(&(in_range(x, self.range, BYTES)? + addition)?, BYTES)?;
        let y = y.less(&threshold)?.select(&y, &(255.0 - &y)?)?;
        in_range(&y, BYTES, self.range)
    }
}

/// In training, images of `[batch, height, width, channels]` whose values, scaled to those of bytes,
/// keep the upper bits only: a random number of them for each image.
#[derive(Trackable, Debug, Clone)]
pub struct RandomPosterization {
    #[trackable(skip)]
    bits: [u8; 2],
    #[trackable(skip)]
    range: [f64; 2],
    seed_generator: SeedGenerator,
}

impl RandomPosterization {
    /// A layer that keeps from the first to before the second number of bits, for values of this
    /// range; two equal numbers are the number of bits.
    ///
    /// # Errors
    ///
    /// [`Error::Conversion`](ferroflow_tracer::Error::Conversion) when the numbers are not in order
    /// from 1 to 8, or those of the range are not in order.
    pub fn new(bits: [u8; 2], range: [f64; 2]) -> Result<RandomPosterization> {
        check_range(bits.map(f64::from), [1.0, 8.0])?;
        check_values(range)?;
        Ok(RandomPosterization { bits, range, seed_generator: SeedGenerator::default() })
    }

    /// The lower bits that are lost: `[batch, 1, 1, 1]`.
    fn n_lost(&self, x: &Tensor) -> Result<Tensor> {
        let sizes = [DimSize::of(x, 0)?, DimSize::Known(1), DimSize::Known(1), DimSize::Known(1)];
        let [least, end] = self.bits.map(|bits| Tensor::from(i64::from(bits)));
        if self.bits[0] == self.bits[1] {
            return reshaped(
                &ops::fill(&operand(&sizes)?, &(Tensor::from(8i64) - least)?)?,
                &sizes,
            );
        }
        let seed = self.seed_generator.next_seed()?;
        let kept = ops::stateless_random_uniform_int(&operand(&sizes)?, &seed, &least, &end)?;
        Tensor::from(8i64) - kept
    }
}

impl ImageAugmentation for RandomPosterization {
    fn augmented(&self, x: &Tensor) -> Result<Tensor> {
        let n_lost = self.n_lost(x)?.cast(DType::U8)?;
        let bytes = in_range(x, self.range, BYTES)?.cast(DType::U8)?;
        let kept = ops::left_shift(&ops::right_shift(&bytes, &n_lost)?, &n_lost)?;
        in_range(&kept.cast(x.dtype())?, BYTES, self.range)
    }
}

in_training!(Solarization RandomPosterization);
