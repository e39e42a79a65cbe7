//! Layerwise adaptive moments.

use super::algorithm::{Algorithm, Slot, Step};
use ferroflow_tracer::{error::Result, gradients::TensorGradient};

/// LAMB (You et al. 2020): the step of Adam, scaled for each variable by the quotient of the norms
/// of the variable and of the step.
#[derive(Debug, Clone, Copy)]
pub struct Lamb {
    /// The decay of the mean of gradients.
    pub beta_1: f64,
    /// The decay of the mean of their squares.
    pub beta_2: f64,
    /// Number that keeps the divisor away from 0.
    pub epsilon: f64,
}

impl Default for Lamb {
    fn default() -> Lamb {
        Lamb { beta_1: 0.9, beta_2: 0.999, epsilon: 1e-7 }
    }
}

impl Algorithm for Lamb {
    fn name(&self) -> &'static str {
        "lamb"
    }

    fn slots(&self) -> Vec<Slot> {
        vec![Slot::zeros("momentum"), Slot::zeros("velocity")]
    }

    fn step(&self, step: &Step<'_>, gradient: &TensorGradient) -> Result<()> {
        let g = gradient.clone().dense()?;
        let [momentum, velocity] = [&step.slots[0], &step.slots[1]];
        let m = ((momentum.read()? * self.beta_1)? + (&g * (1.0 - self.beta_1))?)?;
        let v = ((velocity.read()? * self.beta_2)? + (g.square()? * (1.0 - self.beta_2))?)?;
        momentum.assign(&m)?;
        velocity.assign(&v)?;
        let power = |beta: f64| step.scalar(beta)?.pow(&step.number);
        let m_hat = (m / (1.0 - power(self.beta_1)?)?)?;
        let v_hat = (v / (1.0 - power(self.beta_2)?)?)?;
        let change = (m_hat / (v_hat.sqrt()? + self.epsilon)?)?;
        let w = step.variable.read()?;
        let norm = w.square()?.sum_all()?.sqrt()?;
        let change_norm = change.square()?.sum_all()?.sqrt()?;
        let one = step.scalar(1.0)?;
        let both = norm.greater(0.0)?.logical_and(&change_norm.greater(0.0)?)?;
        let safe = change_norm.greater(0.0)?.select(&change_norm, &one)?;
        let ratio = both.select(&(norm / safe)?, &one)?;
        step.variable.assign_sub(&((change * ratio)? * &step.learning_rate)?)
    }
}
