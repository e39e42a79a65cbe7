//! `FakeQuant…`: rounding reals to what a quantised type could hold (Jacob et al. 2018).

use super::{
    Shader,
    scalar_type::{Caps, ScalarType, float},
};
use crate::{device::OpCall, error::Result};

pub(super) const SHADERS: &[(&str, super::Build)] = &[
    ("FakeQuantWithMinMaxArgs", |call, _| fixed(call, 0, ROUND)),
    ("FakeQuantWithMinMaxArgsGradient", |call, _| fixed(call, 1, SLOPE)),
    ("FakeQuantWithMinMaxVars", |call, _| vars(call, ROUND_BY_DIVISION)),
    ("FakeQuantWithMinMaxVarsGradient", vars_gradient),
    ("FakeQuantWithMinMaxVarsPerChannel", |call, _| vars(call, ROUND)),
    ("FakeQuantWithMinMaxVarsPerChannelGradient", vars_gradient),
];

const ROUND: &str = "\
let inside = max_(min_(x, high), low);
var y = floor((inside - low) * inverse - floor(-low * inverse + 0.5f) + 0.5f) * scale;
if (unset) { y = 0.0f; }
out0[n] = y;
";

const ROUND_BY_DIVISION: &str = "\
let inside = max_(min_(x, high), low);
var y = floor((inside - low) / scale - floor(-low * inverse + 0.5f) + 0.5f) * scale;
if (unset) { y = 0.0f; }
out0[n] = y;
";

const SLOPE: &str = "\
out0[n] = in0[n] * select(0.0f, 1.0f, unset || (low <= x && x <= high));
";

/// The statements that move a range from `first_` to `last_` so that 0 is one of its values: `low`,
/// `high`, `scale` and `inverse`; `unset` where the range is 0 alone.
fn grid(call: &OpCall<'_>) -> Result<Option<String>> {
    let bits = call.attrs.int("num_bits")?;
    if !(2..=16).contains(&bits) {
        return Ok(None);
    }
    let least = if call.attrs.bool("narrow_range")? { 1.0f32 } else { 0.0 };
    let most = ((1i64 << bits) - 1) as f32;
    // Halves are rounded away from zero.
    Ok(Some(format!(
        "let scale = (last_ - first_) / {steps};\nlet inverse = {steps} / (last_ - first_);\nlet exact = {least} - first_ / scale;\n\
         var zero = floor(exact + 0.5f);\nif (exact < {least}) {{ zero = {least}; }}\n\
         if (exact > {most}) {{ zero = {most}; }}\n\
         let low = ({least} - zero) * scale;\nlet high = ({most} - zero) * scale;\n",
        steps = float(most - least),
        least = float(least),
        most = float(most),
    )))
}

/// A range that the call tells; `x` is this input.
fn fixed(call: &OpCall<'_>, x: usize, rule: &str) -> Result<Option<Shader>> {
    let (min, max) = (call.attrs.float("min")?, call.attrs.float("max")?);
    let Some(grid) = grid(call)?.filter(|_| min < max) else { return Ok(None) };
    let body = format!(
        "let first_ = {};\nlet last_ = {};\nlet unset = false;\n{grid}let x = in{x}[n];\n{rule}",
        float(min),
        float(max),
    );
    let inputs = (0..=x).map(|input| (input, ScalarType::F32)).collect();
    Ok(Some(Shader::plain(inputs, vec![ScalarType::F32], body, call.shape(0).num_elements())))
}

/// The statements that read the range of slice `slice` from these inputs.
fn range(min: usize) -> String {
    format!(
        "let first_ = in{min}[slice];\nlet last_ = in{}[slice];\nlet unset = first_ == 0.0f && last_ == 0.0f;\n",
        min + 1
    )
}

/// A single range, or a range per element of the last dimension.
fn vars(call: &OpCall<'_>, rule: &str) -> Result<Option<Shader>> {
    let Some(grid) = grid(call)? else { return Ok(None) };
    let slices = call.shape(1).num_elements().max(1);
    let body = format!("let slice = n % {slices}u;\n{}{grid}let x = in0[n];\n{rule}", range(1));
    let inputs = (0..3).map(|input| (input, ScalarType::F32)).collect();
    Ok(Some(Shader::plain(inputs, vec![ScalarType::F32], body, call.shape(0).num_elements())))
}

/// Inside the range the gradient is that of the input, outside it is that of the nearest end: the
/// first invocations add those up.
fn vars_gradient(call: &OpCall<'_>, _: Caps) -> Result<Option<Shader>> {
    let Some(grid) = grid(call)? else { return Ok(None) };
    let (slices, count) = (call.shape(2).num_elements().max(1), call.shape(0).num_elements());
    if count == 0 {
        return Ok(None);
    }
    let body = format!(
        "let slice = n % {slices}u;\n{}{grid}let x = in1[n];\n{SLOPE}\
         if (n < {slices}u) {{\nvar below = 0.0f;\nvar above = 0.0f;\n\
         for (var i = n; i < {count}u; i = i + {slices}u) {{\n\
         below = below + in0[i] * select(0.0f, 1.0f, !unset && in1[i] < low);\n\
         above = above + in0[i] * select(0.0f, 1.0f, !unset && in1[i] > high);\n}}\n\
         out1[n] = below;\nout2[n] = above;\n}}\n",
        range(2),
    );
    let inputs = (0..4).map(|input| (input, ScalarType::F32)).collect();
    Ok(Some(Shader::plain(inputs, vec![ScalarType::F32; 3], body, count)))
}
