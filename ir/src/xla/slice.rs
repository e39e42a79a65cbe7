//! Slices whose index is computed. Starts are moved so that the slice is inside.

use super::size::{Size, of_vector, sizes, vector};
use crate::DType;
use crate::emit::{Value, call};

/// The starts of a slice, moved into `[0, size - slice]`.
fn inside<'e>(whole: &[Size<'e>], slice: &[Size<'e>], starts: Value<'e>) -> Value<'e> {
    let last: Vec<Size<'e>> =
        whole.iter().zip(slice).map(|(whole, slice)| whole.minus(*slice)).collect();
    // A start may be an unsigned number beyond any size.
    let starts = match starts.dtype() {
        DType::U64 => starts.minimum(starts.like(i64::MAX as f64 / 2.0)),
        _ => starts,
    };
    let starts = starts.cast(DType::I64);
    starts.minimum(vector(&last, starts)).maximum(starts.literal(0i64))
}

/// The slice of these sizes at computed starts.
pub fn dynamic_slice<'e>(x: Value<'e>, starts: Value<'e>, slice: &[Size<'e>]) -> Value<'e> {
    if slice.is_empty() {
        return x;
    }
    let begin = inside(&sizes(x), slice, starts);
    call("Slice", [x, begin, vector(slice, x)])
}

/// `x` with `update` instead of the slice at computed starts.
pub fn dynamic_update_slice<'e>(x: Value<'e>, update: Value<'e>, starts: Value<'e>) -> Value<'e> {
    let size = sizes(update);
    if size.is_empty() {
        return update;
    }
    let begin = inside(&sizes(x), &size, starts);
    let end = begin + vector(&size, x);
    let strides = x.int_vector(&vec![1; size.len()]);
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

/// Scalars as a vector of `i64`.
pub fn starts<'e>(scalars: &[Value<'e>], anchor: Value<'e>) -> Value<'e> {
    let sizes: Vec<Size<'e>> = scalars
        .iter()
        .map(|scalar| match of_vector(scalar.reshape(&[1])).first() {
            Some(&Size::Known(known)) => Size::Known(known),
            _ => Size::Computed(scalar.cast(DType::I64)),
        })
        .collect();
    vector(&sizes, anchor)
}
