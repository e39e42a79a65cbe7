//! Composite tensors, such as ragged ones, as values of dtype variant: their components beside what
//! TensorFlow says of their type.

use super::{RuntimeCall, RuntimeOpBody, one};
use crate::{eager_tensor::Results, error::Result, variant};
use ferroflow_ir::{
    Error as IrError, Handle, HostTensor,
    wire::{DamagedMessage, WireValue, fields},
};
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
    let damaged = |_| {
        let found = format!("{} bytes", metadata.len());
        IrError::argument(call.op.name, "metadata", "a message that describes a type", found)
    };
    let spec = last(metadata, 1).and_then(|spec| spec.map_or(Ok(&[][..]), WireValue::bytes));
    let class = spec.and_then(|spec| last(spec, 1)?.map_or(Ok(0), WireValue::varint));
    Ok(class.map_err(damaged)?)
}

/// The last field of this number in a message.
fn last(message: &[u8], number: u64) -> Result<Option<WireValue<'_>>, DamagedMessage> {
    let mut found = None;
    for field in fields(message) {
        let (at, value) = field?;
        found = if at == number { Some(value) } else { found };
    }
    Ok(found)
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
        assert_eq!(last(&[], 1), Ok(None));
        for damaged in [&[10, 5, 8][..], &[8], &[11]] {
            assert!(last(damaged, 1).is_err());
        }
        assert_eq!(last(&[8, 7, 8, 9], 1), Ok(Some(WireValue::Varint(9))));
    }
}
