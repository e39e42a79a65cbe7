//! Images at random in training: with parts erased, and mixed with others of the batch.

use super::{
    image::over_batches,
    in_training::{
        ImageAugmentation, check_factor, check_range, chosen, clipped, drawn, for_each, in_training,
    },
};
use crate::layers::{
    Mode, SeedGenerator,
    compute::input,
    shapes::{DimSize, operand, wrong},
};
use ferroflow_ir::DType;
use ferroflow_tracer::{error::Result, ops, tensor::Tensor};
use ferroflow_tracer_macros::Trackable;

/// In training, a random window of some images of `[batch, height, width, channels]` replaced.
///
/// ```
/// use ferroflow_nn::{EraseOptions, Layer, Mode, RandomErasing};
/// use ferroflow_tracer::Tensor;
/// # fn main() -> ferroflow_tracer::Result<()> {
/// let x = Tensor::from([[[1.0f32], [2.0]], [[3.0], [4.0]]]);
/// let options = EraseOptions {
///     factor: [1.0, 1.0],
///     scale: [1.0, 1.0],
///     fill: Some(vec![9.0]),
///     ..EraseOptions::default()
/// };
/// let y = RandomErasing::new(&options)?.call(&x, Mode::Training)?;
/// assert_eq!(y.to_vec::<f32>()?, [9.0; 4]);
/// # Ok(())
/// # }
/// ```
#[derive(Trackable, Debug, Clone)]
pub struct RandomErasing {
    #[trackable(skip)]
    options: EraseOptions,
    seed_generator: SeedGenerator,
}

/// The options of a [`RandomErasing`].
#[derive(Debug, Clone, PartialEq)]
pub struct EraseOptions {
    /// The range of the probability with which an image has a window replaced.
    pub factor: [f64; 2],
    /// The range of the squares of the parts of height and width that a window has.
    pub scale: [f64; 2],
    /// The value of windows, or one for each channel; without one it is noise.
    pub fill: Option<Vec<f32>>,
    /// The range of values, to which those of windows are cut.
    pub range: [f64; 2],
}

impl Default for EraseOptions {
    fn default() -> EraseOptions {
        EraseOptions { factor: [0.0, 1.0], scale: [0.02, 0.33], fill: None, range: [0.0, 255.0] }
    }
}

impl RandomErasing {
    /// A layer of these options.
    ///
    /// # Errors
    ///
    /// [`Error::Conversion`](ferroflow_tracer::Error::Conversion) when probabilities or parts are not
    /// in order from 0 to 1, or the range of values is not in order.
    pub fn new(options: &EraseOptions) -> Result<RandomErasing> {
        check_factor(options.factor, options.range)?;
        check_range(options.scale, [0.0, 1.0])?;
        Ok(RandomErasing { options: options.clone(), seed_generator: SeedGenerator::default() })
    }

    /// The values of windows.
    fn fill(&self, x: &Tensor) -> Result<Tensor> {
        let values = match &self.options.fill {
            Some(values) => Tensor::from(values.clone()),
            None => {
                let noise = self.seed_generator.normal(&x.shape_tensor()?, DType::F32)?;
                (noise * self.options.range[1])?
            }
        };
        clipped(&values, self.options.range)?.cast(x.dtype())
    }
}

impl ImageAugmentation for RandomErasing {
    fn augmented(&self, x: &Tensor) -> Result<Tensor> {
        let (seeds, EraseOptions { factor, scale, .. }) = (&self.seed_generator, &self.options);
        let sizes = operand(&[DimSize::of(x, 0)?, DimSize::Known(2)])?;
        let parts = ops::split(&Tensor::from(1), &drawn(&sizes, *scale, seeds)?.sqrt()?, 2)?;
        let part = |index: usize| parts[index].expand_dims(-1)?.expand_dims(-1);
        let window = ImageWindows::drawn(x, [&part(1)?, &part(0)?], seeds)?;
        let is_erased = chosen(x, *factor, seeds)?.logical_and(window.mask(x)?)?;
        is_erased.select(&self.fill(x)?, x)
    }
}

/// In training, images of `[batch, height, width, channels]` mixed with others of the batch (Zhang et
/// al. 2018): `w·x + (1 - w)·other`, where `w` is drawn from a beta distribution.
#[derive(Trackable, Debug, Clone)]
pub struct MixUp {
    #[trackable(skip)]
    alpha: f64,
    seed_generator: SeedGenerator,
}

/// In training, a window of images `[batch, height, width, channels]` replaced by that of others of
/// the batch (Yun et al. 2019).
#[derive(Trackable, Debug, Clone)]
pub struct CutMix {
    #[trackable(skip)]
    factor: [f64; 2],
    seed_generator: SeedGenerator,
}

in_training!(RandomErasing MixUp CutMix);

impl MixUp {
    /// A layer with weights of a beta distribution of these two equal parameters; Keras takes 0.2.
    ///
    /// # Errors
    ///
    /// [`Error::Conversion`](ferroflow_tracer::Error::Conversion) when it is not positive.
    pub fn new(alpha: f64) -> Result<MixUp> {
        if !(alpha > 0.0 && alpha.is_finite()) {
            return Err(wrong("a positive number", alpha.to_string()));
        }
        Ok(MixUp { alpha, seed_generator: SeedGenerator::default() })
    }

    fn mixture(&self, x: &Tensor) -> Result<ImageMixture> {
        let order = permutation(x, &self.seed_generator)?;
        let weight = beta(x, &Tensor::from(self.alpha as f32), &self.seed_generator)?;
        Ok(ImageMixture { order, weight, replaced: None })
    }
}

impl CutMix {
    /// A layer with sizes of windows by a beta distribution, whose two equal parameters are drawn
    /// between two numbers.
    ///
    /// # Errors
    ///
    /// [`Error::Conversion`](ferroflow_tracer::Error::Conversion) when they are not in order from 0
    /// to 1.
    pub fn new(factor: [f64; 2]) -> Result<CutMix> {
        check_range(factor, [0.0, 1.0])?;
        Ok(CutMix { factor, seed_generator: SeedGenerator::default() })
    }

    fn mixture(&self, x: &Tensor) -> Result<ImageMixture> {
        let seeds = &self.seed_generator;
        let scalar = Tensor::from(Vec::<i32>::new());
        let alpha = (drawn(&scalar, self.factor, seeds)? + 1e-6)?;
        let part = (1.0 - beta(x, &alpha, seeds)?)?.sqrt()?;
        let windows = ImageWindows::drawn(x, [&part, &part], seeds)?;
        let order = permutation(x, seeds)?;
        let (weight, replaced) = ((1.0 - windows.part(x)?)?, Some(windows.mask(x)?));
        Ok(ImageMixture { order, weight, replaced })
    }
}

impl ImageAugmentation for MixUp {
    fn augmented(&self, x: &Tensor) -> Result<Tensor> {
        self.mixture(x)?.images(x)
    }
}

impl ImageAugmentation for CutMix {
    fn augmented(&self, x: &Tensor) -> Result<Tensor> {
        self.mixture(x)?.images(x)
    }
}

/// Layers that mix labels as well.
macro_rules! mixing {
    ($($layer:ident)*) => {$(
        impl $layer {
            /// Images and their labels, floats `[batch, classes]`, mixed with the same others by the
            /// same parts.
            ///
            /// # Errors
            ///
            /// When these are no batch of images, or not as many labels.
            #[track_caller]
            pub fn mixed(
                &self,
                images: &Tensor,
                labels: &Tensor,
                mode: Mode,
            ) -> Result<(Tensor, Tensor)> {
                let _call = crate::called();
                let (images, labels) = (input(images)?, input(labels)?);
                if mode == Mode::Inference {
                    return Ok((images, labels));
                }
                let mixture = self.mixture(&images)?;
                Ok((over_batches(&images, |x| mixture.images(x))?, mixture.labels(&labels)?))
            }
        }
    )*};
}

mixing!(MixUp CutMix);

/// The way in which the images of a batch are mixed.
struct ImageMixture {
    /// The image that each is mixed with: `[batch]`.
    order: Tensor,
    /// The part that remains of each: `[batch, 1, 1, 1]`.
    weight: Tensor,
    /// The pixels that are replaced, where they are not averaged: `[batch, height, width, 1]`.
    replaced: Option<Tensor>,
}

impl ImageMixture {
    fn images(&self, x: &Tensor) -> Result<Tensor> {
        let others = x.gather(&self.order)?;
        match &self.replaced {
            Some(replaced) => replaced.select(&others, x),
            None => averaged(x, &others, &self.weight),
        }
    }

    fn labels(&self, x: &Tensor) -> Result<Tensor> {
        averaged(x, &x.gather(&self.order)?, &self.weight.reshape(&[-1, 1])?)
    }
}

fn averaged(x: &Tensor, others: &Tensor, weight: &Tensor) -> Result<Tensor> {
    let weight = weight.cast(x.dtype())?;
    (&weight * x)? + ((1.0 - &weight)? * others)?
}

/// A window of each image: the first and the end of its columns and rows, `[batch, 1, 1, 1]`.
struct ImageWindows {
    columns: [Tensor; 2],
    rows: [Tensor; 2],
}

impl ImageWindows {
    /// Windows with these parts of height and width, `[batch, 1, 1, 1]` or so that they become it.
    fn drawn(x: &Tensor, parts: [&Tensor; 2], seeds: &SeedGenerator) -> Result<ImageWindows> {
        let ends = |axis: usize| {
            let size = size_of(x, axis)?;
            let length = (parts[axis - 1].reshape(&[-1, 1, 1, 1])? * &size)?;
            let first = (for_each(x, 4, [0.0, 1.0], seeds)? * (size - &length)?)?;
            let end = (&first + length)?;
            Ok::<_, ferroflow_tracer::Error>([first, end])
        };
        let columns = ends(2)?;
        Ok(ImageWindows { columns, rows: ends(1)? })
    }

    /// The pixels in the windows: `[batch, height, width, 1]`.
    fn mask(&self, x: &Tensor) -> Result<Tensor> {
        let within = |axis: usize, [first, end]: &[Tensor; 2]| {
            let (zero, one) = (Tensor::from(0.0f32), Tensor::from(1.0f32));
            let mut shape = [1, 1, 1, 1];
            shape[axis] = -1;
            let pixels = ops::range(&zero, &size_of(x, axis)?, &one)?.reshape(&shape)?;
            pixels.greater_equal(first)?.logical_and(pixels.less(end)?)
        };
        within(1, &self.rows)?.logical_and(within(2, &self.columns)?)
    }

    /// The parts of the images that the windows are: `[batch, 1, 1, 1]`.
    fn part(&self, x: &Tensor) -> Result<Tensor> {
        let length = |[first, end]: &[Tensor; 2]| end - first;
        let area = (length(&self.columns)? * length(&self.rows)?)?;
        area / (size_of(x, 1)? * size_of(x, 2)?)?
    }
}

fn size_of(x: &Tensor, axis: usize) -> Result<Tensor> {
    DimSize::of(x, axis)?.tensor().cast(DType::F32)
}

/// The indices of a batch in a random order.
fn permutation(x: &Tensor, seeds: &SeedGenerator) -> Result<Tensor> {
    let keys = for_each(x, 1, [0.0, 1.0], seeds)?.neg()?;
    let [_, order] = ops::top_k_v2(&keys, &DimSize::of(x, 0)?.tensor())?;
    Ok(order)
}

/// A number of a beta distribution of two equal parameters for each image, `[batch, 1, 1, 1]`: by two
/// of a gamma distribution.
fn beta(x: &Tensor, alpha: &Tensor, seeds: &SeedGenerator) -> Result<Tensor> {
    let batch = operand(&[DimSize::of(x, 0)?])?;
    let (alpha, seed) = (ops::fill(&batch, alpha)?, seeds.next_seed()?);
    let a = ops::stateless_random_gamma_v2(&batch, &seed, &alpha)?;
    let b = ops::stateless_random_gamma_v2(&batch, &(seed + 12)?, &alpha)?;
    (&a / (&a + b)?)?.reshape(&[-1, 1, 1, 1])
}
