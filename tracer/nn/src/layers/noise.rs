//! Noise in training beyond [`Dropout`](super::Dropout).

use super::{
    Layer, Mode, SeedGenerator,
    dropout::{check_rate, dropped},
    shapes::{DimSize, operand, rank, unfit, wrong},
};
use ferroflow_tracer::{error::Result, tensor::Tensor};
use ferroflow_tracer_macros::Trackable;

/// In training, whole channels of each example set to 0 at random, and the others scaled so that the
/// sum is expected to be the same (Tompson et al. 2014): sequences, images and volumes
/// `[batch, ..sizes, channels]`.
#[doc(alias("SpatialDropout1D", "SpatialDropout2D", "SpatialDropout3D"))]
#[derive(Trackable, Debug, Clone)]
pub struct SpatialDropout {
    #[trackable(skip)]
    rate: f64,
    seed_generator: SeedGenerator,
}

/// In training, a normal distribution of mean 0 added.
#[derive(Trackable, Debug, Clone)]
pub struct GaussianNoise {
    #[trackable(skip)]
    deviation: f64,
    seed_generator: SeedGenerator,
}

/// In training, elements multiplied by a normal distribution of mean 1 and variance
/// `rate / (1 - rate)` (Srivastava et al. 2014).
#[derive(Trackable, Debug, Clone)]
pub struct GaussianDropout {
    #[trackable(skip)]
    rate: f64,
    seed_generator: SeedGenerator,
}

/// In training, elements set to the negative limit of [`Selu`](super::Activation::Selu) at random,
/// then all moved and scaled so that mean and variance stay (Klambauer et al. 2017).
#[derive(Trackable, Debug, Clone)]
pub struct AlphaDropout {
    #[trackable(skip)]
    rate: f64,
    seed_generator: SeedGenerator,
}

/// Constructors of a layer with a rate.
macro_rules! with_rate {
    ($($layer:ident)*) => {$(
        impl $layer {
            /// A layer of this rate.
            ///
            /// # Errors
            ///
            /// [`Error::Conversion`](ferroflow_tracer::Error::Conversion) when the rate is not from
            /// 0 to below 1.
            pub fn new(rate: f64) -> Result<$layer> {
                $layer::seeded(rate, 0)
            }

            /// A layer whose numbers are drawn by a seed; 0 is none.
            ///
            /// # Errors
            ///
            /// As [`new`](Self::new).
            pub fn seeded(rate: f64, seed: i64) -> Result<$layer> {
                check_rate(rate)?;
                Ok($layer { rate, seed_generator: SeedGenerator::new(seed) })
            }
        }
    )*};
}

with_rate!(SpatialDropout GaussianDropout AlphaDropout);

impl GaussianNoise {
    /// A layer that adds numbers of this standard deviation.
    ///
    /// # Errors
    ///
    /// [`Error::Conversion`](ferroflow_tracer::Error::Conversion) when it is not from 0 to 1.
    pub fn new(deviation: f64) -> Result<GaussianNoise> {
        GaussianNoise::seeded(deviation, 0)
    }

    /// A layer whose numbers are drawn by a seed; 0 is none.
    ///
    /// # Errors
    ///
    /// As [`new`](GaussianNoise::new).
    pub fn seeded(deviation: f64, seed: i64) -> Result<GaussianNoise> {
        if !(0.0..=1.0).contains(&deviation) {
            return Err(wrong("a deviation from 0 to 1", deviation.to_string()));
        }
        Ok(GaussianNoise { deviation, seed_generator: SeedGenerator::new(seed) })
    }
}

impl Layer for SpatialDropout {
    fn supports_masking(&self) -> bool {
        true
    }

    #[track_caller]
    fn call(&self, x: &Tensor, mode: Mode) -> Result<Tensor> {
        let _call = crate::called();
        if mode == Mode::Inference || self.rate == 0.0 {
            return Ok(x.clone());
        }
        let channels = rank(x)?.checked_sub(1).filter(|&channels| channels > 0);
        let channels = channels.ok_or_else(|| unfit("a tensor of batch and channels", x))?;
        let mut sizes = vec![DimSize::Known(1); channels + 1];
        (sizes[0], sizes[channels]) = (DimSize::of(x, 0)?, DimSize::of(x, channels)?);
        dropped(x, &operand(&sizes)?, self.rate, &self.seed_generator)
    }
}

impl Layer for GaussianNoise {
    fn supports_masking(&self) -> bool {
        true
    }

    #[track_caller]
    fn call(&self, x: &Tensor, mode: Mode) -> Result<Tensor> {
        let _call = crate::called();
        if mode == Mode::Inference || self.deviation == 0.0 {
            return Ok(x.clone());
        }
        x + (self.seed_generator.normal(&x.shape_tensor()?, x.dtype())? * self.deviation)?
    }
}

impl Layer for GaussianDropout {
    fn supports_masking(&self) -> bool {
        true
    }

    #[track_caller]
    fn call(&self, x: &Tensor, mode: Mode) -> Result<Tensor> {
        let _call = crate::called();
        if mode == Mode::Inference || self.rate == 0.0 {
            return Ok(x.clone());
        }
        let deviation = (self.rate / (1.0 - self.rate)).sqrt();
        x * ((self.seed_generator.normal(&x.shape_tensor()?, x.dtype())? * deviation)? + 1.0)?
    }
}

impl Layer for AlphaDropout {
    fn supports_masking(&self) -> bool {
        true
    }

    #[track_caller]
    fn call(&self, x: &Tensor, mode: Mode) -> Result<Tensor> {
        let _call = crate::called();
        if mode == Mode::Inference || self.rate == 0.0 {
            return Ok(x.clone());
        }
        // The limit of Selu: its factor times its alpha.
        let limit = -1.050_700_987_355_480_5 * 1.673_263_242_354_377_2;
        let scale = ((1.0 - self.rate) * (1.0 + self.rate * limit * limit)).powf(-0.5);
        let drawn = self.seed_generator.uniform(&x.shape_tensor()?, x.dtype())?;
        let kept = drawn.greater_equal(self.rate)?.select(x, limit)?;
        (kept * scale)? + -scale * limit * self.rate
    }
}
