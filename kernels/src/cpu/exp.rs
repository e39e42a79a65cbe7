//! Exponentials in loops that vectorise.

use crate::number::Ordered;

/// A type with an exponential function.
pub(super) trait Exp: Ordered<Acc = Self> {
    /// `exp(x)`; overflows to infinity and underflows to 0, where subnormal numbers would begin for
    /// `f32`.
    fn exp(self) -> Self;

    /// `exp(x)` of a number that is not positive, with the same bits.
    #[inline(always)]
    fn exp_of_nonpositive(self) -> Self {
        self.exp()
    }

    /// The natural logarithm.
    fn ln(self) -> Self;

    /// `self ^ exponent`.
    fn powf(self, exponent: Self) -> Self;

    /// The nearest value.
    fn from_f64(value: f64) -> Self;

    /// The lowest number that is not infinite.
    fn least() -> Self;
}

/// The logarithm of the least normal number. Below, arithmetic is many times slower, and masked scores
/// are all there.
const LEAST: f32 = -87.336_54;

/// `exp(x)` as a number around 1 and an exponent of two, for `x` up to 88.8; `x` is at least [`LEAST`].
#[inline(always)]
fn reduced(x: f32) -> (f32, i32) {
    const LN2_HIGH: f32 = 0.693_359_375;
    const LN2_LOW: f32 = -2.121_944_4e-4;
    /// Added to a number, it leaves the nearest integer in the lowest bits of the sum.
    const SHIFT: f32 = 12_582_912.0;
    let x = if x < LEAST { LEAST } else { x };
    let shifted = x * std::f32::consts::LOG2_E + SHIFT;
    let n = shifted - SHIFT;
    let r = x - n * LN2_HIGH - n * LN2_LOW;
    let mut series = 1.987_569_1e-4;
    for coefficient in [1.398_199_9e-3, 8.333_452e-3, 4.166_579_5e-2, 1.666_666_5e-1, 0.5] {
        series = series * r + coefficient;
    }
    let n = (shifted.to_bits() as i32).wrapping_sub(SHIFT.to_bits() as i32);
    (series * (r * r) + r + 1.0, n)
}

/// `2^n`, for exponents of normal numbers.
#[inline(always)]
fn power_of_two(n: i32) -> f32 {
    f32::from_bits((n.wrapping_add(127) as u32) << 23)
}

impl Exp for f32 {
    /// Cody and Waite's reduction and the polynomial of Cephes `expf`, without branches. Within 2
    /// units in the last place.
    #[inline(always)]
    fn exp(self) -> f32 {
        // Comparisons in this form let NaN through.
        let (series, n) = reduced(if self > 88.8 { 88.8 } else { self });
        // Half the power of two twice, as 2^128 is no float.
        let half = n >> 1;
        let result = series * power_of_two(half) * power_of_two(n.wrapping_sub(half));
        if self < LEAST { 0.0 } else { result }
    }

    #[inline(always)]
    fn exp_of_nonpositive(self) -> f32 {
        let (series, n) = reduced(self);
        if self < LEAST { 0.0 } else { series * power_of_two(n) }
    }

    fn ln(self) -> f32 {
        f32::ln(self)
    }

    fn powf(self, exponent: f32) -> f32 {
        f32::powf(self, exponent)
    }

    fn from_f64(value: f64) -> f32 {
        value as f32
    }

    fn least() -> f32 {
        f32::MIN
    }
}

impl Exp for f64 {
    fn exp(self) -> f64 {
        f64::exp(self)
    }

    fn ln(self) -> f64 {
        f64::ln(self)
    }

    fn powf(self, exponent: f64) -> f64 {
        f64::powf(self, exponent)
    }

    fn from_f64(value: f64) -> f64 {
        value
    }

    fn least() -> f64 {
        f64::MIN
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exponentials_are_within_two_units_in_the_last_place() {
        for step in -1060..900 {
            let x = step as f32 * 0.1 + 0.013;
            let (found, expected) = (f64::from(Exp::exp(x)), f64::from(x).exp());
            if expected > f64::from(f32::MAX) {
                assert_eq!(found, f64::INFINITY);
                continue;
            }
            let unit = expected * f64::from(f32::EPSILON);
            let is_zero = expected < f64::from(f32::MIN_POSITIVE) && found == 0.0;
            let is_near = (found - expected).abs() <= 2.0 * unit;
            assert!(is_zero || is_near, "exp({x}) = {found}, not {expected}");
        }
        for x in (0..200_000).map(|step| step as f32 * -5e-4).chain([-0.0, f32::NEG_INFINITY]) {
            assert_eq!(x.exp_of_nonpositive().to_bits(), Exp::exp(x).to_bits(), "exp({x})");
        }
        assert!(f32::NAN.exp_of_nonpositive().is_nan());
        assert_eq!(Exp::exp(f32::NEG_INFINITY), 0.0);
        assert_eq!(Exp::exp(f32::INFINITY), f32::INFINITY);
        assert!(Exp::exp(f32::NAN).is_nan());
    }
}
