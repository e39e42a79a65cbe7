//! Recurrent layers in general: a step for each element of a sequence.

use super::{Layer, rows, shapes::rank};
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
    fn run(&self, x: &Tensor, state: Option<Self::State>) -> Result<(Tensor, Self::State)>;

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

/// The order of the steps of a layer, and the results it returns.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct StepOrder {
    pub(super) returns_all: bool,
    pub(super) backwards: bool,
}

impl StepOrder {
    /// All results.
    pub(super) const ALL: StepOrder = StepOrder { returns_all: true, backwards: false };

    /// The steps from the end.
    pub(super) fn reversed(self) -> StepOrder {
        StepOrder { backwards: true, ..self }
    }

    /// The sequence in the order of the steps.
    pub(super) fn in_order(self, x: &Tensor) -> Result<Tensor> {
        if self.backwards { reversed(x) } else { Ok(x.clone()) }
    }
}

/// A call of a recurrent layer, from a state of zeros.
pub(super) fn called<L: RecurrentLayer>(layer: &L, x: &Tensor) -> Result<Tensor> {
    let (all, state) = layer.run(x, None)?;
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

/// Steps through the rows `[steps, batch, ..]`; `step` gives what a step results in, of the shape
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
