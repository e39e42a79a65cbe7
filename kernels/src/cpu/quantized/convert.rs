//! Between reals and quantised numbers: `QuantizeV2`, `Dequantize`, and from range to range.

use super::{Quantum, Range, with_quantum};
use crate::{
    cpu::{Build, dispatch::with_float},
    device::OpCall,
    error::Result,
    kernel::{Io, Kernel},
    number::Number,
};
use ferroflow_ir::{DType, Error};
use std::sync::Arc;

pub(crate) const KERNELS: &[(&str, Build)] = &[
    ("Dequantize", dequantize),
    ("QuantizeDownAndShrinkRange", shrink),
    ("QuantizeV2", quantize),
    ("RequantizationRange", used_range),
    ("Requantize", requantize),
];

/// Elements per piece of work.
const PIECE: usize = 1 << 14;

/// Correspondence of values to reals.
#[derive(Debug, Clone, Copy)]
enum Mode {
    /// The lowest value is the minimum, the highest the maximum.
    MinCombined,
    /// As `MinCombined`, moved so that 0 is exact.
    MinFirst,
    /// 0 is 0, and both ends fit.
    Scaled,
}

impl Mode {
    fn read(call: &OpCall<'_>) -> Result<Mode> {
        Ok(match call.attrs.string("mode")? {
            "MIN_COMBINED" => Mode::MinCombined,
            "MIN_FIRST" => Mode::MinFirst,
            _ => Mode::Scaled,
        })
    }
}

/// The parts of a tensor with ranges of their own: indices along an axis.
#[derive(Debug, Clone, Copy)]
struct Slices {
    count: usize,
    /// Elements of one index of the axis.
    inner: usize,
}

impl Slices {
    fn new(call: &OpCall<'_>) -> Result<Slices> {
        let shape = call.shape(0);
        Ok(match usize::try_from(call.attrs.int("axis")?) {
            Err(_) => Slices { count: 1, inner: shape.num_elements().max(1) },
            Ok(axis) => {
                Slices { count: shape[axis], inner: shape[axis + 1..].iter().product::<usize>() }
            }
        })
    }

    /// Maps each element by the function of its slice.
    fn map<X: Copy + Sync, Y: Send, F: Fn(X) -> Y + Sync>(
        &self,
        io: &Io<'_>,
        x: &[X],
        y: &mut [Y],
        of_slice: impl Fn(usize) -> F,
    ) {
        let functions: Vec<F> = (0..self.count).map(of_slice).collect();
        io.threads().for_each_piece(y, PIECE, |start, y| {
            for (index, y) in y.iter_mut().enumerate() {
                let at = start + index;
                *y = functions[at / self.inner % self.count](x[at]);
            }
        });
    }
}

fn quantize(call: &OpCall<'_>) -> Result<Option<Arc<dyn Kernel>>> {
    fn kernel<T: Quantum>(rule: Rule, slices: Slices, least: f32) -> Arc<dyn Kernel> {
        Arc::new(move |io: &mut Io<'_>| {
            let (min, max): (&[f32], &[f32]) = (io.input(1), io.input(2));
            let range_of = |slice: usize| Range { min: min[slice], max: max[slice] };
            if let Some(slice) = (0..slices.count).find(|&slice| max[slice] < min[slice]) {
                let found = format!("{:?}", range_of(slice));
                let expected = "at least the minimum";
                return Err(Error::argument("QuantizeV2", "max_range", expected, found).into());
            }
            let wide: Vec<Range> =
                (0..slices.count).map(|slice| widened(range_of(slice), least)).collect();
            let ranges: Vec<Range> = wide.iter().map(|&range| rule.range::<T>(range)).collect();
            let (x, y): (&[f32], &mut [T]) = (io.input(0), io.output(0));
            slices.map(io, x, y, |slice| {
                let (range, scale) = (ranges[slice], rule.scale::<T>(wide[slice]));
                let nearest = range.to_values::<T>();
                move |x: f32| match rule.mode {
                    Mode::MinFirst => nearest(x),
                    Mode::MinCombined | Mode::Scaled => rule.value::<T>(range, scale, x),
                }
            });
            io.output::<f32>(1).iter_mut().zip(&ranges).for_each(|(min, range)| *min = range.min);
            io.output::<f32>(2).iter_mut().zip(&ranges).for_each(|(max, range)| *max = range.max);
            Ok(())
        })
    }
    let rule = Rule {
        mode: Mode::read(call)?,
        to_even: call.attrs.string("round_mode")? == "HALF_TO_EVEN",
        narrow: call.attrs.bool("narrow_range")?,
    };
    let (slices, least) = (Slices::new(call)?, call.attrs.float("ensure_minimum_range")?);
    let dtype = call.outputs[0].dtype;
    Ok(with_quantum!(dtype, T => kernel::<T>(rule, slices, least)))
}

/// A range that holds 0 and whose ends are apart.
fn widened(range: Range, least: f32) -> Range {
    let min = range.min.min(0.0);
    let apart = range.min.abs().max(range.max.abs()).max(1.0) * least;
    Range { min, max: range.max.max(min + apart).max(0.0) }
}

#[derive(Debug, Clone, Copy)]
struct Rule {
    mode: Mode,
    /// Whether ties go to even values.
    to_even: bool,
    /// Whether the lowest value is not used.
    narrow: bool,
}

impl Rule {
    fn lowest<T: Quantum>(self) -> f32 {
        (T::LEAST + i64::from(self.narrow)) as f32
    }

    /// Values per real.
    fn scale<T: Quantum>(self, range: Range) -> f32 {
        if !matches!(self.mode, Mode::Scaled) {
            return (super::steps::<T>() / f64::from(range.max - range.min)) as f32;
        }
        let side = |value: f32, end: f32| if value * end > 0.0 { value / end } else { f32::MAX };
        side(self.lowest::<T>(), range.min).min(side(T::MOST as f32, range.max))
    }

    /// The range that values will stand for.
    fn range<T: Quantum>(self, range: Range) -> Range {
        match self.mode {
            Mode::MinCombined | Mode::MinFirst => range,
            Mode::Scaled => {
                let scale = self.scale::<T>(range);
                Range { min: self.lowest::<T>() / scale, max: T::MOST as f32 / scale }
            }
        }
    }

    fn value<T: Quantum>(self, range: Range, scale: f32, x: f32) -> T {
        let x = x.min(range.max).max(range.min);
        if let Mode::Scaled = self.mode {
            let scaled = x * scale;
            return T::truncated(if self.to_even {
                scaled.round_ties_even()
            } else {
                scaled.round()
            });
        }
        let quantized = (x - range.min) * scale;
        if T::SIGNED {
            T::truncated((quantized - half::<T>()).round())
        } else {
            T::truncated(quantized + 0.5)
        }
    }
}

/// Half the number of values of a signed type.
fn half<T: Quantum>() -> f32 {
    if T::SIGNED { (T::MOST as f32 - T::LEAST as f32 + 1.0) / 2.0 } else { 0.0 }
}

fn dequantize(call: &OpCall<'_>) -> Result<Option<Arc<dyn Kernel>>> {
    fn kernel<T: Quantum, U: Number>(
        mode: Mode,
        narrow: bool,
        slices: Slices,
        round: fn(f32) -> U,
    ) -> Arc<dyn Kernel> {
        Arc::new(move |io: &mut Io<'_>| {
            let (min, max): (&[f32], &[f32]) = (io.input(1), io.input(2));
            let (x, y): (&[T], &mut [U]) = (io.input(0), io.output(0));
            slices.map(io, x, y, |slice| {
                let range = Range { min: min[slice], max: max[slice] };
                let exact = range.to_reals::<T>();
                let lowest = (T::LEAST + i64::from(narrow)) as f32;
                let span = T::MOST as f32 - T::LEAST as f32;
                let scale = (range.max - range.min) / span;
                let largest = range.max / T::MOST as f32;
                let widest = if T::SIGNED { largest.max(range.min / lowest) } else { largest };
                move |x: T| {
                    let number: i64 = x.into();
                    round(match mode {
                        Mode::MinFirst => exact(x),
                        Mode::MinCombined => (number as f32 + half::<T>()) * scale + range.min,
                        Mode::Scaled => number as f32 * widest,
                    })
                }
            });
            Ok(())
        })
    }
    let (mode, slices) = (Mode::read(call)?, Slices::new(call)?);
    if matches!(mode, Mode::MinFirst) && call.attrs.int("axis")? >= 0 {
        let what = "MIN_FIRST along an axis".into();
        return Err(Error::Unsupported { op: "Dequantize".into(), what }.into());
    }
    let narrow = call.attrs.bool("narrow_range")?;
    let dtype = call.outputs[0].dtype;
    if !matches!(dtype, DType::F32 | DType::BF16) {
        return Ok(None);
    }
    Ok(with_quantum!(call.dtype(0), T => {
        with_float!(dtype, U => kernel::<T, U>(mode, narrow, slices, num_traits::AsPrimitive::as_))
    })
    .flatten())
}

/// Values of one range as those of another; input 0 is in the range of inputs 1 and 2.
fn convert<A: Quantum, B: Quantum>(io: &mut Io<'_>, from: Range, to: Range) {
    let (x, y): (&[A], &mut [B]) = (io.input(0), io.output(0));
    let fixed_point = A::LEAST == i64::from(i32::MIN) && B::LEAST == 0 && B::MOST == 255;
    let shift = Shift::new(from, to);
    let (real, value) = (from.to_reals::<A>(), to.to_values::<B>());
    io.threads().for_each_piece(y, PIECE, |start, y| {
        for (y, &x) in y.iter_mut().zip(&x[start..]) {
            *y = match fixed_point {
                true => B::saturating(shift.apply(x.into())),
                false => value(real(x)),
            };
        }
    });
}

/// From 32 to 8 bits TensorFlow computes in integers of 64 bits, 16 of them after the point.
struct Shift {
    scale: i64,
    offset: i64,
}

impl Shift {
    fn new(from: Range, to: Range) -> Shift {
        let one = f64::from(1 << 16);
        let (from_range, to_range) = (from.max - from.min, to.max - to.min);
        if to_range == 0.0 {
            return Shift { scale: 0, offset: 1 << 15 };
        }
        let per_real = (255.0 / f64::from(to_range)) as f32;
        let middle = (f64::from(from.min + from.max) / 2.0) as f32;
        let scale = 255.0 * one * f64::from(from_range) / f64::from(to_range);
        let first = one * (f64::from(to.min) * 255.0) / f64::from(to_range);
        let middle = middle * per_real * one as f32;
        let offset = (middle as i64).saturating_sub(first as i64).saturating_add(1 << 15);
        Shift { scale: scale as i64, offset }
    }

    fn apply(&self, value: i64) -> i64 {
        (value.wrapping_mul(self.scale) >> 32).wrapping_add(self.offset) >> 16
    }
}

fn requantize(call: &OpCall<'_>) -> Result<Option<Arc<dyn Kernel>>> {
    fn kernel<A: Quantum, B: Quantum>() -> Arc<dyn Kernel> {
        Arc::new(|io: &mut Io<'_>| {
            let (from, to) = (Range::read(io, 1), Range::read(io, 3));
            if to.min > 0.0 || to.max < 0.0 {
                let found = format!("{to:?}");
                let expected = "a range that holds 0";
                return Err(Error::argument("Requantize", "requested", expected, found).into());
            }
            convert::<A, B>(io, from, to);
            to.write(io, 1);
            Ok(())
        })
    }
    let dtype = call.outputs[0].dtype;
    Ok(with_quantum!(call.dtype(0), A => with_quantum!(dtype, B => kernel::<A, B>())).flatten())
}

/// The range of the reals that occur, with 0.
fn occurring<A: Quantum>(io: &Io<'_>) -> Range {
    let (x, range): (&[A], Range) = (io.input(0), Range::read(io, 1));
    let min = x.iter().fold(A::saturating(A::MOST), |a, &b| if b < a { b } else { a });
    let max = x.iter().fold(A::saturating(A::LEAST), |a, &b| if b > a { b } else { a });
    Range { min: range.real(min).min(0.0), max: range.real(max) }
}

fn used_range(call: &OpCall<'_>) -> Result<Option<Arc<dyn Kernel>>> {
    fn kernel<A: Quantum>() -> Arc<dyn Kernel> {
        Arc::new(|io: &mut Io<'_>| {
            occurring::<A>(io).write(io, 0);
            Ok(())
        })
    }
    Ok(with_quantum!(call.dtype(0), A => kernel::<A>()))
}

fn shrink(call: &OpCall<'_>) -> Result<Option<Arc<dyn Kernel>>> {
    fn kernel<A: Quantum, B: Quantum>() -> Arc<dyn Kernel> {
        Arc::new(|io: &mut Io<'_>| {
            let (from, to) = (Range::read(io, 1), occurring::<A>(io));
            convert::<A, B>(io, from, to);
            to.write(io, 1);
            Ok(())
        })
    }
    let dtype = call.outputs[0].dtype;
    Ok(with_quantum!(call.dtype(0), A => with_quantum!(dtype, B => kernel::<A, B>())).flatten())
}
