//! Composite tensors, such as ragged ones, as values of dtype variant: their components beside what
//! TensorFlow says of their type.

use super::{RuntimeCall, RuntimeOpBody, one};
use crate::{eager_tensor::Results, error::Result, variant};
use ferroflow_ir::{Error as IrError, Handle, HostTensor};
use std::any::Any;

/// A composite tensor.
#[derive(Debug, Clone)]
struct CompositeTensor {
    /// The number of the class of its type.
    class: u64,
    components: Vec<HostTensor>,
}

impl Handle for CompositeTensor {
    fn as_any(&self) -> &dyn Any {
        self
    }
}

/// The number of the class in a message that describes a type: field 1 of its field 1.
fn class(call: &RuntimeCall<'_>) -> Result<u64> {
    let metadata = call.attrs.bytes("metadata")?;
    let found = field(metadata, 1).map(|spec| match spec {
        None => Some(0),
        Some(Field::Bytes(spec)) => match field(spec, 1)? {
            None => Some(0),
            Some(Field::Number(class)) => Some(class),
            Some(Field::Bytes(_)) => None,
        },
        Some(Field::Number(_)) => None,
    });
    let damaged = || {
        let found = format!("{} bytes", metadata.len());
        IrError::argument(call.op.name, "metadata", "a message that describes a type", found)
    };
    Ok(found.flatten().ok_or_else(damaged)?)
}

enum Field<'a> {
    Number(u64),
    Bytes(&'a [u8]),
}

fn varint(bytes: &mut &[u8]) -> Option<u64> {
    let mut value = 0u64;
    for shift in (0..64).step_by(7) {
        let (&byte, rest) = bytes.split_first()?;
        *bytes = rest;
        value |= u64::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            return Some(value);
        }
    }
    None
}

/// The last field of this number in a message; `None` for a damaged message.
fn field(mut message: &[u8], number: u64) -> Option<Option<Field<'_>>> {
    let mut found = None;
    while !message.is_empty() {
        let tag = varint(&mut message)?;
        let value = match tag & 7 {
            0 => Field::Number(varint(&mut message)?),
            2 => {
                let length = usize::try_from(varint(&mut message)?).ok()?;
                let (bytes, rest) = message.split_at_checked(length)?;
                message = rest;
                Field::Bytes(bytes)
            }
            kind @ (1 | 5) => {
                let (bytes, rest) = message.split_at_checked(if kind == 1 { 8 } else { 4 })?;
                message = rest;
                Field::Bytes(bytes)
            }
            _ => return None,
        };
        if tag >> 3 == number {
            found = Some(value);
        }
    }
    Some(found)
}

fn from_components(call: &mut RuntimeCall<'_>) -> Result<Results> {
    let class = class(call)?;
    let components = call.inputs.drain(..).map(|input| input.into_host()).collect::<Result<_>>()?;
    one(variant::scalar(CompositeTensor { class, components }))
}

fn to_components(call: &mut RuntimeCall<'_>) -> Result<Results> {
    let wrong = |expected: String, found: String| -> crate::Error {
        IrError::argument(call.op.name, "encoded", expected, found).into()
    };
    let (expected, dtypes) = (class(call)?, call.attrs.types("Tcomponents")?);
    let found: &CompositeTensor = match call.host(0)?.handles()? {
        [] => return Err(wrong("a composite tensor".into(), "no value".into())),
        [first, ..] => variant::downcast(first, "a composite tensor")?,
    };
    if found.class != expected {
        return Err(wrong(format!("of class {expected}"), found.class.to_string()));
    }
    if found.components.len() != dtypes.len() {
        let found = found.components.len().to_string();
        return Err(wrong(format!("of {} components", dtypes.len()), found));
    }
    for (component, dtype) in found.components.iter().zip(dtypes) {
        if component.dtype() != *dtype {
            return Err(wrong(
                format!("with a component of {dtype}"),
                component.dtype().to_string(),
            ));
        }
    }
    Ok(found.components.iter().map(|component| component.clone().into()).collect())
}

pub(super) const BODIES: &[(&str, RuntimeOpBody)] = &[
    ("CompositeTensorVariantFromComponents", from_components),
    ("CompositeTensorVariantToComponents", to_components),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn damaged_messages_are_told() {
        assert!(field(&[], 1).is_some_and(|found| found.is_none()));
        assert!(field(&[10, 5, 8], 1).is_none());
        assert!(field(&[8], 1).is_none());
        assert!(field(&[11], 1).is_none());
        assert!(matches!(field(&[8, 7, 8, 9], 1), Some(Some(Field::Number(9)))));
    }
}
