//! Writing slices by index: `ScatterNd`, `TensorScatter…`, `UnsortedSegment…`.
//!
//! An invocation per element of the result looks for the updates of its place in their order: no
//! two invocations write one word, and results do not depend on chance. Updates outside are left
//! out, as on TensorFlow's accelerators.

use super::{
    Shader,
    builder::{KernelBuilder, KernelValue},
    gather::position,
    reduce::bound,
    scalar_type::{Caps, ScalarType},
};
use crate::{device::OpCall, error::Result};
use ferroflow_ir::DType;

pub(super) const SHADERS: &[(&str, super::Build)] = &[
    ("ScatterNd", |call, caps| onto(call, caps, None, Rule::Add)),
    ("ScatterNdNonAliasingAdd", |call, caps| onto(call, caps, Some(0), Rule::Add)),
    ("SparseToDense", sparse_to_dense),
    ("TensorScatterAdd", |call, caps| onto(call, caps, Some(0), Rule::Add)),
    ("TensorScatterMax", |call, caps| onto(call, caps, Some(0), Rule::Max)),
    ("TensorScatterMin", |call, caps| onto(call, caps, Some(0), Rule::Min)),
    ("TensorScatterSub", |call, caps| onto(call, caps, Some(0), Rule::Sub)),
    ("TensorScatterUpdate", |call, caps| onto(call, caps, Some(0), Rule::Update)),
    ("UnsortedSegmentMax", |call, caps| segments(call, caps, Rule::LargestRow)),
    ("UnsortedSegmentMin", |call, caps| segments(call, caps, Rule::SmallestRow)),
    ("UnsortedSegmentProd", |call, caps| segments(call, caps, Rule::Mul)),
    ("UnsortedSegmentSum", |call, caps| segments(call, caps, Rule::Add)),
    ("_TensorScatterDiv", |call, caps| onto(call, caps, Some(0), Rule::Div)),
    ("_TensorScatterMul", |call, caps| onto(call, caps, Some(0), Rule::Mul)),
];

/// Combination of an update with the element before it.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Rule {
    Update,
    Add,
    Sub,
    Mul,
    Div,
    Min,
    Max,
    /// Of the rows of a segment: NaN of either goes with the next row, where [`Rule::Min`] leaves NaN of
    /// updates out, as on the host.
    SmallestRow,
    LargestRow,
}

impl Rule {
    /// Whether elements of this type are so combined.
    fn fits(self, scalar: ScalarType) -> bool {
        scalar != ScalarType::Bool || matches!(self, Rule::Update | Rule::Add)
    }

    /// The combination of an element and an update, as one of a dtype: each update rounds, as each
    /// would were they separate calls. The sum of bools is whether there is any.
    fn combine<'k>(
        self,
        dtype: DType,
        element: KernelValue<'k>,
        update: KernelValue<'k>,
    ) -> KernelValue<'k> {
        let (scalar, update) = (element.scalar(), update.bound("update"));
        match self {
            Rule::Update => update,
            Rule::Add if scalar == ScalarType::Bool => element | update,
            Rule::Max => element.lt(update).select(update, element),
            Rule::Min => update.lt(element).select(update, element),
            Rule::LargestRow => update.lt(element).select(element, update),
            Rule::SmallestRow => element.lt(update).select(element, update),
            Rule::Add => (element + update).rounded(dtype),
            Rule::Sub => (element - update).rounded(dtype),
            Rule::Mul => (element * update).rounded(dtype),
            Rule::Div if dtype.is_float() => (element / update).rounded(dtype),
            Rule::Div => {
                element.function_with(format!("div_{}_", scalar.name()), update).rounded(dtype)
            }
        }
    }
}

/// The result is seen as `[dims…, inner]`, the updates as `[count, inner]`.
fn onto(
    call: &OpCall<'_>,
    caps: Caps,
    before: Option<usize>,
    rule: Rule,
) -> Result<Option<Shader>> {
    let first = before.map_or(0, |before| before + 1);
    let (shape, positions) = (call.output_shape(0)?, call.shape(first));
    let (count, depth) = match &positions[..] {
        [n] => (*n, 1),
        [rows @ .., depth] => (rows.iter().product(), *depth),
        [] => (0, 0),
    };
    let dtype = call.outputs[0].dtype;
    let k = KernelBuilder::new(caps);
    let before = before.map(|before| k.input(before, dtype));
    let (out, n) = (k.result(call), k.element());
    k.requires(rule.fits(out.scalar));
    let start = before.map_or(out.zero(), |before| before.at(n));
    let acc = k.variable("acc", start);
    if count > 0 {
        let [indices, updates] = k.inputs(call, [first, first + 1]);
        let inner = shape[depth..].iter().product::<usize>().max(1);
        let row = k.bind("row", n / inner);
        k.for_below("i", count, |i| {
            let (at, inside) = position(&k, indices, i, &shape[..depth]);
            k.when(inside.and(at.eq(row)), || {
                acc.set(rule.combine(dtype, acc, updates.at(i * inner + n % inner)));
            });
        });
    }
    out.set(n, acc);
    k.finish(shape.num_elements())
}

/// Elements, or one for all, at positions `[count, rank]`, among others. A call that has its
/// positions checked has no kernel.
fn sparse_to_dense(call: &OpCall<'_>, caps: Caps) -> Result<Option<Shader>> {
    let (shape, positions) = (call.output_shape(0)?, call.shape(0));
    let is_one = call.shape(2).rank() == 0;
    let k = KernelBuilder::new(caps);
    let ([indices, values, other], out) = (k.inputs(call, [0, 2, 3]), k.result(call));
    k.requires(!call.attrs.bool("validate_indices")?);
    let n = k.element();
    out.set(n, other.at(0));
    k.for_below("i", positions.first().copied().unwrap_or(1), |i| {
        let (at, inside) = position(&k, indices, i, &shape);
        let value = values.at(if is_one { k.index(0) } else { i });
        k.when(inside.and(at.eq(n)), || out.set(n, value));
    });
    k.finish(shape.num_elements())
}

/// `[rows, inner]` by the segment of each row → `[segments, inner]`.
fn segments(call: &OpCall<'_>, caps: Caps, rule: Rule) -> Result<Option<Shader>> {
    let (shape, rows, dtype) = (call.output_shape(0)?, call.shape(1).num_elements(), call.dtype(0));
    let inner = shape[1..].iter().product::<usize>().max(1);
    let k = KernelBuilder::new(caps);
    let ([data, ids], out, n) = (k.inputs(call, [0, 1]), k.result(call), k.element());
    k.requires(rule.fits(out.scalar));
    let start = match rule {
        Rule::Mul => k.number(out.scalar, 1),
        // Unlike reductions these start from finite numbers.
        Rule::LargestRow | Rule::SmallestRow => bound(&k, dtype, rule == Rule::LargestRow),
        _ => out.zero(),
    };
    let (acc, segment) = (k.variable("acc", start), k.bind("segment", n / inner));
    k.for_below("i", rows, |i| {
        k.when(ids.at(i).as_index().eq(segment), || {
            acc.set(rule.combine(dtype, acc, data.at(i * inner + n % inner)));
        });
    });
    out.set(n, acc);
    k.finish(shape.num_elements())
}
