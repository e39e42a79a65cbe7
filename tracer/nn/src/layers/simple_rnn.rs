//! Fully connected recurrence.

use super::{
    Activation, Layer, Mode, RecurrentCell, Weights,
    compute::input_for,
    recurrent::{self, StepOptions, by_state, recurrent_layers},
    rows,
};
use crate::initializers::Initializer;
use ferroflow_tracer::{error::Result, tensor::Tensor, variable::Variable};
use ferroflow_tracer_macros::Trackable;

/// A step of a fully connected recurrence (Elman 1990): `tanh(x·kernel + y·recurrent_kernel + bias)`,
/// where `y` is the result of the step before.
///
/// Weights: `kernel` `[inputs, units]`, `recurrent_kernel` `[units, units]`, `bias` `[units]`.
#[derive(Trackable, Debug, Clone)]
pub struct SimpleRnnCell {
    kernel: Variable,
    recurrent_kernel: Variable,
    bias: Variable,
    #[trackable(skip)]
    units: usize,
    #[trackable(skip)]
    activation: Activation,
}

impl SimpleRnnCell {
    /// A cell.
    ///
    /// # Errors
    ///
    /// As [`Weights::make`].
    pub fn new(weights: &mut Weights, inputs: usize, units: usize) -> Result<SimpleRnnCell> {
        let orthogonal = Initializer::Orthogonal { gain: 1.0 };
        Ok(SimpleRnnCell {
            kernel: weights.make("kernel", Initializer::GLOROT_UNIFORM, &[inputs, units])?,
            recurrent_kernel: weights.make("recurrent_kernel", orthogonal, &[units, units])?,
            bias: weights.make("bias", Initializer::Zeros, &[units])?,
            units,
            activation: Activation::Tanh,
        })
    }

    /// A step: `x` is `[batch, inputs]`, the result before and after is `[batch, units]`.
    ///
    /// # Errors
    ///
    /// When input or state do not fit.
    pub fn step(&self, x: &Tensor, state: &Tensor) -> Result<Tensor> {
        let x = input_for(&self.kernel, x)?;
        let of = |variable: &Variable| variable.read()?.cast(x.dtype());
        let sums = (rows::times(&x, &of(&self.kernel)?)? + of(&self.bias)?)?;
        let by_state = by_state(state, None, &of(&self.recurrent_kernel)?)?;
        self.activation.apply(&(sums + by_state)?)
    }
}

impl RecurrentCell for SimpleRnnCell {
    type State = Tensor;

    fn advance(&self, x: &Tensor, state: &Tensor) -> Result<Tensor> {
        self.step(x, state)
    }

    fn zero_state(&self, x: &Tensor) -> Result<Tensor> {
        recurrent::zeros(x, self.units)
    }

    fn output(state: &Tensor) -> &Tensor {
        state
    }
}

/// A fully connected recurrence over sequences: `[batch, steps, inputs] → [batch, units]`, or
/// `[batch, steps, units]` with the result of each step.
#[derive(Trackable, Debug, Clone)]
pub struct SimpleRnn {
    cell: SimpleRnnCell,
    #[trackable(name = "_steps")]
    steps: StepOptions,
}

impl SimpleRnn {
    /// A layer that returns the result of the last step.
    ///
    /// # Errors
    ///
    /// As [`Weights::make`].
    pub fn new(weights: &mut Weights, inputs: usize, units: usize) -> Result<SimpleRnn> {
        let cell = SimpleRnnCell::new(weights, inputs, units)?;
        Ok(SimpleRnn { cell, steps: StepOptions::default() })
    }

    /// A layer that returns the result of each step.
    ///
    /// # Errors
    ///
    /// As [`Weights::make`].
    pub fn of_sequences(weights: &mut Weights, inputs: usize, units: usize) -> Result<SimpleRnn> {
        Ok(SimpleRnn { steps: StepOptions::all(), ..SimpleRnn::new(weights, inputs, units)? })
    }

    /// The same layer with another activation than the hyperbolic tangent.
    #[must_use]
    pub fn with_activation(mut self, activation: Activation) -> SimpleRnn {
        self.cell.activation = activation;
        self
    }

    /// The cell.
    pub fn cell(&self) -> &SimpleRnnCell {
        &self.cell
    }

    fn stepped(
        &self,
        mode: Mode,
        x: &Tensor,
        mask: Option<&Tensor>,
        state: Option<Tensor>,
    ) -> Result<(Tensor, Tensor)> {
        let SimpleRnnCell { kernel, recurrent_kernel, bias, units, .. } = &self.cell;
        let x = self.steps.inputs(&input_for(kernel, x)?, mode)?;
        let of = |variable: &Variable| variable.read()?.cast(x.dtype());
        let sums = recurrent::projected(&x, &of(kernel)?, &of(bias)?)?;
        let recurrent_kernel = of(recurrent_kernel)?;
        let initial = match state {
            Some(state) => state,
            None => recurrent::zeros(&x, *units)?,
        };
        let factors = self.steps.factors(&initial, mode)?;
        let mask = self.steps.mask(mask)?;
        recurrent::stepped(&sums, &initial.clone(), &mask, initial, |sums, state: Tensor| {
            let by_state = by_state(&state, factors.as_ref(), &recurrent_kernel)?;
            let state = self.cell.activation.apply(&(sums + by_state)?)?;
            Ok((state.clone(), state))
        })
    }
}

recurrent_layers! {
    SimpleRnn, Tensor, |state| state;
}
