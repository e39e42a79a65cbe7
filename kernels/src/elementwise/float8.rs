//! Floats of 8 bits (Micikevicius et al., "FP8 formats for deep learning", 2022) and of 4 ("OCP
//! Microscaling Formats", 2023). They are stored and converted, never computed with.

use bytemuck::{Pod, Zeroable};
use half::f16;

/// 5 exponent bits and 2 of fraction: the upper half of an `f16`.
#[derive(Debug, Clone, Copy, PartialEq, Pod, Zeroable)]
#[repr(transparent)]
pub(super) struct E5M2(u8);

/// 4 exponent bits and 3 of fraction, without infinities; overflow is NaN.
#[derive(Debug, Clone, Copy, PartialEq, Pod, Zeroable)]
#[repr(transparent)]
pub(super) struct E4M3(u8);

/// 2 exponent bits and 1 of fraction in the low half of a byte, without infinities and NaN, which become
/// the largest number and -0.
#[derive(Debug, Clone, Copy, PartialEq, Pod, Zeroable)]
#[repr(transparent)]
pub(super) struct E2M1(u8);

/// A sign, an exponent less a bias and so many bits of fraction. There are neither infinities nor a
/// zero with a sign; its bits are NaN, and what overflows becomes that.
#[derive(Debug, Clone, Copy, PartialEq, Pod, Zeroable)]
#[repr(transparent)]
pub(super) struct Finite<const FRACTION: i32, const BIAS: i32>(u8);

impl<const FRACTION: i32, const BIAS: i32> Finite<FRACTION, BIAS> {
    const NAN: u8 = 0x80;
    /// The number of fractions.
    const PARTS: i32 = 1 << FRACTION;

    /// The value.
    pub(super) fn to_f32(self) -> f32 {
        if self.0 == Self::NAN {
            return f32::NAN;
        }
        let code = i32::from(self.0 & 0x7F);
        let (exponent, fraction) = (code >> FRACTION, code & (Self::PARTS - 1));
        let unit = 2f32.powi(exponent.max(1) - BIAS - FRACTION);
        let parts = fraction + if exponent == 0 { 0 } else { Self::PARTS };
        let magnitude = parts as f32 * unit;
        if self.0 >> 7 == 1 { -magnitude } else { magnitude }
    }

    /// The nearest value, halves to even; NaN where there is none.
    pub(super) fn from_f32(value: f32) -> Self {
        let magnitude = rounded(value.abs(), FRACTION, 1 - BIAS);
        if magnitude.is_nan() || magnitude > Self(0x7F).to_f32() {
            return Self(Self::NAN);
        }
        let exponent = ((magnitude.to_bits() >> 23) as i32 - 127).max(1 - BIAS);
        let parts = (magnitude * 2f32.powi(FRACTION - exponent)) as i32;
        // The first part of a normal number is that of its exponent.
        let code = ((exponent + BIAS - 1) * Self::PARTS + parts) as u8;
        let sign = u8::from(value.is_sign_negative() && code != 0) << 7;
        Self(sign | code)
    }
}

impl E5M2 {
    /// The value.
    pub(super) fn to_f32(self) -> f32 {
        f16::from_bits(u16::from(self.0) << 8).to_f32()
    }

    /// The nearest value, halves to even.
    pub(super) fn from_f32(value: f32) -> E5M2 {
        E5M2((f16::from_f32(rounded(value, 2, -14)).to_bits() >> 8) as u8)
    }
}

impl E4M3 {
    const NAN: u8 = 0x7F;
    const LARGEST: f32 = 448.0;

    /// The value.
    pub(super) fn to_f32(self) -> f32 {
        let (exponent, fraction) = (i32::from(self.0 >> 3 & 15), f32::from(self.0 & 7));
        let magnitude = match exponent {
            0 => fraction * 2f32.powi(-9),
            15 if fraction == 7.0 => f32::NAN,
            _ => (8.0 + fraction) * 2f32.powi(exponent - 10),
        };
        if self.0 >> 7 == 1 { -magnitude } else { magnitude }
    }

    /// The nearest value, halves to even; NaN where there is none.
    pub(super) fn from_f32(value: f32) -> E4M3 {
        let sign = u8::from(value.is_sign_negative()) << 7;
        let magnitude = rounded(value.abs(), 3, -6);
        if magnitude.is_nan() || magnitude > E4M3::LARGEST {
            return E4M3(sign | E4M3::NAN);
        }
        let bits = magnitude.to_bits();
        let exponent = (bits >> 23) as i32 - 127;
        let code = match exponent {
            ..-6 => (magnitude * 2f32.powi(9)) as u8,
            _ => ((exponent + 7) as u8) << 3 | (bits >> 20 & 7) as u8,
        };
        E4M3(sign | code)
    }
}

impl E2M1 {
    const SIGN: u8 = 0x8;
    const MAGNITUDES: [f32; 8] = [0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0];

    /// The value.
    pub(super) fn to_f32(self) -> f32 {
        let magnitude = E2M1::MAGNITUDES[usize::from(self.0 & 7)];
        if self.0 & E2M1::SIGN == 0 { magnitude } else { -magnitude }
    }

    /// The nearest value, halves to even.
    pub(super) fn from_f32(value: f32) -> E2M1 {
        if value.is_nan() {
            return E2M1(E2M1::SIGN);
        }
        let magnitude = rounded(value.abs(), 1, 0);
        let code = E2M1::MAGNITUDES.iter().rposition(|&own| own <= magnitude).unwrap_or(0);
        E2M1(code as u8 | if value.is_sign_negative() { E2M1::SIGN } else { 0 })
    }
}

/// The nearest number with so many bits of fraction and an exponent of at least `smallest`.
fn rounded(value: f32, fraction_bits: i32, smallest: i32) -> f32 {
    if !value.is_finite() {
        return value;
    }
    let exponent = ((value.abs().to_bits() >> 23) as i32 - 127).max(smallest);
    let unit = 2f32.powi(exponent - fraction_bits);
    (value / unit).round_ties_even() * unit
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The numbers of XLA on a CPU.
    #[test]
    fn four_bits_hold_the_nearest_number() {
        let numbers = [f32::NAN, f32::INFINITY, -7.0, -5.0, -0.0, 0.25, 0.75, 0.26, 5.0, 2.5, 1.25];
        let codes = numbers.map(|number| E2M1::from_f32(number).0);
        assert_eq!(codes, [8, 7, 15, 14, 8, 0, 2, 1, 6, 4, 2]);
        for code in 0..16 {
            assert_eq!(E2M1::from_f32(E2M1(code).to_f32()), E2M1(code));
        }
    }

    #[test]
    fn every_value_survives() {
        for bits in 0..=u8::MAX {
            let (a, b) = (E5M2(bits), E4M3(bits));
            assert!(a.to_f32().is_nan() || E5M2::from_f32(a.to_f32()) == a);
            assert!(b.to_f32().is_nan() || E4M3::from_f32(b.to_f32()) == b);
            let (c, d, e) = (Finite::<3, 8>(bits), Finite::<3, 11>(bits), Finite::<2, 16>(bits));
            assert_eq!(Finite::<3, 8>::from_f32(c.to_f32()), c);
            assert_eq!(Finite::<3, 11>::from_f32(d.to_f32()), d);
            assert_eq!(Finite::<2, 16>::from_f32(e.to_f32()), e);
        }
    }

    #[test]
    fn finite_floats_overflow_to_nan_and_have_one_zero() {
        let largest = [Finite::<3, 8>(0x7F).to_f32(), Finite::<3, 11>(0x7F).to_f32()];
        assert_eq!(largest, [240.0, 30.0]);
        assert_eq!(Finite::<2, 16>(0x7F).to_f32(), 57344.0);
        assert!(Finite::<3, 8>::from_f32(250.0).to_f32().is_nan());
        assert_eq!(Finite::<3, 8>::from_f32(-0.0), Finite(0));
        assert_eq!(Finite::<3, 8>::from_f32(-1e-9), Finite(0));
        assert_eq!(Finite::<2, 16>::from_f32(1.125).to_f32(), 1.0);
    }

    #[test]
    fn values_round_to_even_and_overflow() {
        assert_eq!(E5M2::from_f32(1.125).to_f32(), 1.0);
        assert_eq!(E5M2::from_f32(1.375).to_f32(), 1.5);
        assert_eq!(E5M2::from_f32(61440.0).to_f32(), f32::INFINITY);
        assert_eq!(E4M3::from_f32(464.0).to_f32(), 448.0);
        assert!(E4M3::from_f32(470.0).to_f32().is_nan());
        assert_eq!(E4M3::from_f32(2f32.powi(-10)).to_f32(), 0.0);
        assert_eq!(E4M3::from_f32(1.5 * 2f32.powi(-9)).to_f32(), 2f32.powi(-8));
    }
}
