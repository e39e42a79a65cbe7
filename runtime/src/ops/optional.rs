//! Optional values.

use super::{RuntimeCall, RuntimeOpBody, one};
use crate::{
    eager_tensor::Results,
    error::Result,
    variant::{self, optional::Optional},
};
use ferroflow_ir::{Error as IrError, HostTensor};

fn optional<'a>(call: &'a RuntimeCall<'_>) -> Result<&'a Optional> {
    variant::value(call.host(0)?, "an optional")
}

fn from_value(call: &mut RuntimeCall<'_>) -> Result<Results> {
    let tensors = call.inputs.drain(..).map(|input| input.into_host()).collect::<Result<_>>()?;
    one(variant::scalar(Optional(Some(tensors))))
}

fn none(_: &mut RuntimeCall<'_>) -> Result<Results> {
    one(variant::scalar(Optional(None)))
}

fn has_value(call: &mut RuntimeCall<'_>) -> Result<Results> {
    one(HostTensor::scalar_bool(optional(call)?.0.is_some()))
}

fn get_value(call: &mut RuntimeCall<'_>) -> Result<Results> {
    let wrong = |expected: String, found: String| -> crate::Error {
        IrError::argument(call.op.name, "optional", expected, found).into()
    };
    let (dtypes, shapes) = (call.attrs.types("output_types")?, call.attrs.shapes("output_shapes")?);
    let tensors = optional(call)?.0.as_ref();
    let tensors = tensors.ok_or_else(|| wrong("one with a value".into(), "none".into()))?;
    if tensors.len() != dtypes.len() || tensors.len() != shapes.len() {
        return Err(wrong(format!("of {} tensors", dtypes.len()), tensors.len().to_string()));
    }
    for ((tensor, dtype), shape) in tensors.iter().zip(dtypes).zip(shapes) {
        if tensor.dtype() != *dtype || !shape.is_compatible_with(&tensor.shape().into()) {
            let found = format!("{}{}", tensor.dtype(), tensor.shape());
            return Err(wrong(format!("of a {dtype}{shape}"), found));
        }
    }
    Ok(tensors.iter().map(|tensor| tensor.clone().into()).collect())
}

pub(super) const BODIES: &[(&str, RuntimeOpBody)] = &[
    ("OptionalFromValue", from_value),
    ("OptionalGetValue", get_value),
    ("OptionalHasValue", has_value),
    ("OptionalNone", none),
];
