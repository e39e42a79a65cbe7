//! Accumulators of gradients.

use super::{RuntimeCall, RuntimeOpBody, none, one};
use crate::{
    accumulator::{Accumulator, SparseGradient, SparseSum},
    eager_tensor::Results,
    error::Result,
    resource::Resource,
};
use ferroflow_ir::{Error as IrError, HostTensor};
use std::{fmt, sync::Arc};

fn accumulator(call: &RuntimeCall<'_>) -> Result<Arc<Accumulator>> {
    call.resource(0, "an accumulator")
}

/// The accumulator in input 0, of sparse gradients if it has those.
fn sparse(call: &RuntimeCall<'_>) -> Result<Arc<Accumulator<SparseSum>>> {
    call.resource(0, "an accumulator of sparse gradients")
}

fn new(call: &mut RuntimeCall<'_>) -> Result<Results> {
    made::<HostTensor>(call)
}

fn new_sparse(call: &mut RuntimeCall<'_>) -> Result<Results> {
    made::<SparseSum>(call)
}

fn made<G: fmt::Debug + Send + 'static>(call: &mut RuntimeCall<'_>) -> Result<Results> {
    let dtype = call.attrs.dtype("dtype")?;
    let shape = call.attrs.shape("shape")?.clone();
    let mean = call.attrs.string("reduction_type")? == "MEAN";
    let make = || Ok(Arc::new(Accumulator::<G>::new(dtype, shape, mean)) as Arc<dyn Resource>);
    one(call.named_resource(make)?.to_tensor())
}

fn apply(call: &mut RuntimeCall<'_>) -> Result<Results> {
    let step = call.host(1)?.as_scalar::<i64>()?;
    let gradient = call.taken(2)?;
    accumulator(call)?.apply(call.context(), step, gradient)?;
    none()
}

fn apply_sparse(call: &mut RuntimeCall<'_>) -> Result<Results> {
    let step = call.host(1)?.as_scalar::<i64>()?;
    let rows = call.taken(3)?;
    let (indices, shape) = (call.host(2)?, call.host(4)?);
    for (name, tensor) in [("gradient_indices", indices), ("gradient_shape", shape)] {
        if tensor.shape().rank() != 1 {
            let found = tensor.shape();
            return Err(IrError::argument(call.op.name, name, "a vector", found).into());
        }
    }
    let shape = shape.as_slice::<i64>()?;
    let shape = call.attrs.bool("has_known_shape")?.then_some(shape);
    let gradient = SparseGradient { indices: indices.as_slice()?, rows, shape };
    sparse(call)?.apply_sparse(call.context(), step, gradient)?;
    none()
}

fn count(call: &mut RuntimeCall<'_>) -> Result<Results> {
    one(HostTensor::scalar(match sparse(call) {
        Ok(sparse) => sparse.count(),
        Err(_) => accumulator(call)?.count(),
    }))
}

fn set_step(call: &mut RuntimeCall<'_>) -> Result<Results> {
    let step = call.host(1)?.as_scalar::<i64>()?;
    match sparse(call) {
        Ok(sparse) => sparse.set_step(step),
        Err(_) => accumulator(call)?.set_step(step),
    }
    none()
}

fn take_sparse(call: &mut RuntimeCall<'_>) -> Result<Results> {
    let (accumulator, dtype) = (sparse(call)?, call.attrs.dtype("dtype")?);
    if accumulator.dtype() != dtype {
        let expected = accumulator.dtype().name();
        return Err(IrError::argument(call.op.name, "dtype", expected, dtype).into());
    }
    let required = call.host(1)?.as_scalar::<i32>()?;
    let (indices, rows, shape) = accumulator.take_sparse(call.context(), required)?;
    let (indices, shape) = (HostTensor::vector(&indices)?, HostTensor::vector(&shape)?);
    Ok(Results::from_iter([indices.into(), rows.into(), shape.into()]))
}

fn take(call: &mut RuntimeCall<'_>) -> Result<Results> {
    let (accumulator, dtype) = (accumulator(call)?, call.attrs.dtype("dtype")?);
    if accumulator.dtype() != dtype {
        let expected = accumulator.dtype().name();
        return Err(IrError::argument(call.op.name, "dtype", expected, dtype).into());
    }
    one(accumulator.take(call.context(), call.host(1)?.as_scalar::<i32>()?)?)
}

pub(super) const BODIES: &[(&str, RuntimeOpBody)] = &[
    ("ResourceAccumulatorApplyGradient", apply),
    ("ResourceAccumulatorNumAccumulated", count),
    ("ResourceAccumulatorSetGlobalStep", set_step),
    ("ResourceAccumulatorTakeGradient", take),
    ("ResourceConditionalAccumulator", new),
    ("_SparseAccumulatorApplyGradient", apply_sparse),
    ("_SparseAccumulatorTakeGradient", take_sparse),
    ("_SparseConditionalAccumulator", new_sparse),
];
