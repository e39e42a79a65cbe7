//! The scalar arithmetic of each family of element types, with TensorFlow's edge cases.

/// Real floating types.
pub(super) trait RealFloat: num_traits::Float {
    fn lgamma(self) -> Self;
    fn erf(self) -> Self;
    fn erfc(self) -> Self;
    fn rint(self) -> Self;
    fn next_after(self, other: Self) -> Self;
    /// The value as an `f64`.
    fn widen(self) -> f64;
    /// The nearest value of this type.
    fn narrow(value: f64) -> Self;

    /// The inverse hyperbolic sine.
    fn arsinh(self) -> Self;
    /// The inverse hyperbolic cosine.
    fn arcosh(self) -> Self;

    /// -1, 0 or 1; NaN for NaN; of a subnormal number or zero, the absolute value.
    fn sign(self) -> Self {
        if self >= Self::min_positive_value() {
            Self::one()
        } else if self <= -Self::min_positive_value() {
            -Self::one()
        } else {
            self.abs()
        }
    }

    /// A zero of the same sign for subnormal numbers.
    fn flush(self) -> Self {
        if self.is_subnormal() { Self::zero().copysign(self) } else { self }
    }

    /// The larger; NaN if either is.
    fn larger(self, other: Self) -> Self {
        if self.is_nan() || self > other { self } else { other }
    }

    /// The smaller; NaN if either is.
    fn smaller(self, other: Self) -> Self {
        if self.is_nan() || self < other { self } else { other }
    }

    /// The remainder with the sign of the dividend. A subnormal dividend is a number, a subnormal
    /// divisor is zero.
    fn trunc_mod(self, other: Self) -> Self {
        self % other.flush()
    }

    /// The remainder with the sign of the divisor.
    fn floor_mod(self, other: Self) -> Self {
        let remainder = RealFloat::trunc_mod(self, other);
        let fits = remainder.flush() == Self::zero()
            || (remainder < Self::zero()) == (other < Self::zero());
        if fits { remainder } else { remainder + other }
    }
}

macro_rules! real {
    ($type:ty, $lgamma:path, $erf:path, $erfc:path, $rint:path, $next_after:path, $arsinh:path,
     $arcosh:path) => {
        impl RealFloat for $type {
            fn lgamma(self) -> Self {
                if self.is_infinite() { Self::INFINITY } else { $lgamma(self) }
            }
            fn erf(self) -> Self {
                $erf(self)
            }
            fn erfc(self) -> Self {
                $erfc(self)
            }
            fn rint(self) -> Self {
                $rint(self)
            }
            fn next_after(self, other: Self) -> Self {
                let equal = self.flush() == other.flush();
                if equal { other } else { $next_after(self, other) }
            }
            fn arsinh(self) -> Self {
                $arsinh(self)
            }
            fn arcosh(self) -> Self {
                if self < 1.0 { Self::NAN } else { $arcosh(self) }
            }
            fn widen(self) -> f64 {
                f64::from(self)
            }
            fn narrow(value: f64) -> Self {
                value as $type
            }
        }
    };
}

real!(
    f32,
    libm::lgammaf,
    libm::erff,
    libm::erfcf,
    f32::round_ties_even,
    libm::nextafterf,
    libm::asinhf,
    libm::acoshf
);
real!(
    f64,
    libm::lgamma,
    libm::erf,
    libm::erfc,
    f64::round_ties_even,
    libm::nextafter,
    libm::asinh,
    libm::acosh
);

/// Integer types. Arithmetic wraps; `None` means that the operation is an error.
pub(super) trait Integer: Copy + Ord {
    fn neg(self) -> Self;
    fn abs(self) -> Self;
    fn sign(self) -> Self;
    fn pop_count(self) -> u8;
    fn not(self) -> Self;
    fn and(self, other: Self) -> Self;
    fn or(self, other: Self) -> Self;
    fn xor(self, other: Self) -> Self;
    fn add(self, other: Self) -> Self;
    fn sub(self, other: Self) -> Self;
    fn mul(self, other: Self) -> Self;
    fn floor_div(self, other: Self) -> Option<Self>;
    fn trunc_div(self, other: Self) -> Option<Self>;
    fn floor_mod(self, other: Self) -> Option<Self>;
    fn trunc_mod(self, other: Self) -> Option<Self>;
    fn pow(self, other: Self) -> Option<Self>;
    fn shl(self, other: Self) -> Self;
    fn shr(self, other: Self) -> Self;
}

macro_rules! integer {
    ($($type:ty)*) => {$(
        #[allow(unused_comparisons, reason = "unsigned types are never negative")]
        impl Integer for $type {
            fn neg(self) -> Self {
                self.wrapping_neg()
            }
            fn abs(self) -> Self {
                if self < 0 { self.wrapping_neg() } else { self }
            }
            fn sign(self) -> Self {
                if self > 0 { 1 } else if self < 0 { (0 as $type).wrapping_sub(1) } else { 0 }
            }
            fn pop_count(self) -> u8 {
                self.count_ones() as u8
            }
            fn not(self) -> Self {
                !self
            }
            fn and(self, other: Self) -> Self {
                self & other
            }
            fn or(self, other: Self) -> Self {
                self | other
            }
            fn xor(self, other: Self) -> Self {
                self ^ other
            }
            fn add(self, other: Self) -> Self {
                self.wrapping_add(other)
            }
            fn sub(self, other: Self) -> Self {
                self.wrapping_sub(other)
            }
            fn mul(self, other: Self) -> Self {
                self.wrapping_mul(other)
            }
            fn floor_div(self, other: Self) -> Option<Self> {
                let quotient = self.trunc_div(other)?;
                let inexact = self.wrapping_rem(other) != 0;
                let down = inexact && ((self < 0) != (other < 0));
                Some(if down { quotient.wrapping_sub(1) } else { quotient })
            }
            fn trunc_div(self, other: Self) -> Option<Self> {
                (other != 0).then(|| self.wrapping_div(other))
            }
            fn floor_mod(self, other: Self) -> Option<Self> {
                let remainder = self.trunc_mod(other)?;
                let fits = remainder == 0 || ((remainder < 0) == (other < 0));
                Some(if fits { remainder } else { remainder.wrapping_add(other) })
            }
            fn trunc_mod(self, other: Self) -> Option<Self> {
                (other != 0).then(|| self.wrapping_rem(other))
            }
            fn pow(self, other: Self) -> Option<Self> {
                if other < 0 {
                    return None;
                }
                let (mut base, mut exponent, mut result) = (self, other, 1 as $type);
                while exponent > 0 {
                    if exponent & 1 == 1 {
                        result = result.wrapping_mul(base);
                    }
                    base = base.wrapping_mul(base);
                    exponent >>= 1;
                }
                Some(result)
            }
            fn shl(self, other: Self) -> Self {
                self.wrapping_shl(shift_amount(other as i128, <$type>::BITS))
            }
            fn shr(self, other: Self) -> Self {
                self.wrapping_shr(shift_amount(other as i128, <$type>::BITS))
            }
        }
    )*};
}

integer! { i8 i16 i32 i64 u8 u16 u32 u64 }

/// Shifting by a negative amount shifts by none, by the width or more by the width less one.
fn shift_amount(amount: i128, bits: u32) -> u32 {
    amount.clamp(0, i128::from(bits) - 1) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn division_rounds_as_asked() {
        let check = |x: i32, y: i32, floor: (i32, i32), trunc: (i32, i32)| {
            assert_eq!(Integer::floor_div(x, y).zip(Integer::floor_mod(x, y)), Some(floor));
            assert_eq!(x.trunc_div(y).zip(x.trunc_mod(y)), Some(trunc));
        };
        check(7, 2, (3, 1), (3, 1));
        check(-7, 2, (-4, 1), (-3, -1));
        check(7, -2, (-4, -1), (-3, 1));
        check(i32::MIN, -1, (i32::MIN, 0), (i32::MIN, 0));
        assert_eq!(Integer::floor_div(1i32, 0), None);
        assert_eq!(RealFloat::floor_mod(-7.0f64, 2.0), 1.0);
        assert_eq!(RealFloat::floor_mod(7.0f64, -2.0), -1.0);
    }

    #[test]
    fn powers_and_shifts_have_limits() {
        assert_eq!(Integer::pow(3i64, 4), Some(81));
        assert_eq!(Integer::pow(3i64, -1), None);
        assert_eq!(Integer::shl(1i32, 40), i32::MIN);
        assert_eq!(Integer::shr(-8i32, -1), -8);
    }

    #[test]
    fn nan_wins_comparisons() {
        assert!(
            RealFloat::larger(f32::NAN, 1.0).is_nan()
                && RealFloat::larger(1.0f32, f32::NAN).is_nan()
        );
        assert!(
            RealFloat::smaller(f32::NAN, 1.0).is_nan()
                && RealFloat::smaller(1.0f32, f32::NAN).is_nan()
        );
    }
}
