//! Where windows are largest: `MaxPoolWithArgmax`, `MaxPool3DGrad`, `MaxPool…GradGrad`.

use super::{
    Shader,
    builder::KernelBuilder,
    pool::{element, windows},
    scalar_type::{Caps, ScalarType},
    sweep::{for_each_cover, for_each_offset, inputs, outputs},
};
use crate::{device::OpCall, error::Result, plan::window::NEAR_LARGEST};

pub(super) const SHADERS: &[(&str, super::Build)] = &[
    ("MaxPool3DGrad", all_largest),
    ("MaxPool3DGradGrad", forward),
    ("MaxPoolGradGrad", forward),
    ("MaxPoolGradGradV2", forward),
    ("MaxPoolWithArgmax", argmax),
];

/// The element of input 2 where the window is first as large as input 1 says; 0 if nowhere.
fn forward(call: &OpCall<'_>, caps: Caps) -> Result<Option<Shader>> {
    let Some(sweep) = windows(call, call.shape(0))? else { return Ok(None) };
    let k = KernelBuilder::new(caps);
    let ([data, results, gradients], out) = (k.inputs(call, [0, 1, 2]), k.result(call));
    k.requires(out.scalar != ScalarType::Bool);
    let (window, channel) = element(&k, &sweep, outputs(&sweep));
    let result = k.bind("result", results.at(k.element()));
    let found = k.variable("found", k.bool(false));
    let value = k.variable("value", out.zero());
    for_each_offset(&k, &sweep, window, |_, position| {
        let at = k.bind("at", position.number(inputs(&sweep)) * sweep.channels + channel);
        k.when((!found).and(data.at(at).eq(result)), || {
            found.set(k.bool(true));
            value.set(gradients.at(at));
        });
    });
    out.set(k.element(), value);
    k.finish(call.output_shape(0)?.num_elements())
}

/// Every element that is as large as its window gets the window's gradient; those nearer than
/// [`NEAR_LARGEST`] are.
fn all_largest(call: &OpCall<'_>, caps: Caps) -> Result<Option<Shader>> {
    let Some(sweep) = windows(call, call.shape(0))? else { return Ok(None) };
    let k = KernelBuilder::new(caps);
    let ([data, results, gradients], out) = (k.inputs(call, [0, 1, 2]), k.result(call));
    k.requires(out.scalar == ScalarType::F32);
    let (position, channel) = element(&k, &sweep, inputs(&sweep));
    let x = k.bind("x", data.at(k.element()));
    let sum = k.variable("sum", out.zero());
    for_each_cover(&k, &sweep, position, |_, window| {
        let at = k.bind("at", window.number(outputs(&sweep)) * sweep.channels + channel);
        let apart = k.bind("apart", results.at(at) - x);
        let is_near = apart.lt(NEAR_LARGEST).and((-apart).lt(NEAR_LARGEST));
        k.when(is_near, || sum.set(sum + gradients.at(at)));
    });
    out.set(k.element(), sum.rounded(call.dtype(0)));
    k.finish(call.shape(0).num_elements())
}

/// The first largest element and its position within its image, or from the first image on. NaN
/// stays if it comes first and is passed over otherwise.
fn argmax(call: &OpCall<'_>, caps: Caps) -> Result<Option<Shader>> {
    let Some(sweep) = windows(call, call.shape(0))? else { return Ok(None) };
    let size = call.shape(0)[1..].iter().product::<usize>();
    let k = KernelBuilder::new(caps);
    let ([data], values) = (k.inputs(call, [0]), k.result(call));
    let indices = k.output(call.outputs[1].dtype);
    k.requires(data.scalar != ScalarType::Bool);
    let (window, channel) = element(&k, &sweep, outputs(&sweep));
    let first = k.bind("first", window.image * size);
    let found = k.variable("found", k.bool(false));
    let largest = k.variable("largest", data.zero());
    let index = k.variable("index", first);
    for_each_offset(&k, &sweep, window, |_, position| {
        let at = k.bind("at", position.number(inputs(&sweep)) * sweep.channels + channel);
        let x = k.bind("x", data.at(at));
        k.when((!found).or(x.gt(largest)), || {
            found.set(k.bool(true));
            largest.set(x);
            index.set(at);
        });
    });
    values.set(k.element(), largest);
    let is_whole = call.attrs.bool("include_batch_in_index")?;
    let index = if is_whole { index } else { index - first };
    indices.set(k.element(), index.to(indices.scalar));
    k.finish(call.output_shape(0)?.num_elements())
}
