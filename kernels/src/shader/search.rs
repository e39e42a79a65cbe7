//! Positions in rows: `LowerBound`, `UpperBound`, `Bucketize`, `InTopK`, `NthElement`,
//! `InvertPermutation`.

use super::{
    Shader,
    builder::{KernelBuilder, KernelValue},
    scalar_type::{Caps, ScalarType},
};
use crate::{device::OpCall, error::Result};

pub(super) const SHADERS: &[(&str, super::Build)] = &[
    ("Bucketize", bucketize),
    ("InTopK", in_top_k),
    ("InTopKV2", in_top_k),
    ("InvertPermutation", invert),
    ("LowerBound", |call, caps| bound(call, caps, |element, value| element.lt(value))),
    ("NthElement", nth),
    ("UpperBound", |call, caps| bound(call, caps, |element, value| !value.lt(element))),
];

/// Whether an element of a row comes before a value.
type ComesBefore = for<'k> fn(KernelValue<'k>, KernelValue<'k>) -> KernelValue<'k>;

/// Halves what is left of a row until it is found how many elements come before a value.
fn bound(call: &OpCall<'_>, caps: Caps, comes_before: ComesBefore) -> Result<Option<Shader>> {
    let (row, values) = (call.shape(0)[1], call.shape(1)[1].max(1));
    let k = KernelBuilder::new(caps);
    let ([sorted, sought], out) = (k.inputs(call, [0, 1]), k.result(call));
    k.requires(sorted.scalar != ScalarType::Bool);
    let n = k.element();
    let base = k.bind("base", n / values * row);
    let value = k.bind("value", sought.at(n).compared());
    let (low, high) = (k.variable("low", k.index(0)), k.variable("high", k.index(row)));
    k.for_below("i", 32, |_| {
        k.when(low.ge(high), || k.end_loop());
        let middle = k.bind("middle", (low + high) / 2);
        let element = k.bind("element", sorted.at(base + middle).compared());
        k.when_else(comes_before(element, value), || low.set(middle + 1), || high.set(middle));
    });
    out.set(n, low.to(out.scalar));
    k.finish(call.output_shape(0)?.num_elements())
}

/// Integers are compared as floats, as the boundaries are.
fn bucketize(call: &OpCall<'_>, caps: Caps) -> Result<Option<Shader>> {
    let k = KernelBuilder::new(caps);
    let ([input], out, n) = (k.inputs(call, [0]), k.result(call), k.element());
    let value = k.bind("value", input.at(n).to(ScalarType::F32).compared());
    let bucket = k.variable("bucket", out.zero());
    for &boundary in call.attrs.floats("boundaries")? {
        k.when(!value.lt(boundary), || bucket.set(bucket + 1));
    }
    out.set(n, bucket);
    k.finish(call.shape(0).num_elements())
}

/// Whether fewer than `k` predictions are larger than that of the target. Nothing is among rows
/// with predictions that are not finite, and targets outside are nowhere.
fn in_top_k(call: &OpCall<'_>, caps: Caps) -> Result<Option<Shader>> {
    let row = call.shape(0)[1];
    let k = KernelBuilder::new(caps);
    let ([predictions, targets], out) = (k.inputs(call, [0, 1]), k.result(call));
    let n = k.element();
    let label = k.bind("label", targets.at(n).as_index());
    let found = k.variable("found", k.bool(false));
    let limit = match call.inputs.len() {
        3 => k.input(2, call.dtype(2)).at(0),
        _ => k.number(ScalarType::I32, i32::try_from(call.attrs.int("k")?).unwrap_or(i32::MAX)),
    };
    k.when(label.lt(row), || {
        let prediction = k.bind("prediction", predictions.at(n * row + label));
        let larger = k.variable("larger", k.number(ScalarType::I32, 0));
        let finite = k.variable("finite", prediction.is_finite());
        k.for_below("i", row, |i| {
            let other = k.bind("other", predictions.at(n * row + i));
            finite.set(finite.and(other.is_finite()));
            let is_larger = other.compared().gt(prediction.compared());
            k.when(is_larger, || larger.set(larger + 1));
        });
        found.set(finite.and(larger.to(limit.scalar()).lt(limit)));
    });
    out.set(n, found);
    k.finish(call.shape(0)[0])
}

/// The element that so many come before; equal ones count by position, NaN comes last.
fn nth(call: &OpCall<'_>, caps: Caps) -> Result<Option<Shader>> {
    let row = call.shape(0).last().copied().unwrap_or(1).max(1);
    let k = KernelBuilder::new(caps);
    let ([data, wanted], out) = (k.inputs(call, [0, 1]), k.result(call));
    k.requires(out.scalar != ScalarType::Bool);
    let n = k.element();
    let wanted = wanted.at(0).as_index().min(row - 1);
    let wanted = if call.attrs.bool("reverse")? { (row - 1) - wanted } else { wanted };
    let rank = rank_in_row(
        &k,
        row,
        |i| data.at(i),
        |other, key| {
            let (after, before) = (key.is_nan(), other.is_nan());
            (other.lt(key).or(after.and(!before)), other.eq(key).or(before.and(after)))
        },
    );
    k.when(rank.eq(wanted), || out.set(n / row, data.at(n)));
    k.finish(call.shape(0).num_elements())
}

/// The number of elements of its row that come before this invocation's: those that are told to, and
/// those to the left that are told to be equal.
pub(super) fn rank_in_row<'k>(
    k: &'k KernelBuilder,
    row: usize,
    data: impl Fn(KernelValue<'k>) -> KernelValue<'k>,
    order: impl Fn(KernelValue<'k>, KernelValue<'k>) -> (KernelValue<'k>, KernelValue<'k>),
) -> KernelValue<'k> {
    let n = k.element();
    let base = k.bind("base", n / row * row);
    let key = k.bind("key", data(n).compared());
    let rank = k.variable("rank", k.index(0));
    k.for_below("i", row, |i| {
        let other = k.bind("other", data(base + i).compared());
        let (is_before, is_equal) = order(other, key);
        let counts = is_before.or(is_equal.and(i.lt(n % row)));
        k.when(counts, || rank.set(rank + 1));
    });
    rank
}

/// Each element is put at the position that it names; what names none is left out.
fn invert(call: &OpCall<'_>, caps: Caps) -> Result<Option<Shader>> {
    let count = call.shape(0).num_elements();
    let k = KernelBuilder::new(caps);
    let ([indices], out, n) = (k.inputs(call, [0]), k.result(call), k.element());
    let position = k.variable("position", k.index(0));
    k.for_below("i", count, |i| {
        k.when(indices.at(i).as_index().eq(n), || position.set(i));
    });
    out.set(n, position.to(out.scalar));
    k.finish(count)
}
