//! Noise that keeps layers from relying on single inputs.

use super::{Layer, Mode, SeedGenerator, shapes::wrong};
use ferroflow_tracer::{error::Result, tensor::Tensor};
use ferroflow_tracer_macros::Trackable;

/// In training, sets elements to 0 at random and scales the others so that the sum is expected to be
/// the same (Srivastava et al. 2014). Otherwise it changes nothing.
#[derive(Trackable, Debug, Clone)]
pub struct Dropout {
    #[trackable(skip)]
    rate: f64,
    seed_generator: SeedGenerator,
}

impl Dropout {
    /// A layer that drops this part of all elements.
    ///
    /// # Errors
    ///
    /// [`Error::Conversion`](ferroflow_tracer::Error::Conversion) when the rate is not from 0 to below 1.
    pub fn new(rate: f64) -> Result<Dropout> {
        Dropout::seeded(rate, 0)
    }

    /// A layer whose choices are drawn by a seed ([`SeedGenerator`]); 0 is none.
    ///
    /// # Errors
    ///
    /// As [`new`](Dropout::new).
    pub fn seeded(rate: f64, seed: i64) -> Result<Dropout> {
        check_rate(rate)?;
        Ok(Dropout { rate, seed_generator: SeedGenerator::new(seed) })
    }
}

impl Layer for Dropout {
    fn supports_masking(&self) -> bool {
        true
    }

    #[track_caller]
    fn call(&self, x: &Tensor, mode: Mode) -> Result<Tensor> {
        let _call = crate::called();
        if mode == Mode::Inference || self.rate == 0.0 {
            return Ok(x.clone());
        }
        dropped(x, &x.shape_tensor()?, self.rate, &self.seed_generator)
    }
}

/// Checks that a rate leaves elements.
pub(super) fn check_rate(rate: f64) -> Result<()> {
    if (0.0..1.0).contains(&rate) {
        return Ok(());
    }
    Err(wrong("a rate from 0 to below 1", rate.to_string()))
}

/// Elements set to 0 at random, by numbers of a shape that broadcasts to that of `x`.
pub(super) fn dropped(
    x: &Tensor,
    noise_shape: &Tensor,
    rate: f64,
    seeds: &SeedGenerator,
) -> Result<Tensor> {
    let kept = seeds.uniform(noise_shape, x.dtype())?.greater_equal(rate)?;
    kept.select(&(x * (1.0 / (1.0 - rate)))?, 0.0)
}
