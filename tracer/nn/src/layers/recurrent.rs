//! What recurrent layers share: a step for each element of a sequence.

use super::rows;
use crate::initializers::Initializer;
use ferroflow_tracer::{
    control_flow::{TensorArray, TensorArrayOptions, while_loop},
    error::Result,
    nest::Nest,
    ops::{self, IntoOperand},
    tensor::Tensor,
};

/// The products of each step's input with the kernel, and the bias, with the steps first:
/// `[batch, steps, inputs] → [steps, batch, gates]`.
pub(super) fn projected(x: &Tensor, kernel: &Tensor, bias: &Tensor) -> Result<Tensor> {
    rows::times(&x.transpose(&[1, 0, 2])?, kernel)? + bias
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

/// Steps through the rows `[steps, batch, gates]`; `step` gives what a step results in, of the shape
/// of `like`, and the next state. The results come as `[batch, steps, units]`, with the last state.
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
    Ok((results.stack()?.transpose(&[1, 0, 2])?, state))
}

/// The sums of each gate: `[batch, n·units]` as `n` of `[batch, units]`.
pub(super) fn gates(sums: &Tensor, n: i64) -> Result<ops::Outputs> {
    ops::split(&Tensor::from(1), sums, n)
}
