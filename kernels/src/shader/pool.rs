//! Pools over two and three spatial dimensions, and their gradients.

use super::{
    Shader,
    builder::{KernelBuilder, KernelValue},
    reduce::bound,
    scalar_type::{Caps, ScalarType},
    sweep::{ImagePosition, for_each_cover, for_each_offset, inputs, outputs},
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
    ("MaxPool", largest::<false>),
    ("MaxPool3D", largest::<true>),
    ("MaxPoolGrad", largest_grad),
    ("MaxPoolGradV2", largest_grad),
    ("MaxPoolV2", largest::<false>),
];

/// The windows of a call; `None` for windows over channels, and channels before space.
pub(super) fn windows(call: &OpCall<'_>, input: &Shape) -> Result<Option<Sweep>> {
    let pool = sliding::pool(call)?;
    if !pool.layout.channels_last || pool.depth > 1 {
        return Ok(None);
    }
    sliding::windows(&pool, input).map(Some)
}

/// An element of a tensor `[positions of these sizes, channels]`: its position and its channel.
pub(super) fn element<'k>(
    k: &'k KernelBuilder,
    sweep: &Sweep,
    sizes: [usize; 3],
) -> (ImagePosition<'k>, KernelValue<'k>) {
    let (n, channels) = (k.element(), sweep.channels.max(1));
    let channel = k.bind("channel", n % channels);
    (ImagePosition::of(k, k.bind("number", n / channels), sizes), channel)
}

/// Pools windows of input 0: `step` combines a result with an element, and `end` makes an output of
/// it and of the number of elements.
fn fold<'k>(
    k: &'k KernelBuilder,
    call: &OpCall<'_>,
    start: KernelValue<'k>,
    step: impl Fn(KernelValue<'k>, KernelValue<'k>) -> KernelValue<'k>,
    end: impl Fn(KernelValue<'k>, KernelValue<'k>) -> KernelValue<'k>,
) -> Result<Option<Shader>> {
    let Some(sweep) = windows(call, call.shape(0))? else { return Ok(None) };
    let ([data], out) = (k.inputs(call, [0]), k.result(call));
    let (window, channel) = element(k, &sweep, outputs(&sweep));
    let (acc, count) = (k.variable("acc", start), k.variable("count", k.index(0)));
    for_each_offset(k, &sweep, window, |_, position| {
        let at = position.number(inputs(&sweep)) * sweep.channels + channel;
        acc.set(step(acc, k.bind("x", data.at(at))));
        count.set(count + 1);
    });
    out.set(k.element(), end(acc, count).rounded(call.dtype(0)));
    k.finish(call.output_shape(0)?.num_elements())
}

fn average(call: &OpCall<'_>, caps: Caps) -> Result<Option<Shader>> {
    let k = KernelBuilder::new(caps);
    if k.scalar(call.dtype(0)) != ScalarType::F32 {
        return Ok(None);
    }
    fold(&k, call, k.float(0.0), |acc, x| acc + x, |acc, count| acc / count.to(ScalarType::F32))
}

/// Starts from the lowest finite value and passes NaN over, as TensorFlow does.
fn largest<const KEEPS_LAST: bool>(call: &OpCall<'_>, caps: Caps) -> Result<Option<Shader>> {
    let k = KernelBuilder::new(caps);
    let start = bound(&k, call.dtype(0), true);
    let largest = |acc, _| acc;
    match KEEPS_LAST {
        true => fold(&k, call, start, |acc, x| acc.gt(x).select(acc, x), largest),
        false => fold(&k, call, start, |acc, x| x.gt(acc).select(x, acc), largest),
    }
}

/// Each position gets its share of every window that covers it.
fn average_grad(call: &OpCall<'_>, caps: Caps) -> Result<Option<Shader>> {
    let shape = call.output_shape(0)?;
    let Some(sweep) = windows(call, &shape)? else { return Ok(None) };
    let k = KernelBuilder::new(caps);
    let ([gradients], out) = (k.inputs(call, [1]), k.result(call));
    let (position, channel) = element(&k, &sweep, inputs(&sweep));
    let sum = k.variable("sum", out.zero());
    for_each_cover(&k, &sweep, position, |_, window| {
        let gradient = gradients.at(window.number(outputs(&sweep)) * sweep.channels + channel);
        let covered = sweep.slides.iter().zip(window.at).filter(|(slide, _)| slide.size > 1);
        // What of a window lies inside: its kernel offsets are neighbours.
        let counts = covered.map(|(slide, window)| {
            let Slide { input, size, stride, before, .. } = *slide;
            let start =
                (window * stride).to(ScalarType::I32) - k.number(ScalarType::I32, before as i32);
            let start = k.bind("start", start);
            ((start + size).min(input) - start.max(0)).to(ScalarType::F32)
        });
        let count = counts.reduce(|count, other| count * other);
        sum.set(sum + count.map_or(gradient, |count| gradient / count));
    });
    out.set(k.element(), sum.rounded(call.dtype(1)));
    k.finish(shape.num_elements())
}

/// Each position gets the gradient of the windows whose first largest element it is: none before it
/// is as large, none after it larger.
fn largest_grad(call: &OpCall<'_>, caps: Caps) -> Result<Option<Shader>> {
    let Some(sweep) = windows(call, call.shape(0))? else { return Ok(None) };
    let k = KernelBuilder::new(caps);
    let ([data, gradients], out) = (k.inputs(call, [0, 2]), k.result(call));
    k.requires(data.scalar != ScalarType::Bool);
    let (position, channel) = element(&k, &sweep, inputs(&sweep));
    let x = k.bind("x", data.at(k.element()));
    let sum = k.variable("sum", out.zero());
    for_each_cover(&k, &sweep, position, |offset, window| {
        let first = k.variable("is_first", k.bool(true));
        for_each_offset(&k, &sweep, window, |other_offset, other| {
            let at = other.number(inputs(&sweep)) * sweep.channels + channel;
            let other = k.bind("other", data.at(at));
            k.when_else(
                other_offset.lt(offset),
                || first.set(first.and(!other.ge(x))),
                || first.set(first.and(!other.gt(x))),
            );
        });
        let at = window.number(outputs(&sweep)) * sweep.channels + channel;
        k.when(first, || sum.set(sum + gradients.at(at)));
    });
    out.set(k.element(), sum.rounded(call.dtype(0)));
    k.finish(call.shape(0).num_elements())
}
