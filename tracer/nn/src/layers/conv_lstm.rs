//! Long short-term memory of images.

use super::{
    Layer, LayerValue, LstmState, Mode, Weights,
    compute::input_for,
    geometry::{Padding, check_dimensions, check_sizes, convolved},
    lstm::{forgetting, next},
    recurrent::{self, RecurrentLayer, StepOptions, propagated, swapped},
    shapes::{DimSize, has_rank, operand, rank, reshaped, wrong},
    value,
};
use crate::initializers::Initializer;
use ferroflow_tracer::{
    error::Result,
    ops::{self, IntoOperand},
    tensor::Tensor,
    variable::Variable,
};
use ferroflow_tracer_macros::Trackable;

/// A step of long short-term memory whose matrix products are convolutions (Shi et al. 2015).
///
/// Weights: `kernel` `[..window, inputs, 4·outputs]`, `recurrent_kernel`
/// `[..window, outputs, 4·outputs]`, `bias` `[4·outputs]`; the channels are those of the input gate,
/// the forget gate, the candidate and the output gate.
#[derive(Trackable, Debug, Clone)]
struct ConvLstmCell<const N: usize> {
    kernel: Variable,
    recurrent_kernel: Variable,
    bias: Variable,
    #[trackable(skip)]
    outputs: usize,
    #[trackable(skip)]
    options: ConvLstmOptions<N>,
}

/// The options of a [`ConvLstm`].
#[derive(Debug, Clone, PartialEq)]
pub struct ConvLstmOptions<const N: usize> {
    /// The steps of the window over inputs.
    pub strides: [usize; N],
    /// The distances of the elements of the window over inputs.
    pub dilations: [usize; N],
    /// The padding of inputs; that of the state is [`Same`](Padding::Same).
    pub padding: Padding,
}

impl<const N: usize> Default for ConvLstmOptions<N> {
    fn default() -> ConvLstmOptions<N> {
        ConvLstmOptions { strides: [1; N], dilations: [1; N], padding: Padding::Valid }
    }
}

/// Long short-term memory over sequences of images of `N` dimensions:
/// `[batch, steps, ..sizes, inputs] → [batch, ..sizes, outputs]`, or
/// `[batch, steps, ..sizes, outputs]` with the result of each step.
///
/// Weights, of `cell`: `kernel` `[..window, inputs, 4·outputs]`, `recurrent_kernel`
/// `[..window, outputs, 4·outputs]`, `bias` `[4·outputs]`; the channels are those of the input gate,
/// the forget gate, the candidate and the output gate.
#[derive(Trackable, Debug, Clone)]
pub struct ConvLstm<const N: usize> {
    cell: ConvLstmCell<N>,
    #[trackable(name = "_steps")]
    steps: StepOptions,
}

/// Long short-term memory over sequences of sequences: `[batch, steps, size, inputs]`.
pub type ConvLstm1D = ConvLstm<1>;
/// Long short-term memory over sequences of images: `[batch, steps, height, width, inputs]`.
pub type ConvLstm2D = ConvLstm<2>;
/// Long short-term memory over sequences of volumes.
pub type ConvLstm3D = ConvLstm<3>;

impl<const N: usize> ConvLstm<N> {
    /// A layer with a window of this size that returns the result of the last step.
    ///
    /// # Errors
    ///
    /// [`Error::Conversion`](ferroflow_tracer::Error::Conversion) for causal padding and more than
    /// three dimensions; as [`Weights::make`].
    pub fn new(
        weights: &mut Weights,
        window: [usize; N],
        [inputs, outputs]: [usize; 2],
        options: &ConvLstmOptions<N>,
    ) -> Result<ConvLstm<N>> {
        check_dimensions(N, 3)?;
        check_sizes(&[&window, &options.strides, &options.dilations])?;
        if options.padding == Padding::Causal {
            return Err(wrong("valid or same padding", "causal padding"));
        }
        let shape =
            |inputs| -> Vec<usize> { window.into_iter().chain([inputs, 4 * outputs]).collect() };
        let orthogonal = Initializer::Orthogonal { gain: 1.0 };
        let cell = ConvLstmCell {
            kernel: weights.make("kernel", Initializer::GLOROT_UNIFORM, &shape(inputs))?,
            recurrent_kernel: weights.make("recurrent_kernel", orthogonal, &shape(outputs))?,
            bias: weights.of("bias", forgetting(outputs))?,
            outputs,
            options: options.clone(),
        };
        Ok(ConvLstm { cell, steps: StepOptions::default() })
    }

    /// The same layer, which returns the result of each step.
    #[must_use]
    pub fn of_sequences(mut self) -> ConvLstm<N> {
        self.steps.returns_all = true;
        self
    }
}

impl<const N: usize> ConvLstmCell<N> {
    /// The sums of the gates by the inputs of all steps:
    /// `[batch, steps, ..sizes, inputs] → [steps, batch, ..sizes, 4·outputs]`.
    fn by_inputs(&self, x: &Tensor) -> Result<Tensor> {
        let (x, ConvLstmOptions { strides, dilations, padding }) = (swapped(x)?, &self.options);
        let (steps, batch) = (DimSize::of(&x, 0)?, DimSize::of(&x, 1)?);
        let images = shaped(&x, &[steps.times(&batch)?], 2)?;
        let kernel = self.kernel.read()?.cast(x.dtype())?;
        let sums = convolved(&images, &kernel, strides, dilations, *padding)?;
        let sums = ops::bias_add(&sums, &self.bias.read()?.cast(x.dtype())?)?;
        shaped(&sums, &[steps, batch], 1)
    }

    /// A state of zeros for each example, by the sums of the gates.
    fn zeros(&self, sums: &Tensor) -> Result<LstmState> {
        let mut sizes = DimSize::of_all(sums, 1..=N + 1)?;
        sizes.push(DimSize::Known(self.outputs));
        let zeros = ops::fill(&operand(&sizes)?, &0.0.into_operand(sums.dtype())?)?;
        Ok(LstmState { output: zeros.clone(), memory: zeros })
    }
}

/// A tensor whose first `n` dimensions become those of the sizes.
fn shaped(x: &Tensor, first: &[DimSize], n: usize) -> Result<Tensor> {
    let rest = DimSize::of_all(x, n..rank(x)?)?;
    reshaped(x, &[first, &rest[..]].concat())
}

impl<const N: usize> Layer for ConvLstm<N> {
    value::call_by_propagate!();

    #[track_caller]
    fn propagate(&self, x: &LayerValue, mode: Mode) -> Result<LayerValue> {
        let _call = crate::called();
        propagated(self, x, mode)
    }
}

impl<const N: usize> RecurrentLayer for ConvLstm<N> {
    type State = LstmState;

    fn run_masked(
        &self,
        mode: Mode,
        x: &Tensor,
        mask: Option<&Tensor>,
        state: Option<LstmState>,
    ) -> Result<(Tensor, LstmState)> {
        has_rank(x, N + 3)?;
        let x = self.steps.inputs(&input_for(&self.cell.kernel, x)?, mode)?;
        let sums = self.cell.by_inputs(&x)?;
        let kernel = self.cell.recurrent_kernel.read()?.cast(x.dtype())?;
        let initial = match state {
            Some(state) => state,
            None => self.cell.zeros(&sums)?,
        };
        let like = initial.output.clone();
        let mask = self.steps.mask(mask)?;
        recurrent::stepped(&sums, &like, &mask, initial, |sums, state: LstmState| {
            let by_state = convolved(&state.output, &kernel, &[1; N], &[1; N], Padding::Same)?;
            let state = next(&(sums + by_state)?, &state.memory)?;
            Ok((state.output.clone(), state))
        })
    }

    fn zero_state(&self, x: &Tensor) -> Result<LstmState> {
        has_rank(x, N + 3)?;
        self.cell.zeros(&self.cell.by_inputs(&input_for(&self.cell.kernel, x)?)?)
    }

    fn last(state: &LstmState) -> &Tensor {
        &state.output
    }

    fn returns_sequences(&self) -> bool {
        self.steps.returns_all
    }

    fn backwards(self) -> ConvLstm<N> {
        ConvLstm { steps: self.steps.reversed(), ..self }
    }

    fn zero_output_for_mask(self) -> ConvLstm<N> {
        ConvLstm { steps: self.steps.with_zeros_for_mask(), ..self }
    }
}
