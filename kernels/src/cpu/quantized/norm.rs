//! `QuantizedInstanceNorm` and `QuantizedResizeBilinear`: computed on the reals.

use super::{Quantum, Range, with_quantum};
use crate::{
    cpu::Build,
    device::OpCall,
    error::Result,
    kernel::{Io, Kernel},
};
use ferroflow_ir::DType;
use std::sync::Arc;

pub(super) const KERNELS: &[(&str, Build)] =
    &[("QuantizedInstanceNorm", instance_norm), ("QuantizedResizeBilinear", resize_bilinear)];

/// Normalises each channel of each image `[batch, height, width, channels]`.
fn instance_norm(call: &OpCall<'_>) -> Result<Option<Arc<dyn Kernel>>> {
    struct Plan {
        image: usize,
        channels: usize,
        given: Option<Range>,
        epsilon: f32,
        least: f32,
    }
    fn kernel<T: Quantum>(plan: Plan) -> Arc<dyn Kernel> {
        Arc::new(move |io: &mut Io<'_>| {
            let real = Range::read(io, 1).to_reals::<T>();
            let mut x: Vec<f32> = io.input::<T>(0).iter().map(|&x| real(x)).collect();
            for image in x.chunks_mut(plan.image.max(1)) {
                for channel in 0..plan.channels {
                    normalize(image, channel, plan.channels, plan.epsilon);
                }
            }
            let range = plan.given.unwrap_or_else(|| {
                let min = x.iter().copied().fold(f32::MAX, f32::min);
                let max = x.iter().copied().fold(f32::MIN, f32::max);
                Range { min, max: max.max(min + plan.least) }
            });
            let value = range.to_values::<T>();
            io.output::<T>(0).iter_mut().zip(x).for_each(|(y, x)| *y = value(x));
            range.write(io, 1);
            Ok(())
        })
    }
    let shape = call.shape(0);
    let float = |name: &str| call.attrs.float(name);
    let given = call.attrs.bool("output_range_given")?;
    let plan = Plan {
        image: shape[1..].iter().product(),
        channels: shape[3],
        given: given.then_some(Range { min: float("given_y_min")?, max: float("given_y_max")? }),
        epsilon: float("variance_epsilon")?,
        least: float("min_separation")?,
    };
    Ok(with_quantum!(call.dtype(0), T => kernel::<T>(plan)))
}

fn normalize(image: &mut [f32], channel: usize, channels: usize, epsilon: f32) {
    let count = (image.len() / channels) as f64;
    let own = || image.iter().skip(channel).step_by(channels).map(|&x| f64::from(x));
    let mean = own().sum::<f64>() / count;
    let variance = own().map(|x| (x - mean) * (x - mean)).sum::<f64>() / count;
    let scale = 1.0 / (variance + f64::from(epsilon)).sqrt();
    for x in image.iter_mut().skip(channel).step_by(channels) {
        *x = ((f64::from(*x) - mean) * scale) as f32;
    }
}

/// Interpolates between the four nearest values; a linear map commutes with dequantisation.
fn resize_bilinear(call: &OpCall<'_>) -> Result<Option<Arc<dyn Kernel>>> {
    fn kernel<T: bytemuck::Pod + Send>(
        plan: Plan,
        real: fn(T) -> f32,
        value: fn(f32) -> T,
    ) -> Arc<dyn Kernel> {
        Arc::new(move |io: &mut Io<'_>| {
            let (x, y): (&[T], &mut [T]) = (io.input(0), io.output(0));
            let Plan { height, width, channels, rows, columns } = &plan;
            for (line, y) in y.chunks_mut((columns.len() * channels).max(1)).enumerate() {
                let (image, row) = (line / rows.len(), &rows[line % rows.len()]);
                let corner = |y: usize, x: usize| ((image * height + y) * width + x) * channels;
                for (y, column) in y.chunks_mut(*channels).zip(columns) {
                    for (channel, y) in y.iter_mut().enumerate() {
                        let at = |y, column| real(x[corner(y, column) + channel]);
                        let mix = |low: f32, high: f32, part: f32| low + (high - low) * part;
                        let top =
                            mix(at(row.low, column.low), at(row.low, column.high), column.part);
                        let bottom =
                            mix(at(row.high, column.low), at(row.high, column.high), column.part);
                        *y = value(mix(top, bottom, row.part));
                    }
                }
            }
            Range::read(io, 2).write(io, 1);
            Ok(())
        })
    }
    let (shape, out) = (call.shape(0), call.output_shape(0)?);
    let (aligned, centred) =
        (call.attrs.bool("align_corners")?, call.attrs.bool("half_pixel_centers")?);
    if aligned && centred {
        return Err(call.wrong("align_corners", "false where `half_pixel_centers` is true", true));
    }
    let points = |input: usize, output: usize| -> Vec<Point> {
        (0..output).map(|index| Point::new(index, input, output, aligned, centred)).collect()
    };
    let plan = Plan {
        height: shape[1],
        width: shape[2],
        channels: shape[3],
        rows: points(shape[1], out[1]),
        columns: points(shape[2], out[2]),
    };
    if out.num_elements() == 0 {
        return Ok(None);
    }
    Ok(match call.dtype(0) {
        DType::QU8 => Some(kernel::<u8>(plan, f32::from, |x| x.round() as u8)),
        DType::QI32 => Some(kernel::<i32>(plan, |x| x as f32, |x| x.round() as i32)),
        DType::F32 => Some(kernel::<f32>(plan, |x| x, |x| x)),
        _ => None,
    })
}

struct Plan {
    height: usize,
    width: usize,
    channels: usize,
    rows: Vec<Point>,
    columns: Vec<Point>,
}

/// A place between two positions of a dimension.
struct Point {
    low: usize,
    high: usize,
    /// How far it is from `low` to `high`.
    part: f32,
}

impl Point {
    fn new(index: usize, input: usize, output: usize, aligned: bool, centred: bool) -> Point {
        let scale = match aligned && output > 1 {
            true => (input - 1) as f32 / (output - 1) as f32,
            false => input as f32 / output as f32,
        };
        let place = match centred {
            true => (index as f32 + 0.5) * scale - 0.5,
            false => index as f32 * scale,
        };
        let low = place.floor().max(0.0) as usize;
        let low = low.min(input - 1);
        Point { low, high: (low + 1).min(input - 1), part: (place - place.floor()).max(0.0) }
    }
}
