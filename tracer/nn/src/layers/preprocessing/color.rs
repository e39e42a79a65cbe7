//! Images at random in training: with other hues and saturations, gray, and inverted.

use super::{
    augment::{RandomBrightness, RandomContrast},
    in_training::{
        ImageAugmentation, check_range, chosen, clipped, factor_layers, for_each, in_range,
        in_training,
    },
};
use crate::layers::{SeedGenerator, compute::sum, shapes::unfit};
use ferroflow_tracer::{error::Result, ops, tensor::Tensor};
use ferroflow_tracer_macros::Trackable;

factor_layers! {
    /// In training, the hues of colored images `[batch, height, width, 3]` turned, each by a random part
    /// of half a turn in either direction.
    ///
    /// ```
    /// use ferroflow_nn::{Layer, Mode, RandomHue};
    /// use ferroflow_tracer::Tensor;
    /// # fn main() -> ferroflow_tracer::Result<()> {
    /// let red = Tensor::from([[[255.0f32, 0.0, 0.0]]]);
    /// let y = RandomHue::new([1.0, 1.0], [0.0, 255.0])?.call(&red, Mode::Training)?;
    /// assert_eq!(y.to_vec::<f32>()?, [0.0, 255.0, 255.0]);
    /// # Ok(())
    /// # }
    /// ```
    RandomHue, "parts of half a turn";

    /// In training, the saturations of colored images `[batch, height, width, 3]` multiplied, each by
    /// `f / (1 - f)` for a random `f`: 0 makes images gray, 0.5 leaves them as they are.
    RandomSaturation, "factors";

    /// In training, images of `[batch, height, width, channels]`, 3 channels or 1, mixed with their gray
    /// counterparts, each by a random part.
    RandomColorDegeneration, "parts";

    /// In training, some images of `[batch, height, width, channels]` inverted: `high - x`, where values
    /// are from `low` to `high`.
    RandomInvert, "probabilities";
}

/// In training, some images of `[batch, height, width, channels]`, 3 channels or 1, made gray.
#[derive(Trackable, Debug, Clone)]
pub struct RandomGrayscale {
    #[trackable(skip)]
    factor: f64,
    seed_generator: SeedGenerator,
}

/// In training, colored images `[batch, height, width, 3]` with other brightness, contrast,
/// saturation and hue, in this order.
#[derive(Trackable, Debug, Clone)]
pub struct RandomColorJitter {
    #[trackable(skip)]
    options: ColorJitterOptions,
    #[trackable(skip)]
    range: [f64; 2],
    seed_generator: SeedGenerator,
}

/// The changes of a [`RandomColorJitter`]; none by default.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct ColorJitterOptions {
    /// The numbers of a [`RandomBrightness`].
    pub brightness: Option<[f64; 2]>,
    /// The numbers of a [`RandomContrast`].
    pub contrast: Option<[f64; 2]>,
    /// The numbers of a [`RandomSaturation`].
    pub saturation: Option<[f64; 2]>,
    /// The numbers of a [`RandomHue`].
    pub hue: Option<[f64; 2]>,
}

impl RandomGrayscale {
    /// A layer that makes an image gray with this probability.
    ///
    /// # Errors
    ///
    /// [`Error::Conversion`](ferroflow_tracer::Error::Conversion) when it is not from 0 to 1.
    pub fn new(factor: f64) -> Result<RandomGrayscale> {
        check_range([factor, factor], [0.0, 1.0])?;
        Ok(RandomGrayscale { factor, seed_generator: SeedGenerator::default() })
    }
}

impl RandomColorJitter {
    /// A layer of these changes, for values of this range.
    ///
    /// # Errors
    ///
    /// Those of the layers of the changes.
    pub fn new(options: ColorJitterOptions, range: [f64; 2]) -> Result<RandomColorJitter> {
        let layer = RandomColorJitter { options, range, seed_generator: SeedGenerator::default() };
        layer.changes()?;
        Ok(layer)
    }

    /// The layers of the changes, in order, which draw by the seeds of this one.
    fn changes(&self) -> Result<Vec<Box<dyn ImageAugmentation>>> {
        let (range, mut changes) = (self.range, Vec::<Box<dyn ImageAugmentation>>::new());
        let seeds = || self.seed_generator.clone();
        if let Some(factor) = self.options.brightness {
            changes.push(Box::new(RandomBrightness::new(factor, range)?.drawing_by(seeds())));
        }
        if let Some(factor) = self.options.contrast {
            changes.push(Box::new(RandomContrast::new(factor, range)?.drawing_by(seeds())));
        }
        if let Some(factor) = self.options.saturation {
            changes.push(Box::new(RandomSaturation::new(factor, range)?.drawing_by(seeds())));
        }
        if let Some(factor) = self.options.hue {
            changes.push(Box::new(RandomHue::new(factor, range)?.drawing_by(seeds())));
        }
        Ok(changes)
    }
}

in_training!(RandomGrayscale RandomColorJitter);

impl ImageAugmentation for RandomHue {
    fn augmented(&self, x: &Tensor) -> Result<Tensor> {
        let is_back = for_each(x, 4, [0.0, 1.0], &self.seed_generator)?.greater(0.5)?;
        let turn = (for_each(x, 4, self.factor, &self.seed_generator)? * 0.5)?;
        let turn = is_back.select(&turn.neg()?, &turn)?.cast(x.dtype())?;
        let [hue, saturation, value] = hsv(&in_range(x, self.range, [0.0, 1.0])?)?;
        let hue = (hue + turn)?;
        let hue = hue.greater(1.0)?.select(&(&hue - 1.0)?, &hue)?;
        let hue = hue.less(0.0)?.select(&(&hue + 1.0)?, &hue)?;
        let y = clipped(&rgb(&[&hue, &saturation, &value])?, [0.0, 1.0])?;
        in_range(&y, [0.0, 1.0], self.range)
    }
}

impl ImageAugmentation for RandomSaturation {
    fn augmented(&self, x: &Tensor) -> Result<Tensor> {
        let factor = for_each(x, 4, self.factor, &self.seed_generator)?;
        let factor = (&factor / ((1.0 - &factor)? + 1e-7)?)?.cast(x.dtype())?;
        let [hue, saturation, value] = hsv(x)?;
        let saturation = clipped(&(saturation * factor)?, self.range)?;
        rgb(&[&hue, &saturation, &value])
    }
}

impl ImageAugmentation for RandomGrayscale {
    fn augmented(&self, x: &Tensor) -> Result<Tensor> {
        let is_gray = for_each(x, 4, [0.0, 1.0], &self.seed_generator)?.less(self.factor)?;
        is_gray.select(&grayscale(x)?, x)
    }
}

impl ImageAugmentation for RandomColorDegeneration {
    fn augmented(&self, x: &Tensor) -> Result<Tensor> {
        let factor = for_each(x, 4, self.factor, &self.seed_generator)?.cast(x.dtype())?;
        clipped(&(x + (factor * (grayscale(x)? - x)?)?)?, self.range)
    }
}

impl ImageAugmentation for RandomInvert {
    fn augmented(&self, x: &Tensor) -> Result<Tensor> {
        chosen(x, self.factor, &self.seed_generator)?.select(&(self.range[1] - x)?, x)
    }
}

impl ImageAugmentation for RandomColorJitter {
    fn augmented(&self, x: &Tensor) -> Result<Tensor> {
        self.changes()?.iter().try_fold(x.clone(), |x, change| change.augmented(&x))
    }
}

/// Hue, saturation and value of colors, `[.., 1]` each.
fn hsv(x: &Tensor) -> Result<[Tensor; 3]> {
    if x.shape().dim(-1) != Some(3) {
        return Err(unfit("images of three channels", x));
    }
    let channels = ops::split(&Tensor::from(-1), &ops::rgb_to_hsv(x)?, 3)?;
    Ok([channels[0].clone(), channels[1].clone(), channels[2].clone()])
}

/// The colors of hue, saturation and value.
fn rgb(channels: &[&Tensor; 3]) -> Result<Tensor> {
    ops::hsv_to_rgb(&ops::concat_v2(channels, &Tensor::from(-1))?)
}

/// The luma of images of 3 channels or 1, `[.., 1]`, with the weights of Keras.
fn grayscale(x: &Tensor) -> Result<Tensor> {
    match x.shape().dim(-1) {
        Some(1) => Ok(x.clone()),
        Some(3) => {
            let weights = Tensor::from([0.2989f32, 0.5870, 0.1140]).cast(x.dtype())?;
            sum(&(x * weights)?, &[-1])
        }
        _ => Err(unfit("images of three channels or one", x)),
    }
}
