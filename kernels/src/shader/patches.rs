//! `ExtractImagePatches`.

use super::{Shader, gather::zero, scalar_type::Caps, scalar_types};
use crate::{device::OpCall, error::Result};
use ferroflow_ir::patches::patch_windows;

pub(super) const SHADERS: &[(&str, super::Build)] = &[("ExtractImagePatches", patches)];

/// `[batch, rows, columns, channels] → [batch, rows', columns', height · width · channels]`.
fn patches(call: &OpCall<'_>, caps: Caps) -> Result<Option<Shader>> {
    let [height, width] = call.with_context(patch_windows)?;
    let (image, shape) = (call.shape(0), call.output_shape(0)?);
    let Some((inputs, word)) = scalar_types(call, caps, [0]) else { return Ok(None) };
    let (rows, columns, channels) = (image[1], image[2], image[3].max(1));
    let count = shape.num_elements();
    if count == 0 {
        return Ok(Some(Shader::plain(inputs, vec![word], String::new(), 0)));
    }
    let body = format!(
        "let channel = n % {channels}u;\nlet tap = n / {channels}u % {taps}u;\nlet patch_ = n / {depth}u;\n\
         let y = patch_ / {across}u % {down}u * {}u + tap / {wide}u * {}u - {}u;\n\
         let x = patch_ % {across}u * {}u + tap % {wide}u * {}u - {}u;\nlet image = patch_ / {}u;\n\
         if (y < {rows}u && x < {columns}u) {{\n\
         out0[n] = in0[((image * {rows}u + y) * {columns}u + x) * {channels}u + channel];\n\
         }} else {{ out0[n] = {}; }}\n",
        height.stride,
        height.rate,
        height.positions(rows).1,
        width.stride,
        width.rate,
        width.positions(columns).1,
        shape[1] * shape[2],
        zero(word),
        taps = height.size * width.size,
        depth = shape[3],
        wide = width.size,
        across = shape[2],
        down = shape[1],
    );
    Ok(Some(Shader::plain(inputs, vec![word], body, count)))
}
