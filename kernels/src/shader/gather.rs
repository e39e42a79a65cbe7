//! Reading slices by index: `Gather`, `GatherV2`, `GatherNd`.
//!
//! An index outside reads zeros, as on TensorFlow's accelerators: a device cannot fail half-way.

use super::{
    Shader,
    builder::{KernelBuffer, KernelBuilder, KernelValue},
    scalar_type::Caps,
};
use crate::{device::OpCall, error::Result};
use ferroflow_ir::infer::normalize_axis;

pub(super) const SHADERS: &[(&str, super::Build)] =
    &[("Gather", gather), ("GatherNd", gather_nd), ("GatherV2", gather_v2)];

fn gather(call: &OpCall<'_>, caps: Caps) -> Result<Option<Shader>> {
    along_axis(call, caps, 0, 0)
}

fn gather_v2(call: &OpCall<'_>, caps: Caps) -> Result<Option<Shader>> {
    let axis = normalize_axis(call.ints(2)?[0], call.shape(0).rank())?;
    let batch = call.attrs.int("batch_dims")?;
    let batch = if batch < 0 { batch + call.shape(1).rank() as i64 } else { batch };
    along_axis(call, caps, axis, batch as usize)
}

/// `[batch, outer, size, inner]` by indices `[batch, count]` → `[batch, outer, count, inner]`.
fn along_axis(call: &OpCall<'_>, caps: Caps, axis: usize, batch: usize) -> Result<Option<Shader>> {
    let (params, indices) = (call.shape(0), call.shape(1));
    let outer: usize = params[batch..axis].iter().product();
    let inner = params[axis + 1..].iter().product::<usize>().max(1);
    let count = indices[batch..].iter().product::<usize>().max(1);
    let size = params[axis];
    let k = KernelBuilder::new(caps);
    let ([data, positions], out) = (k.inputs(call, [0, 1]), k.result(call));
    let n = k.element();
    let row = k.bind("row", n / (inner * count));
    let position = positions.at(row / outer.max(1) * count + n / inner % count);
    let at = k.bind("at", position.as_index());
    k.when_else(
        at.lt(size),
        || out.set(n, data.at((row * size + at) * inner + n % inner)),
        || out.set(n, out.zero()),
    );
    k.finish(call.output_shape(0)?.num_elements())
}

fn gather_nd(call: &OpCall<'_>, caps: Caps) -> Result<Option<Shader>> {
    let (params, indices) = (call.shape(0), call.shape(1));
    let depth = indices.last().copied().unwrap_or(0);
    let inner = params[depth..].iter().product::<usize>().max(1);
    let k = KernelBuilder::new(caps);
    let (data, out) = (k.input(0, call.dtype(0)), k.result(call));
    let n = k.element();
    let (at, inside) = match depth {
        // Without an index there is no buffer to bind.
        0 => (k.index(0), k.bool(true)),
        _ => position(&k, k.input(1, call.dtype(1)), n / inner, &params[..depth]),
    };
    k.when_else(inside, || out.set(n, data.at(at * inner + n % inner)), || out.set(n, out.zero()));
    k.finish(call.output_shape(0)?.num_elements())
}

/// The position in a tensor of these dimensions that row `row` of a matrix of indices names, and
/// whether it is inside.
pub(super) fn position<'k>(
    k: &'k KernelBuilder,
    indices: KernelBuffer<'k>,
    row: KernelValue<'k>,
    dims: &[usize],
) -> (KernelValue<'k>, KernelValue<'k>) {
    let (mut position, mut inside) = (k.index(0), k.bool(true));
    for (axis, &size) in dims.iter().enumerate() {
        let index = k.bind("index", indices.at(row * dims.len() + axis).as_index());
        inside = inside.and(index.lt(size));
        position = position * size + index;
    }
    (position, inside)
}
