//! `GetOptions`: the options of a data set as a message.
//!
//! Source: `MergeOptions` in TensorFlow's `dataset_utils.cc`: messages are merged field by field.

use super::node::DatasetNode;
use crate::{
    eager_tensor::Results,
    error::Result,
    ops::{RuntimeCall, one},
};
use ferroflow_ir::{Error as IrError, HostTensor};
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

fn put_varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

impl Message {
    /// Reads a message on top of this one, of which `is_outer` says whether it is one of options;
    /// nothing where it is damaged.
    fn merge(&mut self, mut bytes: &[u8], is_outer: bool) -> Option<()> {
        while !bytes.is_empty() {
            let tag = varint(&mut bytes)?;
            let (number, kind) = (tag >> 3, tag & 7);
            let values = self.0.entry(number).or_default();
            let value = match kind {
                0 => FieldValue::Number(varint(&mut bytes)?),
                1 | 5 => {
                    let (fixed, rest) = bytes.split_at_checked(if kind == 1 { 8 } else { 4 })?;
                    bytes = rest;
                    FieldValue::Fixed(fixed.to_vec())
                }
                2 => {
                    let length = usize::try_from(varint(&mut bytes)?).ok()?;
                    let (text, rest) = bytes.split_at_checked(length)?;
                    bytes = rest;
                    if is_outer && MESSAGES.contains(&number) {
                        let mut inner = match values.pop() {
                            Some(FieldValue::Message(before)) => before,
                            _ => Message::default(),
                        };
                        inner.merge(text, false)?;
                        FieldValue::Message(inner)
                    } else {
                        FieldValue::Text(text.to_vec())
                    }
                }
                _ => return None,
            };
            if !(is_outer && number == LIST) {
                values.clear();
            }
            values.push(value);
        }
        Some(())
    }

    fn write(&self, out: &mut Vec<u8>) {
        for (number, values) in &self.0 {
            for value in values {
                let mut put = |kind: u64, bytes: &[u8], is_sized: bool| {
                    put_varint(out, number << 3 | kind);
                    if is_sized {
                        put_varint(out, bytes.len() as u64);
                    }
                    out.extend_from_slice(bytes);
                };
                match value {
                    FieldValue::Number(number) => {
                        let mut bytes = Vec::new();
                        put_varint(&mut bytes, *number);
                        put(0, &bytes, false);
                    }
                    FieldValue::Fixed(bytes) => {
                        put(if bytes.len() == 8 { 1 } else { 5 }, bytes, false)
                    }
                    FieldValue::Text(bytes) => put(2, bytes, true),
                    FieldValue::Message(inner) => {
                        let mut bytes = Vec::new();
                        inner.write(&mut bytes);
                        put(2, &bytes, true);
                    }
                }
            }
        }
    }
}

/// The options of a data set: those of its inputs, in their order, and then its own.
fn collect(node: Option<&DatasetNode>, found: &mut Message) -> Option<()> {
    let Some(node) = node else { return Some(()) };
    for input in node.inputs() {
        collect(input, found)?;
    }
    match node.options() {
        Some(own) => found.merge(own, true),
        None => Some(()),
    }
}

pub(super) fn get(call: &mut RuntimeCall<'_>) -> Result<Results> {
    let mut found = Message::default();
    let node = call.input_dataset(0)?.node;
    let damaged = || {
        let (expected, what) = ("messages of options", "damaged ones");
        IrError::argument(call.op.name, "input_dataset", expected, what)
    };
    collect(node.as_deref(), &mut found).ok_or_else(damaged)?;
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
        assert!(Message::default().merge(&[42, 9], true).is_none());
        assert!(Message::default().merge(&[11], true).is_none());
    }
}
