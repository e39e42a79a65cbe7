//! Loss scaling: gradients of 16-bit floats that do not vanish.

use ferroflow_tracer::{
    error::Result, gradients::TensorGradient, tensor::Tensor, variable::Variable,
};

/// A factor for losses, so that small gradients do not become 0 in 16-bit floats. Gradients are
/// divided by it again. It grows while all gradients are finite, and shrinks when one is not; such
/// a step is left out (Micikevicius et al. 2018).
#[derive(Debug, Clone)]
pub struct LossScale {
    scale: Variable,
    good_steps: Variable,
    options: LossScaleOptions,
}

/// Changes of a [`LossScale`].
#[derive(Debug, Clone, Copy)]
pub struct LossScaleOptions {
    /// The first factor.
    pub initial: f32,
    /// After so many steps with finite gradients it is doubled.
    pub growth_steps: i64,
}

impl Default for LossScaleOptions {
    fn default() -> LossScaleOptions {
        LossScaleOptions { initial: 32768.0, growth_steps: 2000 }
    }
}

impl LossScale {
    /// A factor that changes in this way.
    ///
    /// # Errors
    ///
    /// When variables cannot be made here.
    pub fn new(options: LossScaleOptions) -> Result<LossScale> {
        let untrained = |name: &str, initial: Tensor| crate::state::state(name, initial);
        let scale = untrained("dynamic_scale", options.initial.into())?;
        let good_steps = untrained("step_counter", 0i64.into())?;
        Ok(LossScale { scale, good_steps, options })
    }

    /// The factor.
    ///
    /// # Errors
    ///
    /// None of its own.
    pub fn value(&self) -> Result<Tensor> {
        self.scale.read()
    }

    /// The loss, scaled: what gradients are taken of.
    ///
    /// # Errors
    ///
    /// When the loss is not of floats.
    pub fn scaled(&self, loss: &Tensor) -> Result<Tensor> {
        loss * self.scale.read()?.cast(loss.dtype())?
    }

    /// The gradients of the loss itself.
    ///
    /// # Errors
    ///
    /// When they are not of floats.
    pub fn unscaled(&self, gradients: &[TensorGradient]) -> Result<Vec<TensorGradient>> {
        let scale = self.scale.read()?;
        let divide = |gradient: &TensorGradient| {
            gradient.map_values(|values| values / scale.cast(values.dtype())?)
        };
        gradients.iter().map(divide).collect()
    }

    /// Changes the factor after a step; returns whether all gradients are finite, a bool.
    ///
    /// # Errors
    ///
    /// When they are not of floats.
    pub fn update(&self, gradients: &[TensorGradient]) -> Result<Tensor> {
        let mut finite = Tensor::from(true);
        for gradient in gradients {
            finite = finite.logical_and(&gradient.values().is_finite()?.all_true()?)?;
        }
        let (scale, steps) = (self.scale.read()?, (self.good_steps.read()? + 1)?);
        let grows = steps.greater_equal(self.options.growth_steps)?;
        let grown = grows.select(&(&scale * 2.0)?, &scale)?;
        let kept = grows.select(&steps.zeros_like()?, &steps)?;
        let shrunk = (&scale * 0.5)?.maximum(1.0)?;
        self.scale.assign(&finite.select(&grown, &shrunk)?)?;
        self.good_steps.assign(&finite.select(&kept, &steps.zeros_like()?)?)?;
        Ok(finite)
    }

    /// The variables it consists of, with the names and dtypes of Keras' `LossScaleOptimizer`:
    /// `dynamic_scale`, a `float32`, and `step_counter`, an `int64`.
    pub fn variables(&self) -> [Variable; 2] {
        [self.scale.clone(), self.good_steps.clone()]
    }
}
