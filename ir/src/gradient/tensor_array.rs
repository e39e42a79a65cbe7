//! Gradients of arrays of tensors, as programs from before TensorFlow 2 use them: an array of
//! gradients stands beside each array, and flow values order what happens to it.

use super::{Backprop, Grads};
use crate::{
    attr::Attrs,
    dtype::DType,
    emit::{Value, calls_with},
};

/// The array of gradients, and the flow that orders it after what returned `flow`. Each walk has
/// its own: what an earlier one has added up does not count again.
fn array<'e>(b: &Backprop<'e>, flow: Value<'e>) -> (Value<'e>, Value<'e>) {
    let attrs = Attrs::new().with("source", &*format!("gradients_{}", b.walk()));
    let found = calls_with("TensorArrayGradV3", attrs, &[b.x(0), flow]);
    (found.at(0), found.at(1))
}

/// Value read from an array by an op that takes a handle first and a flow last.
fn read<'e>(b: &Backprop<'e>, name: &str, like: Value<'e>, place: &[Value<'e>]) -> Value<'e> {
    let (handle, flow) = array(b, b.dy(0));
    let inputs: Vec<Value<'e>> =
        [handle].into_iter().chain(place.iter().copied()).chain([flow]).collect();
    let attrs = Attrs::new().with("dtype", like.dtype()).with("element_shape", element(like, name));
    calls_with(name, attrs, &inputs).at(0)
}

/// The shape of an element, where a tensor holds many of them along its first dimension.
fn element(like: Value<'_>, name: &str) -> crate::PartialShape {
    match (name, like.partial_shape().dims()) {
        ("TensorArrayGatherV3", Some([_, row @ ..])) => {
            crate::PartialShape::ranked(row.iter().copied())
        }
        _ => crate::PartialShape::Unknown,
    }
}

/// The flow of what is written to an array of gradients.
fn write<'e>(b: &Backprop<'e>, name: &str, flow: Value<'e>, given: &[Value<'e>]) -> Value<'e> {
    let (handle, flow) = array(b, flow);
    let inputs: Vec<Value<'e>> =
        [handle].into_iter().chain(given.iter().copied()).chain([flow]).collect();
    calls_with(name, Attrs::new(), &inputs).at(0)
}

pub(crate) fn of_read<'e>(b: &Backprop<'e>) -> Grads<'e> {
    let flow = write(b, "TensorArrayWriteV3", b.x(2), &[b.x(1), b.dy(0)]);
    vec![None, None, Some(flow.into())]
}

pub(crate) fn of_gather<'e>(b: &Backprop<'e>) -> Grads<'e> {
    let flow = write(b, "TensorArrayScatterV3", b.x(2), &[b.x(1), b.dy(0)]);
    vec![None, None, Some(flow.into())]
}

pub(crate) fn of_concat<'e>(b: &Backprop<'e>) -> Grads<'e> {
    let lengths = b.y(1).cast(DType::I64);
    let flow = write(b, "TensorArraySplitV3", b.x(1), &[b.dy(0), lengths]);
    vec![None, Some(flow.into())]
}

pub(crate) fn of_write<'e>(b: &Backprop<'e>) -> Grads<'e> {
    let found = read(b, "TensorArrayReadV3", b.x(2), &[b.x(1)]);
    vec![None, None, Some(found.into()), Some(b.dy(0).into())]
}

pub(crate) fn of_scatter<'e>(b: &Backprop<'e>) -> Grads<'e> {
    let found = read(b, "TensorArrayGatherV3", b.x(2), &[b.x(1)]);
    vec![None, None, Some(found.into()), Some(b.dy(0).into())]
}

pub(crate) fn of_split<'e>(b: &Backprop<'e>) -> Grads<'e> {
    let found = read(b, "TensorArrayConcatV3", b.x(1), &[]);
    vec![None, Some(found.into()), None, Some(b.dy(0).into())]
}
