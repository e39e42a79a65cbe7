//! Segments in order, where their number is known: `SparseSegment…WithNumSegments`, and gradients.
//!
//! An invocation per element of the result looks for the rows of its segment. Rows and segments
//! outside are left out.

use super::{
    Shader,
    builder::{KernelBuilder, KernelValue},
    scalar_type::{Caps, ScalarType},
};
use crate::{device::OpCall, error::Result};

pub(super) const SHADERS: &[(&str, super::Build)] = &[
    ("SparseSegmentMeanGrad", |call, caps| gradient(call, caps, Rule::Mean)),
    ("SparseSegmentMeanWithNumSegments", |call, caps| segments(call, caps, Rule::Mean)),
    ("SparseSegmentSqrtNGrad", |call, caps| gradient(call, caps, Rule::Root)),
    ("SparseSegmentSqrtNWithNumSegments", |call, caps| segments(call, caps, Rule::Root)),
    ("SparseSegmentSumGrad", |call, caps| gradient(call, caps, Rule::Sum)),
    ("SparseSegmentSumWithNumSegments", |call, caps| segments(call, caps, Rule::Sum)),
];

/// Reduction of the rows of a segment.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Rule {
    Sum,
    Mean,
    /// The sum over the root of the number of rows.
    Root,
}

impl Rule {
    /// The result of a sum of `count` rows.
    fn share<'k>(self, sum: KernelValue<'k>, count: KernelValue<'k>) -> KernelValue<'k> {
        let scalar = sum.scalar();
        match self {
            Rule::Sum => sum,
            Rule::Mean if scalar == ScalarType::F32 => sum / count.to(scalar),
            Rule::Mean => sum.function_with(format!("div_{}_", scalar.name()), count.to(scalar)),
            Rule::Root => sum / count.to(ScalarType::F32).function("sqrt"),
        }
    }
}

/// Data `[rows, inner]`, numbers of rows, and their segments → `[segments, inner]`.
fn segments(call: &OpCall<'_>, caps: Caps, rule: Rule) -> Result<Option<Shader>> {
    let k = KernelBuilder::new(caps);
    let ([data, rows, ids], out) = (k.inputs(call, [0, 1, 2]), k.result(call));
    k.requires(match rule {
        Rule::Root => out.scalar == ScalarType::F32,
        Rule::Sum | Rule::Mean => out.scalar != ScalarType::Bool,
    });
    let shape = call.output_shape(0)?;
    let inner = shape[1..].iter().product::<usize>().max(1);
    let n = k.element();
    let segment = k.bind("segment", n / inner);
    let (count, sum) = (k.variable("count", k.index(0)), k.variable("sum", out.zero()));
    k.for_below("i", call.shape(1).num_elements(), |i| {
        let row = k.bind("row", rows.at(i).as_index());
        let is_own = ids.at(i).as_index().eq(segment).and(row.lt(call.shape(0)[0]));
        k.when(is_own, || {
            sum.set(sum + data.at(row * inner + n % inner));
            count.set(count + 1);
        });
    });
    k.when(count.gt(0), || sum.set(rule.share(sum, count).rounded(call.dtype(0))));
    out.set(n, sum);
    k.finish(shape.num_elements())
}

/// Rows of gradients `[segments, inner]` go back to the rows that were chosen.
fn gradient(call: &OpCall<'_>, caps: Caps, rule: Rule) -> Result<Option<Shader>> {
    let k = KernelBuilder::new(caps);
    let ([gradients, rows, ids], out) = (k.inputs(call, [0, 1, 2]), k.result(call));
    k.requires(out.scalar == ScalarType::F32);
    let (shape, chosen) = (call.output_shape(0)?, call.shape(1).num_elements());
    let inner = shape[1..].iter().product::<usize>().max(1);
    let n = k.element();
    let (row, sum) = (k.bind("row", n / inner), k.variable("sum", out.zero()));
    k.for_below("i", chosen, |i| {
        let segment = k.bind("segment", ids.at(i).as_index());
        let is_own = rows.at(i).as_index().eq(row).and(segment.lt(call.shape(0)[0]));
        k.when(is_own, || {
            let count = k.variable("count", k.index(0));
            if rule != Rule::Sum {
                k.for_below("j", chosen, |j| {
                    k.when(ids.at(j).as_index().eq(segment), || count.set(count + 1));
                });
            }
            let share = rule.share(gradients.at(segment * inner + n % inner), count);
            sum.set(sum + share);
        });
    });
    out.set(n, sum.rounded(call.dtype(0)));
    k.finish(shape.num_elements())
}
