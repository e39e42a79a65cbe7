//! Reading slices by index: `Gather`, `GatherV2`, `GatherNd`.
//!
//! An index outside gives zeros, as on TensorFlow's accelerators: a device cannot fail half-way.

use super::{
    Shader,
    scalar_type::{Caps, ScalarType},
    scalar_types,
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
    let Some((inputs, word)) = scalar_types(call, caps, [0, 1]) else { return Ok(None) };
    let (params, indices) = (call.shape(0), call.shape(1));
    let outer: usize = params[batch..axis].iter().product();
    let inner: usize = params[axis + 1..].iter().product();
    let count: usize = indices[batch..].iter().product();
    let (size, inner, count) = (params[axis], inner.max(1), count.max(1));
    let body = format!(
        "let i = n / {inner}u % {count}u;\nlet outer = n / {}u;\nlet batch = outer / {}u;\n\
         let index = in1[batch * {count}u + i];\nlet at = {};\n\
         if (at < {size}u) {{ out0[n] = in0[(outer * {size}u + at) * {inner}u + n % {inner}u]; }}\n\
         else {{ out0[n] = {}; }}\n",
        inner * count,
        outer.max(1),
        inputs[1].1.as_index("index"),
        zero(word),
    );
    let total = call.output_shape(0)?.num_elements();
    Ok(Some(Shader::plain(inputs, vec![word], body, total)))
}

fn gather_nd(call: &OpCall<'_>, caps: Caps) -> Result<Option<Shader>> {
    let Some((inputs, word)) = scalar_types(call, caps, [0, 1]) else { return Ok(None) };
    let (params, indices) = (call.shape(0), call.shape(1));
    let depth = indices.last().copied().unwrap_or(0);
    let inner = params[depth..].iter().product::<usize>().max(1);
    let mut body = format!("let row = n / {inner}u;\nvar inside = true;\nvar at = 0u;\n");
    for (axis, &size) in params[..depth].iter().enumerate() {
        body += &format!(
            "let index{axis} = in1[row * {depth}u + {axis}u];\nlet at{axis} = {};\n\
             inside = inside && at{axis} < {size}u;\nat = at * {size}u + at{axis};\n",
            inputs[1].1.as_index(&format!("index{axis}")),
        );
    }
    body += &format!(
        "if (inside) {{ out0[n] = in0[at * {inner}u + n % {inner}u]; }} else {{ out0[n] = {}; }}\n",
        zero(word)
    );
    let total = call.output_shape(0)?.num_elements();
    // Without an index a `u32` is all there is to bind.
    let inputs = if depth == 0 { vec![inputs[0]] } else { inputs };
    Ok(Some(Shader::plain(inputs, vec![word], body, total)))
}

/// Zero as it is stored.
pub(super) fn zero(word: ScalarType) -> &'static str {
    if word == ScalarType::Bool { "0u" } else { word.zero() }
}
