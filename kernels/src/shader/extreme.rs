//! Where extreme elements are: `ArgMax`, `ArgMin`. NaN is never extreme.

use super::{Shader, index::around, reduce::extreme, scalar_type::Caps, scalar_types};
use crate::{device::OpCall, error::Result};
use ferroflow_ir::infer::normalize_axis;

pub(super) const SHADERS: &[(&str, super::Build)] = &[("ArgMax", largest), ("ArgMin", smallest)];

fn largest(call: &OpCall<'_>, caps: Caps) -> Result<Option<Shader>> {
    argument_of_extreme(call, caps, true)
}

fn smallest(call: &OpCall<'_>, caps: Caps) -> Result<Option<Shader>> {
    argument_of_extreme(call, caps, false)
}

fn argument_of_extreme(call: &OpCall<'_>, caps: Caps, largest: bool) -> Result<Option<Shader>> {
    let axis = normalize_axis(call.ints(1)?[0], call.shape(0).rank())?;
    let dims = around(call.shape(0), axis);
    let Some((inputs, word)) = scalar_types(call, caps, [0]) else { return Ok(None) };
    let Some(start) = extreme(call.dtype(0), largest) else { return Ok(None) };
    let (size, inner, sign) = (dims.size, dims.inner.max(1), if largest { ">" } else { "<" });
    let body = format!(
        "let base = n / {inner}u * {}u + n % {inner}u;\nvar best = {start};\nvar place = 0u;\n\
         for (var i = 0u; i < {size}u; i++) {{\nlet x = {};\n\
         if (x {sign} best) {{ best = x; place = i; }}\n}}\nout0[n] = {}(place);\n",
        size * inner,
        inputs[0].1.compared(&format!("in0[base + i * {inner}u]")),
        word.name(),
    );
    Ok(Some(Shader::plain(inputs, vec![word], body, dims.outer * dims.inner)))
}
