//! Ops that return errors for some elements, as XLA compiles them: there they return results.
//!
//! Indices out of range are taken for the nearest one where elements are read, and left out where
//! elements are written. An integer divided by zero is all ones, and the remainder the dividend;
//! bits shifted too far are gone. Floats are cast to the nearest integer and sorted by their total
//! order; nothing is asserted. Sources: TensorFlow's `tf2xla/kernels/gather_op.cc`,
//! `scatter_nd_op.cc`, `segment_reduction_ops.cc`, `binary_ops.cc` and `softmax_op.cc`; XLA's
//! semantics of operations.

use super::{
    bits::{total_order, width},
    complex,
    convert::convert,
    size,
};
use crate::{
    attr::Attrs,
    dtype::DType,
    emit::{Composite, Value, call, call_with, calls_with},
    error::Error,
};
use std::iter::once;

/// The results of the op itself, of these inputs.
fn itself<'e>(c: &Composite<'e>, attrs: Attrs, inputs: &[Value<'e>]) -> Vec<Value<'e>> {
    let results = calls_with(c.op.name, attrs, inputs);
    (0..c.op.outputs.len()).map(|index| results.at(index)).collect()
}

/// The result of the op itself, of two inputs.
fn of_two<'e>(c: &Composite<'e>, x: Value<'e>, y: Value<'e>) -> Vec<Value<'e>> {
    itself(c, c.attrs.clone(), &[x, y])
}

/// Indices that no size is too large for.
fn wide(indices: Value<'_>) -> Value<'_> {
    match indices.dtype() {
        DType::I32 | DType::I64 => indices,
        _ => indices.cast(DType::I64),
    }
}

/// The nearest indices that are within sizes.
fn nearest<'e>(indices: Value<'e>, sizes: Value<'e>) -> Value<'e> {
    let last = sizes.cast(indices.dtype()) - indices.like(1.0);
    indices.maximum(indices.like(0.0)).minimum(last)
}

/// `Gather` and `GatherV2`.
pub(crate) fn gather<'e>(c: &Composite<'e>) -> Vec<Value<'e>> {
    let (params, indices) = (c.x(0), wide(c.x(1)));
    let axis = if c.n_inputs() > 2 { c.ints(2).first().copied().unwrap_or(0) } else { 0 };
    let sizes = size::sizes(params);
    let axis = if axis < 0 { axis + sizes.len() as i64 } else { axis };
    let found = usize::try_from(axis).ok().and_then(|axis| sizes.get(axis).copied());
    let Some(size) = found else {
        return vec![c.fail(Error::argument(c.op.name, "axis", "an axis of the tensor", axis))];
    };
    let inside = nearest(indices, size.value(indices));
    let mut inputs = vec![params, inside];
    inputs.extend(c.inputs().get(2));
    itself(c, c.attrs.clone().with("Tindices", inside.dtype()), &inputs)
}

/// `ResourceGather`.
pub(crate) fn gather_of_variable<'e>(c: &Composite<'e>) -> Vec<Value<'e>> {
    let (variable, indices) = (c.x(0), c.x(1));
    let attrs = Attrs::new().with("out_type", DType::I64);
    let shape = call_with("VariableShape", attrs, [variable]);
    let size = size::element(shape, c.int("batch_dims").max(0) as usize);
    of_two(c, variable, nearest(indices, size))
}

/// `GatherNd`.
pub(crate) fn gather_nd<'e>(c: &Composite<'e>) -> Vec<Value<'e>> {
    let (params, indices) = (c.x(0), wide(c.x(1)));
    let shape = indices.partial_shape();
    let depth = shape.dims().and_then(|dims| dims.last().copied().flatten());
    let sizes = size::sizes(params);
    let Some(sizes) = depth.and_then(|depth| sizes.get(..depth)) else {
        return vec![c.fail(Error::argument(c.op.name, "indices", "as many as axes", shape))];
    };
    let inside = match sizes.is_empty() {
        true => indices,
        false => nearest(indices, size::vector(sizes, indices)),
    };
    let attrs = c.attrs.clone().with("Tindices", inside.dtype());
    itself(c, attrs, &[params, inside])
}

/// `ScatterNd` and the ops that scatter into tensors.
pub(crate) fn scatter<'e>(c: &Composite<'e>) -> Vec<Value<'e>> {
    itself(c, c.attrs.clone().with("bad_indices_policy", "IGNORE"), c.inputs())
}

/// `UnsortedSegmentSum` and the like: rows of negative segments are left out.
pub(crate) fn segments<'e>(c: &Composite<'e>) -> Vec<Value<'e>> {
    let (ids, n) = (c.x(1), c.x(2));
    let wide_ids = wide(ids);
    let inside = wide_ids.less(n.cast(wide_ids.dtype()));
    let ids = inside.select(ids, ids.like(-1.0));
    itself(c, c.attrs.clone(), &[c.x(0), ids, n])
}

/// The result of an integer op where no divisor is zero, and the result where one is.
fn divided<'e>(
    c: &Composite<'e>,
    by_zero: impl Fn(Value<'e>, Value<'e>) -> Value<'e>,
) -> Vec<Value<'e>> {
    let (x, y) = (c.x(0), c.x(1));
    let known = || y.known().and_then(|value| value.to_i64s().ok());
    let total = !y.dtype().is_integer() || known().is_some_and(|all| !all.contains(&0));
    if total {
        return of_two(c, x, y);
    }
    let zero = y.equal(y.like(0.0));
    let usual = of_two(c, x, zero.select(y.like(1.0), y));
    usual.into_iter().map(|usual| zero.select(by_zero(x, y), usual)).collect()
}

/// `FloorDiv`: what XLA rounds down is the quotient of all ones, whose remainder is the dividend.
pub(crate) fn floor_quotient<'e>(c: &Composite<'e>) -> Vec<Value<'e>> {
    divided(c, |x, y| {
        let ones = call("Invert", [y.like(0.0)]);
        match x.dtype().is_signed_integer() {
            true => x.less(x.like(0.0)).select(ones - ones.like(1.0), ones),
            false => ones,
        }
    })
}

/// Quotients that are rounded towards zero.
pub(crate) fn quotient<'e>(c: &Composite<'e>) -> Vec<Value<'e>> {
    divided(c, |_, y| call("Invert", [y.like(0.0)]))
}

/// `Inv` and `Reciprocal`: the quotient of one.
pub(crate) fn reciprocal<'e>(c: &Composite<'e>) -> Vec<Value<'e>> {
    let x = c.x(0);
    if !x.dtype().is_integer() {
        return itself(c, c.attrs.clone(), &[x]);
    }
    let is_zero = x.equal(x.like(0.0));
    let found = itself(c, c.attrs.clone(), &[is_zero.select(x.like(1.0), x)]);
    found.into_iter().map(|found| is_zero.select(x.like(-1.0), found)).collect()
}

/// `Rsqrt`.
pub(crate) fn rsqrt<'e>(c: &Composite<'e>) -> Vec<Value<'e>> {
    match c.x(0).dtype().is_complex() {
        true => vec![complex::rsqrt(c.x(0))],
        false => itself(c, c.attrs.clone(), &[c.x(0)]),
    }
}

/// `Pow`: of integers to negative powers, 0 but for 1 and -1.
pub(crate) fn power<'e>(c: &Composite<'e>) -> Vec<Value<'e>> {
    let (x, y) = (c.x(0), c.x(1));
    if x.dtype().is_complex() {
        return vec![complex::power(x, y)];
    }
    if !x.dtype().is_integer() {
        return of_two(c, x, y);
    }
    let (zero, one, minus) = (x.like(0.0), x.like(1.0), x.like(-1.0));
    let is_odd = call("BitwiseAnd", [y, one]).equal(one);
    let of_minus = x.equal(minus).select(is_odd.select(minus, one), zero);
    let below = x.equal(one).select(one, of_minus);
    let found = of_two(c, x, y.maximum(zero));
    found.into_iter().map(|found| y.less(zero).select(below, found)).collect()
}

/// Remainders.
pub(crate) fn remainder<'e>(c: &Composite<'e>) -> Vec<Value<'e>> {
    divided(c, |x, _| x)
}

/// Whether integers shift an element of `x` by less than its width.
fn shifts_within<'e>(x: Value<'e>, by: Value<'e>) -> Value<'e> {
    let below = by.less(by.like(width(x.dtype()) as f64));
    call("LogicalAnd", [by.greater_equal(by.like(0.0)), below])
}

/// `LeftShift`.
pub(crate) fn left_shift<'e>(c: &Composite<'e>) -> Vec<Value<'e>> {
    let (x, by) = (c.x(0), c.x(1));
    let within = shifts_within(x, by);
    let shifted = of_two(c, x, by);
    shifted.into_iter().map(|shifted| within.select(shifted, x.like(0.0))).collect()
}

/// `RightShift`: of a signed integer the sign is left.
pub(crate) fn right_shift<'e>(c: &Composite<'e>) -> Vec<Value<'e>> {
    let (x, by) = (c.x(0), c.x(1));
    let within = shifts_within(x, by);
    if x.dtype().is_signed_integer() {
        let most = by.like((width(x.dtype()) - 1) as f64);
        return of_two(c, x, within.select(by, most));
    }
    let shifted = of_two(c, x, by);
    shifted.into_iter().map(|shifted| within.select(shifted, x.like(0.0))).collect()
}

/// `SparseSoftmaxCrossEntropyWithLogits`: of a label that is no class everything is NaN.
pub(crate) fn cross_entropy<'e>(c: &Composite<'e>) -> Vec<Value<'e>> {
    let (features, labels) = (c.x(0), c.x(1));
    let Some(&classes) = size::sizes(features).last() else {
        return vec![c.fail(Error::argument(c.op.name, "features", "rows of classes", "a scalar"))];
    };
    let classes = classes.value(labels).cast(labels.dtype());
    let below = labels.less(classes);
    let within = call("LogicalAnd", [labels.greater_equal(labels.like(0.0)), below]);
    let results = of_two(c, features, within.select(labels, labels.like(0.0)));
    let nan = features.like(f64::NAN);
    let of_rows = call("ExpandDims", [within, labels.literal(-1i32)]);
    let conditions = [within, of_rows];
    results.into_iter().zip(conditions).map(|(x, within)| within.select(x, nan)).collect()
}

/// `TopK` and `TopKV2`: always in order, floats in their total order (XLA's
/// `hlo/builder/lib/sorting.cc`): zeros and NaN by their signs.
pub(crate) fn top_k<'e>(c: &Composite<'e>) -> Vec<Value<'e>> {
    let (attrs, x) = (c.attrs.clone().with("sorted", true), c.x(0));
    if !x.dtype().is_float() {
        return itself(c, attrs, c.inputs());
    }
    let keys = total_order(x);
    let inputs: Vec<Value<'e>> = once(keys).chain(c.inputs()[1..].iter().copied()).collect();
    let order = itself(c, attrs.with("T", keys.dtype()), &inputs)[1];
    let axis = size::rank(x) as i64 - 1;
    let found =
        call_with("GatherV2", Attrs::new().with("batch_dims", axis), [x, order, x.literal(axis)]);
    vec![found, order]
}

/// `UpperBound`: elements are counted that are not larger, of which there are none for NaN.
pub(crate) fn upper_bound<'e>(c: &Composite<'e>) -> Vec<Value<'e>> {
    let (found, values) = (itself(c, c.attrs.clone(), c.inputs())[0], c.x(1));
    if !values.dtype().is_float() {
        return vec![found];
    }
    vec![call("IsNan", [values]).select(found.like(0.0), found)]
}

/// `Cast`: floats out of the range of an integer become the nearest one (`cast_op.cc`).
pub(crate) fn cast<'e>(c: &Composite<'e>) -> Vec<Value<'e>> {
    let (x, to) = (c.x(0), c.dtype_attr("DstT"));
    if x.dtype().is_float() && to.is_integer() {
        return vec![convert(x, to)];
    }
    itself(c, c.attrs.clone(), &[x])
}

/// `Assert`: nothing is asserted (`assert_op.cc` of `tf2xla/kernels`).
pub(crate) fn unasserted<'e>(_: &Composite<'e>) -> Vec<Value<'e>> {
    Vec::new()
}

/// `CheckNumerics`: nothing is checked.
pub(crate) fn unchecked<'e>(c: &Composite<'e>) -> Vec<Value<'e>> {
    vec![c.x(0)]
}
