//! Recurrent layers of any cell, and cells one above the other.

use super::{
    Layer, LayerValue, Mode, RecurrentLayer, compute,
    recurrent::{self, StepOptions, propagated, swapped},
    shapes::wrong,
    value,
};
use ferroflow_runtime::trackable::Trackable;
use ferroflow_tracer::{Nest, error::Result, tensor::Tensor};
use ferroflow_tracer_macros::Trackable;

/// A step of a recurrent layer.
pub trait RecurrentCell: Trackable + Send + Sync {
    /// The state that a step leaves to the next.
    type State: Nest + Clone;

    /// The state after a step: `x` is `[batch, inputs]`.
    ///
    /// # Errors
    ///
    /// When input or state do not fit.
    fn advance(&self, x: &Tensor, state: &Self::State) -> Result<Self::State>;

    /// A state of zeros for the examples of `x`, `[batch, ..]`, in its dtype.
    ///
    /// # Errors
    ///
    /// When it cannot be made.
    fn zero_state(&self, x: &Tensor) -> Result<Self::State>;

    /// The result of the step that left this state: `[batch, units]`.
    fn output(state: &Self::State) -> &Tensor;
}

/// Cells of one kind, each of which gets the result of the one before.
///
/// Weights: those of `cells`, by their indices.
#[derive(Trackable, Debug, Clone)]
pub struct StackedRnnCells<C> {
    cells: Vec<C>,
}

impl<C: RecurrentCell> StackedRnnCells<C> {
    /// These cells, the first of which gets the inputs.
    ///
    /// # Errors
    ///
    /// [`Error::Conversion`](ferroflow_tracer::Error::Conversion) of no cells.
    pub fn new(cells: impl Into<Vec<C>>) -> Result<StackedRnnCells<C>> {
        let cells = cells.into();
        if cells.is_empty() {
            return Err(wrong("a cell at least", "none"));
        }
        Ok(StackedRnnCells { cells })
    }

    /// The cells.
    pub fn cells(&self) -> &[C] {
        &self.cells
    }
}

impl<C: RecurrentCell> RecurrentCell for StackedRnnCells<C> {
    type State = Vec<C::State>;

    fn advance(&self, x: &Tensor, state: &Vec<C::State>) -> Result<Vec<C::State>> {
        if state.len() != self.cells.len() {
            let expected = format!("a state for each of {} cells", self.cells.len());
            return Err(wrong(expected, state.len().to_string()));
        }
        let mut x = x.clone();
        let mut step = |(cell, state): (&C, &C::State)| {
            let state = cell.advance(&x, state)?;
            x = C::output(&state).clone();
            Ok(state)
        };
        self.cells.iter().zip(state).map(&mut step).collect()
    }

    fn zero_state(&self, x: &Tensor) -> Result<Vec<C::State>> {
        self.cells.iter().map(|cell| cell.zero_state(x)).collect()
    }

    fn output(state: &Vec<C::State>) -> &Tensor {
        C::output(state.last().expect("there is a cell"))
    }
}

/// A recurrent layer of a cell: `[batch, steps, inputs] → [batch, units]`, or `[batch, steps, units]`
/// with the result of each step.
///
/// ```
/// use ferroflow_nn::{GruCell, Layer, Mode, Rnn, StackedRnnCells, Weights};
/// use ferroflow_tracer::Tensor;
/// # fn main() -> ferroflow_tracer::Result<()> {
/// let weights = &mut Weights::seeded(1);
/// let cells = [GruCell::new(weights, 2, 4)?, GruCell::new(weights, 4, 3)?];
/// let layer = Rnn::new(StackedRnnCells::new(cells)?);
/// let x = Tensor::from([[[0.5f32, 1.0], [0.1, 0.2], [0.0, 1.0]]]);
/// assert_eq!(layer.call(&x, Mode::Inference)?.shape().to_string(), "[1,3]");
/// # Ok(())
/// # }
/// ```
///
/// Weights: those of `cell`.
#[derive(Trackable, Debug, Clone)]
pub struct Rnn<C> {
    cell: C,
    #[trackable(name = "_steps")]
    steps: StepOptions,
}

impl<C: RecurrentCell> Rnn<C> {
    /// A layer that returns the result of the last step.
    pub fn new(cell: C) -> Rnn<C> {
        Rnn { cell, steps: StepOptions::default() }
    }

    /// A layer that returns the result of each step.
    pub fn of_sequences(cell: C) -> Rnn<C> {
        Rnn { cell, steps: StepOptions::all() }
    }

    /// The cell.
    pub fn cell(&self) -> &C {
        &self.cell
    }
}

impl<C: RecurrentCell> Layer for Rnn<C> {
    value::call_by_propagate!();

    #[track_caller]
    fn propagate(&self, x: &LayerValue, mode: Mode) -> Result<LayerValue> {
        let _call = crate::called();
        propagated(self, x, mode)
    }
}

impl<C: RecurrentCell> RecurrentLayer for Rnn<C> {
    type State = C::State;

    fn run_masked(
        &self,
        mode: Mode,
        x: &Tensor,
        mask: Option<&Tensor>,
        state: Option<C::State>,
    ) -> Result<(Tensor, C::State)> {
        let x = self.steps.inputs(&compute::input(x)?, mode)?;
        let initial = state.map_or_else(|| self.cell.zero_state(&x), Ok)?;
        let (like, mask) = (C::output(&initial).clone(), self.steps.mask(mask)?);
        recurrent::stepped(&swapped(&x)?, &like, &mask, initial, |x, state: C::State| {
            let state = self.cell.advance(x, &state)?;
            Ok((C::output(&state).clone(), state))
        })
    }

    fn zero_state(&self, x: &Tensor) -> Result<C::State> {
        self.cell.zero_state(x)
    }

    fn last(state: &C::State) -> &Tensor {
        C::output(state)
    }

    fn returns_sequences(&self) -> bool {
        self.steps.returns_all
    }

    fn backwards(self) -> Rnn<C> {
        Rnn { steps: self.steps.reversed(), ..self }
    }

    fn zero_output_for_mask(self) -> Rnn<C> {
        Rnn { steps: self.steps.with_zeros_for_mask(), ..self }
    }
}
