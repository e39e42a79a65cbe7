//! 8-bit floats (Micikevicius et al., "FP8 formats for deep learning", 2022). They are stored and
//! converted, never computed with.

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

    #[test]
    fn every_value_survives() {
        for bits in 0..=u8::MAX {
            let (a, b) = (E5M2(bits), E4M3(bits));
            assert!(a.to_f32().is_nan() || E5M2::from_f32(a.to_f32()) == a);
            assert!(b.to_f32().is_nan() || E4M3::from_f32(b.to_f32()) == b);
        }
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
