//! Moving elements along dimensions by amounts that come as data: `Roll`, `ReverseSequence`.

use super::{
    Shader,
    scalar_type::{Caps, ScalarType},
    scalar_types,
};
use crate::{device::OpCall, error::Result};
use ferroflow_ir::Shape;

pub(super) const SHADERS: &[(&str, super::Build)] =
    &[("ReverseSequence", reverse_sequence), ("Roll", roll)];

/// Each element adds up the shifts along all shifted axes.
fn roll(call: &OpCall<'_>, caps: Caps) -> Result<Option<Shader>> {
    let Some((inputs, word)) = scalar_types(call, caps, [0, 1, 2]) else { return Ok(None) };
    let (shape, shifts) = (call.shape(0), call.shape(1).num_elements());
    let (shift, axis) = (inputs[1].1, inputs[2].1);
    let long: Vec<(usize, usize, usize)> =
        strided(shape).filter(|(_, size, _)| *size > 1).collect();
    let mut body: String = long.iter().map(|(d, ..)| format!("var by{d} = 0u;\n")).collect();
    body += &format!(
        "for (var i = 0u; i < {shifts}u; i++) {{\nlet given = in2[i];\n\
         let axis = select(given, given + {index}({rank}), given < {zero});\n",
        rank = shape.rank(),
        index = axis.name(),
        zero = axis.zero(),
    );
    for &(d, size, _) in &long {
        body += &format!(
            "if (axis == {}({d})) {{ by{d} = (by{d} + u32(floor_mod_{shift}_(in1[i], {shift}({size})))) % {size}u; }}\n",
            axis.name(),
            shift = shift.name(),
        );
    }
    body += "}\nvar source = 0u;\n";
    for &(d, size, stride) in &long {
        let own = format!("n / {stride}u % {size}u");
        body += &format!("source = source + ({own} + {size}u - by{d}) % {size}u * {stride}u;\n");
    }
    body += "out0[n] = in0[source];\n";
    Ok(Some(Shader::plain(inputs, vec![word], body, shape.num_elements())))
}

/// Axes with their sizes and strides.
fn strided(shape: &Shape) -> impl Iterator<Item = (usize, usize, usize)> {
    let strides = shape.strides();
    shape.iter().copied().zip(strides).enumerate().map(|(axis, (size, step))| (axis, size, step))
}

/// Lengths outside reverse the whole row.
fn reverse_sequence(call: &OpCall<'_>, caps: Caps) -> Result<Option<Shader>> {
    let axis = |name: &str| call.attrs.int(name).map(|axis| axis as usize);
    let (batch, sequence) = (axis("batch_dim")?, axis("seq_dim")?);
    let Some((inputs, word)) = scalar_types(call, caps, [0, 1]) else { return Ok(None) };
    let shape = call.shape(0);
    if shape.num_elements() == 0 {
        return Ok(Some(Shader::plain(inputs, vec![word], String::new(), 0)));
    }
    let strides = shape.strides();
    let length: ScalarType = inputs[1].1;
    let body = format!(
        "let given = in1[n / {}u % {}u];\nlet end = min({}, {size}u);\n\
         let step = n / {stride}u % {size}u;\nvar source = n;\n\
         if (step < end) {{ source = n - step * {stride}u + (end - 1u - step) * {stride}u; }}\n\
         out0[n] = in0[source];\n",
        strides[batch],
        shape[batch],
        length.as_index("given"),
        stride = strides[sequence],
        size = shape[sequence],
    );
    Ok(Some(Shader::plain(inputs, vec![word], body, shape.num_elements())))
}
