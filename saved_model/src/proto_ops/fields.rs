//! Declarations of messages and their fields, as ops name them.

use ferroflow_ir::{AttrValue, DType, Error as IrError};
use ferroflow_runtime::{Result, ops::RuntimeCall};
use prost_reflect::{Cardinality, DescriptorPool, FieldDescriptor, Kind, MessageDescriptor, Value};
use std::path::Path;

/// A field that an op reads or writes.
#[derive(Debug, Clone)]
pub(super) struct ProtoField {
    pub(super) number: u32,
    pub(super) kind: Kind,
    pub(super) is_repeated: bool,
    pub(super) is_packed: bool,
    pub(super) dtype: DType,
    pub(super) default: Value,
}

/// The declaration of the message that attribute `message_type` names.
///
/// # Errors
///
/// When there is none in `descriptor_source`.
pub(super) fn message(call: &RuntimeCall<'_>) -> Result<MessageDescriptor> {
    let name = call.attrs.string("message_type")?;
    let source: &[u8] = match call.attrs.get("descriptor_source") {
        Some(AttrValue::String(source)) => source,
        _ => b"",
    };
    let pool = match source.strip_prefix(b"bytes://") {
        _ if source.is_empty() || source == b"local://" => crate::text_format::pool().clone(),
        Some(bytes) => decoded(call, bytes)?,
        None => {
            let path = String::from_utf8_lossy(source).into_owned();
            decoded(call, &crate::readers::contents(call.scope, call.op.name, Path::new(&path))?)?
        }
    };
    pool.get_message_by_name(name).ok_or_else(|| {
        let expected = "the name of a message that is declared";
        IrError::argument(call.op.name, "message_type", expected, name).into()
    })
}

fn decoded(call: &RuntimeCall<'_>, bytes: &[u8]) -> Result<DescriptorPool> {
    DescriptorPool::decode(bytes).map_err(|error| {
        let (expected, found) = ("the declarations of messages", error.to_string());
        IrError::argument(call.op.name, "descriptor_source", expected, found).into()
    })
}

/// The fields that attribute `field_names` names, with the dtypes that the op has for them.
///
/// # Errors
///
/// When the message has no such field, or it cannot be of the dtype.
pub(super) fn fields(
    call: &RuntimeCall<'_>,
    message: &MessageDescriptor,
    dtypes: &[DType],
) -> Result<Vec<ProtoField>> {
    let names = call.attrs.strings("field_names")?;
    if names.len() != dtypes.len() {
        let expected = format!("{} names, one for each dtype", dtypes.len());
        return Err(IrError::argument(call.op.name, "field_names", expected, names.len()).into());
    }
    let field = |(name, &dtype): (&bytes::Bytes, &DType)| {
        let name = String::from_utf8_lossy(name);
        let found = message.get_field_by_name(&name).ok_or_else(|| {
            let expected = format!("the names of fields of {}", message.full_name());
            IrError::argument(call.op.name, "field_names", expected, &name)
        })?;
        let allowed = dtypes_of(&found.kind());
        if !allowed.contains(&dtype) {
            let expected = format!("one of {allowed:?} for the field {name}");
            return Err(IrError::argument(call.op.name, "output_types", expected, dtype).into());
        }
        Ok(ProtoField::new(&found, dtype))
    };
    names.iter().zip(dtypes).map(field).collect()
}

impl ProtoField {
    fn new(field: &FieldDescriptor, dtype: DType) -> ProtoField {
        ProtoField {
            number: field.number(),
            kind: field.kind(),
            is_repeated: field.cardinality() == Cardinality::Repeated,
            is_packed: field.is_packed(),
            dtype,
            default: match field.cardinality() {
                Cardinality::Repeated => Value::default_value(&field.kind()),
                Cardinality::Optional | Cardinality::Required => field.default_value(),
            },
        }
    }
}

/// The dtypes of tensors that a kind of field may be in (`proto_utils.cc` of TensorFlow).
fn dtypes_of(kind: &Kind) -> &'static [DType] {
    match kind {
        Kind::Double => &[DType::F64],
        Kind::Float => &[DType::F32, DType::F64],
        Kind::Int64 | Kind::Sint64 | Kind::Sfixed64 => &[DType::I64],
        Kind::Uint64 | Kind::Fixed64 => &[DType::U64],
        Kind::Int32 | Kind::Sint32 | Kind::Sfixed32 => &[DType::I32, DType::I64],
        Kind::Uint32 | Kind::Fixed32 => &[DType::U32, DType::U64],
        Kind::Enum(_) => &[DType::I32],
        Kind::Bool => &[DType::Bool],
        Kind::String | Kind::Bytes | Kind::Message(_) => &[DType::String],
    }
}
