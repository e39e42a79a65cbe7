//! Projections of images: `ImageProjectiveTransformV2`, `ImageProjectiveTransformV3`.
//!
//! The rules are those of `tensorflow/core/kernels/image/image_ops.h`.

use super::{
    Shader,
    builder::{KernelBuilder, KernelValue},
    pixel::PixelPosition,
    scalar_type::{Caps, ScalarType},
};
use crate::{device::OpCall, error::Result};

pub(super) const SHADERS: &[(&str, super::Build)] =
    &[("ImageProjectiveTransformV2", project), ("ImageProjectiveTransformV3", project)];

/// Moves a coordinate, which is a variable, into a dimension of some size. A way to fill that there is
/// not makes the kernel none.
fn move_inside<'k>(k: &'k KernelBuilder, at: KernelValue<'k>, size: usize, mode: &str) {
    let (length, last, twice) = (size as f32, size as f32 - 1.0, 2.0 * size as f32);
    let trunc = |value: KernelValue<'k>| value.function("trunc");
    match mode {
        "CONSTANT" => return,
        "NEAREST" => {}
        "REFLECT" | "WRAP" if size <= 1 => return at.set(0.0),
        "REFLECT" => k.when_else(
            at.lt(0.0),
            || {
                let moved = k.bind("moved", twice * trunc(-at / twice) + at);
                k.when_else(moved.lt(-length), || at.set(moved + twice), || at.set(-moved - 1.0));
            },
            || {
                k.when(at.gt(last), || {
                    let moved = k.bind("moved", at - twice * trunc(at / twice));
                    k.when_else(moved.ge(length), || at.set(twice - moved - 1.0), || at.set(moved));
                });
            },
        ),
        "WRAP" => k.when_else(
            at.lt(0.0),
            || at.set(at + length * (trunc(-at / last) + 1.0)),
            || k.when(at.gt(last), || at.set(at - length * trunc(at / last))),
        ),
        _ => return k.unsupported(),
    }
    at.set(at.clamp(0.0, last));
}

/// Every element of the result looks where its transform, or that of all images, puts it.
fn project(call: &OpCall<'_>, caps: Caps) -> Result<Option<Shader>> {
    let (from, shape) = (call.shape(0), call.output_shape(0)?);
    let (height, width) = (from[1], from[2]);
    let k = KernelBuilder::new(caps);
    let ([images, transforms], out) = (k.inputs(call, [0, 1]), k.result(call));
    let fill = match call.inputs.len() > 3 {
        true => k.input(3, call.dtype(3)).at(0),
        false => k.float(0.0),
    };
    let pixel = PixelPosition::of(&k, &shape);
    let first = if call.shape(1)[0] == 1 { k.index(0) } else { k.bind("first", pixel.image * 8) };
    let [x, y] = [pixel.x, pixel.y].map(|at| k.bind("at", at.to(ScalarType::F32)));
    let entry = |number: usize| transforms.at(first + number);
    let projection = k.bind("projection", entry(6) * x + entry(7) * y + 1.0);
    // What is read there, or the fill.
    let read = |row: KernelValue<'_>, column: KernelValue<'_>| {
        let value = k.variable("read", fill);
        let is_row = row.ge(0.0).and(row.lt(height as f32));
        k.when(is_row.and(column.ge(0.0)).and(column.lt(width as f32)), || {
            let [row, column] = [row, column].map(|at| at.to(ScalarType::U32));
            value.set(images.at(pixel.at(from, row, column)).to(ScalarType::F32));
        });
        value
    };
    let value = k.variable("value", fill);
    let (mode, interpolation) =
        (call.attrs.string("fill_mode")?, call.attrs.string("interpolation")?);
    k.when(projection.ne(0.0), || {
        let moved = |number: usize| {
            (entry(number) * x + entry(number + 1) * y + entry(number + 2)) / projection
        };
        let (column, row) = (k.variable("column", moved(0)), k.variable("row", moved(3)));
        move_inside(&k, column, width, mode);
        move_inside(&k, row, height, mode);
        match interpolation {
            "NEAREST" => {
                // Halves are rounded away from zero.
                let [row, column] = [row, column].map(|at| {
                    k.bind("near", at.lt(0.0).select(-(0.5 - at).floor(), (at + 0.5).floor()))
                });
                value.set(read(row, column));
            }
            "BILINEAR" => {
                // What a rounding moves below a whole number would be cut to another one.
                k.requires(out.scalar == ScalarType::F32);
                let (top, left) = (k.bind("top", row.floor()), k.bind("left", column.floor()));
                let (bottom, right) = (k.bind("bottom", top + 1.0), k.bind("right", left + 1.0));
                let [upper, lower] = [top, bottom].map(|line| {
                    let (a, b) = (read(line, left), read(line, right));
                    k.bind("line", (right - column) * a + (column - left) * b)
                });
                value.set((bottom - row) * upper + (row - top) * lower);
            }
            _ => k.unsupported(),
        }
    });
    let result = match out.scalar {
        ScalarType::F32 => value.rounded(call.dtype(0)),
        scalar => value.to(scalar),
    };
    out.set(k.element(), result);
    k.finish(shape.num_elements())
}
