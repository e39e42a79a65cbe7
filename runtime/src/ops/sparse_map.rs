//! Sparse tensors that wait under a number until they are taken.

use super::{RuntimeCall, RuntimeOpBody, one};
use crate::{
    eager_tensor::Results,
    error::Result,
    resource::{Resource, ResourceHandle},
    sparse::{Sparse, SparseTensors, stack},
};
use ferroflow_ir::{Error as IrError, HostTensor};
use std::sync::Arc;

fn tensors(call: &RuntimeCall<'_>) -> Result<Arc<SparseTensors>> {
    let (container, name) = (call.attrs.string("container")?, call.attrs.string("shared_name")?);
    let make = || Ok(Arc::new(SparseTensors::default()) as Arc<dyn Resource>);
    let resource = call.scope.resources.find_or_create(container, name, make)?;
    ResourceHandle::owning(name, resource).downcast("a collection of sparse tensors")
}

fn sparse(call: &RuntimeCall<'_>) -> Result<Sparse> {
    Sparse::new(call.host(0)?, call.host(1)?, call.host(2)?)
}

fn add(call: &mut RuntimeCall<'_>) -> Result<Results> {
    one(HostTensor::scalar(tensors(call)?.add(sparse(call)?)?))
}

fn add_many(call: &mut RuntimeCall<'_>) -> Result<Results> {
    let limit = call.context().limits().tensor_bytes / size_of::<Sparse>();
    let numbers = tensors(call)?.add_rows(call.context(), sparse(call)?, limit)?;
    one(HostTensor::vector(&numbers)?)
}

fn take_many(call: &mut RuntimeCall<'_>) -> Result<Results> {
    let handles = call.host(0)?;
    if handles.shape().rank() != 1 {
        let found = handles.shape();
        return Err(IrError::argument(call.op.name, "sparse_handles", "a vector", found).into());
    }
    let parts = tensors(call)?.take(&handles.to_i64s()?)?;
    let results = stack(call.context(), &[parts.len()], &parts, call.attrs.dtype("dtype")?)?;
    Ok(results.into_iter().map(Into::into).collect())
}

pub(super) const BODIES: &[(&str, RuntimeOpBody)] = &[
    ("AddManySparseToTensorsMap", add_many),
    ("AddSparseToTensorsMap", add),
    ("TakeManySparseFromTensorsMap", take_many),
];
