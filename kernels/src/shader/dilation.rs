//! Grey-scale dilation: `Dilation2D` and its gradients. The gradient of each output goes to the
//! first kernel offset that made the largest sum.

use super::{
    Shader,
    builder::{KernelBuffer, KernelBuilder, KernelValue},
    pool::element,
    reduce::bound,
    scalar_type::Caps,
    sweep::{ImagePosition, for_each_cover, for_each_offset, inputs, outputs},
};
use crate::{
    device::OpCall,
    error::Result,
    plan::{sliding::dilation as sweep, window::Sweep},
};
use ferroflow_ir::DType;

pub(super) const SHADERS: &[(&str, super::Build)] = &[
    ("Dilation2D", dilation),
    ("Dilation2DBackpropFilter", by_filter),
    ("Dilation2DBackpropInput", by_input),
];

/// The largest sum of a window and a filter, and its kernel offset. NaN is passed over.
fn search<'k>(
    k: &'k KernelBuilder,
    sweep: &Sweep,
    dtype: DType,
    [data, filter]: [KernelBuffer<'k>; 2],
    (window, channel): (ImagePosition<'k>, KernelValue<'k>),
) -> (KernelValue<'k>, KernelValue<'k>) {
    let none = k.index(u32::MAX as usize);
    let largest = k.variable("largest", bound(k, dtype, true));
    let best = k.variable("best", none);
    for_each_offset(k, sweep, window, |offset, position| {
        let x = data.at(position.number(inputs(sweep)) * sweep.channels + channel);
        let sum = (x + filter.at(offset * sweep.channels + channel)).rounded(dtype);
        let sum = k.bind("sum", sum);
        k.when(sum.gt(largest).or(best.eq(none)), || {
            k.when(sum.gt(largest), || largest.set(sum));
            best.set(offset);
        });
    });
    (largest, best)
}

fn dilation(call: &OpCall<'_>, caps: Caps) -> Result<Option<Shader>> {
    let sweep = sweep(call)?;
    let k = KernelBuilder::new(caps);
    let (operands, out) = (k.inputs(call, [0, 1]), k.result(call));
    let window = element(&k, &sweep, outputs(&sweep));
    let (largest, _) = search(&k, &sweep, call.dtype(0), operands, window);
    out.set(k.element(), largest);
    k.finish(call.output_shape(0)?.num_elements())
}

/// An invocation per position asks of each window that covers it whether it is its best kernel
/// offset.
fn by_input(call: &OpCall<'_>, caps: Caps) -> Result<Option<Shader>> {
    let sweep = sweep(call)?;
    let k = KernelBuilder::new(caps);
    let ([data, filter, gradients], out) = (k.inputs(call, [0, 1, 2]), k.result(call));
    let (position, channel) = element(&k, &sweep, inputs(&sweep));
    let total = k.variable("total", out.zero());
    for_each_cover(&k, &sweep, position, |offset, window| {
        let (_, best) = search(&k, &sweep, call.dtype(0), [data, filter], (window, channel));
        let at = window.number(outputs(&sweep)) * sweep.channels + channel;
        k.when(best.eq(offset), || total.set(total + gradients.at(at)));
    });
    out.set(k.element(), total.rounded(call.dtype(0)));
    k.finish(call.output_shape(0)?.num_elements())
}

/// An invocation per kernel offset and channel asks every window.
fn by_filter(call: &OpCall<'_>, caps: Caps) -> Result<Option<Shader>> {
    let sweep = sweep(call)?;
    let k = KernelBuilder::new(caps);
    let ([data, filter, gradients], out) = (k.inputs(call, [0, 1, 2]), k.result(call));
    let (n, channels) = (k.element(), sweep.channels.max(1));
    let (channel, offset) = (k.bind("channel", n % channels), k.bind("offset", n / channels));
    let total = k.variable("total", out.zero());
    k.for_below("number", sweep.n_windows(), |number| {
        let window = ImagePosition::of(&k, number, outputs(&sweep));
        let (_, best) = search(&k, &sweep, call.dtype(0), [data, filter], (window, channel));
        let gradient = gradients.at(number * channels + channel);
        k.when(best.eq(offset), || total.set(total + gradient));
    });
    out.set(n, total.rounded(call.dtype(0)));
    k.finish(call.output_shape(0)?.num_elements())
}
