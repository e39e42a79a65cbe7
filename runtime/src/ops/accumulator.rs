//! Accumulators of gradients.

use super::{RuntimeCall, RuntimeOpBody, none, one};
use crate::{
    accumulator::Accumulator,
    eager_tensor::Results,
    error::Result,
    resource::{Resource, ResourceHandle},
};
use ferroflow_ir::{Error as IrError, HostTensor};
use std::sync::Arc;

fn accumulator(call: &RuntimeCall<'_>) -> Result<Arc<Accumulator>> {
    call.resource(0, "an accumulator")
}

fn new(call: &mut RuntimeCall<'_>) -> Result<Results> {
    let dtype = call.attrs.dtype("dtype")?;
    let shape = call.attrs.shape("shape")?.clone();
    let mean = call.attrs.string("reduction_type")? == "MEAN";
    let make = || Ok(Arc::new(Accumulator::new(dtype, shape, mean)) as Arc<dyn Resource>);
    let name = call.attrs.string("shared_name")?;
    let resource = match name.is_empty() {
        true => make()?,
        false => {
            call.scope.resources.find_or_create(call.attrs.string("container")?, name, make)?
        }
    };
    one(ResourceHandle::owning(name, resource).to_tensor())
}

fn apply(call: &mut RuntimeCall<'_>) -> Result<Results> {
    let step = call.host(1)?.as_scalar::<i64>()?;
    let gradient = call.taken(2)?;
    accumulator(call)?.apply(call.context(), step, gradient)?;
    none()
}

fn count(call: &mut RuntimeCall<'_>) -> Result<Results> {
    one(HostTensor::scalar(accumulator(call)?.count()))
}

fn set_step(call: &mut RuntimeCall<'_>) -> Result<Results> {
    let step = call.host(1)?.as_scalar::<i64>()?;
    accumulator(call)?.set_step(step);
    none()
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
];
