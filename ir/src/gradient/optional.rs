//! Gradients of optionals: the optional of the gradients of what they hold.

use super::{Backprop, Grads, grads};
use crate::{
    attr::{AttrValue, Attrs},
    emit::{Value, calls_with},
};

/// The dtypes and shapes of tensors, as attributes of optionals.
fn described(values: &[Value<'_>]) -> Attrs {
    let dtypes: Vec<_> = values.iter().map(|value| value.dtype()).collect();
    let shapes = values.iter().map(|value| value.partial_shape()).collect();
    let attrs = Attrs::new().with("Toutput_types", dtypes.clone()).with("output_types", dtypes);
    attrs.with("output_shapes", AttrValue::Shapes(shapes))
}

pub(crate) fn from_value<'e>(b: &Backprop<'e>) -> Grads<'e> {
    let found = calls_with("OptionalGetValue", described(b.xs()), &[b.dy(0)]);
    found.values().iter().map(|&value| Some(value.into())).collect()
}

pub(crate) fn get_value<'e>(b: &Backprop<'e>) -> Grads<'e> {
    let dys: Vec<Value<'e>> = (0..b.ys().len()).map(|index| b.dy(index)).collect();
    grads([calls_with("OptionalFromValue", described(&dys), &dys).at(0)])
}
