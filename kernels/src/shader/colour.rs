//! Colour spaces, pixel by pixel: `RGBToHSV`, `HSVToRGB`, `AdjustHue`, `AdjustSaturation`.

use super::{
    Shader,
    builder::{KernelBuilder, KernelValue},
    scalar_type::{Caps, ScalarType},
};
use crate::{device::OpCall, error::Result};

pub(super) const SHADERS: &[(&str, super::Build)] = &[
    ("AdjustHue", |call, caps| pixels(call, caps, &[turn_hue])),
    ("AdjustSaturation", |call, caps| pixels(call, caps, &[to_hsv, saturate, to_rgb])),
    ("HSVToRGB", |call, caps| pixels(call, caps, &[to_rgb])),
    ("RGBToHSV", |call, caps| pixels(call, caps, &[to_hsv])),
];

/// Changes the three channels of a pixel, which are variables, by a number if the call has it.
type ChangePixel = for<'k> fn(&'k KernelBuilder, [KernelValue<'k>; 3], KernelValue<'k>);

/// Red, green and blue to hue, saturation and value.
fn to_hsv<'k>(k: &'k KernelBuilder, [x, y, z]: [KernelValue<'k>; 3], _: KernelValue<'k>) {
    let value = k.bind("value", x.max(y).max(z));
    let range = k.bind("range", value - x.min(y).min(z));
    let part = k.bind("part", 1.0 / (6.0 * range));
    let hue = k.variable("hue", part * (x - y) + 0.666_666_7);
    k.when(y.eq(value), || hue.set(part * (z - x) + 0.333_333_34));
    k.when(x.eq(value), || hue.set(part * (y - z)));
    k.when(!range.gt(0.0), || hue.set(0.0));
    k.when(hue.lt(0.0), || hue.set(hue + 1.0));
    x.set(hue);
    y.set(0.0);
    k.when(value.gt(0.0), || y.set(range / value));
    z.set(value);
}

/// Turns the hue, which is a position between the least and the largest channel, whatever those are.
fn turn_hue<'k>(k: &'k KernelBuilder, [x, y, z]: [KernelValue<'k>; 3], by: KernelValue<'k>) {
    let most = k.bind("most", x.max(y).max(z));
    let least = k.bind("least", x.min(y).min(z));
    let middle = k.bind("middle", x.min(y).max(x.max(y).min(z)));
    let sixth = k.variable("sixth", k.float(5.0));
    let rises = k.bind("rises", x.lt(y));
    for (condition, number) in [
        (rises, 2.0),
        (rises.and(z.lt(x)), 1.0),
        (rises.and(z.gt(y)), 3.0),
        ((!rises).and(z.lt(y)), 0.0),
        ((!rises).and(z.gt(x)), 4.0),
    ] {
        k.when(condition, || sixth.set(number));
    }
    let falls = || sixth.eq(1.0).or(sixth.eq(3.0)).or(sixth.eq(5.0));
    let hue = k.variable("hue", (middle - least) / (most - least));
    k.when(falls(), || hue.set(1.0 - hue));
    hue.set(sixth + hue);
    k.when(most.eq(least), || hue.set(0.0));
    hue.set(hue + by * 6.0);
    hue.set(hue - 6.0 * (hue / 6.0).floor());
    sixth.set(hue.floor().min(5.0));
    let part = k.variable("part", hue - sixth);
    k.when(falls(), || part.set(1.0 - part));
    part.set(least + part * (most - least));
    let [red, green, blue] = [x, y, z];
    [x, y, z].iter().for_each(|channel| channel.set(least));
    // The largest channel and the middle one, by the sixth of the circle.
    let order =
        [(red, green), (green, red), (green, blue), (blue, green), (blue, red), (red, blue)];
    for (number, (largest, other)) in order.into_iter().enumerate() {
        k.when(sixth.eq(number as f32), || {
            largest.set(most);
            other.set(part);
        });
    }
}

fn saturate<'k>(_: &'k KernelBuilder, [_, y, _]: [KernelValue<'k>; 3], by: KernelValue<'k>) {
    y.set((y * by).min(1.0).max(0.0));
}

/// Hue, saturation and value to red, green and blue.
fn to_rgb<'k>(k: &'k KernelBuilder, [x, y, z]: [KernelValue<'k>; 3], _: KernelValue<'k>) {
    let sixths = k.bind("sixths", x * 6.0);
    let from = |middle: f32| (sixths - middle).function("abs");
    let bounded = |name: &str, share: KernelValue<'k>| {
        let share = k.bind(name, share);
        share.is_nan().select(share, share.min(1.0).max(0.0))
    };
    let red = bounded("red", from(3.0) - 1.0);
    let green = bounded("green", 2.0 - from(2.0));
    let blue = bounded("blue", 2.0 - from(4.0));
    let grey = k.bind("grey", 1.0 - y);
    let [red, green, blue] =
        [red, green, blue].map(|share| k.bind("channel", (grey + y * share) * z));
    x.set(red);
    y.set(green);
    z.set(blue);
}

/// An invocation per pixel.
fn pixels(call: &OpCall<'_>, caps: Caps, steps: &[ChangePixel]) -> Result<Option<Shader>> {
    let k = KernelBuilder::new(caps);
    let ([images], out, n) = (k.inputs(call, [0]), k.result(call), k.element());
    k.requires(images.scalar == ScalarType::F32);
    let by = match call.inputs.len() {
        1 => k.float(0.0),
        _ => k.input(1, call.dtype(1)).at(0),
    };
    let pixel = [0, 1, 2].map(|channel| k.variable("channel", images.at(3 * n + channel)));
    for step in steps {
        step(&k, pixel, by);
    }
    for (channel, value) in pixel.into_iter().enumerate() {
        out.set(3 * n + channel, value.rounded(call.outputs[0].dtype));
    }
    k.finish(call.shape(0).num_elements() / 3)
}
