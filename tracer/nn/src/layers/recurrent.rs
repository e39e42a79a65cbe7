//! Recurrent layers in general: a step for each element of a sequence.

use super::{
    Layer, LayerValue, Mode, SeedGenerator,
    dropout::{check_rate, dropped},
    rows,
    shapes::{DimSize, has_rank, operand, rank},
    value::where_masked,
};
use crate::initializers::Initializer;
use ferroflow_tracer::{
    control_flow::{TensorArray, TensorArrayOptions, while_loop},
    error::Result,
    nest::Nest,
    ops::{self, IntoOperand},
    tensor::Tensor,
    value::{Aliases, TensorLeaves},
};
use ferroflow_tracer_macros::Trackable;

/// A layer that goes through a sequence with a state: `[batch, steps, ..] → [batch, ..]`, or
/// `[batch, steps, ..]` with the result of each step.
pub trait RecurrentLayer: Layer {
    /// The state that a step leaves to the next.
    type State: Nest;

    /// The results of all steps, in the order in which they are done, and the state after the last.
    /// Without a state the layer begins with zeros. A step where the mask `[batch, steps]` is false
    /// leaves the state as it is, and has the result of the step before, or zeros
    /// ([`zero_output_for_mask`](RecurrentLayer::zero_output_for_mask)).
    ///
    /// # Errors
    ///
    /// When input, mask or state do not fit.
    fn run_masked(
        &self,
        mode: Mode,
        x: &Tensor,
        mask: Option<&Tensor>,
        state: Option<Self::State>,
    ) -> Result<(Tensor, Self::State)>;

    /// As [`run_masked`](RecurrentLayer::run_masked), where all steps count.
    ///
    /// # Errors
    ///
    /// When input or state do not fit.
    fn run_in(
        &self,
        mode: Mode,
        x: &Tensor,
        state: Option<Self::State>,
    ) -> Result<(Tensor, Self::State)> {
        self.run_masked(mode, x, None, state)
    }

    /// A state of zeros for the examples of `x`, `[batch, steps, ..]`, in its dtype.
    ///
    /// # Errors
    ///
    /// When `x` does not fit.
    fn zero_state(&self, x: &Tensor) -> Result<Self::State>;

    /// The result of the step that left this state.
    fn last(state: &Self::State) -> &Tensor;

    /// Whether the layer returns the results of all steps, instead of that of the last.
    fn returns_sequences(&self) -> bool;

    /// The same layer, which goes through sequences from their end.
    #[must_use]
    fn backwards(self) -> Self
    where
        Self: Sized;

    /// The same layer, in which steps that a mask leaves out result in zeros, not in what the step
    /// before did. [`Bidirectional`](super::Bidirectional) layers of sequences ask for it.
    #[must_use]
    fn zero_output_for_mask(self) -> Self
    where
        Self: Sized;
}

/// The options of recurrent layers: order of the steps, results, and dropout.
#[derive(Trackable, Debug, Clone, Default)]
pub(super) struct StepOptions {
    #[trackable(skip)]
    pub(super) returns_all: bool,
    #[trackable(skip)]
    pub(super) backwards: bool,
    #[trackable(skip)]
    pub(super) zeros_for_mask: bool,
    dropout: StepDropout,
}

/// Dropout of the same elements in all steps (Gal and Ghahramani 2016).
#[derive(Trackable, Debug, Clone, Default)]
struct StepDropout {
    #[trackable(skip)]
    inputs: f64,
    #[trackable(skip)]
    state: f64,
    seed_generator: SeedGenerator,
}

impl StepOptions {
    /// A layer that returns all results.
    pub(super) fn all() -> StepOptions {
        StepOptions { returns_all: true, ..StepOptions::default() }
    }

    /// The steps from the end.
    pub(super) fn reversed(self) -> StepOptions {
        StepOptions { backwards: true, ..self }
    }

    /// Zeros as the results of steps that a mask leaves out.
    pub(super) fn with_zeros_for_mask(self) -> StepOptions {
        StepOptions { zeros_for_mask: true, ..self }
    }

    /// The mask `[batch, steps]` in the order of the steps.
    pub(super) fn mask(&self, mask: Option<&Tensor>) -> Result<StepMask> {
        let ordered = |mask: &Tensor| {
            has_rank(mask, 2)?;
            swapped(&if self.backwards { reversed(mask)? } else { mask.clone() })
        };
        Ok(StepMask { steps: mask.map(ordered).transpose()?, zeros: self.zeros_for_mask })
    }

    /// With dropout of these parts of inputs and state.
    pub(super) fn with_dropout(self, inputs: f64, state: f64, seed: i64) -> Result<StepOptions> {
        check_rate(inputs)?;
        check_rate(state)?;
        Ok(StepOptions {
            dropout: StepDropout { inputs, state, seed_generator: SeedGenerator::new(seed) },
            ..self
        })
    }

    /// The inputs `[batch, steps, inputs]` in the order of the steps, some dropped in training.
    pub(super) fn inputs(&self, x: &Tensor, mode: Mode) -> Result<Tensor> {
        let x = if self.backwards { reversed(x)? } else { x.clone() };
        if mode == Mode::Inference || self.dropout.inputs == 0.0 {
            return Ok(x);
        }
        let sizes = [DimSize::of(&x, 0)?, DimSize::Known(1), DimSize::of(&x, 2)?];
        dropped(&x, &operand(&sizes)?, self.dropout.inputs, &self.dropout.seed_generator)
    }

    /// The factors of a state `[batch, units]`, by which some of it is dropped in training.
    pub(super) fn factors(&self, state: &Tensor, mode: Mode) -> Result<Option<Tensor>> {
        if mode == Mode::Inference || self.dropout.state == 0.0 {
            return Ok(None);
        }
        let StepDropout { state: rate, seed_generator, .. } = &self.dropout;
        let factors = dropped(&state.ones_like()?, &state.shape_tensor()?, *rate, seed_generator)?;
        Ok(Some(factors))
    }
}

/// The steps that count.
#[derive(Debug, Clone)]
pub(super) struct StepMask {
    /// Whether a step counts, in the order of the steps: `[steps, batch]`.
    steps: Option<Tensor>,
    /// Whether the result of one that does not is zeros, not that of the step before.
    zeros: bool,
}

/// The product of a state with a recurrent kernel, some of the state being dropped.
pub(super) fn by_state(
    state: &Tensor,
    factors: Option<&Tensor>,
    recurrent_kernel: &Tensor,
) -> Result<Tensor> {
    match factors {
        Some(factors) => (state * factors)?.matmul(recurrent_kernel),
        None => state.matmul(recurrent_kernel),
    }
}

/// Layers that step through sequences by a cell.
macro_rules! recurrent_layers {
    ($($layer:ident, $state:ty, |$last:ident| $output:expr;)*) => {$(
        impl $layer {
            /// The same layer, which goes through sequences from their end.
            #[must_use]
            pub fn backwards(self) -> $layer {
                $layer { steps: self.steps.reversed(), ..self }
            }

            /// The same layer, in which steps that a mask leaves out result in zeros, not in what the
            /// step before did.
            #[must_use]
            pub fn zero_output_for_mask(self) -> $layer {
                $layer { steps: self.steps.with_zeros_for_mask(), ..self }
            }

            /// The same layer, which in training drops these parts of inputs and of the state that
            /// enters the product with the recurrent kernel, the same elements in all steps, by a
            /// seed; 0 is none.
            ///
            /// # Errors
            ///
            /// [`Error::Conversion`](ferroflow_tracer::Error::Conversion) when a rate is not from 0
            /// to below 1.
            pub fn with_dropout(self, inputs: f64, state: f64, seed: i64) -> Result<$layer> {
                Ok($layer { steps: self.steps.with_dropout(inputs, state, seed)?, ..self })
            }
        }

        impl Layer for $layer {
            $crate::layers::value::call_by_propagate!();

            #[track_caller]
            fn propagate(
                &self,
                x: &$crate::layers::LayerValue,
                mode: Mode,
            ) -> Result<$crate::layers::LayerValue> {
                let _call = $crate::called();
                $crate::layers::recurrent::propagated(self, x, mode)
            }
        }

        impl $crate::layers::RecurrentLayer for $layer {
            type State = $state;

            fn run_masked(
                &self,
                mode: Mode,
                x: &Tensor,
                mask: Option<&Tensor>,
                state: Option<$state>,
            ) -> Result<(Tensor, $state)> {
                self.stepped(mode, x, mask, state)
            }

            fn zero_state(&self, x: &Tensor) -> Result<$state> {
                $crate::layers::RecurrentCell::zero_state(&self.cell, x)
            }

            fn last($last: &$state) -> &Tensor {
                $output
            }

            fn returns_sequences(&self) -> bool {
                self.steps.returns_all
            }

            fn backwards(self) -> $layer {
                $layer::backwards(self)
            }

            fn zero_output_for_mask(self) -> $layer {
                $layer::zero_output_for_mask(self)
            }
        }
    )*};
}

pub(super) use recurrent_layers;

/// A call of a recurrent layer, from a state of zeros. The mask goes on with the results of all steps.
pub(super) fn propagated<L: RecurrentLayer>(
    layer: &L,
    x: &LayerValue,
    mode: Mode,
) -> Result<LayerValue> {
    let (all, state) = layer.run_masked(mode, &x.tensor, x.mask.as_ref(), None)?;
    if layer.returns_sequences() {
        return Ok(x.with_tensor(all));
    }
    Ok(x.with_unmasked(last_result::<L>(&all, &state, x.mask.is_some())?))
}

/// The result of the last step, of results `[batch, steps, ..]` and the state behind them. A state
/// that a mask left alone is not what its step resulted in.
pub(super) fn last_result<L: RecurrentLayer>(
    all: &Tensor,
    state: &L::State,
    is_masked: bool,
) -> Result<Tensor> {
    if !is_masked {
        return Ok(L::last(state).clone());
    }
    let last = DimSize::of(all, 1)?.scaled(1, -1)?.tensor();
    swapped(all)?.gather(&last)
}

/// The sequences from their end: `[batch, steps, ..]`.
pub(super) fn reversed(x: &Tensor) -> Result<Tensor> {
    ops::reverse_v2(x, &Tensor::from([1]))
}

/// The first two dimensions swapped: `[batch, steps, ..] → [steps, batch, ..]`.
pub(super) fn swapped(x: &Tensor) -> Result<Tensor> {
    let rank = rank(x)? as i32;
    x.transpose(&[1, 0].into_iter().chain(2..rank).collect::<Vec<_>>())
}

/// The products of each step's input with the kernel, and the bias, with the steps first:
/// `[batch, steps, inputs] → [steps, batch, gates]`.
pub(super) fn projected(x: &Tensor, kernel: &Tensor, bias: &Tensor) -> Result<Tensor> {
    rows::times(&swapped(x)?, kernel)? + bias
}

/// A state of zeros for each example: `[batch, steps, inputs] → [batch, units]`.
pub(super) fn zeros(x: &Tensor, units: usize) -> Result<Tensor> {
    if let Some(batch) = x.shape().dim(0) {
        return Initializer::Zeros.seeded(x.dtype(), &[batch, units], [0, 0]);
    }
    let batch = x.shape_tensor()?.gather(&Tensor::from(0))?;
    let dims = ops::pack(&[&batch, &Tensor::from(units as i32)])?;
    ops::fill(&dims, &0.0.into_operand(x.dtype())?)
}

/// Steps through the rows `[steps, batch, ..]` that the mask does not leave out; `step` returns what a
/// step results in, of the shape of `like`, and the next state. The results come as
/// `[batch, steps, ..]`, with the last state.
pub(super) fn stepped<S: Nest>(
    rows: &Tensor,
    like: &Tensor,
    mask: &StepMask,
    initial: S,
    mut step: impl FnMut(&Tensor, S) -> Result<(Tensor, S)>,
) -> Result<(Tensor, S)> {
    let len = match rows.shape().dim(0) {
        Some(len) => Tensor::from(len as i32),
        None => rows.shape_tensor()?.gather(&Tensor::from(0))?,
    };
    let options =
        TensorArrayOptions { element_shape: like.shape(), ..TensorArrayOptions::default() };
    let results = TensorArray::with_options(like.dtype(), &len, options)?;
    // The result before the first step is zeros, as in Keras, also where its state is not.
    let before = mask.steps.as_ref().map(|_| like.zeros_like()).transpose()?;
    let more = |(index, ..): &(Tensor, TensorArray, Option<Tensor>, S)| index.less(&len);
    let next = |(index, results, before, state): (Tensor, TensorArray, Option<Tensor>, S)| {
        let row = rows.gather(&index)?;
        let (result, before, state) = match (&mask.steps, before) {
            (Some(steps), Some(before)) => {
                let (counts, old) = (steps.gather(&index)?, tensors(&state));
                let (result, state) = step(&row, state)?;
                let result = where_masked(&counts, &result, &before)?;
                let before = if mask.zeros { before } else { result.clone() };
                (result, Some(before), kept(&counts, &state, &old)?)
            }
            _ => {
                let (result, state) = step(&row, state)?;
                (result, None, state)
            }
        };
        Ok(((&index + 1)?, results.write(&index, &result)?, before, state))
    };
    let (_, results, _, state) =
        while_loop(more, next, (Tensor::from(0), results, before, initial))?;
    Ok((swapped(&results.stack()?)?, state))
}

fn tensors(state: &impl Nest) -> TensorLeaves {
    let mut leaves = TensorLeaves::default();
    state.leaves(&mut Aliases::default(), &mut leaves);
    leaves
}

/// The state of each example whose step counts, and the old one of the others.
fn kept<S: Nest>(counts: &Tensor, state: &S, old: &[Tensor]) -> Result<S> {
    let pairs = tensors(state).into_iter().zip(old);
    let kept = pairs.map(|(new, old)| where_masked(counts, &new, old));
    let kept: Vec<Tensor> = kept.collect::<Result<_>>()?;
    let ty = state.to_value().trace_type(&mut Aliases::default());
    S::from_leaves(&ty, &mut kept.into_iter())
}

/// The sums of each gate: `[.., n·units]` as `n` of `[.., units]`.
pub(super) fn gates(sums: &Tensor, n: i64) -> Result<ops::Outputs> {
    ops::split(&Tensor::from(-1), sums, n)
}
