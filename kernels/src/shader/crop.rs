//! Boxes cut out of images: `CropAndResize` and its gradients.
//!
//! The rules are those of `tensorflow/core/kernels/image/crop_and_resize_op.cc`. Boxes of images
//! that there are not are taken as outside.

use super::{
    Shader,
    builder::{KernelBuffer, KernelBuilder, KernelValue},
    pixel::PixelPosition,
    scalar_type::{Caps, ScalarType},
};
use crate::{device::OpCall, error::Result};
use ferroflow_ir::Shape;

pub(super) const SHADERS: &[(&str, super::Build)] = &[
    ("CropAndResize", crop),
    ("CropAndResizeGradBoxes", by_boxes),
    ("CropAndResizeGradImage", by_image),
];

/// The images and what is cut out of them.
struct Crops<'a> {
    images: &'a Shape,
    crops: &'a Shape,
    nearest: bool,
}

/// A position between two neighbours along a dimension, and how far it is from the first.
struct Between<'k> {
    low: KernelValue<'k>,
    high: KernelValue<'k>,
    part: KernelValue<'k>,
}

/// Where an element of a crop is in its image, and whether it is inside.
struct CropSample<'k> {
    inside: KernelValue<'k>,
    y: Between<'k>,
    x: Between<'k>,
}

impl<'a> Crops<'a> {
    fn new(call: &OpCall<'_>, images: &'a Shape, crops: &'a Shape) -> Result<Crops<'a>> {
        let nearest = call.attrs.string("method")? == "nearest";
        Ok(Crops { images, crops, nearest })
    }

    /// Maps position `y`, `x` of box `number` into its image.
    fn sample<'k>(
        &self,
        k: &'k KernelBuilder,
        boxes: KernelBuffer<'k>,
        number: KernelValue<'k>,
        y: KernelValue<'k>,
        x: KernelValue<'k>,
    ) -> CropSample<'k> {
        let [(y, is_row), (x, is_column)] = [(1, y), (2, x)].map(|(axis, step)| {
            let last = self.images[axis].max(1) as f32 - 1.0;
            let (start, end) =
                (boxes.at(number * 4 + (axis - 1)), boxes.at(number * 4 + (axis + 1)));
            let at = match self.crops[axis] {
                0 | 1 => 0.5 * (start + end) * last,
                count => {
                    let step = step.to(ScalarType::F32);
                    start * last + step * ((end - start) * last / (count - 1) as f32)
                }
            };
            let at = k.bind("at", at);
            let (low, high, part) = match self.nearest {
                true => ((at + 0.5).floor(), (at + 0.5).floor(), k.float(0.0)),
                false => (at.floor(), at.function("ceil"), at - at.floor()),
            };
            let whole = |name: &str, value: KernelValue<'k>| {
                k.bind(name, value.clamp(0.0, last).to(ScalarType::U32))
            };
            let (low, high) = (whole("low", low), whole("high", high));
            (Between { low, high, part: k.bind("part", part) }, at.ge(0.0).and(at.le(last)))
        });
        CropSample { inside: k.bind("inside", is_row.and(is_column)), y, x }
    }

    /// The four pixels around a position: both of the upper row, both of the lower one.
    fn corners<'k>(
        &self,
        k: &'k KernelBuilder,
        images: KernelBuffer<'k>,
        pixel: PixelPosition<'k>,
        CropSample { y, x, .. }: &CropSample<'k>,
    ) -> [KernelValue<'k>; 4] {
        let corners = [(y.low, x.low), (y.low, x.high), (y.high, x.low), (y.high, x.high)];
        corners.map(|(y, x)| {
            k.bind("corner", images.at(pixel.at(self.images, y, x)).to(ScalarType::F32))
        })
    }

    /// The distance that a position of a crop moves with the end of its dimension that a side is.
    fn moves<'k>(
        &self,
        axis: usize,
        step: KernelValue<'k>,
        side: KernelValue<'k>,
    ) -> KernelValue<'k> {
        let last = self.images[axis].max(1) as f32 - 1.0;
        match self.crops[axis] {
            0 | 1 => side.float(0.5 * last),
            count => {
                let far = step.to(ScalarType::F32) * (last / (count - 1) as f32);
                side.ge(2).select(far, last - far)
            }
        }
    }

    /// Runs statements for every position of a crop.
    fn for_each_position<'k>(
        &self,
        k: &'k KernelBuilder,
        body: impl Fn(KernelValue<'k>, KernelValue<'k>),
    ) {
        k.for_below("y", self.crops[1], |y| k.for_below("x", self.crops[2], |x| body(y, x)));
    }
}

fn crop(call: &OpCall<'_>, caps: Caps) -> Result<Option<Shader>> {
    let shape = call.output_shape(0)?;
    let crops = Crops::new(call, call.shape(0), &shape)?;
    let k = KernelBuilder::new(caps);
    let ([images, boxes, numbers], out) = (k.inputs(call, [0, 1, 2]), k.result(call));
    let position = PixelPosition::of(&k, &shape);
    let image = k.bind("source", numbers.at(position.image).to(ScalarType::U32));
    let sample = crops.sample(&k, boxes, position.image, position.y, position.x);
    let value = k.variable("value", k.float(call.attrs.float("extrapolation_value")?));
    k.when(sample.inside.and(image.lt(call.shape(0)[0])), || {
        let pixel = PixelPosition { image, ..position };
        let [a, b, c, d] = crops.corners(&k, images, pixel, &sample);
        let top = k.bind("top", a + (b - a) * sample.x.part);
        let bottom = k.bind("bottom", c + (d - c) * sample.x.part);
        value.set(top + (bottom - top) * sample.y.part);
    });
    out.set(k.element(), value);
    k.finish(shape.num_elements())
}

/// An invocation per element of the images adds up what the boxes send there.
fn by_image(call: &OpCall<'_>, caps: Caps) -> Result<Option<Shader>> {
    let shape = call.output_shape(0)?;
    let crops = Crops::new(call, &shape, call.shape(0))?;
    let k = KernelBuilder::new(caps);
    let ([gradients, boxes, numbers], out) = (k.inputs(call, [0, 1, 2]), k.result(call));
    k.requires(out.scalar == ScalarType::F32);
    let position = PixelPosition::of(&k, &shape);
    let sum = k.variable("sum", k.float(0.0));
    // The share of a pixel that is one of both neighbours, or both.
    let share = |between: &Between<'_>, own: KernelValue<'_>| {
        let share = k.variable("share", k.float(0.0));
        k.when(between.low.eq(own), || share.set(1.0 - between.part));
        k.when(between.high.eq(own), || share.set(share + between.part));
        share
    };
    k.for_below("number", call.shape(0)[0], |number| {
        let is_here = numbers.at(number).to(ScalarType::U32).eq(position.image);
        k.when(is_here, || {
            crops.for_each_position(&k, |y, x| {
                let sample = crops.sample(&k, boxes, number, y, x);
                k.when(sample.inside, || {
                    let (down, across) =
                        (share(&sample.y, position.y), share(&sample.x, position.x));
                    let pixel = PixelPosition { image: number, ..position };
                    sum.set(sum + down * across * gradients.at(pixel.at(call.shape(0), y, x)));
                });
            });
        });
    });
    out.set(k.element(), sum.rounded(call.outputs[0].dtype));
    k.finish(shape.num_elements())
}

/// An invocation per corner of a box.
fn by_boxes(call: &OpCall<'_>, caps: Caps) -> Result<Option<Shader>> {
    let crops = Crops::new(call, call.shape(1), call.shape(0))?;
    let k = KernelBuilder::new(caps);
    let ([gradients, images, boxes, numbers], out) = (k.inputs(call, [0, 1, 2, 3]), k.result(call));
    let (number, side) = (k.bind("number", k.element() / 4), k.bind("side", k.element() % 4));
    let image = k.bind("image", numbers.at(number).to(ScalarType::U32));
    let sum = k.variable("sum", k.float(0.0));
    k.when(image.lt(call.shape(1)[0]), || {
        crops.for_each_position(&k, |y, x| {
            let sample = crops.sample(&k, boxes, number, y, x);
            k.when(sample.inside, || {
                let slope = k.variable("slope", k.float(0.0));
                let (down, across) = (sample.y.part, sample.x.part);
                let [by_row_end, by_column_end] =
                    [(1, y), (2, x)].map(|(axis, step)| crops.moves(axis, step, side));
                k.for_below("channel", call.shape(1)[3].max(1), |channel| {
                    let pixel = PixelPosition { image, y, x, channel };
                    let [a, b, c, d] = crops.corners(&k, images, pixel, &sample);
                    let at = PixelPosition { image: number, ..pixel }.at(call.shape(0), y, x);
                    let gradient = k.bind("gradient", gradients.at(at));
                    let by_row = (1.0 - across) * (c - a) + across * (d - b);
                    let by_column = (1.0 - down) * (b - a) + down * (d - c);
                    k.when_else(
                        (side % 2).eq(0),
                        || slope.set(slope + gradient * by_row),
                        || slope.set(slope + gradient * by_column),
                    );
                });
                sum.set(sum + slope * (side % 2).eq(1).select(by_column_end, by_row_end));
            });
        });
    });
    out.set(k.element(), sum);
    k.finish(call.output_shape(0)?.num_elements())
}
