//! Fully connected recurrence.

use super::{
    Activation, Layer, Mode, Weights,
    compute::input_for,
    recurrent::{self, RecurrentLayer, StepOrder, called},
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
        self.next(&sums, state, &of(&self.recurrent_kernel)?)
    }

    /// The result after that in which the inputs add up to `sums`.
    fn next(&self, sums: &Tensor, state: &Tensor, recurrent_kernel: &Tensor) -> Result<Tensor> {
        self.activation.apply(&(sums + state.matmul(recurrent_kernel)?)?)
    }
}

/// A fully connected recurrence over sequences: `[batch, steps, inputs] → [batch, units]`, or
/// `[batch, steps, units]` with the result of each step.
#[derive(Trackable, Debug, Clone)]
pub struct SimpleRnn {
    cell: SimpleRnnCell,
    #[trackable(skip)]
    steps: StepOrder,
}

impl SimpleRnn {
    /// A layer that returns the result of the last step.
    ///
    /// # Errors
    ///
    /// As [`Weights::make`].
    pub fn new(weights: &mut Weights, inputs: usize, units: usize) -> Result<SimpleRnn> {
        let cell = SimpleRnnCell::new(weights, inputs, units)?;
        Ok(SimpleRnn { cell, steps: StepOrder::default() })
    }

    /// A layer that returns the result of each step.
    ///
    /// # Errors
    ///
    /// As [`Weights::make`].
    pub fn of_sequences(weights: &mut Weights, inputs: usize, units: usize) -> Result<SimpleRnn> {
        Ok(SimpleRnn { steps: StepOrder::ALL, ..SimpleRnn::new(weights, inputs, units)? })
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
}

impl Layer for SimpleRnn {
    fn call(&self, x: &Tensor, _: Mode) -> Result<Tensor> {
        called(self, x)
    }
}

impl RecurrentLayer for SimpleRnn {
    type State = Tensor;

    fn run(&self, x: &Tensor, state: Option<Tensor>) -> Result<(Tensor, Tensor)> {
        let SimpleRnnCell { kernel, recurrent_kernel, bias, units, .. } = &self.cell;
        let x = self.steps.in_order(&input_for(kernel, x)?)?;
        let of = |variable: &Variable| variable.read()?.cast(x.dtype());
        let sums = recurrent::projected(&x, &of(kernel)?, &of(bias)?)?;
        let recurrent_kernel = of(recurrent_kernel)?;
        let initial = match state {
            Some(state) => state,
            None => recurrent::zeros(&x, *units)?,
        };
        recurrent::stepped(&sums, &initial.clone(), initial, |sums, state: Tensor| {
            let state = self.cell.next(sums, &state, &recurrent_kernel)?;
            Ok((state.clone(), state))
        })
    }

    fn last(state: &Tensor) -> &Tensor {
        state
    }

    fn returns_sequences(&self) -> bool {
        self.steps.returns_all
    }

    fn backwards(self) -> SimpleRnn {
        SimpleRnn { steps: self.steps.reversed(), ..self }
    }
}
