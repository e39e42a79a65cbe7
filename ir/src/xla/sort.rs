//! `sort`: tensors put in the order that a comparison of their elements asks for.

use super::{
    bits::total_order,
    carrier::widened,
    size::{Size, broadcast, range, rank, reshape, sizes, sizes_of_rank, transpose},
};
use crate::{
    attr::Attrs,
    dtype::DType,
    emit::{Value, call, call_with, calls_with},
};

/// A key to sort by.
#[derive(Debug, Clone, Copy)]
pub struct SortKey<'e> {
    /// Its elements, of a type with an order.
    pub value: Value<'e>,
    /// Whether larger ones come first.
    pub descending: bool,
}

/// A comparison: whether elements of the first tensors come before those of the second.
pub type Before<'f, 'e> = &'f dyn Fn(&[Value<'e>], &[Value<'e>]) -> Value<'e>;

/// The order of axes that puts one last, and the order that puts it back.
fn last(axis: usize, rank: usize) -> (Vec<usize>, Vec<usize>) {
    let order: Vec<usize> = (0..rank).filter(|&own| own != axis).chain([axis]).collect();
    let mut back = vec![0; rank];
    for (position, &own) in order.iter().enumerate() {
        back[own] = position;
    }
    (order, back)
}

/// Rows of the last axis, each in an order of its own.
fn permuted<'e>(x: Value<'e>, order: Value<'e>) -> Value<'e> {
    let axis = rank(x) as i64 - 1;
    call_with("GatherV2", Attrs::new().with("batch_dims", axis), [x, order, x.literal(axis)])
}

/// The tensors in the order of the keys, the first key first; equal ones stay as they are.
pub fn sort_by_keys<'e>(xs: &[Value<'e>], axis: usize, keys: &[SortKey<'e>]) -> Vec<Value<'e>> {
    let Some(&first) = xs.first() else { return Vec::new() };
    let (order, back) = last(axis, rank(first));
    let whole = sizes(first);
    let mut positions: Option<Value<'e>> = None;
    for key in keys.iter().rev() {
        let value = transpose(broadcast(key.value, &whole), &order);
        let value = positions.map_or(value, |positions| permuted(value, positions));
        let next = ascending_order(value, key.descending);
        positions = Some(positions.map_or(next, |positions| permuted(positions, next)));
    }
    let Some(positions) = positions else { return xs.to_vec() };
    xs.iter().map(|&x| transpose(permuted(transpose(x, &order), positions), &back)).collect()
}

/// The indices of elements along the last axis, smallest (or largest) first, equal ones as they
/// are.
fn ascending_order<'e>(x: Value<'e>, descending: bool) -> Value<'e> {
    let x = widened(x);
    let integers = match x.dtype() {
        DType::Bool => x.cast(DType::U8),
        dtype if dtype.is_float() => total_order(x),
        _ => x,
    };
    let keys = if descending { integers } else { call("Invert", [integers]) };
    let length = sizes(keys).last().copied().unwrap_or(Size::Known(1));
    let k = length.value(x);
    let attrs = Attrs::new().with("Tk", DType::I64).with("index_type", DType::I64);
    calls_with("TopKV2", attrs, &[keys, k]).at(1)
}

/// The tensors in the order of a comparison, equal ones as they are: every element is compared
/// with every other along the axis.
pub fn sort_by<'e>(xs: &[Value<'e>], axis: usize, before: Before<'_, 'e>) -> Vec<Value<'e>> {
    let Some(&first) = xs.first() else { return Vec::new() };
    let n = rank(first);
    let (order, back) = last(axis, n);
    let rows: Vec<Value<'e>> = xs.iter().map(|&x| transpose(x, &order)).collect();
    let shape = sizes_of_rank(rows[0], n);
    let length = shape[n - 1];
    let spread = |at: usize| -> Vec<Value<'e>> {
        let mut wide = shape.clone();
        wide.insert(at, Size::Known(1));
        rows.iter().map(|&x| reshape(x, &wide)).collect()
    };
    let mut square = shape.clone();
    square.push(length);
    // Element [i, j]: whether j comes before i, and whether i comes before j.
    let (columns, lines) = (spread(n - 1), spread(n));
    let sooner = broadcast(before(&columns, &lines), &square);
    let later = broadcast(before(&lines, &columns), &square);
    let positions = range(length, first);
    let [i, j] =
        [[length, Size::Known(1)], [Size::Known(1), length]].map(|s| reshape(positions, &s));
    let equal_before = call("LogicalAnd", [later.logical_not(), j.less(i)]);
    let counted = call("LogicalOr", [sooner, equal_before]).cast(DType::I32);
    let ranks = counted.sum(&[n as i64], false);
    let ascending = ascending_order(ranks, false);
    rows.iter().map(|&x| transpose(permuted(x, ascending), &back)).collect()
}

/// The `k` largest elements of the last axis and their indices as `i32`, in the total order of
/// floats: NaN first.
pub fn top_k<'e>(x: Value<'e>, k: Size<'e>) -> [Value<'e>; 2] {
    let n = rank(x);
    let keys = match widened(x) {
        wide if wide.dtype().is_float() => total_order(wide),
        wide if wide.dtype() == DType::Bool => wide.cast(DType::U8),
        wide => wide,
    };
    let attrs = Attrs::new().with("Tk", DType::I64).with("index_type", DType::I32);
    let order = calls_with("TopKV2", attrs, &[keys, k.value(x)]).at(1);
    let axis = n as i64 - 1;
    let attrs = Attrs::new().with("batch_dims", axis);
    [call_with("GatherV2", attrs, [x, order, x.literal(axis)]), order]
}
