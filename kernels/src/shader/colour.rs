//! Colour spaces, pixel by pixel: `RGBToHSV`, `HSVToRGB`, `AdjustHue`, `AdjustSaturation`.

use super::{
    Shader,
    scalar_type::{Caps, ScalarType, cut},
    scalar_types,
};
use crate::{device::OpCall, error::Result};

pub(super) const SHADERS: &[(&str, super::Build)] = &[
    ("AdjustHue", |call, caps| pixels(call, caps, &[TO_HSV, HUE, TO_RGB], true)),
    ("AdjustSaturation", |call, caps| pixels(call, caps, &[TO_HSV, SATURATION, TO_RGB], true)),
    ("HSVToRGB", |call, caps| pixels(call, caps, &[TO_RGB], false)),
    ("RGBToHSV", |call, caps| pixels(call, caps, &[TO_HSV], false)),
];

/// Turns `x`, `y`, `z` from red, green and blue to hue, saturation and value.
const TO_HSV: &str = "\
let value = max(max(x, y), z);
let range = value - min(min(x, y), z);
let part = 1.0f / (6.0f * range);
var hue = part * (x - y) + 0.666666667f;
if (y == value) { hue = part * (z - x) + 0.333333333f; }
if (x == value) { hue = part * (y - z); }
if (!(range > 0.0f)) { hue = 0.0f; }
if (hue < 0.0f) { hue = hue + 1.0f; }
x = hue;
y = 0.0f;
if (value > 0.0f) { y = range / value; }
z = value;
";

const HUE: &str = "\
x = x + in1[0];
x = x - floor(x);
";

const SATURATION: &str = "\
y = max(min(y * in1[0], 1.0f), 0.0f);
";

/// The other way around.
const TO_RGB: &str = "\
let sixths = x * 6.0f;
let red = max(min(abs(sixths - 3.0f) - 1.0f, 1.0f), 0.0f);
let green = max(min(2.0f - abs(sixths - 2.0f), 1.0f), 0.0f);
let blue = max(min(2.0f - abs(sixths - 4.0f), 1.0f), 0.0f);
let grey = 1.0f - y;
x = (grey + y * red) * z;
let strength = (grey + y * green) * z;
z = (grey + y * blue) * z;
y = strength;
";

/// An invocation per pixel.
fn pixels(call: &OpCall<'_>, caps: Caps, steps: &[&str], adjusts: bool) -> Result<Option<Shader>> {
    let Some((mut inputs, word)) = scalar_types(call, caps, [0]) else { return Ok(None) };
    if word != ScalarType::F32 {
        return Ok(None);
    }
    if adjusts {
        inputs.push((1, ScalarType::F32));
    }
    let mut body =
        "var x = in0[3u * n];\nvar y = in0[3u * n + 1u];\nvar z = in0[3u * n + 2u];\n".to_string();
    body += &steps.concat();
    for (index, name) in ["x", "y", "z"].iter().enumerate() {
        body += &format!("out0[3u * n + {index}u] = {};\n", cut(call.outputs[0].dtype, name));
    }
    Ok(Some(Shader::plain(inputs, vec![word], body, call.shape(0).num_elements() / 3)))
}
