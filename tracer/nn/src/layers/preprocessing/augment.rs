//! Images at random in training: flipped, cropped, brighter, and with other contrasts.

use super::{
    image::{over_batches, resized_to_fit, window_of},
    in_training::{ImageAugmentation, check_range, clipped, drawn, for_each, in_training, seeded},
};
use crate::layers::{
    Layer, Mode, SeedGenerator,
    compute::{input, mean},
    shapes::{DimSize, unfit},
};
use ferroflow_ir::DType;
use ferroflow_tracer::{error::Result, ops, tensor::Tensor};
use ferroflow_tracer_macros::Trackable;

/// In training, each image of `[batch, height, width, channels]` mirrored or not, by chance.
#[derive(Trackable, Debug, Clone, Default)]
pub struct RandomFlip {
    #[trackable(skip)]
    mode: FlipMode,
    seed_generator: SeedGenerator,
}

/// The directions in which images are mirrored.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum FlipMode {
    /// Left and right are exchanged.
    Horizontal,
    /// Top and bottom are exchanged.
    Vertical,
    /// Both at once.
    #[default]
    Both,
}

impl RandomFlip {
    /// A layer that mirrors in these directions.
    pub fn new(mode: FlipMode) -> RandomFlip {
        RandomFlip { mode, seed_generator: SeedGenerator::default() }
    }
}

/// In training, a random window of images `[batch, height, width, channels]`, the same for a batch.
/// Images that are smaller are cropped to the aspect ratio and resized.
#[derive(Trackable, Debug, Clone)]
pub struct RandomCrop {
    #[trackable(skip)]
    size: [usize; 2],
    seed_generator: SeedGenerator,
}

impl RandomCrop {
    /// A layer to this height and width.
    pub fn new(height: usize, width: usize) -> RandomCrop {
        RandomCrop { size: [height, width], seed_generator: SeedGenerator::default() }
    }
}

/// In training, images of `[batch, height, width, channels]` made brighter or darker, each by a part
/// of the range of values, to which results are cut.
#[derive(Trackable, Debug, Clone)]
pub struct RandomBrightness {
    #[trackable(skip)]
    factor: [f64; 2],
    #[trackable(skip)]
    range: [f64; 2],
    seed_generator: SeedGenerator,
}

impl RandomBrightness {
    /// A layer that adds a part from the first to the second number of the range of values.
    ///
    /// # Errors
    ///
    /// [`Error::Conversion`](ferroflow_tracer::Error::Conversion) when they are not in order from -1
    /// to 1, or the range is not in order.
    pub fn new(factor: [f64; 2], range: [f64; 2]) -> Result<RandomBrightness> {
        check_range(factor, [-1.0, 1.0])?;
        check_range(range, [f64::NEG_INFINITY, f64::INFINITY])?;
        Ok(RandomBrightness { factor, range, seed_generator: SeedGenerator::default() })
    }
}

/// In training, the distances of pixels from the mean of their channel multiplied, by a factor for
/// each image of `[batch, height, width, channels]`; results are cut to the range of values.
#[derive(Trackable, Debug, Clone)]
pub struct RandomContrast {
    #[trackable(skip)]
    factor: [f64; 2],
    #[trackable(skip)]
    range: [f64; 2],
    seed_generator: SeedGenerator,
}

impl RandomContrast {
    /// A layer of factors from 1 less the first number to 1 and the second.
    ///
    /// # Errors
    ///
    /// [`Error::Conversion`](ferroflow_tracer::Error::Conversion) when the numbers are not from 0 to
    /// 1, or the range is not in order.
    pub fn new(factor: [f64; 2], range: [f64; 2]) -> Result<RandomContrast> {
        check_range([factor[0].min(factor[1]), factor[0].max(factor[1])], [0.0, 1.0])?;
        check_range(range, [f64::NEG_INFINITY, f64::INFINITY])?;
        Ok(RandomContrast { factor, range, seed_generator: SeedGenerator::default() })
    }
}

in_training!(RandomFlip RandomBrightness RandomContrast);
seeded!(RandomCrop);

impl ImageAugmentation for RandomFlip {
    fn augmented(&self, x: &Tensor) -> Result<Tensor> {
        let axes: &[i32] = match self.mode {
            FlipMode::Horizontal => &[2],
            FlipMode::Vertical => &[1],
            FlipMode::Both => &[1, 2],
        };
        let is_flipped = for_each(x, 4, [0.0, 1.0], &self.seed_generator)?.less_equal(0.5)?;
        is_flipped.select(&ops::reverse_v2(x, &Tensor::from(axes))?, x)
    }
}

impl Layer for RandomCrop {
    #[track_caller]
    fn call(&self, x: &Tensor, mode: Mode) -> Result<Tensor> {
        let _call = crate::called();
        if mode == Mode::Inference {
            return Ok(x.clone());
        }
        over_batches(&input(x)?, |x| {
            let ([height, width], shape) = (self.size, x.shape());
            let (Some(rows), Some(columns)) = (shape.dim(1), shape.dim(2)) else {
                return Err(unfit("images of known size", x));
            };
            if rows <= height || columns <= width {
                return resized_to_fit(x, self.size);
            }
            let drawn = |space: usize| {
                let scalar = Tensor::from(Vec::<i32>::new());
                let part = drawn(&scalar, [0.0, 1.0], &self.seed_generator)?;
                (part * (space + 1) as f64)?.floor()?.cast(DType::I32)
            };
            let top = drawn(rows - height)?;
            let left = drawn(columns - width)?;
            window_of(x, [&top, &left], self.size.map(DimSize::Known))
        })
    }
}

impl ImageAugmentation for RandomBrightness {
    fn augmented(&self, x: &Tensor) -> Result<Tensor> {
        let [low, high] = self.range;
        let more = (for_each(x, 4, self.factor, &self.seed_generator)? * (high - low))?;
        clipped(&(x + more.cast(x.dtype())?)?, self.range)
    }
}

impl ImageAugmentation for RandomContrast {
    fn augmented(&self, x: &Tensor) -> Result<Tensor> {
        let factors = [1.0 - self.factor[0], 1.0 + self.factor[1]];
        let factor = for_each(x, 4, factors, &self.seed_generator)?.cast(x.dtype())?;
        let middle = mean(x, &[1, 2])?;
        clipped(&(((x - &middle)? * factor)? + middle)?, self.range)
    }
}
