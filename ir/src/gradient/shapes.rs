//! Shapes in formulas of gradients: constants where they are known, ops where they are not.

use crate::{
    attr::Attrs,
    dtype::DType,
    emit::{Value, call, call_with, calls_with},
    infer::normalize_axis,
};

/// Sums a gradient over the axes along which `x` was repeated to get the gradient's shape.
pub fn sum_to_shape_of<'e>(gradient: Value<'e>, x: Value<'e>) -> Value<'e> {
    let (from, to) = (gradient.partial_shape(), x.partial_shape());
    if from.is_known() && from == to {
        return gradient;
    }
    if let (Some(from), Some(to)) = (gradient.dims(), x.dims()) {
        let added = from.len().saturating_sub(to.len());
        let is_summed =
            |axis: &usize| *axis < added || (to.get(axis - added) == Some(&1) && from[*axis] != 1);
        let axes: Vec<i64> = (0..from.len()).filter(is_summed).map(|axis| axis as i64).collect();
        let sum = if axes.is_empty() { gradient } else { gradient.sum(&axes, true) };
        return sum.reshape_like(x);
    }
    let (own, wanted) = (gradient.shape_vector(), x.shape_vector());
    let axes = calls_with("BroadcastGradientArgs", Attrs::new(), &[wanted, own]).at(0);
    gradient.sum_over(axes, true).reshape_to(wanted)
}

/// The size of dimension `axis`, a scalar of `i64`.
pub fn dim<'e>(x: Value<'e>, axis: usize) -> Value<'e> {
    match x.partial_shape().dim(axis as isize) {
        Some(size) => x.literal(size as i64),
        None => {
            let picked = x.shape_vector().slice(&[axis as i64], &[1]);
            picked.reshape(&[])
        }
    }
}

/// The size of dimension `axis` of a tensor, or of the variable behind a handle.
pub fn variable_dim<'e>(x: Value<'e>, axis: usize) -> Value<'e> {
    if x.dtype() != DType::Resource {
        return dim(x, axis);
    }
    let known = x.ty().pointee.and_then(|spec| spec.shape.dim(axis as isize));
    match known {
        Some(size) => x.literal(size as i64),
        None => {
            let shape = call_with("VariableShape", Attrs::new().with("out_type", DType::I64), [x]);
            shape.slice(&[axis as i64], &[1]).reshape(&[])
        }
    }
}

/// The number of dimensions, a scalar of `i64`.
pub fn rank(x: Value<'_>) -> Value<'_> {
    match x.rank() {
        Some(rank) => x.literal(rank as i64),
        None => call("Rank", [x]).cast(DType::I64),
    }
}

/// The number of elements, a scalar of `i64`.
pub fn size(x: Value<'_>) -> Value<'_> {
    match x.partial_shape().known() {
        Some(shape) => x.literal(shape.num_elements() as i64),
        None => call_with("Size", Attrs::new().with("out_type", DType::I64), [x]),
    }
}

/// Axes counted from the first, sorted, where they and the rank are known.
pub fn axes<'e>(axes: Value<'e>, of: Value<'e>) -> Option<Vec<usize>> {
    let (axes, rank) = (axes.ints()?, of.rank()?);
    let mut axes: Vec<usize> =
        axes.into_iter().map(|axis| normalize_axis(axis, rank).ok()).collect::<Option<_>>()?;
    axes.sort_unstable();
    axes.dedup();
    Some(axes)
}

/// The shape of `x` with size 1 along the axes that a reduction takes away, as a vector.
pub fn kept_shape<'e>(x: Value<'e>, reduced: Value<'e>) -> Value<'e> {
    if let (Some(mut dims), Some(axes)) = (x.dims(), axes(reduced, x)) {
        axes.iter().for_each(|&axis| dims[axis] = 1);
        return x.int_vector(&dims);
    }
    let rank = rank(x).cast(DType::I32);
    let reduced = reduced.cast(DType::I32).reshape(&[-1]);
    let positive = call("FloorMod", [reduced + call("Fill", [reduced.shape_vector(), rank]), rank]);
    let all = range(rank);
    let ones = reduced.ones_like().cast(DType::I64);
    let data = [all, positive, x.shape_vector(), ones];
    calls_with("DynamicStitch", Attrs::new().with("N", 2i64), &data).at(0)
}

/// `0, 1, …` up to a count that is computed, in its dtype.
pub fn range(count: Value<'_>) -> Value<'_> {
    let (zero, one) = (count.literal(0i64), count.literal(1i64));
    call("Range", [zero.cast(count.dtype()), count, one.cast(count.dtype())])
}

/// `size` elements of a vector of sizes, from `begin` on.
pub fn part<'e>(sizes: Value<'e>, begin: i64, size: i64) -> Value<'e> {
    match sizes.ints() {
        Some(known) => {
            let (begin, end) = (begin as usize, (begin + size) as usize);
            sizes.int_vector(known.get(begin..end).unwrap_or_default())
        }
        None => sizes.slice(&[begin], &[size]),
    }
}

/// Vectors of sizes, or single sizes, one after the other.
pub fn join<'e>(parts: &[Value<'e>]) -> Value<'e> {
    let known: Option<Vec<Vec<i64>>> = parts.iter().map(|part| part.ints()).collect();
    match known {
        Some(known) => parts[0].int_vector(&known.concat()),
        None => {
            let vectors: Vec<Value<'e>> =
                parts.iter().map(|part| part.cast(DType::I64).reshape(&[-1])).collect();
            Value::concat(&vectors, 0)
        }
    }
}

/// The product of sizes, a scalar.
pub fn product(sizes: Value<'_>) -> Value<'_> {
    match sizes.ints() {
        Some(known) => sizes.literal(known.iter().product::<i64>()),
        None => call("Prod", [sizes, sizes.literal(0i64)]),
    }
}

/// The shape as a vector of `i32`.
pub fn shape_i32(x: Value<'_>) -> Value<'_> {
    match x.dims() {
        Some(dims) => x.int32_vector(&dims),
        None => call("Shape", [x]),
    }
}
