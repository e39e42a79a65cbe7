//! Reading and changing parts of variables, with the kernels for tensors.

use super::{RuntimeCall, RuntimeOpBody, none};
use crate::{
    eager_tensor::{EagerTensor, Results},
    error::Result,
    execute::{execute, execute_in_place},
    variable::VariableState,
};
use ferroflow_ir::{Attrs, Error as IrError, HostTensor, Shape};
use std::sync::Arc;

fn variable(call: &RuntimeCall<'_>) -> Result<Arc<VariableState>> {
    call.resource(0, "a variable")
}

/// The attributes of these names as the call has them.
fn attrs(call: &RuntimeCall<'_>, names: &[&str]) -> Attrs {
    let given = names.iter().filter_map(|&name| Some((name, call.attrs.get(name)?.clone())));
    given.collect::<Attrs>()
}

fn gather(call: &mut RuntimeCall<'_>) -> Result<Results> {
    let value = variable(call)?.read()?;
    let indices = call.host(1)?;
    let batch = usize::try_from(call.attrs.int("batch_dims")?).unwrap_or(usize::MAX);
    if batch == 0 {
        return rows(call, value, indices.clone());
    }
    let (shape, places) = (value.shape(), indices.shape());
    if batch >= shape.rank() || batch > places.rank() || shape[..batch] != places[..batch] {
        let expected = format!("of batches like those of {shape}");
        return Err(IrError::argument(call.op.name, "indices", expected, places).into());
    }
    // As in TensorFlow, indices count on from batch to batch: one past the end of its batch is the
    // first of the next.
    let n_batches: usize = shape[..batch].iter().product();
    let (size, per_batch) = (shape[batch], places[batch..].iter().product::<usize>().max(1));
    let offset = |(position, index): (usize, i64)| {
        index.saturating_add((position / per_batch * size) as i64)
    };
    let all: Vec<i64> = indices.to_i64s()?.into_iter().enumerate().map(offset).collect();
    let flat = [n_batches * size].into_iter().chain(shape[batch + 1..].iter().copied());
    let value = value.reshaped(Shape::new(flat)?)?;
    rows(call, value, HostTensor::from_slice(places.clone(), &all)?)
}

fn rows(call: &RuntimeCall<'_>, value: HostTensor, indices: HostTensor) -> Result<Results> {
    // Of a tensor without elements `Gather` reads nothing and checks nothing.
    let n_rows = value.shape().first().copied().unwrap_or(0) as i64;
    if value.shape().num_elements() == 0
        && let Some(&index) = indices.to_i64s()?.iter().find(|index| !(0..n_rows).contains(*index))
    {
        let what = "an index".into();
        return Err(IrError::Index { what, index, low: 0, high: n_rows }.into());
    }
    execute(call.context(), "Gather", Attrs::new(), &[value.into(), indices.into()])
}

fn gather_nd(call: &mut RuntimeCall<'_>) -> Result<Results> {
    let value = variable(call)?.read()?;
    execute(call.context(), "GatherNd", Attrs::new(), &[value.into(), call.inputs[1].clone()])
}

/// Changes the variable by the op on tensors that `op` names.
fn change(
    call: &RuntimeCall<'_>,
    op: &str,
    attrs: Attrs,
    others: impl FnOnce(&HostTensor) -> Result<Vec<EagerTensor>>,
) -> Result<Results> {
    variable(call)?.update(|value| {
        let others = others(value)?;
        execute_in_place(call.context(), op, attrs, value, &others)
    })?;
    none()
}

/// Rows named by indices: the updates have a row for each index, or are a scalar for all.
fn scatter(call: &RuntimeCall<'_>, op: &str) -> Result<Results> {
    change(call, op, Attrs::new(), |value| {
        let (indices, updates) = (call.host(1)?, call.host(2)?);
        let wrong = |expected: String, found: &Shape| -> crate::Error {
            IrError::argument(call.op.name, "updates", expected, found).into()
        };
        let Some((_, row)) = value.shape().split_first() else {
            return Err(wrong("for a variable of rank 1 or more".into(), value.shape()));
        };
        let rows = |n: &[usize]| Shape::new(n.iter().chain(row).copied());
        let n = indices.len();
        let updates = if updates.shape().rank() == 0 {
            let target = HostTensor::vector(&rows(&[n])?.to_i64())?;
            let inputs = [updates.clone().into(), target.into()];
            execute(call.context(), "BroadcastTo", Attrs::new(), &inputs)?.remove(0)
        } else {
            let expected = rows(indices.shape())?;
            if *updates.shape() != expected {
                return Err(wrong(format!("of shape {expected}"), updates.shape()));
            }
            updates.reshaped(rows(&[n])?)?.into()
        };
        Ok(vec![indices.reshaped(Shape::new([n])?)?.into(), updates])
    })
}

/// Slices named by vectors of indices.
fn scatter_nd(call: &RuntimeCall<'_>, op: &str) -> Result<Results> {
    let attrs = attrs(call, &["bad_indices_policy"]);
    change(call, op, attrs, |_| Ok(call.inputs[1..].to_vec()))
}

fn strided_slice_assign(call: &mut RuntimeCall<'_>) -> Result<Results> {
    let masks = ["begin_mask", "end_mask", "ellipsis_mask", "new_axis_mask", "shrink_axis_mask"];
    let attrs = attrs(call, &masks);
    change(call, "TensorStridedSliceUpdate", attrs, |_| Ok(call.inputs[1..].to_vec()))
}

pub(super) const BODIES: &[(&str, RuntimeOpBody)] = &[
    ("ResourceGather", gather),
    ("ResourceGatherNd", gather_nd),
    ("ResourceScatterAdd", |call| scatter(call, "TensorScatterAdd")),
    ("ResourceScatterDiv", |call| scatter(call, "_TensorScatterDiv")),
    ("ResourceScatterMax", |call| scatter(call, "TensorScatterMax")),
    ("ResourceScatterMin", |call| scatter(call, "TensorScatterMin")),
    ("ResourceScatterMul", |call| scatter(call, "_TensorScatterMul")),
    ("ResourceScatterNdAdd", |call| scatter_nd(call, "TensorScatterAdd")),
    ("ResourceScatterNdMax", |call| scatter_nd(call, "TensorScatterMax")),
    ("ResourceScatterNdMin", |call| scatter_nd(call, "TensorScatterMin")),
    ("ResourceScatterNdSub", |call| scatter_nd(call, "TensorScatterSub")),
    ("ResourceScatterNdUpdate", |call| scatter_nd(call, "TensorScatterUpdate")),
    ("ResourceScatterSub", |call| scatter(call, "TensorScatterSub")),
    ("ResourceScatterUpdate", |call| scatter(call, "TensorScatterUpdate")),
    ("ResourceStridedSliceAssign", strided_slice_assign),
];
