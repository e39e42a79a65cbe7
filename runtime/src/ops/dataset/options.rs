//! `GetOptions`: the options of a data set as a message.
//!
//! Source: `MergeOptions` in TensorFlow's `dataset_utils.cc`: messages are merged field by field.

use super::node::DatasetNode;
use crate::{
    eager_tensor::Results,
    error::Result,
    ops::{RuntimeCall, one},
};
use ferroflow_ir::{
    Error as IrError, HostTensor,
    wire::{DamagedMessage, WireValue, fields, put_bytes, put_varint},
};
use std::collections::BTreeMap;

/// The fields that are messages themselves: of distribution, optimisation, threads, autotuning and
/// services. Others are numbers and texts.
const MESSAGES: &[u64] = &[2, 3, 5, 7, 12];

/// The field that is a list of texts.
const LIST: u64 = 11;

/// A message by the numbers of its fields.
#[derive(Debug, Default, Clone, PartialEq)]
struct Message(BTreeMap<u64, Vec<FieldValue>>);

#[derive(Debug, Clone, PartialEq)]
enum FieldValue {
    Number(u64),
    Fixed(Vec<u8>),
    Text(Vec<u8>),
    Message(Message),
}

impl Message {
    /// Reads a message on top of this one, of which `is_outer` says whether it is one of options.
    fn merge(&mut self, bytes: &[u8], is_outer: bool) -> Result<(), DamagedMessage> {
        for field in fields(bytes) {
            let (number, value) = field?;
            let values = self.0.entry(number).or_default();
            let value = match value {
                WireValue::Bytes(text) if is_outer && MESSAGES.contains(&number) => {
                    let mut inner = match values.pop() {
                        Some(FieldValue::Message(before)) => before,
                        _ => Message::default(),
                    };
                    inner.merge(text, false)?;
                    FieldValue::Message(inner)
                }
                WireValue::Varint(number) => FieldValue::Number(number),
                WireValue::Fixed64(fixed) => FieldValue::Fixed(fixed.to_vec()),
                WireValue::Fixed32(fixed) => FieldValue::Fixed(fixed.to_vec()),
                WireValue::Bytes(text) => FieldValue::Text(text.to_vec()),
            };
            if !(is_outer && number == LIST) {
                values.clear();
            }
            values.push(value);
        }
        Ok(())
    }

    fn write(&self, out: &mut Vec<u8>) {
        for (number, values) in &self.0 {
            for value in values {
                match value {
                    FieldValue::Number(value) => {
                        put_varint(out, number << 3);
                        put_varint(out, *value);
                    }
                    FieldValue::Fixed(bytes) => {
                        put_varint(out, number << 3 | if bytes.len() == 8 { 1 } else { 5 });
                        out.extend_from_slice(bytes);
                    }
                    FieldValue::Text(bytes) => put_bytes(out, *number, bytes),
                    FieldValue::Message(inner) => {
                        let mut bytes = Vec::new();
                        inner.write(&mut bytes);
                        put_bytes(out, *number, &bytes);
                    }
                }
            }
        }
    }
}

/// The options of a data set: those of its inputs, in their order, and then its own.
fn collect(node: Option<&DatasetNode>, found: &mut Message) -> Result<(), DamagedMessage> {
    let Some(node) = node else { return Ok(()) };
    for input in node.inputs() {
        collect(input, found)?;
    }
    match node.options() {
        Some(own) => found.merge(own, true),
        None => Ok(()),
    }
}

pub(super) fn get(call: &mut RuntimeCall<'_>) -> Result<Results> {
    let mut found = Message::default();
    let node = call.input_dataset(0)?.node;
    let damaged = |_| {
        let (expected, what) = ("messages of options", "damaged ones");
        IrError::argument(call.op.name, "input_dataset", expected, what)
    };
    collect(node.as_deref(), &mut found).map_err(damaged)?;
    let mut bytes = Vec::new();
    found.write(&mut bytes);
    one(HostTensor::scalar_string(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_merged_field_by_field() {
        let mut message = Message::default();
        // Deterministic, with an empty message of threads; then slack and another of threads.
        message.merge(&[8, 1, 42, 0], true).unwrap();
        message.merge(&[32, 1, 42, 2, 8, 3, 8, 0], true).unwrap();
        message.merge(&[90, 1, b'a', 90, 1, b'b'], true).unwrap();
        let mut bytes = Vec::new();
        message.write(&mut bytes);
        assert_eq!(bytes, [8, 0, 32, 1, 42, 2, 8, 3, 90, 1, b'a', 90, 1, b'b']);
        assert!(Message::default().merge(&[42, 9], true).is_err());
        assert!(Message::default().merge(&[11], true).is_err());
    }
}
