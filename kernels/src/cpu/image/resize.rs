//! Images of another size: each dimension is a weighted sum of positions, or the nearest one.

use super::{area::AreaResize, bilinear::BilinearResize, to_floats};
use crate::{
    cpu::{
        Build,
        cell::Cell,
        dispatch::{with_cell, with_real},
    },
    device::OpCall,
    error::Result,
    kernel::{Io, Kernel},
    number::Number,
    plan::interpolation::{
        Filter, InterpolationWeights, Scaling, bicubic, bilinear, filtered, of_each, scalings,
    },
    simd::{Vectorized, vectorize},
    threads::Threads,
    wide::WideElement,
};
use ferroflow_ir::{DType, Error, Shape, workspace};
use num_traits::AsPrimitive;
use std::{f32::consts::PI, sync::Arc};

pub(crate) const KERNELS: &[(&str, Build)] = &[
    ("ResizeArea", |call| resize(call, AreaResize::new)),
    ("ResizeBicubic", |call| resize(call, |call| WeightedResize::new(call, bicubic))),
    ("ResizeBicubicGrad", |call| resize_grad(call, bicubic)),
    ("ResizeBilinear", |call| resize(call, BilinearResize::new)),
    ("ResizeBilinearGrad", |call| resize_grad(call, bilinear)),
    ("ResizeNearestNeighbor", nearest),
    ("ResizeNearestNeighborGrad", nearest_grad),
    ("ScaleAndTranslate", scale_and_translate),
];

/// A rule for weights.
type Rule = fn(Scaling) -> Result<InterpolationWeights>;

/// A rule for resizing images.
pub(in crate::cpu) trait Resize: Send + Sync + 'static {
    /// Writes the images `x` in another size.
    fn apply(&self, threads: &Threads, x: &[f32], out: &mut [f32]);
}

/// The sizes of images before they are resized.
#[derive(Debug, Clone, Copy)]
pub(super) struct ImageSize {
    pub(super) height: usize,
    pub(super) width: usize,
    pub(super) channels: usize,
}

impl ImageSize {
    pub(super) fn new(shape: &Shape) -> ImageSize {
        ImageSize { height: shape[1], width: shape[2], channels: shape[3] }
    }

    pub(super) fn row(&self) -> usize {
        self.width * self.channels
    }
}

/// Adds a multiple of elements to others.
pub(super) struct AddMultiple<'a>(pub(super) &'a mut [f32], pub(super) f32, pub(super) &'a [f32]);

impl Vectorized for AddMultiple<'_> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        self.0.iter_mut().zip(self.2).for_each(|(sum, &x)| *sum += self.1 * x);
    }
}

/// Weighted sums along a row of pixels.
pub(super) fn along_row(
    columns: &InterpolationWeights,
    channels: usize,
    row: &[f32],
    out: &mut [f32],
) {
    for (taps, out) in columns.iter().zip(out.chunks_mut(channels)) {
        out.fill(0.0);
        for &(position, weight) in taps {
            let from = &row[position * channels..][..channels];
            out.iter_mut().zip(from).for_each(|(out, &x)| *out += weight * x);
        }
    }
}

/// Calls `work` for each line of the output: with the weights of the rows that make it up, their image,
/// and the line.
pub(super) fn for_each_line(
    threads: &Threads,
    size: ImageSize,
    rows: &InterpolationWeights,
    out_row: usize,
    x: &[f32],
    out: &mut [f32],
    work: impl Fn(&[(usize, f32)], &[f32], &mut [f32]) + Sync,
) {
    if out.is_empty() {
        return;
    }
    let image_len = size.height * size.row();
    threads.for_each_piece(out, out_row, |start, out| {
        let line = start / out_row;
        let image = &x[line / rows.len() * image_len..][..image_len];
        work(rows.get(line % rows.len()), image, out);
    });
}

/// Sums of rows, and then of columns, by the weights of a rule.
#[derive(Debug, Clone)]
struct WeightedResize {
    size: ImageSize,
    rows: InterpolationWeights,
    columns: InterpolationWeights,
}

impl WeightedResize {
    fn new(call: &OpCall<'_>, rule: Rule) -> Result<WeightedResize> {
        let scalings = scalings(call, call.shape(0), &call.output_shape(0)?)?;
        let [rows, columns] = of_each(scalings, rule)?;
        Ok(WeightedResize { size: ImageSize::new(call.shape(0)), rows, columns })
    }
}

impl Resize for WeightedResize {
    fn apply(&self, threads: &Threads, x: &[f32], out: &mut [f32]) {
        let WeightedResize { size, rows, columns } = self;
        let (row, out_row) = (size.row(), columns.len() * size.channels);
        for_each_line(threads, *size, rows, out_row, x, out, |taps, image, out| {
            let mut sum = vec![0.0; row];
            for &(position, weight) in taps {
                vectorize(AddMultiple(&mut sum, weight, &image[position * row..][..row]));
            }
            along_row(columns, size.channels, &sum, out);
        });
    }
}

/// The transposed of weighted sums: spreads `dy` over what it was the sum of.
fn spread(
    threads: &Threads,
    size: ImageSize,
    dy: &[f32],
    rows: &InterpolationWeights,
    columns: &InterpolationWeights,
    dx: &mut [f32],
) {
    let (row, dy_row) = (size.row(), columns.len() * size.channels);
    let image_len = size.height * row;
    if dx.is_empty() {
        return;
    }
    threads.for_each_piece(dx, image_len, |start, dx| {
        dx.fill(0.0);
        let image = &dy[start / image_len * rows.len() * dy_row..][..rows.len() * dy_row];
        let mut sum = vec![0.0; row];
        for (taps, line) in rows.iter().zip(image.chunks(dy_row.max(1))) {
            sum.fill(0.0);
            for (taps, dy) in columns.iter().zip(line.chunks(size.channels)) {
                for &(position, weight) in taps {
                    let to = &mut sum[position * size.channels..][..size.channels];
                    to.iter_mut().zip(dy).for_each(|(to, &dy)| *to += weight * dy);
                }
            }
            for &(position, weight) in taps {
                vectorize(AddMultiple(&mut dx[position * row..][..row], weight, &sum));
            }
        }
    });
}

fn resize<R: Resize>(
    call: &OpCall<'_>,
    rule: impl Fn(&OpCall<'_>) -> Result<R>,
) -> Result<Option<Arc<dyn Kernel>>> {
    fn kernel<T: Number + AsPrimitive<f32>>(resize: impl Resize) -> Arc<dyn Kernel> {
        Arc::new(move |io: &mut Io<'_>| {
            let (x, out) = (to_floats::<T>(io.input(0)), io.output(0));
            resize.apply(io.threads(), &x, out);
            Ok(())
        })
    }
    let resize = rule(call)?;
    Ok(with_real!(call.dtype(0), T => kernel::<T>(resize)))
}

fn resize_grad(call: &OpCall<'_>, rule: Rule) -> Result<Option<Arc<dyn Kernel>>> {
    fn kernel<T: Number>(size: ImageSize, taps: [InterpolationWeights; 2]) -> Arc<dyn Kernel>
    where
        f32: AsPrimitive<T>,
    {
        Arc::new(move |io: &mut Io<'_>| {
            let dy: &[f32] = io.input(0);
            let out: &mut [T] = io.output(0);
            let mut dx = workspace::filled(0.0f32, out.len())?;
            spread(io.threads(), size, dy, &taps[0], &taps[1], &mut dx);
            out.iter_mut().zip(dx).for_each(|(out, dx)| *out = dx.as_());
            Ok(())
        })
    }
    let weights = of_each(scalings(call, call.shape(1), call.shape(0))?, rule)?;
    let size = ImageSize::new(call.shape(1));
    Ok(with_real!(call.dtype(1), T => kernel::<T>(size, weights)))
}

/// For each position of the output the nearest one of the input.
fn nearest_positions([rows, columns]: [Scaling; 2]) -> Result<[Vec<usize>; 2]> {
    let of = |scaling: Scaling| {
        workspace::collected((0..scaling.output).map(move |index| scaling.nearest(index)))
    };
    Ok([of(rows)?, of(columns)?])
}

fn nearest(call: &OpCall<'_>) -> Result<Option<Arc<dyn Kernel>>> {
    fn kernel<T: Cell>(
        dtype: DType,
        shape: Shape,
        size: ImageSize,
        [rows, columns]: [Vec<usize>; 2],
    ) -> Arc<dyn Kernel> {
        Arc::new(move |io: &mut Io<'_>| {
            let (x, threads) = (T::read(io, 0)?, io.threads());
            T::write(io, 0, dtype, &shape, |out| {
                let row = columns.len() * size.channels;
                threads.for_each_piece(out, row, |start, out| {
                    let line = start / row;
                    let from = line / rows.len() * size.height + rows[line % rows.len()];
                    let from = &x[from * size.row()..][..size.row()];
                    for (&column, out) in columns.iter().zip(out.chunks_mut(size.channels)) {
                        out.clone_from_slice(&from[column * size.channels..][..size.channels]);
                    }
                });
                Ok(())
            })
        })
    }
    let shape = call.output_shape(0)?;
    let positions = nearest_positions(scalings(call, call.shape(0), &shape)?)?;
    let (dtype, size) = (call.dtype(0), ImageSize::new(call.shape(0)));
    Ok(with_cell!(dtype, T => kernel::<T>(dtype, shape, size, positions)))
}

fn nearest_grad(call: &OpCall<'_>) -> Result<Option<Arc<dyn Kernel>>> {
    fn kernel<T: WideElement>(
        batch: usize,
        size: ImageSize,
        [rows, columns]: [Vec<usize>; 2],
    ) -> Arc<dyn Kernel> {
        Arc::new(move |io: &mut Io<'_>| {
            let dy = T::widen(io.input(0));
            T::through_acc(io.output(0), |dx| {
                dx.fill(T::Acc::ZERO);
                let offsets = (0..batch)
                    .flat_map(|image| rows.iter().map(move |row| image * size.height + row));
                let offsets = offsets
                    .flat_map(|row| columns.iter().map(move |column| row * size.width + column));
                for (place, dy) in offsets.zip(dy.chunks(size.channels.max(1))) {
                    let to = &mut dx[place * size.channels..][..size.channels];
                    to.iter_mut().zip(dy).for_each(|(to, &dy)| *to = to.plus(dy));
                }
            });
            Ok(())
        })
    }
    let shape = call.output_shape(0)?;
    let positions = nearest_positions(scalings(call, &shape, call.shape(0))?)?;
    let (batch, size) = (shape[0], ImageSize::new(&shape));
    Ok(with_real!(call.dtype(0), T => kernel::<T>(batch, size, positions)))
}

/// The filters of `ScaleAndTranslate` (`tensorflow/core/kernels/image/sampling_kernels.h`).
fn filter(name: &str) -> Option<Filter> {
    fn lanczos(x: f32, radius: f32) -> f32 {
        if x > radius {
            0.0
        } else if x <= 1e-3 {
            1.0
        } else {
            radius * (PI * x).sin() * (PI * x / radius).sin() / (PI * PI * x * x)
        }
    }
    fn cubic(x: f32, near: [f32; 4], far: [f32; 4]) -> f32 {
        let polynomial = |c: [f32; 4]| ((c[0] * x + c[1]) * x + c[2]) * x + c[3];
        match x {
            x if x >= 2.0 => 0.0,
            x if x >= 1.0 => polynomial(far),
            _ => polynomial(near),
        }
    }
    let (radius, weight): (f32, fn(f32) -> f32) = match name {
        "lanczos1" => (1.0, |x| lanczos(x, 1.0)),
        "lanczos3" => (3.0, |x| lanczos(x, 3.0)),
        "lanczos5" => (5.0, |x| lanczos(x, 5.0)),
        "gaussian" => {
            (1.5, |x| if x >= 1.5 { 0.0 } else { (f64::from(-x * x) / 0.5).exp() as f32 })
        }
        "box" => (1.0, |x| match x {
            x if x < 0.5 => 1.0,
            0.5 => 0.5,
            _ => 0.0,
        }),
        "triangle" => (1.0, |x| (1.0 - x).max(0.0)),
        "keyscubic" => (2.0, |x| cubic(x, [1.5, -2.5, 0.0, 1.0], [-0.5, 2.5, -4.0, 2.0])),
        "mitchellcubic" => (2.0, |x| {
            let near = [7.0 / 6.0, -2.0, 0.0, 8.0 / 9.0];
            cubic(x, near, [-7.0 / 18.0, 2.0, -10.0 / 3.0, 16.0 / 9.0])
        }),
        _ => return None,
    };
    Some(Filter { radius, weight })
}

fn scale_and_translate(call: &OpCall<'_>) -> Result<Option<Arc<dyn Kernel>>> {
    fn kernel<T: Number + AsPrimitive<f32>>(
        op: &'static str,
        size: ImageSize,
        out: [usize; 2],
        filter: Filter,
        antialias: bool,
    ) -> Arc<dyn Kernel> {
        Arc::new(move |io: &mut Io<'_>| {
            let (scale, translation): (&[f32], &[f32]) = (io.input(2), io.input(3));
            if let Some(wrong) = scale.iter().find(|&&scale| !(scale > 0.0)) {
                return Err(Error::argument(op, "scale", "positive", wrong).into());
            }
            let weights = |axis: usize, input: usize| {
                let sizes = (input, out[axis]);
                filtered(filter, sizes, scale[axis], translation[axis], antialias)
            };
            let (rows, columns) = (weights(0, size.height)?, weights(1, size.width)?);
            let (x, out) = (to_floats::<T>(io.input(0)), io.output(0));
            WeightedResize { size, rows, columns }.apply(io.threads(), &x, out);
            Ok(())
        })
    }
    let (name, antialias) = (call.attrs.string("kernel_type")?, call.attrs.bool("antialias")?);
    let filter =
        filter(name).ok_or_else(|| call.wrong("kernel_type", "the name of a filter", name))?;
    let (out, size) = (call.output_shape(0)?, ImageSize::new(call.shape(0)));
    let (op, out) = (call.op.name, [out[1], out[2]]);
    Ok(with_real!(call.dtype(0), T => kernel::<T>(op, size, out, filter, antialias)))
}
