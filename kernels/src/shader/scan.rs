//! Running results along an axis, and the largest elements of rows.

use super::{
    Shader,
    builder::{KernelBuilder, KernelValue},
    index::around,
    scalar_type::{Caps, ScalarType},
    search::rank_in_row,
};
use crate::{device::OpCall, error::Result};
use ferroflow_ir::infer::normalize_axis;

pub(super) const SHADERS: &[(&str, super::Build)] = &[
    ("Cumprod", |call, caps| scan(call, caps, Rule::Product)),
    ("Cumsum", |call, caps| scan(call, caps, Rule::Sum)),
    ("CumulativeLogsumexp", |call, caps| scan(call, caps, Rule::LogSumExp)),
    ("TopK", top_k),
    ("TopKV2", top_k),
];

/// Operation that scans the elements.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Rule {
    Sum,
    Product,
    LogSumExp,
}

impl Rule {
    fn start(self, k: &KernelBuilder, scalar: ScalarType) -> KernelValue<'_> {
        match self {
            Rule::Sum => k.number(scalar, 0),
            Rule::Product => k.number(scalar, 1),
            Rule::LogSumExp => k.float(f32::NEG_INFINITY),
        }
    }

    fn step<'k>(self, acc: KernelValue<'k>, x: KernelValue<'k>) -> KernelValue<'k> {
        match self {
            Rule::Sum => acc + x,
            Rule::Product => acc * x,
            Rule::LogSumExp => acc.function_with("log_add_", x),
        }
    }
}

/// An invocation per row.
fn scan(call: &OpCall<'_>, caps: Caps, rule: Rule) -> Result<Option<Shader>> {
    let axis = normalize_axis(call.ints(1)?[0], call.shape(0).rank())?;
    let dims = around(call.shape(0), axis);
    let (size, inner) = (dims.size, dims.inner.max(1));
    let (exclusive, reverse) = (call.attrs.bool("exclusive")?, call.attrs.bool("reverse")?);
    let k = KernelBuilder::new(caps);
    let ([input], out, n) = (k.inputs(call, [0]), k.result(call), k.element());
    k.requires(out.scalar != ScalarType::Bool);
    k.requires(rule != Rule::LogSumExp || out.scalar == ScalarType::F32);
    let base = k.bind("base", n / inner * (size * inner) + n % inner);
    let acc = k.variable("acc", rule.start(&k, out.scalar));
    k.for_below("i", size, |i| {
        let step = if reverse { (size.max(1) - 1) - i } else { i };
        let at = k.bind("at", base + step * inner);
        let store = || out.set(at, acc.rounded(call.dtype(0)));
        if exclusive {
            store();
        }
        acc.set(rule.step(acc, input.at(at)));
        if !exclusive {
            store();
        }
    });
    k.finish(if size == 0 { 0 } else { dims.outer * dims.inner })
}

/// An invocation per element, which counts how many come before it: larger ones, and equal ones to
/// the left. NaN is larger than anything. The order of a heap, which is that of elements that are
/// not sorted, is left to the host.
fn top_k(call: &OpCall<'_>, caps: Caps) -> Result<Option<Shader>> {
    let row = call.shape(0).last().copied().unwrap_or(0);
    let count = call.output_shape(0)?.last().copied().unwrap_or(0);
    if !call.attrs.bool("sorted")? && 1 < count && count < row {
        return Ok(None);
    }
    let k = KernelBuilder::new(caps);
    let ([data], values) = (k.inputs(call, [0]), k.result(call));
    let indices = k.output(call.outputs[1].dtype);
    k.requires(data.scalar != ScalarType::Bool);
    let (n, row) = (k.element(), row.max(1));
    let rank = rank_in_row(
        &k,
        row,
        |i| data.at(i),
        |other, key| {
            let (before, after) = (other.is_nan(), key.is_nan());
            (other.gt(key).or(before.and(!after)), other.eq(key).or(before.and(after)))
        },
    );
    k.when(rank.lt(count), || {
        let at = k.bind("at", n / row * count + rank);
        values.set(at, data.at(n));
        indices.set(at, (n % row).to(indices.scalar));
    });
    k.finish(if count == 0 { 0 } else { call.shape(0).num_elements() })
}
