//! Joining and filling: `ConcatV2`, `Pack`, `Fill`, `OneHot`, `Pad`.

use super::{
    Shader, index,
    scalar_type::{Caps, ScalarType},
    scalar_types,
};
use crate::{device::OpCall, error::Result};
use ferroflow_ir::{Shape, infer::normalize_axis};

pub(super) const SHADERS: &[(&str, super::Build)] = &[
    ("ConcatV2", concat_v2),
    ("Fill", fill),
    ("OneHot", one_hot),
    ("Pack", pack),
    ("Pad", pad),
    ("PadV2", pad),
];

fn concat_v2(call: &OpCall<'_>, caps: Caps) -> Result<Option<Shader>> {
    let n = call.inputs.len() - 1;
    let axis = normalize_axis(call.ints(n)?[0], call.shape(0).rank())?;
    join(call, caps, n, axis)
}

fn pack(call: &OpCall<'_>, caps: Caps) -> Result<Option<Shader>> {
    let axis = normalize_axis(call.attrs.int("axis")?, call.shape(0).rank() + 1)?;
    join(call, caps, call.inputs.len(), axis)
}

/// Joins the first `n` inputs along an axis: each returns runs of its own length.
fn join(call: &OpCall<'_>, caps: Caps, n: usize, axis: usize) -> Result<Option<Shader>> {
    let Some(word) = ScalarType::of(call.dtype(0), caps) else { return Ok(None) };
    let runs: Vec<usize> = (0..n)
        .map(|index| call.shape(index)[axis.min(call.shape(index).rank())..].iter().product())
        .collect();
    let row: usize = runs.iter().sum();
    let count = call.output_shape(0)?.num_elements();
    let (mut inputs, mut start) = (Vec::new(), 0);
    let mut body = format!("let row = n / {row}u;\nlet at = n % {row}u;\n", row = row.max(1));
    for (index, &run) in runs.iter().enumerate() {
        if run == 0 {
            continue;
        }
        let end = start + run;
        body += &format!(
            "if (at >= {start}u && at < {end}u) {{ out0[n] = in{}[row * {run}u + at - {start}u]; }}\n",
            inputs.len()
        );
        inputs.push((index, word));
        start = end;
    }
    Ok(Some(Shader::plain(inputs, vec![word], body, count)))
}

fn fill(call: &OpCall<'_>, caps: Caps) -> Result<Option<Shader>> {
    let count = call.output_shape(0)?.num_elements();
    let shader = |(inputs, word)| {
        Shader::plain(inputs, vec![word], "out0[n] = in0[0];\n".to_string(), count)
    };
    Ok(scalar_types(call, caps, [1]).map(shader))
}

/// `[rows, inner]` indices → `[rows, depth, inner]`.
fn one_hot(call: &OpCall<'_>, caps: Caps) -> Result<Option<Shader>> {
    let shape = call.output_shape(0)?;
    let axis = normalize_axis(call.attrs.int("axis")?, shape.rank())?;
    let index::AxisSplit { size: depth, inner, .. } = index::around(&shape, axis);
    let Some((inputs, word)) = scalar_types(call, caps, [0, 2, 3]) else { return Ok(None) };
    let (depth, inner) = (depth.max(1), inner.max(1));
    let value = inputs[0].1.as_index("index");
    let body = format!(
        "let index = in0[n / {}u * {inner}u + n % {inner}u];\n\
         if ({value} == n / {inner}u % {depth}u) {{ out0[n] = in1[0]; }} else {{ out0[n] = in2[0]; }}\n",
        depth * inner
    );
    Ok(Some(Shader::plain(inputs, vec![word], body, shape.num_elements())))
}

fn pad(call: &OpCall<'_>, caps: Caps) -> Result<Option<Shader>> {
    let padded = call.inputs.len() > 2;
    let found =
        if padded { scalar_types(call, caps, [0, 2]) } else { scalar_types(call, caps, [0]) };
    let Some((inputs, word)) = found else { return Ok(None) };
    let (shape, output): (&Shape, Shape) = (call.shape(0), call.output_shape(0)?);
    let pairs = call.ints(1)?;
    let (mut conditions, mut terms) = (Vec::new(), Vec::new());
    let (strides, own) = (output.strides(), shape.strides());
    for (axis, &size) in shape.iter().enumerate() {
        let before = pairs[2 * axis];
        let step = format!("n / {}u % {}u", strides[axis].max(1), output[axis].max(1));
        if output[axis] != size {
            conditions.push(format!("{step} >= {before}u && {step} < {}u", before as usize + size));
        }
        terms.push(format!("({step} - {before}u) * {}u", own[axis]));
    }
    let inside = if conditions.is_empty() { "true".into() } else { conditions.join(" && ") };
    let index = if terms.is_empty() { "0u".into() } else { terms.join(" + ") };
    let value = if padded {
        "in1[0]"
    } else if word == ScalarType::Bool {
        "0u"
    } else {
        word.zero()
    };
    let body = match shape.num_elements() {
        0 => format!("out0[n] = {value};\n"),
        _ => format!("if ({inside}) {{ out0[n] = in0[{index}]; }} else {{ out0[n] = {value}; }}\n"),
    };
    Ok(Some(Shader::plain(inputs, vec![word], body, output.num_elements())))
}
