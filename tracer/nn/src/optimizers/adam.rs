//! Adam and its relatives.

use super::algorithm::{Algorithm, Slot, Step};
use ferroflow_ir::{Attrs, ops::names};
use ferroflow_tracer::{error::Result, gradients::TensorGradient, tensor::Tensor};

/// Adam (Kingma and Ba 2015): `m += (1-β₁)(g-m)`, `v += (1-β₂)(g²-v)`,
/// `w -= lr·√(1-β₂ᵗ)/(1-β₁ᵗ) · m/(√v + ε)`. With a weight decay it is AdamW.
#[derive(Debug, Clone, Copy)]
pub struct Adam {
    /// The decay of the mean of gradients.
    pub beta_1: f64,
    /// The decay of the mean of their squares.
    pub beta_2: f64,
    /// Number that keeps the divisor away from 0.
    pub epsilon: f64,
    /// Whether the largest mean of squares so far divides (Reddi et al. 2018).
    pub amsgrad: bool,
}

impl Default for Adam {
    fn default() -> Adam {
        Adam { beta_1: 0.9, beta_2: 0.999, epsilon: 1e-7, amsgrad: false }
    }
}

impl Algorithm for Adam {
    fn name(&self) -> &'static str {
        "adam"
    }

    fn slots(&self) -> Vec<Slot> {
        let mut slots = vec![Slot::zeros("momentum"), Slot::zeros("velocity")];
        if self.amsgrad {
            slots.push(Slot::zeros("velocity_hat"));
        }
        slots
    }

    fn step(&self, step: &Step<'_>, gradient: &TensorGradient) -> Result<()> {
        let g = gradient.clone().dense()?;
        let [beta_1, beta_2] = [step.scalar(self.beta_1)?, step.scalar(self.beta_2)?];
        let powers = [beta_1.pow(&step.number)?, beta_2.pow(&step.number)?];
        let op = if self.amsgrad {
            names::RESOURCE_APPLY_ADAM_WITH_AMSGRAD
        } else {
            names::RESOURCE_APPLY_ADAM
        };
        let (lr, epsilon) = (&step.learning_rate, step.scalar(self.epsilon)?);
        let inputs = [&powers[0], &powers[1], lr, &beta_1, &beta_2, &epsilon, &g];
        step.apply(op, Attrs::new(), &inputs)
    }
}

/// Adamax (Kingma and Ba 2015, section 7.1): `m += (1-β₁)(g-m)`, `u = max(β₂·u, |g|)`,
/// `w -= lr/(1-β₁ᵗ) · m/(u + ε)`.
#[derive(Debug, Clone, Copy)]
pub struct Adamax {
    /// The decay of the mean of gradients.
    pub beta_1: f64,
    /// The decay of the largest gradient.
    pub beta_2: f64,
    /// Number that keeps the divisor away from 0.
    pub epsilon: f64,
}

impl Default for Adamax {
    fn default() -> Adamax {
        Adamax { beta_1: 0.9, beta_2: 0.999, epsilon: 1e-7 }
    }
}

impl Algorithm for Adamax {
    fn name(&self) -> &'static str {
        "adamax"
    }

    fn slots(&self) -> Vec<Slot> {
        vec![Slot::zeros("momentum"), Slot::zeros("norm")]
    }

    fn step(&self, step: &Step<'_>, gradient: &TensorGradient) -> Result<()> {
        let g = gradient.clone().dense()?;
        let [beta_1, beta_2] = [step.scalar(self.beta_1)?, step.scalar(self.beta_2)?];
        let power = beta_1.pow(&step.number)?;
        let (lr, epsilon) = (&step.learning_rate, step.scalar(self.epsilon)?);
        let inputs = [&power, lr, &beta_1, &beta_2, &epsilon, &g];
        step.apply(names::RESOURCE_APPLY_ADA_MAX, Attrs::new(), &inputs)
    }
}

/// Adam with Nesterov momentum (Dozat 2016), whose momentum warms up: in step `t` it is
/// `uₜ = β₁·(1 - 0.5·0.96ᵗ)`.
#[derive(Debug, Clone, Copy)]
pub struct Nadam {
    /// The decay of the mean of gradients.
    pub beta_1: f64,
    /// The decay of the mean of their squares.
    pub beta_2: f64,
    /// Number that keeps the divisor away from 0.
    pub epsilon: f64,
}

impl Default for Nadam {
    fn default() -> Nadam {
        Nadam { beta_1: 0.9, beta_2: 0.999, epsilon: 1e-7 }
    }
}

impl Nadam {
    /// The momentum of a step.
    fn momentum(&self, number: &Tensor) -> Result<Tensor> {
        let decay = number.zeros_like()? + 0.96;
        let warmth = decay?.pow(number)?;
        (1.0 - (warmth * 0.5)?)? * self.beta_1
    }
}

impl Algorithm for Nadam {
    fn name(&self) -> &'static str {
        "nadam"
    }

    fn slots(&self) -> Vec<Slot> {
        // The product of all momenta so far is the same for each element.
        vec![
            Slot::zeros("momentum"),
            Slot::zeros("velocity"),
            Slot { name: "momentum_product", initial: 1.0 },
        ]
    }

    fn step(&self, step: &Step<'_>, gradient: &TensorGradient) -> Result<()> {
        let g = gradient.clone().dense()?;
        let [momentum, velocity, product] = [&step.slots[0], &step.slots[1], &step.slots[2]];
        let (now, next) = (self.momentum(&step.number)?, self.momentum(&(&step.number + 1.0)?)?);
        let so_far = (product.read()? * &now)?;
        let with_next = (&so_far * &next)?;
        product.assign(&so_far)?;
        let m = ((momentum.read()? * self.beta_1)? + (&g * (1.0 - self.beta_1))?)?;
        let v = ((velocity.read()? * self.beta_2)? + (g.square()? * (1.0 - self.beta_2))?)?;
        momentum.assign(&m)?;
        velocity.assign(&v)?;
        let m_hat = ((&next * &m)? / (1.0 - with_next)?)?;
        let m_hat = (m_hat + (((1.0 - &now)? * &g)? / (1.0 - so_far)?)?)?;
        let power = step.scalar(self.beta_2)?.pow(&step.number)?;
        let v_hat = (v / (1.0 - power)?)?;
        let change = ((m_hat * &step.learning_rate)? / (v_hat.sqrt()? + self.epsilon)?)?;
        step.variable.assign_sub(&change)
    }
}
