//! `QuantizedInstanceNorm` and `QuantizedResizeBilinear`, computed on the reals, and
//! `QuantizedBatchNormWithGlobalNormalization`, computed on integers.

use super::{Quantum, Range, with_quantum};
use crate::{
    cpu::{
        Build,
        image::{BilinearResize, Resize},
    },
    device::OpCall,
    error::Result,
    kernel::{Io, Kernel},
    threads::Threads,
};
use ferroflow_ir::DType;
use std::sync::Arc;

pub(crate) const KERNELS: &[(&str, Build)] = &[
    ("QuantizedBatchNormWithGlobalNormalization", batch_norm),
    ("QuantizedInstanceNorm", instance_norm),
    ("QuantizedResizeBilinear", resize_bilinear),
];

/// The range of the results of a batch normalisation, in which 1 is 2048.
const FIXED: Range = Range { min: -1_048_576.0, max: 1_048_576.0 };

/// Normalises each channel by a mean and a variance, with integers of 32 bits as fixed-point
/// numbers. Source: `FixedPointBatchNorm` in TensorFlow's `quantized_batch_norm_op.cc`.
fn batch_norm(call: &OpCall<'_>) -> Result<Option<Arc<dyn Kernel>>> {
    if (call.dtype(0), call.outputs[0].dtype) != (DType::QU8, DType::QI32) {
        return Ok(None);
    }
    let epsilon = call.attrs.float("variance_epsilon")?;
    let is_scaled = call.attrs.bool("scale_after_normalization")?;
    Ok(Some(Arc::new(move |io: &mut Io<'_>| {
        let reals = |index: usize| -> Vec<f32> {
            let range = Range::read(io, index + 1);
            io.input::<u8>(index).iter().map(|&x| range.real(x)).collect()
        };
        let [mean, variance, beta, gamma] = [3, 6, 9, 12].map(reals);
        let mut lines: Vec<[i32; 2]> = Vec::with_capacity(mean.len());
        for channel in 0..mean.len() {
            let inverse = 1.0 / (variance[channel] + epsilon).sqrt();
            let scale = if is_scaled { inverse * gamma[channel] } else { inverse };
            let offset = -mean[channel] * scale + beta[channel];
            lines.push([FIXED.value(scale), FIXED.value(offset)]);
        }
        let (range, one) = (Range::read(io, 1), FIXED.value::<i32>(1.0));
        let (x, y): (&[u8], &mut [i32]) = (io.input(0), io.output(0));
        for (at, (x, y)) in x.iter().zip(y).enumerate() {
            let [scale, offset] = lines[at % lines.len()];
            let value: i32 = FIXED.value(range.real(*x));
            *y = (value.wrapping_mul(scale) / one).wrapping_add(offset);
        }
        FIXED.write(io, 1);
        Ok(())
    })))
}

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
    let has_output_range = call.attrs.bool("output_range_given")?;
    let plan = Plan {
        image: shape[1..].iter().product(),
        channels: shape[3],
        given: has_output_range
            .then_some(Range { min: float("given_y_min")?, max: float("given_y_max")? }),
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

/// Interpolates between the four nearest values; a linear map commutes with dequantisation. Integers
/// are interpolated by shares in fixed point, of the most bits that they leave room for.
fn resize_bilinear(call: &OpCall<'_>) -> Result<Option<Arc<dyn Kernel>>> {
    fn kernel<T: bytemuck::Pod>(
        resize: impl Fn(&Threads, &[T], &mut [T]) + Send + Sync + 'static,
    ) -> Arc<dyn Kernel> {
        Arc::new(move |io: &mut Io<'_>| {
            let (x, y): (&[T], &mut [T]) = (io.input(0), io.output(0));
            resize(io.threads(), x, y);
            Range::read(io, 2).write(io, 1);
            Ok(())
        })
    }
    let resize = BilinearResize::new(call)?;
    Ok(match call.dtype(0) {
        DType::QU8 => Some(kernel(move |threads, x: &[u8], y| {
            resize.apply_fixed(threads, x, y, 7, |x| x as u8);
        })),
        DType::QI32 => Some(kernel(move |threads, x: &[i32], y| {
            resize.apply_fixed(threads, x, y, 30, |x| x as i32);
        })),
        DType::F32 => Some(kernel(move |threads, x: &[f32], y| resize.apply(threads, x, y))),
        _ => None,
    })
}
