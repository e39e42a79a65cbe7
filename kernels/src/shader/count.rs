//! Counting and binning: `Bincount`, `DenseBincount`, `HistogramFixedWidth`.
//!
//! An invocation per bin looks for what belongs there.

use super::{
    Shader,
    builder::KernelBuilder,
    scalar_type::{Caps, ScalarType},
};
use crate::{device::OpCall, error::Result};

pub(super) const SHADERS: &[(&str, super::Build)] =
    &[("Bincount", bincount), ("DenseBincount", bincount), ("HistogramFixedWidth", histogram)];

/// Integers, in rows if the result has them, and their weights if there are any.
fn bincount(call: &OpCall<'_>, caps: Caps) -> Result<Option<Shader>> {
    let shape = call.output_shape(0)?;
    let size = shape.last().copied().unwrap_or(0).max(1);
    let columns = if shape.rank() == 2 { call.shape(0)[1] } else { call.shape(0).num_elements() };
    let is_binary = call.attrs.bool("binary_output").unwrap_or(false);
    let k = KernelBuilder::new(caps);
    let ([values], out, n) = (k.inputs(call, [0]), k.result(call), k.element());
    k.requires(out.scalar != ScalarType::Bool);
    let is_weighted = !is_binary && call.shape(2).num_elements() > 0;
    let weights = is_weighted.then(|| k.input(2, call.dtype(2)));
    let (bin, first) = (k.bind("bin", n % size), k.bind("first", n / size * columns));
    let sum = k.variable("sum", out.zero());
    k.for_below("i", columns, |i| {
        let at = k.bind("at", first + i);
        let one = k.number(out.scalar, 1);
        let next =
            if is_binary { one } else { sum + weights.map_or(one, |weights| weights.at(at)) };
        let is_here = values.at(at).as_index().eq(bin);
        k.when(is_here, || sum.set(next.rounded(call.outputs[0].dtype)));
    });
    out.set(n, sum);
    k.finish(shape.num_elements())
}

/// Bins of one width between two ends; what is outside counts to the outermost ones.
fn histogram(call: &OpCall<'_>, caps: Caps) -> Result<Option<Shader>> {
    let bins = call.output_shape(0)?.num_elements();
    let k = KernelBuilder::new(caps);
    let ([values, range], out, n) = (k.inputs(call, [0, 1]), k.result(call), k.element());
    k.requires(values.scalar == ScalarType::F32 && out.scalar != ScalarType::Bool);
    let low = k.bind("low", range.at(0));
    let width = k.bind("width", (range.at(1) - low) / bins as f32);
    let count = k.variable("count", out.zero());
    k.for_below("i", call.shape(0).num_elements(), |i| {
        let value = k.bind("value", values.at(i));
        let bin = value.gt(low).select((value - low) / width, k.float(0.0));
        let bin = bin.clamp(0.0, (bins.max(1) - 1) as f32).as_index();
        k.when(bin.eq(n), || count.set(count + 1));
    });
    out.set(n, count);
    k.finish(bins)
}
