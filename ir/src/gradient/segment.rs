//! Gradients of reductions by segment: rows fetch the gradient of their segment.

use super::{Backprop, Grads, grads, math::where_true};
use crate::{
    dtype::DType,
    emit::{Value, call},
};

/// The rows of the segments that `ids` name.
fn rows<'e>(of: Value<'e>, ids: Value<'e>) -> Value<'e> {
    call("GatherV2", [of, ids, of.literal(0i64)])
}

/// A vector with dimensions of size 1 behind, so that it broadcasts against rows.
fn column<'e>(vector: Value<'e>, rows: Value<'e>) -> Option<Value<'e>> {
    let (own, rank) = (vector.rank()?, rows.rank()?);
    let mut column = vector;
    for _ in own..rank {
        column = call("ExpandDims", [column, column.literal(-1i64)]);
    }
    Some(column)
}

const RANK: &str = "its gradient needs known ranks";

pub(crate) fn sum<'e>(b: &Backprop<'e>) -> Grads<'e> {
    grads([rows(b.dy(0), b.x(1))])
}

pub(crate) fn mean<'e>(b: &Backprop<'e>) -> Grads<'e> {
    let (ids, dy) = (b.x(1), b.dy(0));
    let counts = call("SegmentSum", [ids.ones_like().cast(dy.dtype()), ids]);
    let Some(counts) = column(counts, dy) else { return b.postponed(RANK) };
    grads([rows(dy / counts, ids)])
}

pub(crate) fn extreme<'e>(b: &Backprop<'e>) -> Grads<'e> {
    let (x, ids, dy) = (b.x(0), b.x(1), b.dy(0));
    let chosen = x.equal(rows(b.y(0), ids));
    let count = call("SegmentSum", [chosen.cast(dy.dtype()), ids]);
    grads([where_true(chosen, rows(dy / count, ids))])
}

/// The product of the others: found by division where nothing is zero, otherwise from the product
/// of what is not.
fn product_of_others<'e>(
    b: &Backprop<'e>,
    reduce: impl Fn(&str, Value<'e>) -> Value<'e>,
    fetch: impl Fn(Value<'e>) -> Option<Value<'e>>,
) -> Grads<'e> {
    let (x, y, dy) = (b.x(0), b.y(0), b.dy(0));
    let is_zero = x.equal(0.0);
    let n_zeros = reduce("Sum", is_zero.cast(DType::I32));
    let dy = n_zeros.greater(n_zeros.literal(1i32)).select(dy.like(0.0), dy);
    let others = is_zero.select(x.like(1.0), x);
    let fetched = [reduce("Prod", others), y, dy].map(fetch);
    let [Some(without_zeros), Some(y), Some(dy)] = fetched else { return b.postponed(RANK) };
    grads([dy * is_zero.select(without_zeros, y / others)])
}

pub(crate) fn product<'e>(b: &Backprop<'e>) -> Grads<'e> {
    let ids = b.x(1);
    let reduce = |kind: &str, value: Value<'e>| call(&format!("Segment{kind}"), [value, ids]);
    product_of_others(b, reduce, |value| Some(rows(value, ids)))
}

/// The rows of segments; zeros for rows of no segment.
fn unsorted_rows<'e>(b: &Backprop<'e>, of: Value<'e>) -> Option<Value<'e>> {
    let ids = b.x(1);
    let zero = ids.literal(0i64).cast(ids.dtype());
    let found = rows(of, ids.maximum(zero));
    let is_real = column(ids.greater_equal(zero), found)?;
    Some(where_true(is_real, found))
}

pub(crate) fn unsorted_sum<'e>(b: &Backprop<'e>) -> Grads<'e> {
    match unsorted_rows(b, b.dy(0)) {
        Some(dx) => grads([dx]),
        None => b.postponed(RANK),
    }
}

pub(crate) fn unsorted_extreme<'e>(b: &Backprop<'e>) -> Grads<'e> {
    let (x, ids, n, dy) = (b.x(0), b.x(1), b.x(2), b.dy(0));
    let fetch = |value| unsorted_rows(b, value);
    let Some(extremes) = fetch(b.y(0)) else { return b.postponed(RANK) };
    let Some(is_real) = column(ids.greater_equal(ids.literal(0i64).cast(ids.dtype())), x) else {
        return b.postponed(RANK);
    };
    let chosen = call("LogicalAnd", [x.equal(extremes), is_real]);
    let count = call("UnsortedSegmentSum", [chosen.cast(dy.dtype()), ids, n]);
    match fetch(dy / count) {
        Some(share) => grads([where_true(chosen, share)]),
        None => b.postponed(RANK),
    }
}

pub(crate) fn unsorted_product<'e>(b: &Backprop<'e>) -> Grads<'e> {
    let (ids, n) = (b.x(1), b.x(2));
    if b.x(0).rank().is_none() || ids.rank().is_none() {
        return b.postponed(RANK);
    }
    let reduce =
        |kind: &str, value: Value<'e>| call(&format!("UnsortedSegment{kind}"), [value, ids, n]);
    product_of_others(b, reduce, |value| unsorted_rows(b, value))
}

/// Of a reduction of chosen rows, by the op that does this backwards.
fn sparse<'e>(b: &Backprop<'e>, name: &str) -> Grads<'e> {
    let (x, indices, ids) = (b.x(0), b.x(1), b.x(2));
    let n_rows = super::shapes::dim(x, 0).cast(DType::I32);
    grads([call(name, [b.dy(0), indices, ids, n_rows])])
}

pub(crate) fn sparse_sum<'e>(b: &Backprop<'e>) -> Grads<'e> {
    sparse(b, "SparseSegmentSumGrad")
}

pub(crate) fn sparse_mean<'e>(b: &Backprop<'e>) -> Grads<'e> {
    sparse(b, "SparseSegmentMeanGrad")
}

pub(crate) fn sparse_sqrt_n<'e>(b: &Backprop<'e>) -> Grads<'e> {
    sparse(b, "SparseSegmentSqrtNGrad")
}
