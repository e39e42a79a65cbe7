//! Gradients of composite tensors: composite tensors of the gradients of the components.

use super::{Backprop, Grads, grads};
use crate::emit::{Value, calls_with};

pub(crate) fn from_components<'e>(b: &Backprop<'e>) -> Grads<'e> {
    let found = calls_with("CompositeTensorVariantToComponents", b.attrs.clone(), &[b.dy(0)]);
    found.values().iter().map(|&value| Some(value.into())).collect()
}

pub(crate) fn to_components<'e>(b: &Backprop<'e>) -> Grads<'e> {
    let dys: Vec<Value<'e>> = (0..b.ys().len()).map(|index| b.dy(index)).collect();
    grads([calls_with("CompositeTensorVariantFromComponents", b.attrs.clone(), &dys).at(0)])
}
