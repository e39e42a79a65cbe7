//! Noise that keeps layers from relying on single inputs.

use super::{Layer, Mode};
use ferroflow_tracer::{
    error::{Error, Result},
    ops,
    tensor::Tensor,
};
use ferroflow_tracer_macros::Trackable;

/// In training, sets elements to 0 at random and scales the others so that the sum is expected to be
/// the same (Srivastava et al. 2014). Otherwise it changes nothing.
#[derive(Trackable, Debug, Clone, Copy, PartialEq)]
pub struct Dropout {
    rate: f64,
    seed: i64,
}

impl Dropout {
    /// A layer that drops this part of all elements.
    ///
    /// # Errors
    ///
    /// [`Error::Conversion`] when the rate is not from 0 to below 1.
    pub fn new(rate: f64) -> Result<Dropout> {
        Dropout::seeded(rate, 0)
    }

    /// A layer whose choices are drawn by a seed; 0 is none.
    ///
    /// # Errors
    ///
    /// As [`new`](Dropout::new).
    pub fn seeded(rate: f64, seed: i64) -> Result<Dropout> {
        if !(0.0..1.0).contains(&rate) {
            let (expected, found) = ("a rate from 0 to below 1".into(), rate.to_string());
            return Err(Error::Conversion { expected, found });
        }
        Ok(Dropout { rate, seed })
    }
}

impl Layer for Dropout {
    fn call(&self, x: &Tensor, mode: Mode) -> Result<Tensor> {
        if mode == Mode::Inference || self.rate == 0.0 {
            return Ok(x.clone());
        }
        let attrs = ops::RandomUniformAttrs { seed: self.seed, seed2: self.seed };
        let drawn = ops::random_uniform_with(&x.shape_tensor()?, x.dtype(), &attrs)?;
        let kept = drawn.greater_equal(self.rate)?;
        kept.select(&(x * (1.0 / (1.0 - self.rate)))?, 0.0)
    }
}
