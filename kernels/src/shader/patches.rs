//! `ExtractImagePatches`.

use super::{Shader, builder::KernelBuilder, scalar_type::Caps};
use crate::{device::OpCall, error::Result};
use ferroflow_ir::patches::patch_windows;

pub(super) const SHADERS: &[(&str, super::Build)] = &[("ExtractImagePatches", patches)];

/// `[batch, rows, columns, channels] → [batch, rows', columns', height · width · channels]`.
fn patches(call: &OpCall<'_>, caps: Caps) -> Result<Option<Shader>> {
    let [height, width] = call.with_context(patch_windows)?;
    let (image, shape) = (call.shape(0), call.output_shape(0)?);
    let (rows, columns, channels) = (image[1], image[2], image[3].max(1));
    let [_, down, across, depth] = [0, 1, 2, 3].map(|axis| shape[axis].max(1));
    let k = KernelBuilder::new(caps);
    let ([data], out, n) = (k.inputs(call, [0]), k.result(call), k.element());
    let offset = k.bind("offset", n / channels % (height.size * width.size));
    let patch = k.bind("number", n / depth);
    let y = patch / across % down * height.stride + offset / width.size * height.rate;
    let x = patch % across * width.stride + offset % width.size * width.rate;
    let y = k.bind("y", y - height.positions(rows).1);
    let x = k.bind("x", x - width.positions(columns).1);
    let source = ((patch / (down * across) * rows + y) * columns + x) * channels + n % channels;
    let inside = y.lt(rows).and(x.lt(columns));
    k.when_else(inside, || out.set(n, data.at(source)), || out.set(n, out.zero()));
    k.finish(shape.num_elements())
}
