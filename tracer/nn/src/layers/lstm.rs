//! Long short-term memory.

use super::{
    Layer, Mode, RecurrentCell, Weights,
    compute::input_for,
    recurrent::{self, StepOptions, by_state, recurrent_layers},
    rows,
};
use crate::initializers::Initializer;
use ferroflow_tracer::{Nest, error::Result, tensor::Tensor, variable::Variable};
use ferroflow_tracer_macros::Trackable;

/// A step of long short-term memory (Hochreiter and Schmidhuber 1997).
///
/// Weights: `kernel` `[inputs, 4·units]`, `recurrent_kernel` `[units, 4·units]`, `bias`
/// `[4·units]`; columns are those of the input gate, the forget gate, the candidate and the output
/// gate.
#[derive(Trackable, Debug, Clone)]
pub struct LstmCell {
    kernel: Variable,
    recurrent_kernel: Variable,
    bias: Variable,
    #[trackable(skip)]
    units: usize,
}

/// State that a step leaves to the next; both `[batch, units]`.
#[derive(Nest, Debug, Clone)]
pub struct LstmState {
    /// Output of the cell.
    pub output: Tensor,
    /// Memory of the cell.
    pub memory: Tensor,
}

impl LstmCell {
    /// A cell. The bias of the forget gate begins with 1 (Jozefowicz et al. 2015).
    ///
    /// # Errors
    ///
    /// As [`Weights::make`].
    pub fn new(weights: &mut Weights, inputs: usize, units: usize) -> Result<LstmCell> {
        let gates = 4 * units;
        let kernel = weights.make("kernel", Initializer::GLOROT_UNIFORM, &[inputs, gates])?;
        let orthogonal = Initializer::Orthogonal { gain: 1.0 };
        let recurrent_kernel = weights.make("recurrent_kernel", orthogonal, &[units, gates])?;
        let bias = weights.of("bias", forgetting(units))?;
        Ok(LstmCell { kernel, recurrent_kernel, bias, units })
    }

    /// A step: `x` is `[batch, inputs]`.
    ///
    /// # Errors
    ///
    /// When input or state do not fit.
    pub fn step(&self, x: &Tensor, state: &LstmState) -> Result<LstmState> {
        let x = input_for(&self.kernel, x)?;
        let of = |variable: &Variable| variable.read()?.cast(x.dtype());
        let sums = (rows::times(&x, &of(&self.kernel)?)? + of(&self.bias)?)?;
        let sums = (sums + state.output.matmul(of(&self.recurrent_kernel)?)?)?;
        next(&sums, &state.memory)
    }
}

impl RecurrentCell for LstmCell {
    type State = LstmState;

    fn advance(&self, x: &Tensor, state: &LstmState) -> Result<LstmState> {
        self.step(x, state)
    }

    fn zero_state(&self, x: &Tensor) -> Result<LstmState> {
        let zeros = recurrent::zeros(x, self.units)?;
        Ok(LstmState { output: zeros.clone(), memory: zeros })
    }

    fn output(state: &LstmState) -> &Tensor {
        &state.output
    }
}

/// A bias of 1 for the forget gate, and 0 for the others: `[4·units]`.
pub(super) fn forgetting(units: usize) -> Tensor {
    let first = (0..4 * units).map(|gate| if gate / units == 1 { 1.0f32 } else { 0.0 });
    Tensor::from(first.collect::<Vec<_>>())
}

/// The state after that in which inputs and output add up to `sums`.
pub(super) fn next(sums: &Tensor, memory: &Tensor) -> Result<LstmState> {
    let gates = recurrent::gates(sums, 4)?;
    let kept = (gates[1].sigmoid()? * memory)?;
    let memory = (kept + (gates[0].sigmoid()? * gates[2].tanh()?)?)?;
    let output = (gates[3].sigmoid()? * memory.tanh()?)?;
    Ok(LstmState { output, memory })
}

/// Long short-term memory over sequences: `[batch, steps, inputs] → [batch, units]`, or
/// `[batch, steps, units]` with what each step gives.
///
/// ```
/// use ferroflow_nn::{Layer, Lstm, Mode, Weights};
/// use ferroflow_tracer::{Tensor};
/// # fn main() -> ferroflow_tracer::Result<()> {
/// let lstm = Lstm::new(&mut Weights::seeded(1), 2, 5)?;
/// let x = Tensor::from([[[0.5f32, 1.0], [0.1, 0.2], [0.0, 1.0]]]);
/// assert_eq!(lstm.call(&x, Mode::Inference)?.shape().to_string(), "[1,5]");
/// let (outputs, state) = lstm.run(&x, None)?;
/// assert_eq!(outputs.shape().to_string(), "[1,3,5]");
/// lstm.run(&x, Some(state))?;
/// # Ok(())
/// # }
/// ```
#[derive(Trackable, Debug, Clone)]
pub struct Lstm {
    cell: LstmCell,
    #[trackable(name = "_steps")]
    steps: StepOptions,
}

impl Lstm {
    /// A layer that returns what the last step does.
    ///
    /// # Errors
    ///
    /// As [`Weights::make`].
    pub fn new(weights: &mut Weights, inputs: usize, units: usize) -> Result<Lstm> {
        Ok(Lstm { cell: LstmCell::new(weights, inputs, units)?, steps: StepOptions::default() })
    }

    /// A layer that returns what each step does.
    ///
    /// # Errors
    ///
    /// As [`Weights::make`].
    pub fn of_sequences(weights: &mut Weights, inputs: usize, units: usize) -> Result<Lstm> {
        Ok(Lstm { steps: StepOptions::all(), ..Lstm::new(weights, inputs, units)? })
    }

    /// The cell.
    pub fn cell(&self) -> &LstmCell {
        &self.cell
    }

    /// Outputs of all steps, and the state after the last. Without a state it begins with zeros.
    ///
    /// # Errors
    ///
    /// When input or state do not fit.
    pub fn run(&self, x: &Tensor, state: Option<LstmState>) -> Result<(Tensor, LstmState)> {
        self.stepped(Mode::Inference, x, None, state)
    }

    fn stepped(
        &self,
        mode: Mode,
        x: &Tensor,
        mask: Option<&Tensor>,
        state: Option<LstmState>,
    ) -> Result<(Tensor, LstmState)> {
        let LstmCell { kernel, recurrent_kernel, bias, .. } = &self.cell;
        let x = self.steps.inputs(&input_for(kernel, x)?, mode)?;
        let of = |variable: &Variable| variable.read()?.cast(x.dtype());
        let sums = recurrent::projected(&x, &of(kernel)?, &of(bias)?)?;
        let recurrent_kernel = of(recurrent_kernel)?;
        let initial = match state {
            Some(state) => state,
            None => self.cell.zero_state(&x)?,
        };
        let like = initial.output.clone();
        let factors = self.steps.factors(&like, mode)?;
        let mask = self.steps.mask(mask)?;
        recurrent::stepped(&sums, &like, &mask, initial, |sums, state: LstmState| {
            let by_state = by_state(&state.output, factors.as_ref(), &recurrent_kernel)?;
            let state = next(&(sums + by_state)?, &state.memory)?;
            Ok((state.output.clone(), state))
        })
    }
}

recurrent_layers! {
    Lstm, LstmState, |state| &state.output;
}
