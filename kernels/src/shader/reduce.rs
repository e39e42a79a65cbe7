//! Reductions along any axes: an invocation per result, or a workgroup where that pays.
//!
//! Sums of floats are kept in sixteen interleaved partial sums, which are then added in pairs:
//! their rounding error grows with a sixteenth of the length.

use super::{
    Shader,
    builder::{KernelBuilder, KernelValue},
    dialect::WORKGROUP,
    index::position,
    scalar_type::{Caps, ScalarType},
    workgroup::{Fold, parts},
};
use crate::{device::OpCall, error::Result};
use ferroflow_ir::{
    DType, ReduceKind, StridedView, expr::Constant, infer::reduced_axes, view::ViewDim,
};
use smallvec::SmallVec;

/// Partial sums of floats.
const PARTIAL_SUMS: usize = 16;

/// Elements per result from which on workgroups compute it, where they pay.
const LONG: usize = 512;

/// So few results do not keep a device busy with an invocation for each.
const FEW: usize = 1 << 14;

/// The shader of a reduction.
///
/// # Errors
///
/// When the axes are none of the input.
pub(super) fn shader(call: &OpCall<'_>, caps: Caps, kind: ReduceKind) -> Result<Option<Shader>> {
    let shape = call.shape(0);
    let reduced = reduced_axes(&call.ints(1)?, shape.rank())?;
    let strides = shape.strides();
    let dims = |wanted: bool| {
        let dims = shape.iter().zip(&strides).zip(&reduced);
        let dims: SmallVec<[ViewDim; 6]> = dims
            .filter(|(_, reduced)| **reduced == wanted)
            .map(|((&size, &stride), _)| ViewDim { size, stride: stride as isize })
            .collect();
        StridedView { offset: 0, dims }
    };
    let axes = ReducedAxes { kept: dims(false), folded: dims(true) };
    let Some(scalar) = ScalarType::of(call.dtype(0), caps) else { return Ok(None) };
    if kind == ReduceKind::Mean && scalar != ScalarType::F32 {
        return whole_mean(call, caps, &axes);
    }
    let (count, length) = (axes.kept.num_elements(), axes.folded.num_elements());
    let rule = Rule { kind, dtype: call.dtype(0), length };
    if !rule.fits(scalar) {
        return Ok(None);
    }
    let is_long = caps.tiles && scalar == ScalarType::F32 && length >= LONG;
    if is_long && (count <= FEW || axes.is_row()) {
        return by_workgroups(call, caps, rule, &axes);
    }
    by_invocations(call, caps, rule, &axes)
}

/// The axes of an input, as views of it.
struct ReducedAxes {
    kept: StridedView,
    folded: StridedView,
}

impl ReducedAxes {
    /// Whether neighbours in memory are folded.
    fn is_row(&self) -> bool {
        self.folded.dims.last().is_some_and(|dim| dim.stride == 1)
    }
}

/// An invocation per result.
fn by_invocations(
    call: &OpCall<'_>,
    caps: Caps,
    rule: Rule,
    axes: &ReducedAxes,
) -> Result<Option<Shader>> {
    let k = KernelBuilder::new(caps);
    let ([data], out) = (k.inputs(call, [0]), k.output(call.dtype(0)));
    let length = rule.length;
    let is_split = data.scalar == ScalarType::F32 && rule.is_sum() && length >= 4 * PARTIAL_SUMS;
    let count = if is_split { PARTIAL_SUMS } else { 1 };
    let base = k.bind("base", position(&k, &axes.kept, k.element()));
    let sums: Vec<KernelValue<'_>> =
        (0..count).map(|_| k.variable("acc", rule.start(&k))).collect();
    let add = |sum: KernelValue<'_>, i| {
        let element = data.at(base + position(&k, &axes.folded, i));
        sum.set(rule.combine(sum, rule.contribution(element)));
    };
    let whole = length / count * count;
    k.for_range("i", (0, whole, count), |i| {
        sums.iter().enumerate().for_each(|(at, &sum)| add(sum, i + at));
    });
    if whole < length {
        k.for_range("i", (whole, length, 1), |i| add(sums[0], i));
    }
    let mut width = count / 2;
    while width > 0 {
        for at in 0..width {
            sums[at].set(rule.combine(sums[at], sums[at + width]));
        }
        width /= 2;
    }
    out.set(k.element(), rule.finish(&k, sums[0]));
    k.finish(axes.kept.num_elements())
}

/// A workgroup per result.
fn by_workgroups(
    call: &OpCall<'_>,
    caps: Caps,
    rule: Rule,
    axes: &ReducedAxes,
) -> Result<Option<Shader>> {
    let k = KernelBuilder::new(caps);
    let ([data], out) = (k.inputs(call, [0]), k.output(call.dtype(0)));
    parts(&k);
    let base = k.bind("base", position(&k, &axes.kept, k.workgroup()));
    let acc = k.variable("acc", rule.start(&k));
    k.for_range("i", (k.local(), rule.length, WORKGROUP), |i| {
        let element = data.at(base + position(&k, &axes.folded, i));
        acc.set(rule.combine(acc, rule.contribution(element)));
    });
    let folded = rule.fold().whole(&k, acc, WORKGROUP);
    k.when(k.local().eq(0), || out.set(k.workgroup(), rule.finish(&k, folded)));
    k.finish(axes.kept.num_elements() * WORKGROUP)
}

/// Means of integers, whose sums need wider ones; of nothing 0.
fn whole_mean(call: &OpCall<'_>, caps: Caps, axes: &ReducedAxes) -> Result<Option<Shader>> {
    let k = KernelBuilder::new(caps);
    let ([data], out) = (k.inputs(call, [0]), k.output(call.dtype(0)));
    let is_signed = matches!(data.scalar, ScalarType::I32 | ScalarType::I64);
    let wide = if is_signed { ScalarType::I64 } else { ScalarType::U64 };
    k.requires(caps.int64 && !matches!(data.scalar, ScalarType::F32 | ScalarType::Bool));
    let length = axes.folded.num_elements();
    let base = k.bind("base", position(&k, &axes.kept, k.element()));
    let sum = k.variable("sum", k.number(wide, 0));
    k.for_below("i", length, |i| {
        sum.set(sum + data.at(base + position(&k, &axes.folded, i)).to(wide));
    });
    out.set(k.element(), (sum / length.max(1)).to(data.scalar));
    k.finish(axes.kept.num_elements())
}

/// Reduction of so many elements of a dtype.
#[derive(Debug, Clone, Copy)]
struct Rule {
    kind: ReduceKind,
    dtype: DType,
    length: usize,
}

impl Rule {
    /// Whether elements of this type are so reduced.
    fn fits(self, scalar: ScalarType) -> bool {
        use ReduceKind::*;
        match self.kind {
            All | Any => scalar == ScalarType::Bool,
            EuclideanNorm => scalar == ScalarType::F32,
            Sum | Mean | Prod | Max | Min => scalar != ScalarType::Bool,
        }
    }

    fn is_sum(self) -> bool {
        matches!(self.kind, ReduceKind::Sum | ReduceKind::Mean | ReduceKind::EuclideanNorm)
    }

    /// The result of no elements.
    fn start(self, k: &KernelBuilder) -> KernelValue<'_> {
        use ReduceKind::*;
        match self.kind {
            Sum | Mean | EuclideanNorm | Any => k.number(k.scalar(self.dtype), 0),
            Prod | All => k.number(k.scalar(self.dtype), 1),
            Max => extreme(k, self.dtype, true),
            Min => extreme(k, self.dtype, false),
        }
    }

    fn contribution(self, element: KernelValue<'_>) -> KernelValue<'_> {
        match self.kind {
            ReduceKind::EuclideanNorm => element.function("square_"),
            _ => element,
        }
    }

    fn combine<'k>(self, acc: KernelValue<'k>, x: KernelValue<'k>) -> KernelValue<'k> {
        use ReduceKind::*;
        match self.kind {
            Sum | Mean | EuclideanNorm => acc + x,
            Prod => acc * x,
            Max | Min if self.dtype.is_float() => self.fold().combine(acc, x),
            Max => acc.max(x),
            Min => acc.min(x),
            All => acc & x,
            Any => acc | x,
        }
    }

    /// The combination of floats.
    fn fold(self) -> Fold {
        match self.kind {
            ReduceKind::Max => Fold::Function("max_"),
            ReduceKind::Min => Fold::Function("min_"),
            ReduceKind::Prod => Fold::Function("times_"),
            ReduceKind::Sum
            | ReduceKind::Mean
            | ReduceKind::EuclideanNorm
            | ReduceKind::All
            | ReduceKind::Any => Fold::Sum,
        }
    }

    fn finish<'k>(self, k: &'k KernelBuilder, acc: KernelValue<'k>) -> KernelValue<'k> {
        let value = match self.kind {
            ReduceKind::Mean if self.length == 0 => k.float(f32::NAN),
            ReduceKind::Mean => acc / self.length as f32,
            ReduceKind::EuclideanNorm => acc.function("sqrt"),
            _ => acc,
        };
        value.rounded(self.dtype)
    }
}

/// Least (or greatest) finite element.
pub(super) fn bound(k: &KernelBuilder, dtype: DType, lowest: bool) -> KernelValue<'_> {
    let most = match dtype {
        DType::F32 => f32::MAX,
        DType::F16 => half::f16::MAX.to_f32(),
        DType::BF16 => half::bf16::MAX.to_f32(),
        dtype => return extreme(k, dtype, lowest),
    };
    k.float(if lowest { -most } else { most })
}

/// Least (or greatest) element. A dtype without order makes the kernel none.
pub(super) fn extreme(k: &KernelBuilder, dtype: DType, lowest: bool) -> KernelValue<'_> {
    let (scalar, bits) = (k.scalar(dtype), dtype.size().map_or(0, |size| size as u32 * 8));
    let value = match scalar {
        ScalarType::F32 if lowest => return k.float(f32::NEG_INFINITY),
        ScalarType::F32 => return k.float(f32::INFINITY),
        ScalarType::Bool => {
            k.unsupported();
            0
        }
        ScalarType::I32 | ScalarType::I64 if lowest => -(1i128 << (bits - 1)),
        ScalarType::I32 | ScalarType::I64 => (1i128 << (bits - 1)) - 1,
        ScalarType::U32 | ScalarType::U64 if lowest => 0,
        ScalarType::U32 | ScalarType::U64 => (1i128 << bits) - 1,
    };
    k.constant(scalar, Constant::Int(value))
}
