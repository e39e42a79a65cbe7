//! Gated recurrent units.

use super::{
    Layer, Mode, RecurrentCell, Weights,
    compute::input_for,
    recurrent::{self, StepOptions, by_state, recurrent_layers},
    rows,
};
use crate::initializers::Initializer;
use ferroflow_tracer::{error::Result, ops, tensor::Tensor, variable::Variable};
use ferroflow_tracer_macros::Trackable;

/// A step of gated recurrent units (Cho et al. 2014), the reset gate being applied after the
/// product with the recurrent kernel.
///
/// Weights: `kernel` `[inputs, 3·units]`, `recurrent_kernel` `[units, 3·units]`, `bias` `[2,
/// 3·units]`, for input and state; columns are those of the update gate, the reset gate and the
/// candidate.
#[derive(Trackable, Debug, Clone)]
pub struct GruCell {
    kernel: Variable,
    recurrent_kernel: Variable,
    bias: Variable,
    #[trackable(skip)]
    units: usize,
}

impl GruCell {
    /// A cell.
    ///
    /// # Errors
    ///
    /// As [`Weights::make`].
    pub fn new(weights: &mut Weights, inputs: usize, units: usize) -> Result<GruCell> {
        let gates = 3 * units;
        let orthogonal = Initializer::Orthogonal { gain: 1.0 };
        Ok(GruCell {
            kernel: weights.make("kernel", Initializer::GLOROT_UNIFORM, &[inputs, gates])?,
            recurrent_kernel: weights.make("recurrent_kernel", orthogonal, &[units, gates])?,
            bias: weights.make("bias", Initializer::Zeros, &[2, gates])?,
            units,
        })
    }

    /// A step: `x` is `[batch, inputs]`, the state before and after is `[batch, units]`.
    ///
    /// # Errors
    ///
    /// When input or state do not fit.
    pub fn step(&self, x: &Tensor, state: &Tensor) -> Result<Tensor> {
        let x = input_for(&self.kernel, x)?;
        let weights = self.read(&x)?;
        let sums = (rows::times(&x, &weights.kernel)? + &weights.input_bias)?;
        weights.next(&sums, state, None)
    }

    fn read(&self, x: &Tensor) -> Result<Read> {
        let of = |variable: &Variable| variable.read()?.cast(x.dtype());
        let mut bias = ops::unpack(&of(&self.bias)?, 2)?.into_iter();
        let mut row = || bias.next().expect("two are asked for");
        Ok(Read {
            kernel: of(&self.kernel)?,
            recurrent_kernel: of(&self.recurrent_kernel)?,
            input_bias: row(),
            state_bias: row(),
        })
    }
}

impl RecurrentCell for GruCell {
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

/// The values of the weights.
struct Read {
    kernel: Tensor,
    recurrent_kernel: Tensor,
    input_bias: Tensor,
    state_bias: Tensor,
}

impl Read {
    /// The state after that in which the inputs add up to `sums`.
    fn next(&self, sums: &Tensor, state: &Tensor, factors: Option<&Tensor>) -> Result<Tensor> {
        let from_input = recurrent::gates(sums, 3)?;
        let from_state = by_state(state, factors, &self.recurrent_kernel)?;
        let from_state = (from_state + &self.state_bias)?;
        let from_state = recurrent::gates(&from_state, 3)?;
        let sum = |gate: usize| (&from_input[gate] + &from_state[gate])?.sigmoid();
        let (update, reset) = (sum(0)?, sum(1)?);
        let candidate = (&from_input[2] + (reset * &from_state[2])?)?.tanh()?;
        (&update * state)? + ((1.0 - &update)? * candidate)?
    }
}

/// Gated recurrent units over sequences: `[batch, steps, inputs] → [batch, units]`, or
/// `[batch, steps, units]` with what each step gives.
#[derive(Trackable, Debug, Clone)]
pub struct Gru {
    cell: GruCell,
    #[trackable(name = "_steps")]
    steps: StepOptions,
}

impl Gru {
    /// A layer that returns what the last step does.
    ///
    /// # Errors
    ///
    /// As [`Weights::make`].
    pub fn new(weights: &mut Weights, inputs: usize, units: usize) -> Result<Gru> {
        Ok(Gru { cell: GruCell::new(weights, inputs, units)?, steps: StepOptions::default() })
    }

    /// A layer that returns what each step does.
    ///
    /// # Errors
    ///
    /// As [`Weights::make`].
    pub fn of_sequences(weights: &mut Weights, inputs: usize, units: usize) -> Result<Gru> {
        Ok(Gru { steps: StepOptions::all(), ..Gru::new(weights, inputs, units)? })
    }

    /// The cell.
    pub fn cell(&self) -> &GruCell {
        &self.cell
    }

    /// Outputs of all steps, and the state after the last. Without a state it begins with zeros.
    ///
    /// # Errors
    ///
    /// When input or state do not fit.
    pub fn run(&self, x: &Tensor, state: Option<Tensor>) -> Result<(Tensor, Tensor)> {
        self.stepped(Mode::Inference, x, None, state)
    }

    fn stepped(
        &self,
        mode: Mode,
        x: &Tensor,
        mask: Option<&Tensor>,
        state: Option<Tensor>,
    ) -> Result<(Tensor, Tensor)> {
        let x = self.steps.inputs(&input_for(&self.cell.kernel, x)?, mode)?;
        let weights = self.cell.read(&x)?;
        let sums = recurrent::projected(&x, &weights.kernel, &weights.input_bias)?;
        let initial = match state {
            Some(state) => state,
            None => recurrent::zeros(&x, self.cell.units)?,
        };
        let factors = self.steps.factors(&initial, mode)?;
        let mask = self.steps.mask(mask)?;
        recurrent::stepped(&sums, &initial.clone(), &mask, initial, |sums, state: Tensor| {
            let state = weights.next(sums, &state, factors.as_ref())?;
            Ok((state.clone(), state))
        })
    }
}

recurrent_layers! {
    Gru, Tensor, |state| state;
}
