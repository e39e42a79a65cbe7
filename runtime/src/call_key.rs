//! Keys that eager calls are compiled for.

use crate::{eager_tensor::EagerTensor, error::Result};
use ferroflow_ir::{
    AttrValue, Attrs, DType, HostTensor, OpDef, Shape,
    hash::FastHasher,
    op::{ArgDef, ArgKind},
};
use smallvec::SmallVec;
use std::{hash::Hasher, ptr};

/// An op, its attributes as they were passed, the dtypes and shapes of its inputs, and the values
/// of those inputs that steer shapes.
#[derive(Debug)]
pub(crate) struct CallKey {
    op: &'static OpDef,
    attrs: Attrs,
    inputs: SmallVec<[InputKey; 3]>,
}

#[derive(Debug)]
struct InputKey {
    dtype: DType,
    shape: Shape,
    /// The value, if the call is compiled for it.
    value: Option<HostTensor>,
}

impl CallKey {
    /// The key of a call that is compiled for the values of the inputs marked `host`.
    ///
    /// # Errors
    ///
    /// When such an input is not in host memory.
    pub(crate) fn new(
        op: &'static OpDef,
        attrs: &Attrs,
        inputs: &[&EagerTensor],
        host: &[bool],
    ) -> Result<CallKey> {
        let mut keys = SmallVec::new();
        for (index, input) in inputs.iter().enumerate() {
            let value = match host.get(index) {
                Some(true) => Some(input.host()?.clone()),
                Some(false) | None => None,
            };
            keys.push(InputKey { dtype: input.dtype(), shape: input.shape().clone(), value });
        }
        Ok(CallKey { op, attrs: attrs.clone(), inputs: keys })
    }

    /// Whether what was compiled for this key serves a call.
    pub(crate) fn is_for(
        &self,
        op: &'static OpDef,
        attrs: &Attrs,
        inputs: &[&EagerTensor],
    ) -> bool {
        ptr::eq(self.op, op)
            && self.inputs.len() == inputs.len()
            && self.inputs.iter().zip(inputs).all(|(key, input)| key.is_for(input))
            && self.attrs == *attrs
    }
}

impl InputKey {
    fn is_for(&self, input: &EagerTensor) -> bool {
        let same_value = |value: &HostTensor| matches!(input.host(), Ok(input) if input == value);
        self.dtype == input.dtype()
            && self.shape == *input.shape()
            && self.value.as_ref().is_none_or(same_value)
    }
}

/// A number that is the same for calls of the same key, and most likely another for any other.
pub(crate) fn fingerprint(op: &'static OpDef, attrs: &Attrs, inputs: &[&EagerTensor]) -> u64 {
    let mut print = Fingerprint(FastHasher::default());
    print.add(ptr::from_ref(op).addr() as u64);
    for input in inputs {
        print.add(input.dtype() as u64);
        input.shape().iter().for_each(|&dim| print.add(dim as u64));
    }
    for (_, value) in attrs.iter() {
        print.add_attr(value);
    }
    for (position, arg) in op.inputs.iter().enumerate() {
        if arg.host
            && let Some(input) = index_of(op.inputs, position, inputs.len())
            && let Ok(tensor) = inputs[input].host()
        {
            print.add_bytes(tensor.bytes());
        }
    }
    print.0.finish()
}

/// Index among so many inputs of an argument of one tensor, where that does not take the attributes
/// to tell.
fn index_of(args: &[ArgDef], position: usize, n_inputs: usize) -> Option<usize> {
    let single = |args: &[ArgDef]| args.iter().all(|arg| matches!(arg.kind, ArgKind::One(_)));
    let behind = args.len() - position;
    if single(&args[..=position]) {
        Some(position).filter(|&index| index < n_inputs)
    } else if single(&args[position..]) {
        n_inputs.checked_sub(behind)
    } else {
        None
    }
}

/// A hash of what tells calls apart.
struct Fingerprint(FastHasher);

impl Fingerprint {
    fn add(&mut self, number: u64) {
        self.0.write_u64(number);
    }

    fn add_bytes(&mut self, bytes: &[u8]) {
        /// Bytes that are looked at.
        const MOST: usize = 64;
        for chunk in bytes[..bytes.len().min(MOST)].chunks(8) {
            let mut number = [0; 8];
            number[..chunk.len()].copy_from_slice(chunk);
            self.add(u64::from_le_bytes(number));
        }
    }

    /// The kinds of attributes that tell calls apart; the others are rare.
    fn add_attr(&mut self, value: &AttrValue) {
        match value {
            AttrValue::Int(value) => self.add(*value as u64),
            AttrValue::Float(value) => self.add(value.to_bits().into()),
            AttrValue::Bool(value) => self.add((*value).into()),
            AttrValue::Type(value) => self.add(*value as u64),
            AttrValue::String(value) => self.add_bytes(value),
            AttrValue::Ints(values) => values.iter().for_each(|&value| self.add(value as u64)),
            _ => {}
        }
    }
}
