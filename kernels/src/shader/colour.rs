//! Colour spaces, pixel by pixel: `RGBToHSV`, `HSVToRGB`, `AdjustHue`, `AdjustSaturation`.

use super::{
    Shader,
    scalar_type::{Caps, ScalarType, cut},
    scalar_types,
};
use crate::{device::OpCall, error::Result};

pub(super) const SHADERS: &[(&str, super::Build)] = &[
    ("AdjustHue", |call, caps| pixels(call, caps, &[HUE], true)),
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

/// Turns the hue, which is a position between the least and the largest channel, whatever those are.
const HUE: &str = "\
let most = max(max(x, y), z);
let least = min(min(x, y), z);
let middle = max(min(x, y), min(max(x, y), z));
var sixth = 5.0f;
if (x < y) { sixth = 2.0f; }
if (x < y && z < x) { sixth = 1.0f; }
if (x < y && z > y) { sixth = 3.0f; }
if (!(x < y) && z < y) { sixth = 0.0f; }
if (!(x < y) && z > x) { sixth = 4.0f; }
var hue = (middle - least) / (most - least);
if (sixth == 1.0f || sixth == 3.0f || sixth == 5.0f) { hue = 1.0f - hue; }
hue = sixth + hue;
if (most == least) { hue = 0.0f; }
hue = hue + in1[0] * 6.0f;
hue = hue - 6.0f * floor(hue / 6.0f);
sixth = min(floor(hue), 5.0f);
var part = hue - sixth;
if (sixth == 1.0f || sixth == 3.0f || sixth == 5.0f) { part = 1.0f - part; }
part = least + part * (most - least);
x = least;
y = least;
z = least;
if (sixth == 0.0f) { x = most; y = part; }
if (sixth == 1.0f) { y = most; x = part; }
if (sixth == 2.0f) { y = most; z = part; }
if (sixth == 3.0f) { z = most; y = part; }
if (sixth == 4.0f) { z = most; x = part; }
if (sixth == 5.0f) { x = most; z = part; }
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
