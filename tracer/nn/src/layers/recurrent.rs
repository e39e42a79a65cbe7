//! Recurrent layers in general: a step for each element of a sequence.

use super::{
    Layer, Mode,
    dropout::{check_rate, dropped},
    rows,
    shapes::{DimSize, operand, rank},
};
use crate::initializers::Initializer;
use ferroflow_tracer::{
    control_flow::{TensorArray, TensorArrayOptions, while_loop},
    error::Result,
    nest::Nest,
    ops::{self, IntoOperand},
    tensor::Tensor,
};

/// A layer that goes through a sequence with a state: `[batch, steps, ..] → [batch, ..]`, or
/// `[batch, steps, ..]` with the result of each step.
pub trait RecurrentLayer: Layer {
    /// The state that a step leaves to the next.
    type State: Nest;

    /// The results of all steps, in the order in which they are done, and the state after the last.
    /// Without a state the layer begins with zeros.
    ///
    /// # Errors
    ///
    /// When input or state do not fit.
    fn run_in(
        &self,
        mode: Mode,
        x: &Tensor,
        state: Option<Self::State>,
    ) -> Result<(Tensor, Self::State)>;

    /// The result of the step that left this state.
    fn last(state: &Self::State) -> &Tensor;

    /// Whether the layer returns the results of all steps, instead of that of the last.
    fn returns_sequences(&self) -> bool;

    /// The same layer, which goes through sequences from their end.
    #[must_use]
    fn backwards(self) -> Self
    where
        Self: Sized;
}

/// The options of recurrent layers: order of the steps, results, and dropout.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct StepOptions {
    pub(super) returns_all: bool,
    pub(super) backwards: bool,
    dropout: StepDropout,
}

/// Dropout of the same elements in all steps (Gal and Ghahramani 2016).
#[derive(Debug, Clone, Copy, Default)]
struct StepDropout {
    inputs: f64,
    state: f64,
    seed: i64,
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

    /// With dropout of these parts of inputs and state.
    pub(super) fn with_dropout(self, inputs: f64, state: f64, seed: i64) -> Result<StepOptions> {
        check_rate(inputs)?;
        check_rate(state)?;
        Ok(StepOptions { dropout: StepDropout { inputs, state, seed }, ..self })
    }

    /// The inputs `[batch, steps, inputs]` in the order of the steps, some dropped in training.
    pub(super) fn inputs(self, x: &Tensor, mode: Mode) -> Result<Tensor> {
        let x = if self.backwards { reversed(x)? } else { x.clone() };
        if mode == Mode::Inference || self.dropout.inputs == 0.0 {
            return Ok(x);
        }
        let sizes = [DimSize::of(&x, 0)?, DimSize::Known(1), DimSize::of(&x, 2)?];
        dropped(&x, &operand(&sizes)?, self.dropout.inputs, self.dropout.seed)
    }

    /// The factors of a state `[batch, units]`, by which some of it is dropped in training.
    pub(super) fn factors(self, state: &Tensor, mode: Mode) -> Result<Option<Tensor>> {
        if mode == Mode::Inference || self.dropout.state == 0.0 {
            return Ok(None);
        }
        let StepDropout { state: rate, seed, .. } = self.dropout;
        let factors =
            dropped(&state.ones_like()?, &state.shape_tensor()?, rate, seed.wrapping_mul(2))?;
        Ok(Some(factors))
    }
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
            fn call(&self, x: &Tensor, mode: Mode) -> Result<Tensor> {
                $crate::layers::recurrent::called(self, x, mode)
            }
        }

        impl $crate::layers::RecurrentLayer for $layer {
            type State = $state;

            fn run_in(
                &self,
                mode: Mode,
                x: &Tensor,
                state: Option<$state>,
            ) -> Result<(Tensor, $state)> {
                self.stepped(mode, x, state)
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
        }
    )*};
}

pub(super) use recurrent_layers;

/// A call of a recurrent layer, from a state of zeros.
pub(super) fn called<L: RecurrentLayer>(layer: &L, x: &Tensor, mode: Mode) -> Result<Tensor> {
    let (all, state) = layer.run_in(mode, x, None)?;
    Ok(if layer.returns_sequences() { all } else { L::last(&state).clone() })
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

/// Steps through the rows `[steps, batch, ..]`; `step` returns what a step results in, of the shape
/// of `like`, and the next state. The results come as `[batch, steps, ..]`, with the last state.
pub(super) fn stepped<S: Nest>(
    rows: &Tensor,
    like: &Tensor,
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
    let more = |(index, _, _): &(Tensor, TensorArray, S)| index.less(&len);
    let next = |(index, results, state): (Tensor, TensorArray, S)| {
        let (result, state) = step(&rows.gather(&index)?, state)?;
        Ok(((&index + 1)?, results.write(&index, &result)?, state))
    };
    let (_, results, state) = while_loop(more, next, (Tensor::from(0), results, initial))?;
    Ok((swapped(&results.stack()?)?, state))
}

/// The sums of each gate: `[.., n·units]` as `n` of `[.., units]`.
pub(super) fn gates(sums: &Tensor, n: i64) -> Result<ops::Outputs> {
    ops::split(&Tensor::from(-1), sums, n)
}
