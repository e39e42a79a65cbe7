//! Gradient descent.

use super::algorithm::{Algorithm, Slot, Step};
use ferroflow_ir::{Attrs, ops::names};
use ferroflow_tracer::{error::Result, gradients::TensorGradient};

/// Gradient descent: `w -= lr·g`; with momentum `v = momentum·v - lr·g`, `w += v`, or by Nesterov
/// `w += momentum·v - lr·g`.
#[derive(Debug, Clone, Copy, Default)]
pub struct Sgd {
    /// Fraction of the last step that is made again; none if 0.
    pub momentum: f64,
    /// Whether the gradient is taken as if the momentum's step had been made (Nesterov 1983).
    pub nesterov: bool,
}

impl Algorithm for Sgd {
    fn name(&self) -> &'static str {
        "SGD"
    }

    fn slots(&self) -> Vec<Slot> {
        if self.momentum == 0.0 { Vec::new() } else { vec![Slot::zeros("momentum")] }
    }

    fn rests_without_gradient(&self) -> bool {
        self.momentum == 0.0
    }

    fn step(&self, step: &Step<'_>, gradient: &TensorGradient) -> Result<()> {
        let lr = &step.learning_rate;
        if self.momentum == 0.0 {
            return match gradient {
                TensorGradient::Dense(g) => {
                    step.apply(names::RESOURCE_APPLY_GRADIENT_DESCENT, Attrs::new(), &[lr, g])
                }
                TensorGradient::Slices(slices) => {
                    step.scatter_sub(&slices.indices, &(&slices.values * lr)?)
                }
            };
        }
        let momentum = step.scalar(self.momentum)?;
        let attrs = Attrs::new().with("use_nesterov", self.nesterov);
        match gradient {
            TensorGradient::Dense(g) => {
                step.apply(names::RESOURCE_APPLY_KERAS_MOMENTUM, attrs, &[lr, g, &momentum])
            }
            TensorGradient::Slices(slices) => {
                let (rows, places) = slices.summed()?;
                let op = names::RESOURCE_SPARSE_APPLY_KERAS_MOMENTUM;
                step.apply(op, attrs, &[lr, &rows, &places, &momentum])
            }
        }
    }
}
