//! Optimizers whose rates adapt to each element: by the squares of its gradients.

use super::algorithm::{Algorithm, Slot, Step};
use ferroflow_ir::{Attrs, ops::names};
use ferroflow_tracer::{error::Result, gradients::TensorGradient, tensor::Tensor};

/// RMSprop (Hinton 2012): `s = ρ·s + (1-ρ)·g²`, `m = momentum·m + lr·g/√(s + ε)`, `w -= m`; centred,
/// the square of the mean of gradients is taken from `s`.
#[derive(Debug, Clone, Copy)]
pub struct RmsProp {
    /// The decay of the mean of squares.
    pub rho: f64,
    /// Fraction of the last step that is made again.
    pub momentum: f64,
    /// Number that keeps the divisor away from 0.
    pub epsilon: f64,
    /// Whether the variance of gradients divides in place of the mean of their squares.
    pub centered: bool,
}

impl Default for RmsProp {
    fn default() -> RmsProp {
        RmsProp { rho: 0.9, momentum: 0.0, epsilon: 1e-7, centered: false }
    }
}

impl Algorithm for RmsProp {
    fn name(&self) -> &'static str {
        "rmsprop"
    }

    fn slots(&self) -> Vec<Slot> {
        let mut slots = vec![Slot::zeros("velocity"), Slot::zeros("momentum")];
        if self.centered {
            slots.insert(0, Slot::zeros("average_gradient"));
        }
        slots
    }

    fn step(&self, step: &Step<'_>, gradient: &TensorGradient) -> Result<()> {
        let lr = &step.learning_rate;
        let [rho, momentum, epsilon] =
            [step.scalar(self.rho)?, step.scalar(self.momentum)?, step.scalar(self.epsilon)?];
        match gradient {
            TensorGradient::Dense(g) => {
                let centered = names::RESOURCE_APPLY_CENTERED_RMS_PROP;
                let op = if self.centered { centered } else { names::RESOURCE_APPLY_RMS_PROP };
                step.apply(op, Attrs::new(), &[lr, &rho, &momentum, &epsilon, g])
            }
            TensorGradient::Slices(slices) => {
                let (rows, places) = slices.summed()?;
                let centered = names::RESOURCE_SPARSE_APPLY_CENTERED_RMS_PROP;
                let op =
                    if self.centered { centered } else { names::RESOURCE_SPARSE_APPLY_RMS_PROP };
                let inputs = [lr, &rho, &momentum, &epsilon, &rows, &places];
                step.apply(op, Attrs::new(), &inputs)
            }
        }
    }
}

/// Adagrad (Duchi et al. 2011): `s += g²`, `w -= lr·g/√(s + ε)`. TensorFlow's
/// `ResourceApplyAdagradV2` adds `ε` to the root.
#[derive(Debug, Clone, Copy)]
pub struct Adagrad {
    /// The first value of the sums of squares.
    pub initial_accumulator_value: f64,
    /// Number that keeps the divisor away from 0.
    pub epsilon: f64,
}

impl Default for Adagrad {
    fn default() -> Adagrad {
        Adagrad { initial_accumulator_value: 0.1, epsilon: 1e-7 }
    }
}

impl Algorithm for Adagrad {
    fn name(&self) -> &'static str {
        "adagrad"
    }

    fn slots(&self) -> Vec<Slot> {
        vec![Slot { name: "accumulator", initial: self.initial_accumulator_value }]
    }

    fn rests_without_gradient(&self) -> bool {
        true
    }

    fn step(&self, step: &Step<'_>, gradient: &TensorGradient) -> Result<()> {
        let change = |g: &Tensor, sums: Tensor| {
            (&step.learning_rate * g)? / (sums + self.epsilon)?.sqrt()?
        };
        let slot = &step.slots[0];
        match gradient {
            TensorGradient::Dense(g) => {
                slot.assign_add(&g.square()?)?;
                step.variable.assign_sub(&change(g, slot.read()?)?)
            }
            TensorGradient::Slices(slices) => {
                let (rows, places) = slices.summed()?;
                step.scatter_add_to_slot(0, &places, &rows.square()?)?;
                step.scatter_sub(&places, &change(&rows, slot.read()?.gather(&places)?)?)
            }
        }
    }
}

/// Adadelta (Zeiler 2012): `s = ρ·s + (1-ρ)·g²`, `d = g·√(u + ε)/√(s + ε)`,
/// `u = ρ·u + (1-ρ)·d²`, `w -= lr·d`.
#[derive(Debug, Clone, Copy)]
pub struct Adadelta {
    /// The decay of the means of squares.
    pub rho: f64,
    /// Number that keeps the divisor away from 0.
    pub epsilon: f64,
}

impl Default for Adadelta {
    fn default() -> Adadelta {
        Adadelta { rho: 0.95, epsilon: 1e-7 }
    }
}

impl Algorithm for Adadelta {
    fn name(&self) -> &'static str {
        "adadelta"
    }

    fn slots(&self) -> Vec<Slot> {
        vec![Slot::zeros("accumulated_grad"), Slot::zeros("accumulated_delta_var")]
    }

    fn step(&self, step: &Step<'_>, gradient: &TensorGradient) -> Result<()> {
        let (lr, rho, epsilon) =
            (&step.learning_rate, step.scalar(self.rho)?, step.scalar(self.epsilon)?);
        match gradient {
            TensorGradient::Dense(g) => {
                step.apply(names::RESOURCE_APPLY_ADADELTA, Attrs::new(), &[lr, &rho, &epsilon, g])
            }
            TensorGradient::Slices(slices) => {
                let (rows, places) = slices.summed()?;
                let inputs = [lr, &rho, &epsilon, &rows, &places];
                step.apply(names::RESOURCE_SPARSE_APPLY_ADADELTA, Attrs::new(), &inputs)
            }
        }
    }
}

/// Follow the regularised leader (McMahan et al. 2013, algorithm 1), with L2 shrinkage.
#[derive(Debug, Clone, Copy)]
pub struct Ftrl {
    /// The power of the learning rate: 0 for a constant one, at most 0.
    pub learning_rate_power: f64,
    /// The first value of the sums of squares.
    pub initial_accumulator_value: f64,
    /// The strength of the L1 regularisation.
    pub l1: f64,
    /// The strength of the L2 regularisation.
    pub l2: f64,
    /// The strength of the L2 penalty on the magnitude, which does not shrink what is rare.
    pub l2_shrinkage: f64,
    /// `β` of the paper: an L2 regularisation of `β/(2·lr)` more.
    pub beta: f64,
}

impl Default for Ftrl {
    fn default() -> Ftrl {
        Ftrl {
            learning_rate_power: -0.5,
            initial_accumulator_value: 0.1,
            l1: 0.0,
            l2: 0.0,
            l2_shrinkage: 0.0,
            beta: 0.0,
        }
    }
}

impl Algorithm for Ftrl {
    fn name(&self) -> &'static str {
        "ftrl"
    }

    fn slots(&self) -> Vec<Slot> {
        let initial = self.initial_accumulator_value;
        vec![Slot { name: "accumulator", initial }, Slot::zeros("linear")]
    }

    fn step(&self, step: &Step<'_>, gradient: &TensorGradient) -> Result<()> {
        let lr = &step.learning_rate;
        let l2 = match self.beta {
            0.0 => step.scalar(self.l2)?,
            beta => (((1.0 / lr)? * (beta / 2.0))? + self.l2)?,
        };
        let [l1, shrinkage, power] = [
            step.scalar(self.l1)?,
            step.scalar(self.l2_shrinkage)?,
            step.scalar(self.learning_rate_power)?,
        ];
        match gradient {
            TensorGradient::Dense(g) => {
                let inputs = [g, lr, &l1, &l2, &shrinkage, &power];
                step.apply(names::RESOURCE_APPLY_FTRL_V2, Attrs::new(), &inputs)
            }
            TensorGradient::Slices(slices) => {
                let (rows, places) = slices.summed()?;
                let inputs = [&rows, &places, lr, &l1, &l2, &shrinkage, &power];
                step.apply(names::RESOURCE_SPARSE_APPLY_FTRL_V2, Attrs::new(), &inputs)
            }
        }
    }
}
