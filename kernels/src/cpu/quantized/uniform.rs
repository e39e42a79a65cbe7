//! `UniformQuantize…`: a scale and a zero point for a tensor, or for each index of an axis.
//!
//! The arithmetic is that of `tensorflow/core/util/quantization/uniform_quant_ops_attr.proto`'s ops
//! in `tensorflow/core/kernels/uniform_quant_ops/math_utils.h`.

use super::{Quantum, with_quantum};
use crate::{
    cpu::Build,
    device::OpCall,
    error::Result,
    kernel::{Io, Kernel},
};
use ferroflow_ir::{DType, Error, Shape};
use std::sync::Arc;

pub(crate) const KERNELS: &[(&str, Build)] = &[
    ("UniformDequantize", dequantize),
    ("UniformQuantize", quantize),
    ("UniformRequantize", requantize),
];

/// The scales and zero points in two inputs.
#[derive(Debug, Clone, Copy)]
pub(super) struct Scales {
    op: &'static str,
    /// The input with the scales; the zero points follow.
    input: usize,
    count: usize,
    /// Elements of one index of the axis.
    inner: usize,
}

impl Scales {
    fn new(call: &OpCall<'_>, input: usize, axis: &str) -> Result<Scales> {
        let axis = usize::try_from(call.attrs.int(axis)?).ok();
        Ok(Scales::of(call, call.shape(0), input, axis))
    }

    /// Those of a tensor of this shape, for each index of an axis, or for all of it.
    pub(super) fn of(
        call: &OpCall<'_>,
        shape: &Shape,
        input: usize,
        axis: Option<usize>,
    ) -> Scales {
        let (count, inner) = match axis {
            None => (1, shape.num_elements()),
            Some(axis) => (shape[axis], shape[axis + 1..].iter().product()),
        };
        Scales { op: call.op.name, input, count: count.max(1), inner: inner.max(1) }
    }

    pub(super) fn read<'a>(&self, io: &Io<'a>) -> Result<(&'a [f32], &'a [i32])> {
        let (scales, zeros): (&[f32], &[i32]) = (io.input(self.input), io.input(self.input + 1));
        match scales.iter().find(|&&scale| !(scale > 0.0 && scale.is_finite())) {
            Some(scale) => Err(Error::argument(self.op, "scales", "positive", scale).into()),
            None => Ok((scales, zeros)),
        }
    }

    pub(super) fn slice(&self, index: usize) -> usize {
        index / self.inner % self.count
    }
}

/// The smallest and the largest value that may be used.
pub(super) fn limits(call: &OpCall<'_>, min: &str, max: &str) -> Result<(i64, i64)> {
    Ok((call.attrs.int(min)?, call.attrs.int(max)?))
}

fn quantize(call: &OpCall<'_>) -> Result<Option<Arc<dyn Kernel>>> {
    fn kernel<T: Quantum>(scales: Scales, (min, max): (i64, i64)) -> Arc<dyn Kernel> {
        Arc::new(move |io: &mut Io<'_>| {
            let (scale, zero) = scales.read(io)?;
            let (x, y): (&[f32], &mut [T]) = (io.input(0), io.output(0));
            for (index, (y, &x)) in y.iter_mut().zip(x).enumerate() {
                let slice = scales.slice(index);
                let inverse = 1.0 / scale[slice];
                let place = (x * inverse + 0.5).floor() + zero[slice] as f32;
                *y = T::truncated(place.min(max as f32).max(min as f32));
            }
            Ok(())
        })
    }
    let scales = Scales::new(call, 1, "quantization_axis")?;
    let limits = limits(call, "quantization_min_val", "quantization_max_val")?;
    Ok(with_quantum!(call.outputs[0].dtype, T => kernel::<T>(scales, limits)))
}

fn dequantize(call: &OpCall<'_>) -> Result<Option<Arc<dyn Kernel>>> {
    fn kernel<T: Quantum>(scales: Scales) -> Arc<dyn Kernel> {
        Arc::new(move |io: &mut Io<'_>| {
            let (scale, zero) = scales.read(io)?;
            let (x, y): (&[T], &mut [f32]) = (io.input(0), io.output(0));
            for (index, (y, &x)) in y.iter_mut().zip(x).enumerate() {
                let slice = scales.slice(index);
                let number = (x.into() as i32).wrapping_sub(zero[slice]);
                *y = number as f32 * scale[slice];
            }
            Ok(())
        })
    }
    if call.outputs[0].dtype != DType::F32 {
        return Ok(None);
    }
    let scales = Scales::new(call, 1, "quantization_axis")?;
    Ok(with_quantum!(call.dtype(0), T => kernel::<T>(scales)))
}

fn requantize(call: &OpCall<'_>) -> Result<Option<Arc<dyn Kernel>>> {
    fn kernel<A: Quantum, B: Quantum>(
        from: Scales,
        to: Scales,
        (min, max): (i64, i64),
    ) -> Arc<dyn Kernel> {
        Arc::new(move |io: &mut Io<'_>| {
            let ((scale, zero), (new_scale, new_zero)) = (from.read(io)?, to.read(io)?);
            let (x, y): (&[A], &mut [B]) = (io.input(0), io.output(0));
            for (index, (y, &x)) in y.iter_mut().zip(x).enumerate() {
                let (old, new) = (from.slice(index), to.slice(index));
                let factor =
                    FixedPointScale::new(f64::from(scale[old]) / f64::from(new_scale[new]));
                let number: i64 = x.into();
                let number = factor.times(number - i64::from(zero[old]));
                *y = B::saturating((number + i64::from(new_zero[new])).clamp(min, max.max(min)));
            }
            Ok(())
        })
    }
    let from = Scales::new(call, 1, "input_quantization_axis")?;
    let to = Scales::new(call, 3, "output_quantization_axis")?;
    let limits = limits(call, "output_quantization_min_val", "output_quantization_max_val")?;
    let dtype = call.outputs[0].dtype;
    Ok(with_quantum!(call.dtype(0), A => {
        with_quantum!(dtype, B => kernel::<A, B>(from, to, limits))
    })
    .flatten())
}

/// A positive number as 31 bits and an exponent.
#[derive(Debug, Clone, Copy)]
pub(super) struct FixedPointScale {
    mantissa: i64,
    shift: i32,
}

impl FixedPointScale {
    pub(super) fn new(value: f64) -> FixedPointScale {
        let (fraction, exponent) = libm::frexp(value);
        let mantissa = (fraction * f64::from(1u32 << 31)).round() as i64;
        let (mantissa, shift) = match mantissa {
            0x8000_0000 => (mantissa / 2, exponent + 1),
            mantissa => (mantissa, exponent),
        };
        match shift {
            ..-31 => FixedPointScale { mantissa: 0, shift: 0 },
            31.. => FixedPointScale { mantissa: i64::from(i32::MAX), shift: 30 },
            shift => FixedPointScale { mantissa, shift },
        }
    }

    /// The nearest integer to a product.
    pub(super) fn times(self, number: i64) -> i64 {
        let shift = 31 - self.shift;
        let product = i128::from(number) * i128::from(self.mantissa);
        let rounded = (product + (1 << (shift - 1))) >> shift;
        rounded.clamp(i64::from(i32::MIN).into(), i64::from(i32::MAX).into()) as i64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn factors_round_to_the_nearest() {
        assert_eq!(FixedPointScale::new(0.3).times(10), 3);
        assert_eq!(FixedPointScale::new(0.25).times(10), 3);
        assert_eq!(FixedPointScale::new(0.25).times(-10), -2);
        assert_eq!(FixedPointScale::new(1e-12).times(i64::from(i32::MAX)), 0);
        assert_eq!(FixedPointScale::new(1e12).times(5), i64::from(i32::MAX));
    }
}
