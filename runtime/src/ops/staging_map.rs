//! Staging maps: ordered ones and others, which here are the same.

use super::{RuntimeCall, RuntimeOpBody, none, one};
use crate::{
    eager_tensor::Results,
    error::Result,
    resource::{Resource, ResourceHandle},
    staging_map::StagingMap,
};
use ferroflow_ir::{Code, Error as IrError, HostTensor};
use std::sync::Arc;

/// The map of the call's name, made when it is used first. Ordered maps have names of their own.
fn map(call: &RuntimeCall<'_>) -> Result<Arc<StagingMap>> {
    let (container, name) = (call.attrs.string("container")?, call.attrs.string("shared_name")?);
    let kind = if call.op.name.starts_with("Ordered") { "ordered" } else { "unordered" };
    let limit = |name: &str| -> Result<Option<usize>> {
        let limit = usize::try_from(call.attrs.int(name)?).ok();
        Ok(limit.filter(|&limit| limit > 0))
    };
    let (capacity, bytes) = (limit("capacity")?, limit("memory_limit")?);
    let n_tensors = call.attrs.types("dtypes")?.len();
    let make = || Ok(Arc::new(StagingMap::new(n_tensors, capacity, bytes)) as Arc<dyn Resource>);
    let name = format!("{kind} staging map {name}");
    let resource = call.scope.resources.find_or_create(container, &name, make)?;
    ResourceHandle::owning(name, resource).downcast("a staging map")
}

fn key(call: &RuntimeCall<'_>) -> Result<i64> {
    Ok(call.host(0)?.as_scalar::<i64>()?)
}

fn put(call: &mut RuntimeCall<'_>) -> Result<Results> {
    let (key, places) = (key(call)?, call.host(1)?.to_i64s()?);
    let tensors: Result<Vec<HostTensor>> =
        call.inputs.drain(2..).map(|input| input.into_host()).collect();
    map(call)?.put(key, &places, tensors?)?;
    none()
}

fn peek(call: &mut RuntimeCall<'_>) -> Result<Results> {
    let places = call.host(1)?.to_i64s()?;
    let found = map(call)?.peek(key(call)?, &places)?;
    checked(call, found)
}

fn take(call: &mut RuntimeCall<'_>) -> Result<Results> {
    let places = call.host(1)?.to_i64s()?;
    let (_, found) = map(call)?.take(Some(key(call)?), &places)?;
    checked(call, found)
}

fn take_any(call: &mut RuntimeCall<'_>) -> Result<Results> {
    let places = call.host(0)?.to_i64s()?;
    let (key, found) = map(call)?.take(None, &places)?;
    let mut results = checked(call, found)?;
    results.insert(0, HostTensor::scalar(key).into());
    Ok(results)
}

/// Tensors of the dtypes that the call says.
fn checked(call: &RuntimeCall<'_>, tensors: Vec<HostTensor>) -> Result<Results> {
    let expected = call.attrs.types("dtypes")?;
    if tensors.iter().map(HostTensor::dtype).ne(expected.iter().copied()) {
        let detail = format!("the staged tensors are not of the dtypes {expected:?}");
        let op = call.op.name.into();
        return Err(IrError::Status { code: Code::InvalidArgument, op, detail }.into());
    }
    Ok(tensors.into_iter().map(Into::into).collect())
}

fn size(call: &mut RuntimeCall<'_>) -> Result<Results> {
    one(HostTensor::scalar(map(call)?.len() as i32))
}

fn incomplete_size(call: &mut RuntimeCall<'_>) -> Result<Results> {
    one(HostTensor::scalar(map(call)?.n_incomplete() as i32))
}

fn clear(call: &mut RuntimeCall<'_>) -> Result<Results> {
    map(call)?.clear();
    none()
}

pub(super) const BODIES: &[(&str, RuntimeOpBody)] = &[
    ("MapClear", clear),
    ("MapIncompleteSize", incomplete_size),
    ("MapPeek", peek),
    ("MapSize", size),
    ("MapStage", put),
    ("MapUnstage", take),
    ("MapUnstageNoKey", take_any),
    ("OrderedMapClear", clear),
    ("OrderedMapIncompleteSize", incomplete_size),
    ("OrderedMapPeek", peek),
    ("OrderedMapSize", size),
    ("OrderedMapStage", put),
    ("OrderedMapUnstage", take),
    ("OrderedMapUnstageNoKey", take_any),
];
