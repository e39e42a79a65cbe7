//! Softmax along the last dimension, its logarithm, and the losses made of it.

use super::{
    Shader, rows,
    scalar_type::{Caps, ScalarType, cut, float},
    scalar_types,
};
use crate::{device::OpCall, error::Result};
use ferroflow_ir::{DType, Expr, pass::region};

pub(super) const SHADERS: &[(&str, super::Build)] = &[
    ("LogSoftmax", log_softmax),
    ("Softmax", softmax),
    ("SoftmaxCrossEntropyWithLogits", cross_entropy),
    ("SparseSoftmaxCrossEntropyWithLogits", sparse_cross_entropy),
];

/// The statements that find the largest element of a row and the sum of the exponentials.
fn sums(row: usize, at: &str) -> String {
    format!(
        "var largest = {lowest};\n\
         for (var i = 0u; i < {row}u; i++) {{ largest = max(largest, in0[{at}]); }}\n\
         var sum = 0.0f;\n\
         for (var i = 0u; i < {row}u; i++) {{ sum = sum + exp_(in0[{at}] - largest); }}\n",
        lowest = float(f32::MIN)
    )
}

fn softmax(call: &OpCall<'_>, caps: Caps) -> Result<Option<Shader>> {
    Ok(region::softmax(&Expr::input(0, call.dtype(0)), false)
        .and_then(|expr| rows::of_one(call, &expr, caps)))
}

fn log_softmax(call: &OpCall<'_>, caps: Caps) -> Result<Option<Shader>> {
    Ok(region::softmax(&Expr::input(0, call.dtype(0)), true)
        .and_then(|expr| rows::of_one(call, &expr, caps)))
}

/// Logits and labels `[batch, classes]`, either of which may have one row only → loss `[batch]` and
/// its gradient `[batch, classes]`.
fn cross_entropy(call: &OpCall<'_>, caps: Caps) -> Result<Option<Shader>> {
    let shape = call.output_shape(1)?;
    let (batch, row) = (shape[0], shape[1]);
    let Some((inputs, word)) = scalar_types(call, caps, [0, 1]) else { return Ok(None) };
    let dtype = call.dtype(0);
    let at = |input: usize| {
        let own = call.shape(input);
        let (down, across) = (own[0] != 1 || batch == 1, own[1] != 1 || row == 1);
        let down = if down { format!("n * {}u", own[1]) } else { "0u".into() };
        if across { format!("{down} + i") } else { down }
    };
    let (logits, labels) = (at(0), at(1));
    let body = format!(
        "{}let logarithm = log_(sum);\nvar loss = 0.0f;\n\
         for (var i = 0u; i < {row}u; i++) {{\n\
         let x = in0[{logits}] - largest;\nlet label = in1[{labels}];\n\
         loss = loss + label * (logarithm - x);\n\
         out1[n * {row}u + i] = {};\n}}\nout0[n] = {};\n",
        sums(row, &logits),
        cut(dtype, "exp_(x) / sum - label"),
        cut(dtype, "loss"),
    );
    Ok(Some(Shader::plain(inputs, vec![word, word], body, batch)))
}

/// A label outside returns NaN, as on TensorFlow's accelerators.
fn sparse_cross_entropy(call: &OpCall<'_>, caps: Caps) -> Result<Option<Shader>> {
    let (batch, row) = (call.shape(0)[0], call.shape(0)[1]);
    let Some((inputs, word)) = scalar_types(call, caps, [0, 1]) else { return Ok(None) };
    if !matches!(call.dtype(0), DType::F32 | DType::F16 | DType::BF16) || word != ScalarType::F32 {
        return Ok(None);
    }
    let dtype = call.dtype(0);
    let nan = float(f32::NAN);
    let body = format!(
        "let base = n * {row}u;\n{}let given = in1[n];\nlet label = {};\n\
         for (var i = 0u; i < {row}u; i++) {{\n\
         var slope = exp_(in0[base + i] - largest) / sum - select(0.0f, 1.0f, i == label);\n\
         if (label >= {row}u) {{ slope = {nan}; }}\nout1[base + i] = {};\n}}\n\
         var loss = {nan};\n\
         if (label < {row}u) {{ loss = log_(sum) - (in0[base + label] - largest); }}\nout0[n] = {};\n",
        sums(row, "base + i"),
        inputs[1].1.as_index("given"),
        cut(dtype, "slope"),
        cut(dtype, "loss"),
    );
    Ok(Some(Shader::plain(inputs, vec![word, word], body, batch)))
}
