//! Maps from tensors to tensors. The memory of a map that changes is the old one's if nobody else
//! holds it.

use super::{RuntimeCall, RuntimeOpBody, one};
use crate::{
    eager_tensor::Results,
    error::Result,
    rows::{RowRun, join, stacked},
    variant::{self, tensor_map::TensorMap},
};
use ferroflow_ir::{Error as IrError, HostTensor};

const A_MAP: &str = "a tensor map";

fn map<'a>(call: &'a RuntimeCall<'_>) -> Result<&'a TensorMap> {
    variant::value(call.host(0)?, A_MAP)
}

fn empty(_: &mut RuntimeCall<'_>) -> Result<Results> {
    one(variant::scalar(TensorMap::default()))
}

fn insert(call: &mut RuntimeCall<'_>) -> Result<Results> {
    let (key, value) = (call.host(1)?.clone(), call.taken(2)?);
    let map = call.taken(0)?;
    one(variant::change(map, A_MAP, |map: &mut TensorMap| map.insert(key, value))?)
}

fn erase(call: &mut RuntimeCall<'_>) -> Result<Results> {
    let key = call.host(1)?.clone();
    let map = call.taken(0)?;
    one(variant::change(map, A_MAP, |map: &mut TensorMap| map.remove(&key))?)
}

fn has_key(call: &mut RuntimeCall<'_>) -> Result<Results> {
    one(HostTensor::scalar_bool(map(call)?.contains(call.host(1)?)?))
}

fn lookup(call: &mut RuntimeCall<'_>) -> Result<Results> {
    let (value, expected) = (map(call)?.get(call.host(1)?)?, call.attrs.dtype("value_dtype")?);
    value.check(expected)?;
    one(value.clone())
}

fn size(call: &mut RuntimeCall<'_>) -> Result<Results> {
    one(HostTensor::scalar(map(call)?.len() as i32))
}

fn stack_keys(call: &mut RuntimeCall<'_>) -> Result<Results> {
    let keys: Vec<&HostTensor> = map(call)?.keys().collect();
    let Some(first) = keys.first() else {
        return Err(IrError::argument(call.op.name, "input_handle", "not empty", "nothing").into());
    };
    let shape = first.shape();
    if let Some(other) = keys.iter().find(|key| key.shape() != shape) {
        let expected = format!("of keys of shape {shape}");
        return Err(IrError::argument(call.op.name, "input_handle", expected, other.shape()).into());
    }
    let parts: Vec<RowRun<'_>> = keys.iter().map(|&key| RowRun::Tensor(key)).collect();
    let dtype = call.attrs.dtype("key_dtype")?;
    one(join(call.context(), dtype, stacked(keys.len(), shape)?, &parts)?)
}

pub(super) const BODIES: &[(&str, RuntimeOpBody)] = &[
    ("EmptyTensorMap", empty),
    ("TensorMapErase", erase),
    ("TensorMapHasKey", has_key),
    ("TensorMapInsert", insert),
    ("TensorMapLookup", lookup),
    ("TensorMapSize", size),
    ("TensorMapStackKeys", stack_keys),
];
