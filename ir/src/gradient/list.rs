//! Gradients of lists of tensors: the list of the gradients of their elements.

use super::{Backprop, Grads, grads};
use crate::{
    attr::Attrs,
    dtype::DType,
    emit::{Value, call, call_with, calls_with},
};

impl<'e> Backprop<'e> {
    /// The attribute that says the dtype of elements.
    fn element(&self) -> Attrs {
        Attrs::new().with("element_dtype", self.dtype("element_dtype"))
    }
}

fn shape_of(x: Value<'_>) -> Value<'_> {
    super::shapes::shape_i32(x)
}

/// The shape of the rows of a tensor, -1 where it does not matter.
fn row_shape(x: Value<'_>) -> Value<'_> {
    match x.partial_shape().dims() {
        Some([_, row @ ..]) => {
            let sizes: Vec<i64> = row.iter().map(|d| d.map_or(-1, |d| d as i64)).collect();
            x.int32_vector(&sizes)
        }
        _ => x.literal(-1i32),
    }
}

fn element_shape(list: Value<'_>) -> Value<'_> {
    call_with("TensorListElementShape", Attrs::new().with("shape_type", DType::I32), [list])
}

fn length(list: Value<'_>) -> Value<'_> {
    call("TensorListLength", [list])
}

/// The gradient of a list that an op may have made longer: it has as many elements as that.
fn before_it_grew<'e>(gradient: Value<'e>, list: Value<'e>) -> Value<'e> {
    call("TensorListResize", [gradient, length(list)])
}

pub(crate) fn push_back<'e>(b: &Backprop<'e>) -> Grads<'e> {
    let popped = [b.dy(0), shape_of(b.x(1))];
    let popped = calls_with("TensorListPopBack", b.element(), &popped);
    grads([popped.at(0), popped.at(1)])
}

pub(crate) fn pop_back<'e>(b: &Backprop<'e>) -> Grads<'e> {
    let list = b.present_dy(0).unwrap_or_else(|| empty_like(b, b.y(0)));
    grads([call_with("TensorListPushBack", b.element(), [list, b.dy(1)])])
}

/// A list without elements, for elements of the same shape.
fn empty_like<'e>(b: &Backprop<'e>, list: Value<'e>) -> Value<'e> {
    let inputs = [element_shape(list), list.literal(-1i32)];
    let zeros = call_with("EmptyTensorList", b.element(), inputs);
    call_with("TensorListResize", Attrs::new(), [zeros, length(list)])
}

pub(crate) fn stack<'e>(b: &Backprop<'e>) -> Grads<'e> {
    let dy = b.dy(0);
    grads([call_with("TensorListFromTensor", b.element(), [dy, row_shape(dy)])])
}

pub(crate) fn from_tensor<'e>(b: &Backprop<'e>) -> Grads<'e> {
    grads([call_with("TensorListStack", b.element(), [b.dy(0), row_shape(b.x(0))])
        .reshape_like(b.x(0))])
}

pub(crate) fn get_item<'e>(b: &Backprop<'e>) -> Grads<'e> {
    let list = b.x(0);
    let inputs = [element_shape(list), length(list)];
    let zeros = call_with("TensorListReserve", b.element(), inputs);
    grads([call_with("TensorListSetItem", b.element(), [zeros, b.x(1), b.dy(0)])])
}

pub(crate) fn set_item<'e>(b: &Backprop<'e>) -> Grads<'e> {
    let (index, item, dy) = (b.x(1), b.x(2), b.dy(0));
    let zeros = item.zeros_like();
    let by_item = call_with("TensorListGetItem", b.element(), [dy, index, shape_of(item)]);
    let mut by_list = call_with("TensorListSetItem", b.element(), [dy, index, zeros]);
    if b.flag("resize_if_index_out_of_bounds") {
        by_list = before_it_grew(by_list, b.x(0));
    }
    vec![Some(by_list.into()), None, Some(by_item.into())]
}

pub(crate) fn resize<'e>(b: &Backprop<'e>) -> Grads<'e> {
    grads([call("TensorListResize", [b.dy(0), length(b.x(0))])])
}

pub(crate) fn gather<'e>(b: &Backprop<'e>) -> Grads<'e> {
    let (list, indices, dy) = (b.x(0), b.x(1), b.dy(0));
    let inputs = [element_shape(list), length(list)];
    let zeros = call_with("TensorListReserve", b.element(), inputs);
    let inputs = [zeros, dy, indices];
    grads([call_with("TensorListScatterIntoExistingList", b.element(), inputs)])
}

pub(crate) fn scatter<'e>(b: &Backprop<'e>) -> Grads<'e> {
    let (tensor, indices) = (b.x(0), b.x(1));
    let inputs = [b.dy(0), indices, row_shape(tensor)];
    grads([call_with("TensorListGather", b.element(), inputs)])
}

pub(crate) fn scatter_into<'e>(b: &Backprop<'e>) -> Grads<'e> {
    let (tensor, indices, dy) = (b.x(1), b.x(2), b.dy(0));
    let zeros = tensor.zeros_like();
    let kept = call_with("TensorListScatterIntoExistingList", b.element(), [dy, zeros, indices]);
    let kept = before_it_grew(kept, b.x(0));
    let by_tensor = call_with("TensorListGather", b.element(), [dy, indices, row_shape(tensor)]);
    grads([kept, by_tensor])
}

pub(crate) fn concat<'e>(b: &Backprop<'e>) -> Grads<'e> {
    let shape = element_shape(b.x(0));
    grads([call_with("TensorListSplit", b.element(), [b.dy(0), shape, b.y(1)])])
}

pub(crate) fn split<'e>(b: &Backprop<'e>) -> Grads<'e> {
    let found = call_with("TensorListConcat", b.element(), [b.dy(0)]);
    grads([found.reshape_like(b.x(0))])
}

pub(crate) fn concat_lists<'e>(b: &Backprop<'e>) -> Grads<'e> {
    let (first, second, dy) = (b.x(0), b.x(1), b.dy(0));
    let indices = |from: Value<'e>, to: Value<'e>| call("Range", [from, to, from.literal(1i32)]);
    let (n, total) = (length(first), length(dy));
    let take = |indices: Value<'e>, like: Value<'e>| {
        let shape = element_shape(like);
        let rows = call_with("TensorListGather", b.element(), [dy, indices, shape]);
        call_with("TensorListFromTensor", b.element(), [rows, shape])
    };
    grads([take(indices(n.literal(0i32), n), first), take(indices(n, total), second)])
}
