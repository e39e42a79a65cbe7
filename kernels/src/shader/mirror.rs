//! Mirror images around tensors, and back: `MirrorPad`, `MirrorPadGrad`.

use super::{
    Shader,
    scalar_type::{Caps, ScalarType, cut},
    scalar_types,
};
use crate::{device::OpCall, error::Result};
use ferroflow_ir::Shape;

pub(super) const SHADERS: &[(&str, super::Build)] =
    &[("MirrorPad", mirror_pad), ("MirrorPadGrad", mirror_pad_grad)];

/// A dimension of the tensor inside, and of the padded one.
struct Dim {
    axis: usize,
    size: usize,
    stride: usize,
    before: usize,
    padded: usize,
    padded_stride: usize,
}

fn dims(call: &OpCall<'_>, inside: &Shape, padded: &Shape) -> Result<Vec<Dim>> {
    let (pairs, strides, wide) = (call.ints(1)?, inside.strides(), padded.strides());
    let dim = |axis: usize| Dim {
        axis,
        size: inside[axis],
        stride: strides[axis],
        before: pairs[2 * axis] as usize,
        padded: padded[axis],
        padded_stride: wide[axis],
    };
    Ok((0..inside.rank()).map(dim).collect())
}

/// 1 where the outermost step is not repeated in the mirror.
fn own(call: &OpCall<'_>) -> Result<usize> {
    Ok(usize::from(call.attrs.string("mode")? == "REFLECT"))
}

/// Each element looks for the one that it mirrors.
fn mirror_pad(call: &OpCall<'_>, caps: Caps) -> Result<Option<Shader>> {
    let (inside, padded, own) = (call.shape(0), call.output_shape(0)?, own(call)?);
    let Some((inputs, word)) = scalar_types(call, caps, [0]) else { return Ok(None) };
    let mut body = "var source = 0u;\n".to_string();
    for Dim { axis, size, stride, before, padded, padded_stride } in dims(call, inside, &padded)? {
        body += &format!("var at{axis} = n / {padded_stride}u % {padded}u;\n");
        if before > 0 {
            body += &format!(
                "if (at{axis} < {before}u) {{ at{axis} = {}u - at{axis}; }}\n\
                 else {{ at{axis} = at{axis} - {before}u; }}\n",
                before + own - 1,
            );
        }
        if padded != size {
            let last = 2 * size - 1 - own;
            body += &format!("if (at{axis} >= {size}u) {{ at{axis} = {last}u - at{axis}; }}\n");
        }
        body += &format!("source = source + at{axis} * {stride}u;\n");
    }
    body += "out0[n] = in0[source];\n";
    Ok(Some(Shader::plain(inputs, vec![word], body, padded.num_elements())))
}

/// Each element adds up itself and its images, in the order of memory.
fn mirror_pad_grad(call: &OpCall<'_>, caps: Caps) -> Result<Option<Shader>> {
    let (padded, inside, own) = (call.shape(0), call.output_shape(0)?, own(call)?);
    let Some((inputs, word)) = scalar_types(call, caps, [0]) else { return Ok(None) };
    if word == ScalarType::Bool {
        return Ok(None);
    }
    let (mut loops, mut ends) = (String::new(), String::new());
    let mut index = vec!["0u".to_string()];
    for Dim { axis, size, stride, before, padded, padded_stride } in dims(call, &inside, padded)? {
        let after = padded - size - before;
        loops += &format!(
            "let c{axis} = n / {stride}u % {size}u;\nvar p{axis} = c{axis} + {before}u;\n"
        );
        index.push(format!("p{axis} * {padded_stride}u"));
        if before + after == 0 {
            continue;
        }
        let (first, last) = (usize::from(before == 0), if after == 0 { 2 } else { 3 });
        loops += &format!(
            "for (var k{axis} = {first}u; k{axis} < {last}u; k{axis}++) {{\np{axis} = c{axis} + {before}u;\n\
             if (k{axis} == 0u) {{\np{axis} = {}u - c{axis};\nif (p{axis} >= {before}u) {{ continue; }}\n}}\n\
             if (k{axis} == 2u) {{\np{axis} = {}u - c{axis};\n\
             if (p{axis} < {}u || p{axis} >= {padded}u) {{ continue; }}\n}}\n",
            (before + own).saturating_sub(1),
            before + 2 * size - 1 - own,
            before + size,
        );
        ends += "}\n";
    }
    let sum = cut(call.dtype(0), &format!("acc + in0[{}]", index.join(" + ")));
    let body = format!("var acc = {};\n{loops}acc = {sum};\n{ends}out0[n] = acc;\n", word.zero());
    Ok(Some(Shader::plain(inputs, vec![word], body, inside.num_elements())))
}
