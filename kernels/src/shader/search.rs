//! Positions in rows: `LowerBound`, `UpperBound`, `Bucketize`, `InTopK`, `NthElement`,
//! `InvertPermutation`.

use super::{
    Shader,
    scalar_type::{Caps, ScalarType, float},
    scalar_types,
};
use crate::{device::OpCall, error::Result};

pub(super) const SHADERS: &[(&str, super::Build)] = &[
    ("Bucketize", bucketize),
    ("InTopK", in_top_k),
    ("InTopKV2", in_top_k),
    ("InvertPermutation", invert),
    ("LowerBound", |call, caps| bound(call, caps, "own < value")),
    ("NthElement", nth),
    ("UpperBound", |call, caps| bound(call, caps, "!(value < own)")),
];

/// Halves what is left of a row until it is found how many elements come before a value.
fn bound(call: &OpCall<'_>, caps: Caps, comes_before: &str) -> Result<Option<Shader>> {
    let Some((inputs, index)) = scalar_types(call, caps, [0, 1]) else { return Ok(None) };
    let (row, values) = (call.shape(0)[1], call.shape(1)[1].max(1));
    let compared = |value: &str| inputs[0].1.compared(value);
    let body = format!(
        "let base = n / {values}u * {row}u;\nlet value = {};\nvar low = 0u;\nvar high = {row}u;\n\
         for (var i = 0u; i < 32u; i++) {{\nif (low >= high) {{ break; }}\n\
         let middle = (low + high) / 2u;\nlet own = {};\n\
         if ({comes_before}) {{ low = middle + 1u; }} else {{ high = middle; }}\n}}\n\
         out0[n] = {}(low);\n",
        compared("in1[n]"),
        compared("in0[base + middle]"),
        index.name(),
    );
    let count = call.output_shape(0)?.num_elements();
    Ok((inputs[0].1 != ScalarType::Bool).then(|| Shader::plain(inputs, vec![index], body, count)))
}

/// Integers are compared as floats, as the boundaries are.
fn bucketize(call: &OpCall<'_>, caps: Caps) -> Result<Option<Shader>> {
    let Some((inputs, index)) = scalar_types(call, caps, [0]) else { return Ok(None) };
    let mut body = "let value = flush_(f32(in0[n]));\nvar bucket = 0;\n".to_string();
    for boundary in call.attrs.floats("boundaries")? {
        body += &format!("if (!(value < {})) {{ bucket = bucket + 1; }}\n", float(*boundary));
    }
    body += "out0[n] = bucket;\n";
    Ok(Some(Shader::plain(inputs, vec![index], body, call.shape(0).num_elements())))
}

/// Whether fewer than `k` predictions are larger than that of the target. Nothing is among rows
/// with predictions that are not finite, and targets outside are nowhere.
fn in_top_k(call: &OpCall<'_>, caps: Caps) -> Result<Option<Shader>> {
    let Some((mut inputs, word)) = scalar_types(call, caps, [0, 1]) else { return Ok(None) };
    let few = match call.inputs.len() {
        3 => {
            let Some(k) = ScalarType::of(call.dtype(2), caps) else { return Ok(None) };
            inputs.push((2, k));
            format!("{}(larger) < in2[0]", k.name())
        }
        _ => format!("larger < {}", i32::try_from(call.attrs.int("k")?).unwrap_or(i32::MAX)),
    };
    let row = call.shape(0)[1];
    let body = format!(
        "let given = in1[n];\nlet target_ = {target};\nvar found = false;\n\
         if (target_ < {row}u) {{\nlet own = in0[n * {row}u + target_];\n\
         var larger = 0;\nvar finite = (to_bits(own) & 0x7f800000u) != 0x7f800000u;\n\
         for (var i = 0u; i < {row}u; i++) {{\nlet other = in0[n * {row}u + i];\n\
         finite = finite && (to_bits(other) & 0x7f800000u) != 0x7f800000u;\n\
         if (flush_(other) > flush_(own)) {{ larger = larger + 1; }}\n}}\n\
         found = finite && {few};\n}}\n{store}",
        target = inputs[1].1.as_index("given"),
        store = word.store("out0", "n", "found"),
    );
    Ok(Some(Shader::plain(inputs, vec![word], body, call.shape(0)[0])))
}

/// The element that so many come before; equal ones count by position, NaN comes last.
fn nth(call: &OpCall<'_>, caps: Caps) -> Result<Option<Shader>> {
    let Some((inputs, word)) = scalar_types(call, caps, [0, 1]) else { return Ok(None) };
    let row = call.shape(0).last().copied().unwrap_or(1).max(1);
    if word == ScalarType::Bool {
        return Ok(None);
    }
    let last = row - 1;
    let wanted = format!("min({}, {last}u)", inputs[1].1.as_index("in1[0]"));
    let wanted = if call.attrs.bool("reverse")? { format!("{last}u - {wanted}") } else { wanted };
    let is_nan =
        |x: &str| if word == ScalarType::F32 { format!("is_nan_({x})") } else { "false".into() };
    let (own_nan, other_nan) = (is_nan("key"), is_nan("other"));
    let body = format!(
        "let base = n / {row}u * {row}u;\nlet place = n % {row}u;\nlet own = in0[n];\nlet key = {};\n\
         var rank = 0u;\nfor (var i = 0u; i < {row}u; i++) {{\nlet other = {};\n\
         let same = other == key || ({other_nan} && {own_nan});\n\
         if (other < key || ({own_nan} && !{other_nan}) || (same && i < place)) {{ rank++; }}\n}}\n\
         if (rank == {wanted}) {{ out0[n / {row}u] = own; }}\n",
        word.compared("own"),
        word.compared("in0[base + i]"),
    );
    Ok(Some(Shader::plain(inputs, vec![word], body, call.shape(0).num_elements())))
}

/// Each element is put at the position that it names; what names none is left out.
fn invert(call: &OpCall<'_>, caps: Caps) -> Result<Option<Shader>> {
    let Some((inputs, word)) = scalar_types(call, caps, [0]) else { return Ok(None) };
    let n = call.shape(0).num_elements();
    let body = format!(
        "var place = 0u;\nfor (var i = 0u; i < {n}u; i++) {{\nlet index = in0[i];\n\
         if ({} == n) {{ place = i; }}\n}}\nout0[n] = {}(place);\n",
        word.as_index("index"),
        word.name(),
    );
    Ok(Some(Shader::plain(inputs, vec![word], body, n)))
}
