//! Quantised numbers: integers that stand for an even division of a range of reals.
//!
//! Results are integers, so the arithmetic follows TensorFlow's step by step
//! (`tensorflow/core/kernels/quantization_utils.h`), including where it rounds to single precision.

pub(super) mod convert;
pub(super) mod fake;
pub(super) mod math;
pub(super) mod norm;
pub(super) mod round_trip;
pub(super) mod uniform;
pub(super) mod uniform_arithmetic;

use crate::{kernel::Io, number::Ordered};

/// An integer that stores quantised numbers.
trait Quantum: Ordered + Into<i64> {
    /// The smallest.
    const LEAST: i64;
    /// The largest.
    const MOST: i64;
    /// Whether there are negative ones.
    const SIGNED: bool = Self::LEAST < 0;

    /// The nearest.
    fn saturating(value: i64) -> Self;

    /// The integral part of a float; the lowest bits of [`Self::LEAST`] where that is no such
    /// integer, as processors of the x86 family convert.
    fn truncated(value: f32) -> Self;
}

macro_rules! quanta {
    ($($type:ty)*) => {$(
        impl Quantum for $type {
            const LEAST: i64 = <$type>::MIN as i64;
            const MOST: i64 = <$type>::MAX as i64;

            fn saturating(value: i64) -> $type {
                value.clamp(Self::LEAST, Self::MOST) as $type
            }

            fn truncated(value: f32) -> $type {
                let fits = (-2_147_483_648.0..2_147_483_648.0).contains(&value);
                (if fits { value as i32 } else { i32::MIN }) as $type
            }
        }
    )*};
}

quanta! { i8 u8 i16 u16 i32 }

/// The number of values less one.
fn steps<T: Quantum>() -> f64 {
    (T::MOST - T::LEAST) as f64
}

/// The range of reals that the values of a quantised type stand for.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Range {
    min: f32,
    max: f32,
}

impl Range {
    /// The range in the scalar inputs `index` and `index + 1`.
    fn read(io: &Io<'_>, index: usize) -> Range {
        Range { min: io.scalar(index), max: io.scalar(index + 1) }
    }

    /// Sets the scalar outputs `index` and `index + 1`.
    fn write(self, io: &mut Io<'_>, index: usize) {
        io.output::<f32>(index)[0] = self.min;
        io.output::<f32>(index + 1)[0] = self.max;
    }

    /// Difference of neighbouring values.
    fn level<T: Quantum>(self) -> f32 {
        (self.max - self.min) / (T::MOST - T::LEAST) as f32
    }

    /// The range of products of values of `A` and `B` in this and another range.
    fn of_multiplied<A: Quantum, B: Quantum, C: Quantum>(self, other: Range) -> Range {
        let level = self.level::<A>() * other.level::<B>();
        Range { min: level * C::LEAST as f32, max: level * C::MOST as f32 }
    }

    /// The real that a value stands for.
    fn real<T: Quantum>(self, value: T) -> f32 {
        if self.min == self.max {
            return self.min;
        }
        let count = steps::<T>() + 1.0;
        let adjust = count / steps::<T>();
        let scale = f64::from(self.max - self.min) * adjust / count;
        let single = scale as f32;
        let low = f64::from((self.min / single).round() * single);
        let value: i64 = value.into();
        (low + (value - T::LEAST) as f64 * scale) as f32
    }

    /// The number of the value nearest to a real, which may be outside the type.
    fn number_of<T: Quantum>(self, real: f32) -> i64 {
        if self.min == self.max {
            return T::LEAST;
        }
        let count = steps::<T>() + 1.0;
        let adjust = count / steps::<T>();
        let scale = count / (f64::from(self.max - self.min) * adjust);
        let quantized = (f64::from(real) * scale).round() - (f64::from(self.min) * scale).round();
        (quantized as i64).saturating_add(T::LEAST)
    }

    /// The value nearest to a real.
    fn value<T: Quantum>(self, real: f32) -> T {
        T::saturating(self.number_of::<T>(real))
    }

    /// Function from values to reals in single precision.
    fn to_reals<T: Quantum>(self) -> impl Fn(T) -> f32 + Sync {
        let scale = (f64::from(self.max - self.min) / steps::<T>()) as f32;
        let low = if self.min == self.max { self.min } else { (self.min / scale).round() * scale };
        let first = low - T::LEAST as f32 * scale;
        move |value: T| {
            let value: i64 = value.into();
            first + value as f32 * scale
        }
    }

    /// Function from reals to the values nearest to them, in single precision.
    fn to_values<T: Quantum>(self) -> impl Fn(f32) -> T + Sync {
        let same = self.min == self.max;
        let range = f64::from(self.max - self.min);
        let scale = if same { 0.0 } else { (steps::<T>() / range) as f32 };
        let shift = (self.min * scale).round() - T::LEAST as f32;
        // The largest float that is an `i32`.
        let (low, high) = (T::LEAST as f32, (T::MOST as f32).min(2_147_483_520.0));
        move |real: f32| T::truncated(((real * scale).round() - shift).max(low).min(high))
    }
}

/// The quantised types, as the integers that store them.
macro_rules! with_quantum {
    ($dtype:expr, $T:ident => $body:expr) => {
        match $dtype {
            ferroflow_ir::DType::QI8 => {
                type $T = i8;
                Some($body)
            }
            ferroflow_ir::DType::QU8 => {
                type $T = u8;
                Some($body)
            }
            ferroflow_ir::DType::QI16 => {
                type $T = i16;
                Some($body)
            }
            ferroflow_ir::DType::QU16 => {
                type $T = u16;
                Some($body)
            }
            ferroflow_ir::DType::QI32 => {
                type $T = i32;
                Some($body)
            }
            _ => None,
        }
    };
}

use with_quantum;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_and_reals_agree() {
        let range = Range { min: -1.5, max: 2.5 };
        for value in 0..=255u8 {
            let real = range.real(value);
            assert_eq!(range.value::<u8>(real), value);
            assert_eq!(range.to_values::<u8>()(range.to_reals::<u8>()(value)), value);
        }
        assert_eq!(range.value::<u8>(100.0), 255);
        assert_eq!(range.number_of::<u8>(100.0), 6471);
        assert_eq!(Range { min: 1.0, max: 1.0 }.value::<i8>(7.0), -128);
    }
}
