//! Gradients of reading and writing by index: what was read is added back, and the other way round.

use super::{Backprop, Grad, Grads, grads, only, shapes};
use crate::{
    attr::Attrs,
    dtype::DType,
    emit::{Value, call, call_with, calls_with},
};

/// Rows of `dy` and their indices in the first dimension of `params`.
fn slices<'e>(params: Value<'e>, indices: Value<'e>, dy: Value<'e>) -> Grads<'e> {
    let (count, indices) = (shapes::size(indices), flat(indices));
    let inner = match params.rank() {
        Some(rank) => shapes::part(params.shape_vector(), 1, rank as i64 - 1),
        None => params.shape_vector().slice(&[1], &[-1]),
    };
    let values = dy.reshape_to(shapes::join(&[count, inner]));
    vec![Some(Grad::Slices { values, indices })]
}

fn flat(x: Value<'_>) -> Value<'_> {
    if x.rank() == Some(1) { x } else { x.reshape(&[-1]) }
}

pub(crate) fn gather<'e>(b: &Backprop<'e>) -> Grads<'e> {
    slices(b.x(0), b.x(1), b.dy(0))
}

/// Of rows read from a variable.
pub(crate) fn resource_gather<'e>(b: &Backprop<'e>) -> Grads<'e> {
    let (handle, dy) = (b.x(0), b.dy(0));
    if b.int("batch_dims") != 0 {
        return b.unsupported("its gradient for batches of indices");
    }
    let shape = call("VariableShape", [handle]).cast(DType::I64);
    let inner = shape.slice(&[1], &[-1]);
    let values = dy.reshape_to(shapes::join(&[shapes::size(b.x(1)), inner]));
    vec![Some(Grad::Slices { values, indices: flat(b.x(1)) })]
}

/// Of slices read from a variable.
pub(crate) fn resource_gather_nd<'e>(b: &Backprop<'e>) -> Grads<'e> {
    let attrs = Attrs::new().with("out_type", b.x(1).dtype());
    let shape = call_with("VariableShape", attrs, [b.x(0)]);
    grads([call("ScatterNd", [b.x(1), b.dy(0), shape])])
}

/// The indices within the batch are numbered through, so that one sum by index serves all.
pub(crate) fn gather_v2<'e>(b: &Backprop<'e>) -> Grads<'e> {
    let (x, indices, dy) = (b.x(0), b.x(1), b.dy(0));
    let (axis, batch) = (b.x(2).ints().and_then(|axis| axis.first().copied()), b.int("batch_dims"));
    if axis == Some(0) && batch == 0 {
        return slices(x, indices, dy);
    }
    let (Some(axis), Some(rank), Some(n_indices)) = (axis, x.rank(), indices.rank()) else {
        return b.postponed("its gradient needs a known axis and known ranks");
    };
    let (rank, n_indices) = (rank as i64, n_indices as i64);
    let axis = if axis < 0 { axis + rank } else { axis };
    let batch = if batch < 0 { batch + n_indices } else { batch };
    let (outer, picked, inner) = (axis - batch, n_indices - batch, rank - axis - 1);
    let range = |from: i64, count: i64| from..from + count;
    // [batch, outer, picked, inner] becomes [batch, picked, outer, inner].
    let order: Vec<i64> = range(0, batch)
        .chain(range(batch + outer, picked))
        .chain(range(batch, outer))
        .chain(range(batch + outer + picked, inner))
        .collect();
    let sizes = x.shape_vector();
    let (batches, outers) = (shapes::part(sizes, 0, batch), shapes::part(sizes, batch, outer));
    let (own, inners) = (shapes::part(sizes, axis, 1), shapes::part(sizes, axis + 1, inner));
    let n_rows = shapes::size(indices);
    let rows = dy.transpose(&order).reshape_to(shapes::join(&[n_rows, outers, inners]));
    let count = shapes::product(batches);
    let numbers = shapes::range(count) * own.reshape(&[]);
    let n_picked = shapes::product(shapes::part(indices.shape_vector(), batch, picked));
    let per_batch = shapes::join(&[count, n_picked]);
    let indices = indices.cast(DType::I64).reshape_to(per_batch) + numbers.reshape(&[-1, 1]);
    let total = shapes::product(shapes::join(&[count, own]));
    let sum = call("UnsortedSegmentSum", [rows, flat(indices), total]);
    let sum = sum.reshape_to(shapes::join(&[batches, own, outers, inners]));
    let back: Vec<i64> = range(0, batch)
        .chain(range(batch + 1, outer))
        .chain(range(batch, 1))
        .chain(range(batch + 1 + outer, inner))
        .collect();
    grads([sum.transpose(&back)])
}

pub(crate) fn gather_nd<'e>(b: &Backprop<'e>) -> Grads<'e> {
    let shape = b.x(0).shape_vector().cast(b.x(1).dtype());
    grads([b.with_attrs("ScatterNd", [b.x(1), b.dy(0), shape])])
}

pub(crate) fn scatter_nd<'e>(b: &Backprop<'e>) -> Grads<'e> {
    only(1, b.with_attrs("GatherNd", [b.dy(0), b.x(0)]))
}

/// Overwritten elements have no gradient.
pub(crate) fn scatter_update<'e>(b: &Backprop<'e>) -> Grads<'e> {
    let dy = b.dy(0);
    let kept = b.with_attrs("TensorScatterUpdate", [dy, b.x(1), b.x(2).zeros_like()]);
    vec![Some(kept.into()), None, Some(b.with_attrs("GatherNd", [dy, b.x(1)]).into())]
}

pub(crate) fn scatter_add<'e>(b: &Backprop<'e>) -> Grads<'e> {
    let dy = b.dy(0);
    vec![Some(dy.into()), None, Some(b.with_attrs("GatherNd", [dy, b.x(1)]).into())]
}

pub(crate) fn scatter_sub<'e>(b: &Backprop<'e>) -> Grads<'e> {
    let dy = b.dy(0);
    vec![Some(dy.into()), None, Some((-b.with_attrs("GatherNd", [dy, b.x(1)])).into())]
}

/// Those that equal the extreme share its gradient.
pub(crate) fn scatter_extreme<'e>(b: &Backprop<'e>) -> Grads<'e> {
    let (x, indices, updates, y, dy) = (b.x(0), b.x(1), b.x(2), b.y(0), b.dy(0));
    let is_own = x.equal(y).cast(dy.dtype());
    let is_update = updates.equal(b.with_attrs("GatherNd", [y, indices])).cast(dy.dtype());
    let shape = x.shape_vector().cast(indices.dtype());
    let share = dy / (is_own + b.with_attrs("ScatterNd", [indices, is_update, shape]));
    let by_updates = b.with_attrs("GatherNd", [share, indices]) * is_update;
    vec![Some((share * is_own).into()), None, Some(by_updates.into())]
}

/// An update has the product of all other factors of its element: those that are not zero, if no other one is.
pub(crate) fn scatter_mul<'e>(b: &Backprop<'e>) -> Grads<'e> {
    let (x, indices, updates) = (b.x(0), b.x(1), b.x(2));
    let of_x = b.with_attrs("_TensorScatterMul", [b.dy(0), indices, updates.adjoint()]);
    let is_zero = updates.equal(updates.zeros_like());
    let factors = is_zero.select(updates.like(1.0), updates).adjoint();
    let product = b.with_attrs("_TensorScatterMul", [b.dy(0) * x.adjoint(), indices, factors]);
    let count = is_zero.cast(DType::F32);
    let shape = x.shape_vector().cast(indices.dtype());
    let zeros = b.with_attrs("ScatterNd", [indices, count, shape]);
    let gathered = |x: Value<'e>| b.with_attrs("GatherNd", [x, indices]);
    let is_last = gathered(zeros).equal(count);
    let others = gathered(product) / factors;
    vec![Some(of_x.into()), None, Some(is_last.select(others, others.zeros_like()).into())]
}

pub(crate) fn dynamic_partition<'e>(b: &Backprop<'e>) -> Grads<'e> {
    let (x, parts) = (b.x(0), b.x(1));
    let numbers = shapes::range(shapes::size(parts).cast(DType::I32)).reshape_like(parts);
    let attrs = Attrs::new().with("num_partitions", b.ys().len() as i64);
    let indices = calls_with("DynamicPartition", attrs, &[numbers, parts]);
    let dys = (0..b.ys().len()).map(|index| b.dy(index));
    let inputs: Vec<Value<'e>> = indices.values().iter().copied().chain(dys).collect();
    let attrs = Attrs::new().with("N", b.ys().len() as i64);
    grads([calls_with("ParallelDynamicStitch", attrs, &inputs).at(0).reshape_like(x)])
}

pub(crate) fn dynamic_stitch<'e>(b: &Backprop<'e>) -> Grads<'e> {
    let n = b.xs().len() / 2;
    let zero = b.dy(0).literal(0i64);
    let rows = |index: usize| call("GatherV2", [b.dy(0), b.x(index), zero]);
    (0..n).map(|_| None).chain((0..n).map(|index| Some(rows(index).into()))).collect()
}

/// Scatters along the last axis.
pub(crate) fn top_k<'e>(b: &Backprop<'e>) -> Grads<'e> {
    let (x, places, dy) = (b.x(0), b.y(1), b.dy(0));
    let Some(rank) = x.rank() else {
        return b.postponed("its gradient needs a known rank");
    };
    let width = shapes::dim(x, rank - 1);
    let total = shapes::size(x);
    let minus = x.int_vector(&[-1]);
    let k = shapes::dim(places, rank - 1);
    let rows = shapes::product(shapes::part(x.shape_vector(), 0, rank as i64 - 1));
    let starts = (shapes::range(rows) * width).reshape(&[-1, 1]);
    let indices = places.cast(DType::I64).reshape_to(shapes::join(&[rows, k])) + starts;
    let sum = call("UnsortedSegmentSum", [dy.reshape_to(minus), flat(indices), total]);
    grads([sum.reshape_like(x)])
}
