//! Boxes cut out of images: `CropAndResize` and its gradients.
//!
//! The rules are those of `tensorflow/core/kernels/image/crop_and_resize_op.cc`.

use super::to_floats;
use crate::{
    cpu::{Build, dispatch::with_real},
    device::OpCall,
    error::Result,
    kernel::{Io, Kernel},
    number::Number,
};
use ferroflow_ir::{Code, Error, Shape};
use num_traits::AsPrimitive;
use std::sync::Arc;

pub(crate) const KERNELS: &[(&str, Build)] = &[
    ("CropAndResize", crop),
    ("CropAndResizeGradBoxes", by_boxes),
    ("CropAndResizeGradImage", by_image),
];

/// The sizes of images and of what is cut out of them.
#[derive(Debug, Clone, Copy)]
struct Sizes {
    op: &'static str,
    batch: usize,
    image: [usize; 2],
    crop: [usize; 2],
    channels: usize,
    nearest: bool,
}

/// Where the positions of a box are in a dimension of the image: between two positions, or outside.
type SamplePositions = Vec<Option<SamplePosition>>;

#[derive(Debug, Clone, Copy)]
struct SamplePosition {
    low: usize,
    high: usize,
    /// Fraction of the way from `low` to `high`.
    part: f32,
}

impl Sizes {
    fn new(call: &OpCall<'_>, images: &Shape, crops: &Shape) -> Result<Sizes> {
        Ok(Sizes {
            op: call.op.name,
            batch: images[0],
            image: [images[1], images[2]],
            crop: [crops[1], crops[2]],
            channels: images[3],
            nearest: call.attrs.string("method")? == "nearest",
        })
    }

    /// The image that each box is in, out of an input.
    fn images(&self, io: &Io<'_>, index: usize) -> Result<Vec<usize>> {
        let image = |&image: &i32| match usize::try_from(image) {
            Ok(image) if image < self.batch => Ok(image),
            _ => {
                let detail = format!("box_ind {image} is outside [0, {})", self.batch);
                let code = Code::OutOfRange;
                Err(Error::Status { code, op: self.op.into(), detail }.into())
            }
        };
        io.input::<i32>(index).iter().map(image).collect()
    }

    /// The positions of a box along an axis: 0 for rows, 1 for columns.
    fn sample_positions(&self, corners: &[f32; 4], axis: usize) -> SamplePositions {
        let (start, end) = (corners[axis], corners[axis + 2]);
        let (last, count) = ((self.image[axis] - 1) as f32, self.crop[axis]);
        let position = |index: usize| {
            let position = match count > 1 {
                true => start * last + index as f32 * ((end - start) * last / (count - 1) as f32),
                false => 0.5 * (start + end) * last,
            };
            if !(0.0..=last).contains(&position) {
                return None;
            }
            if self.nearest {
                let nearest = position.round() as usize;
                return Some(SamplePosition { low: nearest, high: nearest, part: 0.0 });
            }
            let low = position.floor();
            Some(SamplePosition {
                low: low as usize,
                high: position.ceil() as usize,
                part: position - low,
            })
        };
        (0..count).map(position).collect()
    }

    /// The four pixels around a position, as the first element of each.
    fn corners(&self, image: usize, row: SamplePosition, column: SamplePosition) -> [usize; 4] {
        let [height, width] = self.image;
        let at =
            |row: usize, column: usize| ((image * height + row) * width + column) * self.channels;
        [
            at(row.low, column.low),
            at(row.low, column.high),
            at(row.high, column.low),
            at(row.high, column.high),
        ]
    }

    fn crop_len(&self) -> usize {
        self.crop[0] * self.crop[1] * self.channels
    }
}

fn crop(call: &OpCall<'_>) -> Result<Option<Arc<dyn Kernel>>> {
    fn kernel<T: Number + AsPrimitive<f32>>(sizes: Sizes, outside: f32) -> Arc<dyn Kernel> {
        Arc::new(move |io: &mut Io<'_>| {
            let images = sizes.images(io, 2)?;
            let (x, boxes) = (to_floats::<T>(io.input(0)), io.input::<f32>(1).as_chunks::<4>().0);
            let numbers = boxes.as_flattened();
            if let Some(number) = numbers.iter().find(|number| !number.is_finite()) {
                return Err(Error::argument("CropAndResize", "boxes", "finite", number).into());
            }
            let out: &mut [f32] = io.output(0);
            io.threads().for_each_piece(out, sizes.crop_len(), |start, out| {
                let index = start / sizes.crop_len();
                let rows = sizes.sample_positions(&boxes[index], 0);
                let columns = sizes.sample_positions(&boxes[index], 1);
                for (pixel, out) in out.chunks_mut(sizes.channels).enumerate() {
                    let (row, column) =
                        (rows[pixel / columns.len()], columns[pixel % columns.len()]);
                    let Some((row, column)) = row.zip(column) else {
                        out.fill(outside);
                        continue;
                    };
                    let corners = sizes.corners(images[index], row, column);
                    for (channel, out) in out.iter_mut().enumerate() {
                        let [a, b, c, d] = corners.map(|corner| x[corner + channel]);
                        let top = a + (b - a) * column.part;
                        let bottom = c + (d - c) * column.part;
                        *out = top + (bottom - top) * row.part;
                    }
                }
            });
            Ok(())
        })
    }
    let sizes = Sizes::new(call, call.shape(0), &call.output_shape(0)?)?;
    let outside = call.attrs.float("extrapolation_value")?;
    Ok(with_real!(call.dtype(0), T => kernel::<T>(sizes, outside)))
}

fn by_image(call: &OpCall<'_>) -> Result<Option<Arc<dyn Kernel>>> {
    fn kernel<T: Number>(sizes: Sizes) -> Arc<dyn Kernel>
    where
        f32: AsPrimitive<T>,
    {
        Arc::new(move |io: &mut Io<'_>| {
            let images = sizes.images(io, 2)?;
            let (dy, boxes): (&[f32], _) = (io.input(0), io.input::<f32>(1).as_chunks::<4>().0);
            let out: &mut [T] = io.output(0);
            let mut dx = vec![0.0f32; out.len()];
            let crops = dy.chunks(sizes.crop_len().max(1));
            for ((corners, image), dy) in boxes.iter().zip(images).zip(crops) {
                let (rows, columns) =
                    (sizes.sample_positions(corners, 0), sizes.sample_positions(corners, 1));
                for (pixel, dy) in dy.chunks(sizes.channels).enumerate() {
                    let (row, column) =
                        (rows[pixel / columns.len()], columns[pixel % columns.len()]);
                    let Some((row, column)) = row.zip(column) else { continue };
                    let parts = [
                        (1.0 - row.part) * (1.0 - column.part),
                        (1.0 - row.part) * column.part,
                        row.part * (1.0 - column.part),
                        row.part * column.part,
                    ];
                    for (corner, part) in sizes.corners(image, row, column).into_iter().zip(parts) {
                        let to = &mut dx[corner..][..sizes.channels];
                        to.iter_mut().zip(dy).for_each(|(to, &dy)| *to += part * dy);
                    }
                }
            }
            out.iter_mut().zip(dx).for_each(|(out, dx)| *out = dx.as_());
            Ok(())
        })
    }
    let sizes = Sizes::new(call, &call.output_shape(0)?, call.shape(0))?;
    Ok(with_real!(call.outputs[0].dtype, T => kernel::<T>(sizes)))
}

fn by_boxes(call: &OpCall<'_>) -> Result<Option<Arc<dyn Kernel>>> {
    fn kernel<T: Number + AsPrimitive<f32>>(sizes: Sizes) -> Arc<dyn Kernel> {
        Arc::new(move |io: &mut Io<'_>| {
            let images = sizes.images(io, 3)?;
            let (dy, x): (&[f32], _) = (io.input(0), to_floats::<T>(io.input(1)));
            let boxes = io.input::<f32>(2).as_chunks::<4>().0;
            let out = io.output::<f32>(0).as_chunks_mut::<4>().0;
            let crops = dy.chunks(sizes.crop_len().max(1));
            for (((corners, image), dy), out) in boxes.iter().zip(images).zip(crops).zip(out) {
                *out = sizes.gradient_by_box(&x, corners, image, dy);
            }
            Ok(())
        })
    }
    let sizes = Sizes::new(call, call.shape(1), call.shape(0))?;
    Ok(with_real!(call.dtype(1), T => kernel::<T>(sizes)))
}

impl Sizes {
    fn gradient_by_box(&self, x: &[f32], corners: &[f32; 4], image: usize, dy: &[f32]) -> [f32; 4] {
        let (rows, columns) =
            (self.sample_positions(corners, 0), self.sample_positions(corners, 1));
        let mut sums = [0.0; 4];
        for (pixel, dy) in dy.chunks(self.channels.max(1)).enumerate() {
            let at = [pixel / columns.len(), pixel % columns.len()];
            let Some((row, column)) = rows[at[0]].zip(columns[at[1]]) else { continue };
            let around = self.corners(image, row, column);
            let mut slopes = [0.0; 2];
            for (channel, &dy) in dy.iter().enumerate() {
                let [a, b, c, d] = around.map(|corner| x[corner + channel]);
                slopes[0] += dy * ((1.0 - column.part) * (c - a) + column.part * (d - b));
                slopes[1] += dy * ((1.0 - row.part) * (b - a) + row.part * (d - c));
            }
            for axis in 0..2 {
                let (last, count) = ((self.image[axis] - 1) as f32, self.crop[axis]);
                let (first, second) = match count > 1 {
                    true => {
                        let second = at[axis] as f32 * (last / (count - 1) as f32);
                        (last - second, second)
                    }
                    false => (0.5 * last, 0.5 * last),
                };
                sums[axis] += slopes[axis] * first;
                sums[axis + 2] += slopes[axis] * second;
            }
        }
        sums
    }
}
