//! `select_and_scatter`: an element of each window is chosen, and gets what a source has for it.

use super::{
    region::Monoid,
    size::{Size, broadcast, product, range, reshape, sizes, sizes_of_rank},
    slice::strided,
    window::Windows,
};
use crate::{
    attr::Attrs,
    emit::{Value, call, call_with},
};

/// A function of two tensors.
pub type Binary<'f, 'e> = &'f dyn Fn(Value<'e>, Value<'e>) -> Value<'e>;

/// The indices, in the operand as one row of elements, that windows choose: the first element, and
/// any later one that `select` does not prefer the chosen one to. -1 for windows without elements.
pub fn chosen_indices<'e>(
    operand: Value<'e>,
    windows: &Windows<'e>,
    select: Binary<'_, 'e>,
) -> Value<'e> {
    let shape = sizes(operand);
    let indices = reshape(range(product(&shape), operand), &shape);
    let padded = super::window::padded(operand, operand.like(0.0), windows);
    let indices = super::window::padded(indices, indices.literal(-1i64), windows);
    let whole = sizes_of_rank(padded, windows.size.len());
    let zero = vec![0i64; windows.size.len()];
    let part = |x: Value<'e>, offset: &[i64]| {
        let axes = 0..offset.len();
        let begin: Vec<Size<'e>> = axes.clone().map(|axis| offset[axis].into()).collect();
        let end: Vec<Size<'e>> = axes
            .clone()
            .map(|axis| whole[axis].minus(windows.size[axis] - 1 - offset[axis]))
            .collect();
        let steps: Vec<Size<'e>> = axes.map(|axis| windows.stride[axis].into()).collect();
        strided(x, &begin, &end, &steps)
    };
    let (mut best, mut at) = (part(padded, &zero), part(indices, &zero));
    let mut offset = zero;
    while next(&mut offset, &windows.size) {
        let (value, place) = (part(padded, &offset), part(indices, &offset));
        let none_yet = at.less(0.0);
        let there = place.greater_equal(0.0);
        let replaced = call("LogicalOr", [none_yet, select(best, value).logical_not()]);
        let replaced = call("LogicalAnd", [there, replaced]);
        best = replaced.select(value, best);
        at = replaced.select(place, at);
    }
    at
}

/// The next offset in a window, last axis first; false after the last one.
fn next(offset: &mut [i64], size: &[i64]) -> bool {
    for axis in (0..offset.len()).rev() {
        offset[axis] += 1;
        if offset[axis] < size[axis] {
            return true;
        }
        offset[axis] = 0;
    }
    false
}

/// The most elements that a window may have here.
pub const MOST_ELEMENTS: i64 = 4096;

/// A tensor of the shape of the operand that holds, where windows chose, the source's elements
/// combined with `initial`, and `initial` elsewhere. `None` for a function that no op has.
pub fn select_and_scatter<'e>(
    operand: Value<'e>,
    source: Value<'e>,
    initial: Value<'e>,
    windows: &Windows<'e>,
    select: Binary<'_, 'e>,
    scatter: Monoid,
) -> Option<Value<'e>> {
    let op = match scatter {
        Monoid::Add => "TensorScatterAdd",
        Monoid::Max => "TensorScatterMax",
        Monoid::Min => "TensorScatterMin",
        Monoid::Mul => "_TensorScatterMul",
        Monoid::Second => "TensorScatterUpdate",
        _ => return None,
    };
    let indices = chosen_indices(operand, windows, select);
    let shape = sizes(operand);
    let n = product(&sizes(source));
    let before = broadcast(initial.reshape(&[1]), &[product(&shape)]);
    let indices = reshape(indices, &[n, Size::Known(1)]);
    let attrs = Attrs::new().with("bad_indices_policy", "IGNORE");
    let after = call_with(op, attrs, [before, indices, reshape(source, &[n])]);
    Some(reshape(after, &shape))
}
