//! `DecodeProtoV2` and `EncodeProto`: fields of messages as tensors.
//!
//! Sources: `decode_proto_op.cc` and `encode_proto_op.cc` of TensorFlow.

mod fields;
mod wire;

use bytes::Bytes;
use ferroflow_ir::{Code, DType, Error as IrError, HostTensor, Shape, workspace};
use ferroflow_runtime::{
    Context, Error, Result, Results,
    ops::{RuntimeCall, one},
};
use fields::{ProtoField, fields, message};
use prost_reflect::{
    DynamicMessage, MessageDescriptor, ReflectMessage as _, Value, prost::Message,
};
use wire::FieldElement;

/// Makes the ops known to a context.
pub(crate) fn add_ops(context: &Context) {
    context.add_host_op("DecodeProtoV2", decode);
    context.add_host_op("EncodeProto", encode);
}

fn decode(call: &mut RuntimeCall<'_>) -> Result<Results> {
    let dtypes = call.attrs.types("output_types")?;
    let message = message(call)?;
    let fields = fields(call, &message, dtypes)?;
    let is_text = match call.attrs.string("message_format")? {
        "binary" => false,
        "text" => true,
        other => {
            let expected = "binary or text";
            return Err(IrError::argument(call.op.name, "message_format", expected, other).into());
        }
    };
    let clean = call.attrs.bool("sanitize")?;
    let input = call.host(0)?;
    let mut found: Vec<Vec<Vec<FieldElement>>> = workspace::reserve(input.len())?;
    for text in input.strings()? {
        let bytes = match (is_text, clean) {
            (false, false) => text.clone(),
            (false, true) => without_unknown(call, &message, text)?,
            (true, _) => of_text(call, &message, text)?,
        };
        let read = wire::read(&bytes, &fields);
        found.push(read.ok_or_else(|| lost(call, "a message is damaged".into()))?);
    }
    let sizes = found.iter().flatten().map(|elements| elements.len() as i32);
    let sizes: Vec<i32> = sizes.collect();
    let shape = beside(input.shape(), fields.len())?;
    let mut results = Results::from_iter([HostTensor::from_slice(shape, &sizes)?.into()]);
    for (index, field) in fields.iter().enumerate() {
        let own: Vec<&[FieldElement]> = found.iter().map(|message| &message[index][..]).collect();
        results.push(tensor(call, field, input.shape(), &own)?.into());
    }
    Ok(results)
}

fn lost(call: &RuntimeCall<'_>, detail: String) -> Error {
    IrError::Status { code: Code::DataLoss, op: call.op.name.into(), detail }.into()
}

/// The shape with another dimension behind it.
fn beside(shape: &Shape, size: usize) -> Result<Shape> {
    Ok(Shape::new(shape.iter().copied().chain([size]))?)
}

/// The elements of a field in all messages; defaults stand for those that are missing.
fn tensor(
    call: &RuntimeCall<'_>,
    field: &ProtoField,
    messages: &Shape,
    found: &[&[FieldElement]],
) -> Result<HostTensor> {
    let longest = found.iter().map(|elements| elements.len()).max().unwrap_or(0).max(1);
    let shape = beside(messages, longest)?;
    let limit = call.context().limits().tensor_bytes;
    let bytes =
        shape.num_elements().saturating_mul(field.dtype.size().unwrap_or(size_of::<Bytes>()));
    if bytes > limit {
        let (what, needed) = ("the elements of a field".into(), format!("{bytes} bytes"));
        return Err(IrError::Limit { what, needed, limit: limit as u64 }.into());
    }
    let default = wire::default(field);
    let padded = found.iter().flat_map(|elements| {
        let missing = longest - elements.len();
        elements.iter().chain(std::iter::repeat_n(&default, missing))
    });
    if field.dtype == DType::String {
        let bytes = padded.map(|element| match element {
            FieldElement::Bytes(bytes) => bytes.clone(),
            FieldElement::Bits(_) => Bytes::new(),
        });
        return Ok(HostTensor::from_strings(shape, bytes.collect())?);
    }
    let bits: Vec<u64> = padded
        .map(|element| match element {
            FieldElement::Bits(bits) => *bits,
            FieldElement::Bytes(_) => 0,
        })
        .collect();
    of_bits(field.dtype, shape, &bits)
}

fn of_bits(dtype: DType, shape: Shape, bits: &[u64]) -> Result<HostTensor> {
    let each = |convert: fn(u64) -> Vec<u8>| -> Vec<u8> {
        bits.iter().flat_map(|&bits| convert(bits)).collect()
    };
    let bytes = match dtype {
        DType::F64 | DType::I64 | DType::U64 => each(|bits| bits.to_le_bytes().to_vec()),
        DType::F32 => each(|bits| (f64::from_bits(bits) as f32).to_le_bytes().to_vec()),
        DType::Bool => each(|bits| vec![u8::from(bits != 0)]),
        _ => each(|bits| (bits as u32).to_le_bytes().to_vec()),
    };
    Ok(HostTensor::from_bytes(dtype, shape, &bytes)?)
}

fn of_text(call: &RuntimeCall<'_>, kind: &MessageDescriptor, text: &Bytes) -> Result<Bytes> {
    let text = String::from_utf8_lossy(text);
    if crate::text_format::is_too_deep(&text) {
        return Err(lost(call, "messages nest too deep".into()));
    }
    let message = DynamicMessage::parse_text_format(kind.clone(), &text);
    message
        .map(|message| message.encode_to_vec().into())
        .map_err(|error| lost(call, format!("text is no {}: {error}", kind.full_name())))
}

fn without_unknown(
    call: &RuntimeCall<'_>,
    kind: &MessageDescriptor,
    bytes: &Bytes,
) -> Result<Bytes> {
    let message = DynamicMessage::decode(kind.clone(), bytes.clone());
    message
        .map(|message| known(&message).encode_to_vec().into())
        .map_err(|error| lost(call, format!("no {}: {error}", kind.full_name())))
}

/// The message with the fields that are declared.
fn known(message: &DynamicMessage) -> DynamicMessage {
    let mut own = DynamicMessage::new(message.descriptor());
    message.fields().for_each(|(field, value)| own.set_field(&field, known_value(value)));
    own
}

fn known_value(value: &Value) -> Value {
    match value {
        Value::Message(message) => Value::Message(known(message)),
        Value::List(list) => Value::List(list.iter().map(known_value).collect()),
        Value::Map(map) => {
            let entries = map.iter().map(|(key, value)| (key.clone(), known_value(value)));
            Value::Map(entries.collect())
        }
        value => value.clone(),
    }
}

fn encode(call: &mut RuntimeCall<'_>) -> Result<Results> {
    let dtypes = call.attrs.types("Tinput_types")?;
    let fields = fields(call, &message(call)?, dtypes)?;
    let sizes = call.host(0)?;
    let wrong = |argument: &'static str, expected: String, found: String| -> Error {
        IrError::argument(call.op.name, argument, expected, found).into()
    };
    let Some((&n_fields, messages)) =
        sizes.shape().split_last().filter(|(n, _)| **n == fields.len())
    else {
        let expected = format!("with {} sizes for each message", fields.len());
        return Err(wrong("sizes", expected, sizes.shape().to_string()));
    };
    let counts = sizes.as_slice::<i32>()?;
    let messages = Shape::new(messages.iter().copied())?;
    let mut columns = Vec::with_capacity(fields.len());
    for (index, field) in fields.iter().enumerate() {
        let values = call.host(index + 1)?;
        match values.shape().split_last() {
            Some((&width, own)) if *own == messages[..] && !own.is_empty() => {
                columns.push((width, elements(values, field.dtype)?));
            }
            _ => {
                let expected = format!("of shape {messages} and one dimension more");
                return Err(wrong("values", expected, values.shape().to_string()));
            }
        }
    }
    let mut order: Vec<usize> = (0..n_fields).collect();
    order.sort_by_key(|&index| fields[index].number);
    let mut encoded = workspace::reserve(messages.num_elements())?;
    for number in 0..messages.num_elements() {
        let mut message = Vec::new();
        for &index in &order {
            let (width, elements) = &columns[index];
            let count = counts[number * n_fields + index];
            let fit = usize::try_from(count).ok().filter(|count| count <= width);
            let count =
                fit.ok_or_else(|| wrong("sizes", format!("from 0 to {width}"), count.to_string()))?;
            wire::write(&fields[index], &elements[number * width..][..count], &mut message);
        }
        encoded.push(Bytes::from(message));
    }
    one(HostTensor::from_strings(messages, encoded)?)
}

fn elements(values: &HostTensor, dtype: DType) -> Result<Vec<FieldElement>> {
    Ok(match dtype {
        DType::String => values.strings()?.iter().cloned().map(FieldElement::Bytes).collect(),
        DType::F64 => {
            values.as_slice::<f64>()?.iter().map(|x| FieldElement::Bits(x.to_bits())).collect()
        }
        DType::F32 => {
            let bits = |x: &f32| FieldElement::Bits(f64::from(*x).to_bits());
            values.as_slice::<f32>()?.iter().map(bits).collect()
        }
        DType::Bool => values.bytes().iter().map(|&byte| FieldElement::Bits(byte.into())).collect(),
        DType::U64 => values.as_slice::<u64>()?.iter().map(|&x| FieldElement::Bits(x)).collect(),
        _ => values.to_i64s()?.into_iter().map(|x| FieldElement::Bits(x as u64)).collect(),
    })
}
