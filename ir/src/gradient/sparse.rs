//! Gradients of sparse and ragged tensors: only their values have any.

use super::{Backprop, Grads, only, reduce::sum_all, shapes};
use crate::{
    attr::Attrs,
    emit::{Value, call, call_with, calls_with},
};

pub(crate) fn add<'e>(b: &Backprop<'e>) -> Grads<'e> {
    let inputs = [b.dy(1), b.x(0), b.x(3), b.y(0)];
    let found = calls_with("SparseAddGrad", Attrs::new(), &inputs);
    let mut grads = only(1, found.at(0));
    grads.extend([None, None, Some(found.at(1).into())]);
    grads
}

/// The elements of a dense tensor, which broadcasts, at the indices of a sparse one.
fn flat_indices<'e>(indices: Value<'e>, shape: Value<'e>, dense: Value<'e>) -> Option<Value<'e>> {
    let added = shape.partial_shape().dim(0)? as i64 - dense.rank()? as i64;
    let own = dense.shape_vector();
    let ones = dense.int_vector(&vec![1; added as usize]);
    let scale = call("FloorDiv", [shape, shapes::join(&[ones, own])]);
    let scaled = call("FloorDiv", [indices, scale]);
    Some(scaled.slice(&[0, added], &[-1, -1]))
}

fn with_dense<'e>(b: &Backprop<'e>, is_quotient: bool) -> Grads<'e> {
    let (values, dense, dy) = (b.x(1), b.x(3), b.dy(0));
    let Some(places) = flat_indices(b.x(0), b.x(2), dense) else {
        return b.postponed("its gradient needs known ranks");
    };
    let others = call("GatherNd", [dense, places]);
    let (by_values, by_others) = match is_quotient {
        false => (dy * others, dy * values),
        true => (dy / others, dy * -(values / others.square())),
    };
    let by_dense = call("ScatterNd", [places, by_others, dense.shape_vector()]);
    vec![None, Some(by_values.into()), None, Some(by_dense.into())]
}

pub(crate) fn times_dense<'e>(b: &Backprop<'e>) -> Grads<'e> {
    with_dense(b, false)
}

pub(crate) fn by_dense<'e>(b: &Backprop<'e>) -> Grads<'e> {
    with_dense(b, true)
}

pub(crate) fn fill_empty_rows<'e>(b: &Backprop<'e>) -> Grads<'e> {
    let found = calls_with("SparseFillEmptyRowsGrad", Attrs::new(), &[b.y(3), b.dy(1)]);
    vec![None, Some(found.at(0).into()), None, Some(found.at(1).into())]
}

pub(crate) fn reduce_sum<'e>(b: &Backprop<'e>) -> Grads<'e> {
    let (indices, shape, axes, dy) = (b.x(0), b.x(2), b.x(3), b.dy(0));
    let rank = shape.partial_shape().dim(0).or(indices.partial_shape().dim(1));
    let (Some(rank), Some(axes)) = (rank, axes.ints()) else {
        return b.postponed("its gradient needs a known rank and known axes");
    };
    let is_reduced =
        |axis: usize| axes.iter().any(|&a| a == axis as i64 || a + rank as i64 == axis as i64);
    let mask = |of: bool| -> Vec<i64> {
        (0..rank).map(|axis| i64::from(is_reduced(axis) == of)).collect()
    };
    let (reduced, kept) = (b.vector(&mask(true)), b.vector(&mask(false)));
    // The sizes of `dy` with 1 for each reduced axis, and what takes places to places in it.
    let sizes = shape * kept + reduced;
    let scale = call("Maximum", [shape * reduced + kept, b.vector(&vec![1i64; rank])]);
    let flat_indices = call("FloorDiv", [indices, scale]);
    only(1, call("GatherNd", [dy.reshape_to(sizes), flat_indices]))
}

/// Numbers in place of the values tell where each value went.
pub(crate) fn reorder<'e>(b: &Backprop<'e>) -> Grads<'e> {
    let numbers = shapes::range(shapes::size(b.x(1)));
    let moved = calls_with("SparseReorder", Attrs::new(), &[b.x(0), numbers, b.x(2)]).at(1);
    let back = call("InvertPermutation", [moved]);
    only(1, call("GatherV2", [b.dy(1), back, back.literal(0i64)]))
}

pub(crate) fn slice<'e>(b: &Backprop<'e>) -> Grads<'e> {
    only(1, call("SparseSliceGrad", [b.dy(1), b.x(0), b.x(3), b.y(0)]))
}

pub(crate) fn softmax<'e>(b: &Backprop<'e>) -> Grads<'e> {
    let (indices, shape, y, dy) = (b.x(0), b.x(2), b.y(0), b.dy(0));
    let attrs = Attrs::new().with("keep_dims", true);
    let last = y.int32_vector(&[-1]);
    let sum = call_with("SparseReduceSum", attrs, [indices, y * dy, shape, last]);
    let centred = call("SparseDenseCwiseAdd", [indices, dy, shape, -sum]);
    only(1, centred * y)
}

fn turned(x: Value<'_>) -> Value<'_> {
    x.transpose(&[1, 0]).adjoint()
}

pub(crate) fn matmul<'e>(b: &Backprop<'e>) -> Grads<'e> {
    let (indices, values, shape, dense, dy) = (b.x(0), b.x(1), b.x(2), b.x(3), b.dy(0));
    let (adj_a, adj_b) = (b.flag("adjoint_a"), b.flag("adjoint_b"));
    let attrs = Attrs::new().with("adjoint_a", !adj_a).with("adjoint_b", false);
    let by_dense = call_with("SparseTensorDenseMatMul", attrs, [indices, values, shape, dy]);
    let by_dense = if adj_b { turned(by_dense) } else { by_dense };
    let column = |index: i64| indices.slice(&[0, index], &[-1, 1]).reshape(&[-1]);
    let (rows, columns) = if adj_a { (column(1), column(0)) } else { (column(0), column(1)) };
    let pick =
        |of: Value<'e>, places: Value<'e>| call("GatherV2", [of, places, places.literal(0i64)]);
    let dense = if adj_b { turned(dense) } else { dense };
    let product = (pick(dy, rows) * pick(dense, columns).adjoint()).sum(&[1], false);
    let product = if adj_a { product.adjoint() } else { product };
    vec![None, Some(product.into()), None, Some(by_dense.into())]
}

pub(crate) fn to_dense<'e>(b: &Backprop<'e>) -> Grads<'e> {
    let (indices, values, dy) = (b.x(0), b.x(2), b.dy(0));
    let indices = match indices.rank() {
        Some(2) => indices,
        Some(_) => indices.reshape(&[-1, 1]),
        None => return b.postponed("its gradient needs known ranks"),
    };
    let rows = call("GatherNd", [dy, indices]);
    let by_default = sum_all(dy) - sum_all(rows);
    let by_values = shapes::sum_to_shape_of(rows, values);
    vec![None, None, Some(by_values.into()), Some(by_default.into())]
}

/// The dense tensor counts where the sparse one has elements.
pub(crate) fn plus_dense<'e>(b: &Backprop<'e>) -> Grads<'e> {
    let (dense, dy) = (b.x(3), b.dy(0));
    let Some(places) = flat_indices(b.x(0), b.x(2), dense) else {
        return b.postponed("its gradient needs known ranks");
    };
    let by_dense = call("ScatterNd", [places, dy, dense.shape_vector()]);
    vec![None, Some(dy.into()), None, Some(by_dense.into())]
}

pub(crate) fn dense_add<'e>(b: &Backprop<'e>) -> Grads<'e> {
    let dy = b.dy(0);
    let by_values = call("GatherNd", [dy, b.x(0)]);
    vec![None, Some(by_values.into()), None, Some(dy.into())]
}

pub(crate) fn ragged_fill_empty_rows<'e>(b: &Backprop<'e>) -> Grads<'e> {
    let found = calls_with("RaggedFillEmptyRowsGrad", Attrs::new(), &[b.y(3), b.dy(1)]);
    vec![None, Some(found.at(0).into()), None, Some(found.at(1).into())]
}

/// The values of the gradients, joined.
pub(crate) fn ragged_to_variant<'e>(b: &Backprop<'e>) -> Grads<'e> {
    let n_splits = b.xs().len() - 1;
    let values = b.x(n_splits);
    let splits = if n_splits == 0 { values.int_vector(&[]) } else { b.x(0) };
    let inputs = [b.dy(0), splits, shapes::shape_i32(values)];
    let attrs = Attrs::new().with("Tvalues", values.dtype());
    only(n_splits, call_with("RaggedTensorToVariantGradient", attrs, inputs))
}

/// The gradient of the values, taken apart along the same splits.
pub(crate) fn ragged_from_variant<'e>(b: &Backprop<'e>) -> Grads<'e> {
    let n_splits = b.ys().len() - 1;
    let mut inputs = b.ys()[..n_splits].to_vec();
    inputs.push(b.dy(n_splits));
    let is_batched = b.x(0).rank().is_some_and(|rank| rank > 0);
    let attrs = Attrs::new()
        .with("RAGGED_RANK", n_splits as i64)
        .with("Tsplits", b.dtype("Tsplits"))
        .with("batched_input", is_batched);
    only(0, calls_with("RaggedTensorToVariant", attrs, &inputs).at(0))
}

/// Numbers in place of the values tell which were taken.
pub(crate) fn ragged_gather<'e>(b: &Backprop<'e>) -> Grads<'e> {
    let n_splits = b.int("PARAMS_RAGGED_RANK") as usize;
    let (values, dy) = (b.x(n_splits), b.dy(b.ys().len() - 1));
    let count = shapes::dim(values, 0);
    let mut inputs = b.xs().to_vec();
    inputs[n_splits] = shapes::range(count);
    let attrs = Attrs::new()
        .with("PARAMS_RAGGED_RANK", n_splits as i64)
        .with("OUTPUT_RAGGED_RANK", b.int("OUTPUT_RAGGED_RANK"));
    let taken = calls_with("RaggedGather", attrs, &inputs).at(b.ys().len() - 1);
    only(n_splits, call("UnsortedSegmentSum", [dy, taken, count]))
}

pub(crate) fn ragged_to_sparse<'e>(b: &Backprop<'e>) -> Grads<'e> {
    let n_splits = b.int("RAGGED_RANK") as usize;
    only(n_splits, b.dy(1).reshape_like(b.x(n_splits)))
}

/// Numbers in place of the values tell where each value went; -1 stands for the default.
pub(crate) fn ragged_to_tensor<'e>(b: &Backprop<'e>) -> Grads<'e> {
    let (values, default, dy) = (b.x(1), b.x(2), b.dy(0));
    let (Some(rank), Some(values_rank)) = (dy.rank(), values.rank()) else {
        return b.postponed("its gradient needs known ranks");
    };
    let outer = (rank + 1 - values_rank) as i64;
    let count = shapes::dim(values, 0);
    let mut inputs = b.xs().to_vec();
    inputs[0] = shapes::part(dy.shape_vector(), 0, outer).cast(b.x(0).dtype());
    inputs[1] = shapes::range(count);
    inputs[2] = dy.literal(-1i64);
    let n_parts = b.xs().len() as i64 - 3;
    let attrs = b.own_attrs().with("num_row_partition_tensors", n_parts);
    let numbers = calls_with("RaggedTensorToTensor", attrs, &inputs).at(0);
    let inner = shapes::part(dy.shape_vector(), outer, rank as i64 - outer);
    let rows = dy.reshape_to(shapes::join(&[dy.int_vector(&[-1]), inner]));
    let by_values = call("UnsortedSegmentSum", [rows, numbers.reshape(&[-1]), count]);
    let mut is_default = numbers.equal(numbers.literal(-1i64));
    for _ in outer..rank as i64 {
        is_default = call("ExpandDims", [is_default, is_default.literal(-1i64)]);
    }
    let at_default = super::math::where_true(is_default, dy);
    let by_default = shapes::sum_to_shape_of(at_default, default);
    vec![None, Some(by_values.into()), Some(by_default.into())]
}
