//! `QuantizeAndDequantize…`: rounding reals to values of a range around 0, and back.
//!
//! The arithmetic is that of `tensorflow/core/kernels/quantize_and_dequantize_op.h`.

use crate::{
    cpu::{Build, dispatch::with_float, exp::Exp},
    device::OpCall,
    error::Result,
    kernel::{Io, Kernel},
    number::Ordered,
    wide::WideElement,
};
use ferroflow_ir::{Error, workspace};
use num_traits::Float;
use std::sync::Arc;

pub(crate) const KERNELS: &[(&str, Build)] = &[
    ("QuantizeAndDequantizeV2", build),
    ("QuantizeAndDequantizeV3", build),
    ("QuantizeAndDequantizeV4", build),
];

#[derive(Debug, Clone, Copy)]
struct Rule {
    signed: bool,
    narrow: bool,
    /// Whether the range is given, or else that of the elements.
    given: bool,
    /// Whether ties go up, or else to even values.
    half_up: bool,
    /// The number of bits, unless input 3 says it.
    bits: Option<i64>,
    /// The slices that have ranges of their own, and the elements of one index.
    slices: (usize, usize),
}

fn build(call: &OpCall<'_>) -> Result<Option<Arc<dyn Kernel>>> {
    let shape = call.shape(0);
    let slices = match usize::try_from(call.attrs.int("axis")?) {
        Err(_) => (1, shape.num_elements().max(1)),
        Ok(axis) => (shape[axis], shape[axis + 1..].iter().product()),
    };
    let has = |name: &str| call.attrs.get(name).is_some();
    let rule = Rule {
        signed: call.attrs.bool("signed_input")?,
        narrow: call.attrs.bool("narrow_range")?,
        given: call.attrs.bool("range_given")?,
        half_up: has("round_mode") && call.attrs.string("round_mode")? == "HALF_UP",
        bits: if has("num_bits") { Some(call.attrs.int("num_bits")?) } else { None },
        slices,
    };
    let op = call.op.name;
    Ok(with_float!(call.dtype(0), T => kernel::<T>(op, rule)))
}

fn kernel<T: WideElement<Acc: Exp + Float>>(op: &'static str, rule: Rule) -> Arc<dyn Kernel> {
    Arc::new(move |io: &mut Io<'_>| {
        let bits = rule.bits.unwrap_or_else(|| i64::from(io.scalar::<i32>(3)));
        let most = if rule.signed { 62 } else { 63 };
        if !(i64::from(rule.signed) + 1..=most).contains(&bits) {
            let expected = format!("between {} and {most}", i64::from(rule.signed) + 1);
            return Err(Error::argument(op, "num_bits", expected, bits).into());
        }
        let x = T::widen(io.input(0));
        let (count, inner) = rule.slices;
        let slice_of = |index: usize| index / inner.max(1) % count.max(1);
        let mut ranges = workspace::filled((T::Acc::HIGHEST, T::Acc::LOWEST), count)?;
        if rule.given {
            let (min, max) = (T::widen(io.input(1)), T::widen(io.input(2)));
            for (slice, range) in ranges.iter_mut().enumerate() {
                *range = (min[slice], max[slice]);
                if min[slice] > max[slice] {
                    let found = format!("{:?} and {:?}", min[slice], max[slice]);
                    let expected = "no larger than `input_max`";
                    return Err(Error::argument(op, "input_min", expected, found).into());
                }
            }
        } else {
            for (index, &x) in x.iter().enumerate() {
                let range = &mut ranges[slice_of(index)];
                *range = (Ordered::smaller(range.0, x), Ordered::larger(range.1, x));
            }
        }
        let scales: Vec<Scale<T::Acc>> =
            ranges.into_iter().map(|(min, max)| Scale::new(rule, bits as u32, min, max)).collect();
        T::through_acc(io.output(0), |y| {
            for (index, (y, &x)) in y.iter_mut().zip(&*x).enumerate() {
                *y = scales[slice_of(index)].round_trip(rule, x);
            }
        });
        Ok(())
    })
}

/// Scale from reals of a range to integers.
struct Scale<A> {
    min: A,
    max: A,
    scale: A,
    inverse: A,
}

impl<A: Exp + Float> Scale<A> {
    /// The largest scale that takes the range to integers of so many bits and 0 to 0.
    fn new(rule: Rule, bits: u32, min: A, max: A) -> Scale<A> {
        let half = 1i64 << (bits - 1);
        let (lowest, highest) = match rule.signed {
            true => (-half + i64::from(rule.narrow), (half - 1) as f64),
            false => (0, 2.0 * half as f64 - 1.0),
        };
        let (lowest, highest) = (A::from_f64(lowest as f64), A::from_f64(highest));
        let side = |value: A, end: A| match value * end > A::zero() {
            true => value / end,
            false => A::max_value(),
        };
        let (from_min, from_max) = (side(lowest, min), side(highest, max));
        if from_min < from_max {
            let inverse = min / lowest;
            Scale { min, max: highest * inverse, scale: from_min, inverse }
        } else {
            let inverse = max / highest;
            Scale { min: lowest * inverse, max, scale: from_max, inverse }
        }
    }

    fn round_trip(&self, rule: Rule, x: A) -> A {
        let x = match rule.given {
            true => Ordered::larger(Ordered::smaller(x, self.max), self.min),
            false => x,
        };
        let scaled = x * self.scale;
        let rounded = match rule.half_up {
            true => (scaled + A::from_f64(0.5)).floor(),
            false => to_even(scaled),
        };
        rounded * self.inverse
    }
}

/// The nearest integer, of two the even one.
fn to_even<A: Exp + Float>(x: A) -> A {
    let rounded = x.round();
    let tie = (x - rounded).abs() == A::from_f64(0.5);
    let two = A::one() + A::one();
    if tie && (rounded / two).fract() != A::zero() { rounded - x.signum() } else { rounded }
}
