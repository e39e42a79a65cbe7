//! Pools over two and three spatial dimensions, and their gradients.

use super::{
    Shader,
    reduce::bound,
    scalar_type::{Caps, ScalarType, cut},
    scalar_types,
    window::{apart, for_each_cover, for_each_offset, inputs, outputs, together},
};
use crate::{
    device::OpCall,
    error::Result,
    plan::{sliding, window::Sweep},
};
use ferroflow_ir::{Shape, window::Slide};

pub(super) const SHADERS: &[(&str, super::Build)] = &[
    ("AvgPool", average),
    ("AvgPool3D", average),
    ("AvgPool3DGrad", average_grad),
    ("AvgPoolGrad", average_grad),
    ("MaxPool", largest),
    ("MaxPool3D", largest),
    ("MaxPoolGrad", largest_grad),
    ("MaxPoolGradV2", largest_grad),
    ("MaxPoolV2", largest),
];

/// The windows of a call; `None` for windows over channels, and channels before space.
pub(super) fn windows(call: &OpCall<'_>, input: &Shape) -> Result<Option<Sweep>> {
    let pool = sliding::pool(call)?;
    if !pool.layout.channels_last || pool.depth > 1 {
        return Ok(None);
    }
    sliding::windows(&pool, input).map(Some)
}

/// Where the element of a kernel offset is.
pub(super) fn element(sweep: &Sweep) -> String {
    format!("{} * {}u + channel", together("p", inputs(sweep)), sweep.channels)
}

fn fold(
    call: &OpCall<'_>,
    caps: Caps,
    start: &str,
    step: impl Fn(&str) -> String,
    finish: &str,
) -> Result<Option<Shader>> {
    let Some(sweep) = windows(call, call.shape(0))? else { return Ok(None) };
    let Some((bound, word)) = scalar_types(call, caps, [0]) else { return Ok(None) };
    let channels = sweep.channels.max(1);
    let load = format!("in0[{}]", element(&sweep));
    let inner = format!("acc = {};\ncount = count + 1u;\n", step(&load));
    let body = format!(
        "let channel = n % {channels}u;\nlet window = n / {channels}u;\n{}var acc = {start};\nvar count = 0u;\n{}out0[n] = {};\n",
        apart("window", "w", outputs(&sweep)),
        for_each_offset(&sweep, &inner),
        cut(call.dtype(0), finish),
    );
    let count = call.output_shape(0)?.num_elements();
    Ok(Some(Shader::plain(bound, vec![word], body, count)))
}

fn average(call: &OpCall<'_>, caps: Caps) -> Result<Option<Shader>> {
    if ScalarType::of(call.dtype(0), caps) != Some(ScalarType::F32) {
        return Ok(None);
    }
    fold(call, caps, "0.0f", |x| format!("acc + {x}"), "acc / f32(count)")
}

/// Starts from the lowest finite value and passes NaN over, as TensorFlow does.
fn largest(call: &OpCall<'_>, caps: Caps) -> Result<Option<Shader>> {
    let Some(start) = bound(call.dtype(0), true) else { return Ok(None) };
    fold(call, caps, &start, |x| format!("select(acc, {x}, {x} > acc)"), "acc")
}

/// Each position gets its share of every window that covers it.
fn average_grad(call: &OpCall<'_>, caps: Caps) -> Result<Option<Shader>> {
    let shape = call.output_shape(0)?;
    let Some(sweep) = windows(call, &shape)? else { return Ok(None) };
    let Some((bound, word)) = scalar_types(call, caps, [1]) else { return Ok(None) };
    let channels = sweep.channels.max(1);
    let mut counts = Vec::new();
    for (axis, slide) in ["x", "y", "z"].iter().zip(&sweep.slides) {
        // What of a window lies inside: its taps are neighbours.
        let Slide { input, size, stride, before, .. } = slide;
        counts.push(format!(
            "f32(min(i32(w{axis} * {stride}u) - {before} + {size}, {input}) - max(i32(w{axis} * {stride}u) - {before}, 0))"
        ));
    }
    let inner = format!(
        "sum = sum + in0[{} * {channels}u + channel] / ({});\n",
        together("w", outputs(&sweep)),
        counts.join(" * "),
    );
    let body = format!(
        "let channel = n % {channels}u;\nlet place = n / {channels}u;\n{}var sum = 0.0f;\n{}out0[n] = {};\n",
        apart("place", "p", inputs(&sweep)),
        for_each_cover(&sweep, &inner),
        cut(call.dtype(1), "sum"),
    );
    Ok(Some(Shader::plain(bound, vec![word], body, shape.num_elements())))
}

/// Each position gets the gradient of the windows whose first largest element it is: none before it
/// is as large, none after it larger.
fn largest_grad(call: &OpCall<'_>, caps: Caps) -> Result<Option<Shader>> {
    let Some(sweep) = windows(call, call.shape(0))? else { return Ok(None) };
    let Some((bound, word)) = scalar_types(call, caps, [0, 2]) else { return Ok(None) };
    if word == ScalarType::Bool {
        return Ok(None);
    }
    let (channels, input) = (sweep.channels.max(1), inputs(&sweep));
    let mut search = "var first = true;\n".to_string();
    for (axis, slide) in ["x", "y", "z"].iter().zip(&sweep.slides) {
        let Slide { input, size, stride, before, .. } = slide;
        search += &format!(
            "for (var s{axis} = 0u; s{axis} < {size}u; s{axis}++) {{\n\
             let o{axis} = w{axis} * {stride}u + s{axis} - u32(i32({before}));\n\
             if (o{axis} >= {input}u) {{ continue; }}\n"
        );
    }
    let [_, b, c] = sweep.slides.map(|slide| slide.size);
    search += &format!(
        "let other = in0[{} * {channels}u + channel];\n\
         if ((sx * {b}u + sy) * {c}u + sz < tap) {{ first = first && !(other >= own); }}\n\
         else {{ first = first && !(other > own); }}\n}}\n}}\n}}\n",
        together("o", input)
    );
    search += &format!(
        "if (first) {{ sum = sum + in1[{} * {channels}u + channel]; }}\n",
        together("w", outputs(&sweep))
    );
    let body = format!(
        "let channel = n % {channels}u;\nlet place = n / {channels}u;\n{}let own = in0[n];\nvar sum = {};\n{}out0[n] = {};\n",
        apart("place", "p", input),
        word.zero(),
        for_each_cover(&sweep, &search),
        cut(call.dtype(0), "sum"),
    );
    let count = call.shape(0).num_elements();
    Ok(Some(Shader::plain(bound, vec![word], body, count)))
}
