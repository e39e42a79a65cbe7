//! `UniformQuantized…`: sums, products and limits of integers with scales and zero points.
//!
//! The arithmetic is that of `tensorflow/core/kernels/uniform_quant_ops/`: sums and products are
//! computed in integers and converted to the scale of the result.

use super::uniform::{FixedPointScale, Scales, limits};
use crate::{
    cpu::Build,
    device::OpCall,
    error::Result,
    kernel::{Io, Kernel},
    plan::broadcast,
};
use ferroflow_ir::{Error, Shape};
use std::sync::Arc;

pub(crate) const KERNELS: &[(&str, Build)] = &[
    ("UniformQuantizedAdd", add),
    ("UniformQuantizedClipByValue", clip),
    ("UniformQuantizedDot", dot),
    ("UniformQuantizedDotHybrid", dot_hybrid),
];

/// A number within limits and the integers of 32 bits.
fn limited(number: i64, (min, max): (i64, i64)) -> i32 {
    let number = number.clamp(min, max.max(min));
    number.clamp(i32::MIN.into(), i32::MAX.into()) as i32
}

/// A summand: where its elements are, and its scales.
struct Summand {
    input: usize,
    /// By element of the result.
    positions: Vec<usize>,
    scales: Scales,
    /// The scales of the result, by its own elements.
    to: Scales,
}

impl Summand {
    fn new(call: &OpCall<'_>, input: usize, axis: &'static str) -> Result<Summand> {
        let (shape, result) = (call.shape(input), result_shape(call)?);
        let axis = usize::try_from(call.attrs.int(axis)?).ok();
        // The axis of the result, counted in the summand, which may have fewer dimensions.
        let missing = result.rank() - shape.rank();
        let to = match usize::try_from(call.attrs.int("output_quantization_axis")?) {
            Err(_) => None,
            Ok(axis) => match axis.checked_sub(missing) {
                Some(own) if shape[own] == result[axis] => Some(own),
                _ => {
                    let expected = "an axis of both summands";
                    let argument = "output_quantization_axis";
                    return Err(Error::argument(call.op.name, argument, expected, axis).into());
                }
            },
        };
        Ok(Summand {
            input,
            positions: broadcast::positions(shape, &result),
            scales: Scales::of(call, shape, 2 + 2 * input, axis),
            to: Scales::of(call, shape, 6, to),
        })
    }

    /// The elements with the scale of the result and its zero point.
    fn converted(&self, io: &Io<'_>) -> Result<Vec<i64>> {
        let ((scale, zero), (new_scale, new_zero)) = (self.scales.read(io)?, self.to.read(io)?);
        let elements = io.input::<i32>(self.input).iter().enumerate().map(|(index, &x)| {
            let (old, new) = (self.scales.slice(index), self.to.slice(index));
            let factor = FixedPointScale::new(f64::from(scale[old]) / f64::from(new_scale[new]));
            let number = factor.times(i64::from(x) - i64::from(zero[old]));
            let whole = (i32::MIN.into(), i32::MAX.into());
            i64::from(limited(number + i64::from(new_zero[new]), whole))
        });
        Ok(elements.collect())
    }
}

fn result_shape(call: &OpCall<'_>) -> Result<Shape> {
    let known = call.outputs[0].shape.known();
    known.ok_or_else(|| {
        let (expected, found) = ("known", call.outputs[0].shape.clone());
        Error::argument(call.op.name, "output", expected, found).into()
    })
}

fn add(call: &OpCall<'_>) -> Result<Option<Arc<dyn Kernel>>> {
    let lhs = Summand::new(call, 0, "lhs_quantization_axis")?;
    let rhs = Summand::new(call, 1, "rhs_quantization_axis")?;
    let result = result_shape(call)?;
    let axis = usize::try_from(call.attrs.int("output_quantization_axis")?).ok();
    let to = Scales::of(call, &result, 6, axis);
    let limits = limits(call, "output_quantization_min_val", "output_quantization_max_val")?;
    Ok(Some(Arc::new(move |io: &mut Io<'_>| {
        let (a, b) = (lhs.converted(io)?, rhs.converted(io)?);
        let (_, zero) = to.read(io)?;
        let positions = lhs.positions.iter().zip(&rhs.positions);
        for (index, (y, (&i, &j))) in io.output::<i32>(0).iter_mut().zip(positions).enumerate() {
            *y = limited(a[i] + b[j] - i64::from(zero[to.slice(index)]), limits);
        }
        Ok(())
    })))
}

fn clip(call: &OpCall<'_>) -> Result<Option<Arc<dyn Kernel>>> {
    let axis = usize::try_from(call.attrs.int("quantization_axis")?).ok();
    let scales = Scales::of(call, call.shape(0), 3, axis);
    Ok(Some(Arc::new(move |io: &mut Io<'_>| {
        scales.read(io)?;
        let (x, min, max): (&[i32], &[i32], &[i32]) = (io.input(0), io.input(1), io.input(2));
        for (index, (y, &x)) in io.output::<i32>(0).iter_mut().zip(x).enumerate() {
            let slice = scales.slice(index);
            *y = x.max(min[slice]).min(max[slice]);
        }
        Ok(())
    })))
}

/// The sizes of a product of two matrices.
#[derive(Debug, Clone, Copy)]
struct Sizes {
    rows: usize,
    inner: usize,
    columns: usize,
}

impl Sizes {
    fn new(call: &OpCall<'_>) -> Sizes {
        let (lhs, rhs) = (call.shape(0), call.shape(1));
        Sizes { rows: lhs[0], inner: lhs[1], columns: rhs[1] }
    }

    /// The scales of the columns, or of all of them.
    fn scales(self, call: &OpCall<'_>, input: usize, axis: &str) -> Result<Scales> {
        let axis = usize::try_from(call.attrs.int(axis)?).ok();
        let shape = Shape::new([self.rows, self.columns])?;
        Ok(Scales::of(call, &shape, input, axis))
    }

    /// The sum of products for an element of the result. It wraps around as integers of 32 bits do.
    fn sum(self, lhs: &[i8], zero: i32, rhs: &[i8], rhs_zero: i32, column: usize) -> i32 {
        let products = lhs.iter().enumerate().map(|(place, &a)| {
            let a = i32::from(a).wrapping_sub(zero);
            a.wrapping_mul(i32::from(rhs[place * self.columns + column]).wrapping_sub(rhs_zero))
        });
        products.fold(0, i32::wrapping_add)
    }
}

fn dot(call: &OpCall<'_>) -> Result<Option<Arc<dyn Kernel>>> {
    let sizes = Sizes::new(call);
    let whole = Scales::of(call, call.shape(0), 2, None);
    let of_rhs = sizes.scales(call, 4, "rhs_quantization_axis")?;
    let to = sizes.scales(call, 6, "output_quantization_axis")?;
    let limits = limits(call, "output_quantization_min_val", "output_quantization_max_val")?;
    Ok(Some(Arc::new(move |io: &mut Io<'_>| {
        let (lhs_scale, lhs_zero) = whole.read(io)?;
        let ((rhs_scale, rhs_zero), (scale, zero)) = (of_rhs.read(io)?, to.read(io)?);
        let (lhs, rhs): (&[i8], &[i8]) = (io.input(0), io.input(1));
        for (index, y) in io.output::<i32>(0).iter_mut().enumerate() {
            let (row, column) = (index / sizes.columns, index % sizes.columns);
            let (own, new) = (of_rhs.slice(index), to.slice(index));
            let elements = &lhs[row * sizes.inner..][..sizes.inner];
            let sum = sizes.sum(elements, lhs_zero[0], rhs, rhs_zero[own], column);
            let product = f64::from(lhs_scale[0]) * f64::from(rhs_scale[own]);
            let factor = FixedPointScale::new(product / f64::from(scale[new]));
            *y = limited(factor.times(sum.into()) + i64::from(zero[new]), limits);
        }
        Ok(())
    })))
}

/// A row of reals as integers of 8 bits that use the whole range.
struct QuantizedRow {
    numbers: Vec<i8>,
    scale: f32,
    zero: i32,
}

/// Quantizes a row so that 0 is a number of its own (`AsymmetricQuantize` in TensorFlow's
/// `uniform_quant_ops/math_utils.h`).
fn quantized_row(row: &[f32]) -> QuantizedRow {
    let (least, most) = (-128.0f64, 127.0f64);
    let low = f64::from(row.iter().fold(0.0f32, |low, &x| low.min(x)));
    let high = f64::from(row.iter().fold(0.0f32, |high, &x| high.max(x)));
    let scale = ((high - low) / (most - least)) as f32;
    let inverse = ((most - least) / (high - low)) as f32;
    if scale == 0.0 || !inverse.is_finite() {
        return QuantizedRow { numbers: vec![0; row.len()], scale: 1.0, zero: 0 };
    }
    // In steps of the scale as it is stored.
    let (low, high) = (low / f64::from(scale), high / f64::from(scale));
    let (from_low, from_high) = (least - low, most - high);
    let errors = (least.abs() + low.abs(), most.abs() + high.abs());
    let zero = if errors.0 < errors.1 { from_low } else { from_high };
    let zero = zero.clamp(least, most).round() as i32;
    let numbers = row.iter().map(|&x| {
        let quantized = ((x * inverse + 0.5).floor() as i32).saturating_add(zero);
        quantized.clamp(i8::MIN.into(), i8::MAX.into()) as i8
    });
    QuantizedRow { numbers: numbers.collect(), scale, zero }
}

fn dot_hybrid(call: &OpCall<'_>) -> Result<Option<Arc<dyn Kernel>>> {
    let sizes = Sizes::new(call);
    let of_rhs = sizes.scales(call, 2, "rhs_quantization_axis")?;
    Ok(Some(Arc::new(move |io: &mut Io<'_>| {
        let (scale, zero) = of_rhs.read(io)?;
        let (lhs, rhs): (&[f32], &[i8]) = (io.input(0), io.input(1));
        let y = io.output::<f32>(0);
        for row in 0..sizes.rows {
            let quantized = quantized_row(&lhs[row * sizes.inner..][..sizes.inner]);
            let results = &mut y[row * sizes.columns..][..sizes.columns];
            for (column, y) in results.iter_mut().enumerate() {
                let own = of_rhs.slice(column);
                let QuantizedRow { numbers, scale: lhs_scale, zero: lhs_zero } = &quantized;
                let sum = sizes.sum(numbers, *lhs_zero, rhs, zero[own], column);
                *y = sum as f32 * lhs_scale * scale[own];
            }
        }
        Ok(())
    })))
}
