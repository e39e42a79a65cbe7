//! Update of a single variable by an optimizer.

use ferroflow_ir::{Attrs, registry};
use ferroflow_tracer::{
    error::Result, gradients::TensorGradient, ops, tensor::Tensor, variable::Variable,
};
use std::panic::Location;

/// A way to step variables along gradients. Hyperparameters are its fields.
pub trait Algorithm: Send + Sync {
    /// The name, which those of slots begin with.
    fn name(&self) -> &'static str;

    /// The slots beside each variable, in order.
    fn slots(&self) -> Vec<Slot>;

    /// Whether a gradient of 0 leaves a variable and its slots as they are, so that rows which
    /// have no gradient need no step.
    fn rests_without_gradient(&self) -> bool {
        false
    }

    /// Steps a variable.
    ///
    /// # Errors
    ///
    /// When the gradient does not fit the variable.
    fn step(&self, step: &Step<'_>, gradient: &TensorGradient) -> Result<()>;
}

/// A variable beside another, of the same shape.
#[derive(Debug, Clone, Copy)]
pub struct Slot {
    /// Suffix of its name.
    pub name: &'static str,
    /// The first value of its elements.
    pub initial: f64,
}

impl Slot {
    /// A slot of zeros.
    pub const fn zeros(name: &'static str) -> Slot {
        Slot { name, initial: 0.0 }
    }
}

/// A step of one variable.
#[derive(Debug)]
pub struct Step<'a> {
    /// The variable.
    pub variable: &'a Variable,
    /// Its slots, in the order of the algorithm.
    pub slots: &'a [Variable],
    /// The learning rate, of the dtype of the variable.
    pub learning_rate: Tensor,
    /// The number of this step, from 1 on, of the dtype of the variable.
    pub number: Tensor,
    pub(super) location: &'static Location<'static>,
}

impl Step<'_> {
    /// A scalar of the dtype of the variable.
    ///
    /// # Errors
    ///
    /// When the dtype cannot hold it.
    pub fn scalar(&self, value: f64) -> Result<Tensor> {
        ops::IntoOperand::into_operand(value, self.variable.dtype())
    }

    /// Calls an op that steps: it takes the handles of the variable and its slots, then `inputs`.
    ///
    /// # Errors
    ///
    /// When the call does not fit the op.
    pub fn apply(&self, op: &'static str, attrs: Attrs, inputs: &[&Tensor]) -> Result<()> {
        let op = registry::find(op).expect("algorithms name ops that exist");
        let handles = std::iter::once(self.variable).chain(self.slots).map(Variable::handle);
        let handles: Vec<Tensor> = handles.collect();
        let inputs: Vec<&Tensor> = handles.iter().chain(inputs.iter().copied()).collect();
        ops::raw_at(op, attrs, &inputs, self.location).map(drop)
    }

    /// Subtracts from some rows of the variable.
    ///
    /// # Errors
    ///
    /// When the rows do not fit.
    pub fn scatter_sub(&self, indices: &Tensor, rows: &Tensor) -> Result<()> {
        ops::resource_scatter_sub(&self.variable.handle(), indices, rows)
    }

    /// Adds to some rows of a slot.
    ///
    /// # Errors
    ///
    /// When the rows do not fit.
    pub fn scatter_add_to_slot(&self, slot: usize, indices: &Tensor, rows: &Tensor) -> Result<()> {
        ops::resource_scatter_add(&self.slots[slot].handle(), indices, rows)
    }
}
