//! Slices whose index is computed. Starts are moved so that the slice is inside.

use super::size::{Size, element, of_vector, sizes, vector};
use crate::DType;
use crate::emit::{Value, call};

/// The starts of a slice, moved into `[0, size - slice]`.
fn inside<'e>(whole: &[Size<'e>], slice: &[Size<'e>], starts: &[Size<'e>]) -> Vec<Size<'e>> {
    let axes = whole.iter().zip(slice).zip(starts);
    axes.map(|((&whole, &slice), &start)| match (whole.known(), slice.known()) {
        (Some(whole), Some(slice)) if whole == slice => Size::Known(0),
        _ => start.at_most(whole.minus(slice)).at_least(0),
    })
    .collect()
}

/// The axis and the index of a slice of one element along it, whose start is computed, and of all elements along
/// the others, of which there are some.
fn row<'e>(
    whole: &[Size<'e>],
    slice: &[Size<'e>],
    begin: &[Size<'e>],
) -> Option<(usize, Size<'e>)> {
    let mut moving = (0..begin.len()).filter(|&axis| begin[axis].known().is_none());
    let axis = moving.next().filter(|_| moving.next().is_none())?;
    let is_all = |other: usize| {
        let n = slice[other].known();
        n > Some(0) && whole[other].known() == n
    };
    let is_row = slice[axis].known() == Some(1)
        && whole[axis].known() > Some(0)
        && (0..begin.len()).all(|other| other == axis || is_all(other));
    is_row.then_some((axis, begin[axis]))
}

/// The slice of these sizes at computed starts.
pub fn dynamic_slice<'e>(x: Value<'e>, starts: &[Size<'e>], slice: &[Size<'e>]) -> Value<'e> {
    if slice.is_empty() {
        return x;
    }
    let whole = sizes(x);
    let begin = inside(&whole, slice, starts);
    if let Some((axis, index)) = row(&whole, slice, &begin) {
        return call("GatherV2", [x, index.value(x).reshape(&[1]), x.literal(axis as i32)]);
    }
    call("Slice", [x, vector(&begin, x), vector(slice, x)])
}

/// `x` with `update` instead of the slice at computed starts.
pub fn dynamic_update_slice<'e>(x: Value<'e>, update: Value<'e>, starts: &[Size<'e>]) -> Value<'e> {
    let (whole, size) = (sizes(x), sizes(update));
    if size.is_empty() {
        return update;
    }
    let begin = inside(&whole, &size, starts);
    if let Some((0, index)) = row(&whole, &size, &begin) {
        return call("TensorScatterUpdate", [x, index.value(x).reshape(&[1, 1]), update]);
    }
    let end: Vec<Size<'e>> =
        begin.iter().zip(&size).map(|(begin, &size)| begin.plus(size)).collect();
    let strides = x.int_vector(&vec![1; size.len()]);
    let (begin, end) = (vector(&begin, x), vector(&end, x));
    call("TensorStridedSliceUpdate", [x, begin, end, strides, update])
}

/// The elements from `start` to `limit` in steps, along each axis.
pub fn strided<'e>(
    x: Value<'e>,
    start: &[Size<'e>],
    limit: &[Size<'e>],
    step: &[Size<'e>],
) -> Value<'e> {
    if start.is_empty() {
        return x;
    }
    call("StridedSlice", [x, vector(start, x), vector(limit, x), vector(step, x)])
}

/// The elements at the ends of axes first.
pub fn reverse<'e>(x: Value<'e>, axes: &[usize]) -> Value<'e> {
    if axes.is_empty() {
        return x;
    }
    let axes: Vec<i64> = axes.iter().map(|&axis| axis as i64).collect();
    call("ReverseV2", [x, x.int_vector(&axes)])
}

/// A start along each axis, of any integer type.
pub fn starts<'e>(scalars: impl IntoIterator<Item = Value<'e>>) -> Vec<Size<'e>> {
    let start = |scalar: Value<'e>| match of_vector(scalar.reshape(&[1])).first() {
        Some(&Size::Known(known)) => Size::Known(known),
        // It may be an unsigned number beyond any size.
        _ if scalar.dtype() == DType::U64 => {
            let most = scalar.like(i64::MAX as f64 / 2.0);
            Size::Computed(scalar.minimum(most).cast(DType::I64))
        }
        _ => Size::Computed(scalar.cast(DType::I64)),
    };
    scalars.into_iter().map(start).collect()
}

/// The starts that a vector has along `rank` axes.
pub fn starts_of<'e>(vector: Value<'e>, rank: usize) -> Vec<Size<'e>> {
    starts((0..rank).map(|axis| element(vector, axis)))
}
