//! Conversions between element types, as TensorFlow's x86 builds convert.
//!
//! Floats become integers by truncation. Values that do not fit become what the processor's
//! conversion gives: the smallest 32- or 64-bit integer. 8- and 16-bit integers are the nearest ones of
//! those of 32 bits, as packed instructions convert them. (TensorFlow takes the low bits instead for the
//! last few elements of a tensor, which are no whole vector.)

use super::{
    float8::{E2M1, E4M3, E5M2, Finite},
    loops::{BlockLoop, map},
};
use bytemuck::{Pod, Zeroable};
use ferroflow_ir::DType;
use half::{bf16, f16};
use num_complex::Complex;

/// The loop that converts between two dtypes; `None` where there is no conversion.
pub(super) fn cast_loop(from: DType, to: DType) -> Option<BlockLoop> {
    match from.unquantized() {
        DType::Bool => target::<BoolByte>(to),
        DType::I8 => target::<i8>(to),
        DType::I16 => target::<i16>(to),
        DType::I32 => target::<i32>(to),
        DType::I64 => target::<i64>(to),
        DType::U8 => target::<u8>(to),
        DType::U16 => target::<u16>(to),
        DType::U32 => target::<u32>(to),
        DType::U64 => target::<u64>(to),
        DType::F16 => target::<f16>(to),
        DType::BF16 => target::<bf16>(to),
        DType::F32 => target::<f32>(to),
        DType::F64 => target::<f64>(to),
        DType::C64 => target::<Complex<f32>>(to),
        DType::C128 => target::<Complex<f64>>(to),
        DType::F8E5M2 => target::<E5M2>(to),
        DType::F8E4M3FN => target::<E4M3>(to),
        DType::F8E4M3FNUZ => target::<Finite<3, 8>>(to),
        DType::F8E4M3B11FNUZ => target::<Finite<3, 11>>(to),
        DType::F8E5M2FNUZ => target::<Finite<2, 16>>(to),
        DType::F4E2M1FN => target::<E2M1>(to),
        DType::I4 => target::<Bits<4>>(to),
        DType::U4 => target::<UnsignedBits<4>>(to),
        DType::I2 => target::<Bits<2>>(to),
        DType::U2 => target::<UnsignedBits<2>>(to),
        _ => None,
    }
}

/// The loop that converts after dropping the bits of the fraction that the target has no room for;
/// `None` where there is none.
pub(super) fn chop_loop(from: DType, to: DType) -> Option<BlockLoop> {
    match from {
        DType::F16 => chopped::<f16>(to),
        DType::BF16 => chopped::<bf16>(to),
        DType::F32 => chopped::<f32>(to),
        DType::F64 => chopped::<f64>(to),
        _ => None,
    }
}

fn chopped<S: Source + Chop>(to: DType) -> Option<BlockLoop> {
    fn convert<S: Source + Chop, T: Target, const FRACTION: u32>(
        out: &mut [u8],
        a: &[u8],
        _: &[u8],
        _: &[u8],
    ) -> bool {
        map(out, a, |x: S| T::of(x.chop(FRACTION).value()))
    }
    match to {
        DType::F32 => Some(convert::<S, f32, 23>),
        DType::F16 => Some(convert::<S, f16, 10>),
        DType::BF16 => Some(convert::<S, bf16, 7>),
        DType::F8E4M3FN => Some(convert::<S, E4M3, 3>),
        DType::F8E5M2 => Some(convert::<S, E5M2, 2>),
        _ => None,
    }
}

fn target<S: Source>(to: DType) -> Option<BlockLoop> {
    fn convert<S: Source, T: Target>(out: &mut [u8], a: &[u8], _: &[u8], _: &[u8]) -> bool {
        map(out, a, |x: S| T::of(x.value()))
    }
    let found: BlockLoop = match to.unquantized() {
        DType::Bool => convert::<S, BoolByte>,
        DType::I8 => convert::<S, i8>,
        DType::I16 => convert::<S, i16>,
        DType::I32 => convert::<S, i32>,
        DType::I64 => convert::<S, i64>,
        DType::U8 => convert::<S, u8>,
        DType::U16 => convert::<S, u16>,
        DType::U32 => convert::<S, u32>,
        DType::U64 => convert::<S, u64>,
        DType::F16 => convert::<S, f16>,
        DType::BF16 => convert::<S, bf16>,
        DType::F32 => convert::<S, f32>,
        DType::F64 => convert::<S, f64>,
        DType::C64 => convert::<S, Complex<f32>>,
        DType::C128 => convert::<S, Complex<f64>>,
        DType::F8E5M2 => convert::<S, E5M2>,
        DType::F8E4M3FN => convert::<S, E4M3>,
        DType::F8E4M3FNUZ => convert::<S, Finite<3, 8>>,
        DType::F8E4M3B11FNUZ => convert::<S, Finite<3, 11>>,
        DType::F8E5M2FNUZ => convert::<S, Finite<2, 16>>,
        DType::F4E2M1FN => convert::<S, E2M1>,
        DType::I4 => convert::<S, Bits<4>>,
        DType::U4 => convert::<S, UnsignedBits<4>>,
        DType::I2 => convert::<S, Bits<2>>,
        DType::U2 => convert::<S, UnsignedBits<2>>,
        _ => return None,
    };
    Some(found)
}

/// The value of any element, without loss.
#[derive(Clone, Copy)]
enum Value {
    Int(i64),
    Unsigned(u64),
    Single(f32),
    Double(f64),
}

/// An element that can be read.
trait Source: Pod {
    fn value(self) -> (Value, f64);
}

/// An element that can be written: from a value and, for complex numbers, an imaginary part.
trait Target: Pod {
    fn of(value: (Value, f64)) -> Self;
}

/// A byte of 0 or 1.
#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(transparent)]
struct BoolByte(u8);

/// A signed integer of fewer bits, in one byte.
#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(transparent)]
struct Bits<const WIDTH: u32>(i8);

/// An unsigned integer of fewer bits, in one byte.
#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(transparent)]
struct UnsignedBits<const WIDTH: u32>(u8);

/// A float of which low bits can be cleared.
trait Chop {
    /// The value with all but so many bits of its fraction cleared.
    fn chop(self, fraction: u32) -> Self;
}

macro_rules! chops {
    ($($type:ty, $bits:ty, $fraction:literal;)*) => {
        $(impl Chop for $type {
            #[inline(always)]
            fn chop(self, fraction: u32) -> $type {
                let surplus = ($fraction as u32).saturating_sub(fraction);
                let kept = <$bits>::MAX << surplus;
                <$type>::from_bits(self.to_bits() & kept)
            }
        })*
    };
}

chops! { f16, u16, 10; bf16, u16, 7; f32, u32, 23; f64, u64, 52; }

macro_rules! sources {
    ($($type:ty, $x:ident => $value:expr, $imag:expr;)*) => {
        $(impl Source for $type {
            #[inline(always)]
            fn value(self) -> (Value, f64) {
                let $x = self;
                ($value, $imag)
            }
        })*
    };
}

sources! {
    BoolByte, x => Value::Int(i64::from(x.0)), 0.0;
    i8, x => Value::Int(i64::from(x)), 0.0;
    i16, x => Value::Int(i64::from(x)), 0.0;
    i32, x => Value::Int(i64::from(x)), 0.0;
    i64, x => Value::Int(x), 0.0;
    u8, x => Value::Int(i64::from(x)), 0.0;
    u16, x => Value::Int(i64::from(x)), 0.0;
    u32, x => Value::Int(i64::from(x)), 0.0;
    u64, x => Value::Unsigned(x), 0.0;
    f16, x => Value::Single(x.to_f32()), 0.0;
    bf16, x => Value::Single(x.to_f32()), 0.0;
    f32, x => Value::Single(x), 0.0;
    f64, x => Value::Double(x), 0.0;
    E5M2, x => Value::Single(x.to_f32()), 0.0;
    E4M3, x => Value::Single(x.to_f32()), 0.0;
    E2M1, x => Value::Single(x.to_f32()), 0.0;
    Complex<f32>, x => Value::Single(x.re), f64::from(x.im);
    Complex<f64>, x => Value::Double(x.re), x.im;
}

impl<const WIDTH: u32> Source for Bits<WIDTH> {
    #[inline(always)]
    fn value(self) -> (Value, f64) {
        self.0.value()
    }
}

impl<const WIDTH: u32> Source for UnsignedBits<WIDTH> {
    #[inline(always)]
    fn value(self) -> (Value, f64) {
        self.0.value()
    }
}

impl<const FRACTION: i32, const BIAS: i32> Source for Finite<FRACTION, BIAS> {
    #[inline(always)]
    fn value(self) -> (Value, f64) {
        self.to_f32().value()
    }
}

macro_rules! integer_targets {
    ($($type:ty, $of_float:path;)*) => {
        $(impl Target for $type {
            #[inline(always)]
            fn of((value, _): (Value, f64)) -> $type {
                match value {
                    Value::Int(value) => value as $type,
                    Value::Unsigned(value) => value as $type,
                    Value::Single(value) => $of_float(f64::from(value)) as $type,
                    Value::Double(value) => $of_float(value) as $type,
                }
            }
        })*
    };
}

integer_targets! {
    i8, saturated::<{ i8::MIN as i32 }, { i8::MAX as i32 }>;
    i16, saturated::<{ i16::MIN as i32 }, { i16::MAX as i32 }>;
    u8, saturated::<0, { u8::MAX as i32 }>;
    u16, saturated::<0, { u16::MAX as i32 }>;
    i32, truncate32;
    i64, truncate64;
    u32, truncate64;
    u64, truncate_unsigned;
}

impl Target for BoolByte {
    #[inline(always)]
    fn of((value, _): (Value, f64)) -> BoolByte {
        BoolByte(u8::from(match value {
            Value::Int(value) => value != 0,
            Value::Unsigned(value) => value != 0,
            Value::Single(value) => value != 0.0,
            Value::Double(value) => value != 0.0,
        }))
    }
}

impl Target for f32 {
    #[inline(always)]
    fn of((value, _): (Value, f64)) -> f32 {
        match value {
            Value::Int(value) => value as f32,
            Value::Unsigned(value) => value as f32,
            Value::Single(value) => value,
            Value::Double(value) => value as f32,
        }
    }
}

impl Target for f64 {
    #[inline(always)]
    fn of((value, _): (Value, f64)) -> f64 {
        match value {
            Value::Int(value) => value as f64,
            Value::Unsigned(value) => value as f64,
            Value::Single(value) => f64::from(value),
            Value::Double(value) => value,
        }
    }
}

impl Target for f16 {
    #[inline(always)]
    fn of(value: (Value, f64)) -> f16 {
        f16::from_f32(<f32 as Target>::of(value))
    }
}

impl Target for bf16 {
    #[inline(always)]
    fn of(value: (Value, f64)) -> bf16 {
        bf16::from_f32(<f32 as Target>::of(value))
    }
}

impl Target for E5M2 {
    #[inline(always)]
    fn of(value: (Value, f64)) -> E5M2 {
        E5M2::from_f32(<f32 as Target>::of(value))
    }
}

impl Target for E2M1 {
    #[inline(always)]
    fn of(value: (Value, f64)) -> E2M1 {
        E2M1::from_f32(<f32 as Target>::of(value))
    }
}

impl Target for E4M3 {
    #[inline(always)]
    fn of(value: (Value, f64)) -> E4M3 {
        E4M3::from_f32(<f32 as Target>::of(value))
    }
}

/// The integer that the lowest bits of packed integers, of fewer than 8 bits, are taken of.
#[inline(always)]
fn low_bits(value: (Value, f64)) -> i32 {
    <i32 as Target>::of(value)
}

impl<const WIDTH: u32> Target for Bits<WIDTH> {
    #[inline(always)]
    fn of(value: (Value, f64)) -> Self {
        Bits((low_bits(value) as i8) << (8 - WIDTH) >> (8 - WIDTH))
    }
}

impl<const WIDTH: u32> Target for UnsignedBits<WIDTH> {
    #[inline(always)]
    fn of(value: (Value, f64)) -> Self {
        UnsignedBits(low_bits(value) as u8 & (u8::MAX >> (8 - WIDTH)))
    }
}

impl<const FRACTION: i32, const BIAS: i32> Target for Finite<FRACTION, BIAS> {
    #[inline(always)]
    fn of(value: (Value, f64)) -> Self {
        Finite::from_f32(<f32 as Target>::of(value))
    }
}

impl Target for Complex<f32> {
    #[inline(always)]
    fn of(value: (Value, f64)) -> Complex<f32> {
        Complex::new(<f32 as Target>::of(value), value.1 as f32)
    }
}

impl Target for Complex<f64> {
    #[inline(always)]
    fn of(value: (Value, f64)) -> Complex<f64> {
        Complex::new(<f64 as Target>::of(value), value.1)
    }
}

/// Result of `cvttsd2si` for a 32-bit target.
#[inline(always)]
fn truncate32(value: f64) -> i32 {
    let fits = value > -2_147_483_649.0 && value < 2_147_483_648.0;
    if fits { value as i32 } else { i32::MIN }
}

/// The nearest integer from `LEAST` to `MOST` of the truncated one.
#[inline(always)]
fn saturated<const LEAST: i32, const MOST: i32>(value: f64) -> i32 {
    truncate32(value).clamp(LEAST, MOST)
}

/// Result of `cvttsd2si` for a 64-bit target.
#[inline(always)]
fn truncate64(value: f64) -> i64 {
    let fits = (-9_223_372_036_854_775_808.0..9_223_372_036_854_775_808.0).contains(&value);
    if fits { value as i64 } else { i64::MIN }
}

/// Values from 2^63 on are converted less 2^63, and the top bit is put back.
#[inline(always)]
fn truncate_unsigned(value: f64) -> u64 {
    const HALF: f64 = 9_223_372_036_854_775_808.0;
    if value < HALF {
        truncate64(value) as u64
    } else {
        (truncate64(value - HALF) as u64) ^ (1 << 63)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cast(from: DType, to: DType, bytes: &[u8], size: usize) -> Vec<u8> {
        let run = cast_loop(from, to).expect("a conversion");
        let n = bytes.len() / from.size().expect("a size");
        let mut out = vec![0; n * size];
        assert!(run(&mut out, bytes, &[], &[]), "it converts all");
        out
    }

    /// The answers of TensorFlow 2.21 for these numbers in whole vectors.
    #[test]
    fn floats_beyond_an_integer_saturate_as_packed_instructions_do() {
        let numbers = [-4.1f32, 1.2, -0.5, -300.0, 300.0, 70000.0, 1e10, -1e10, f32::NAN];
        let cast = |to: DType, size| cast(DType::F32, to, bytemuck::cast_slice(&numbers), size);
        assert_eq!(cast(DType::U8, 1), [0, 1, 0, 0, 255, 255, 0, 0, 0]);
        let signed: Vec<i8> = bytemuck::cast_vec(cast(DType::I8, 1));
        assert_eq!(signed, [-4, 1, 0, -128, 127, 127, -128, -128, -128]);
        let halves: Vec<u16> = bytemuck::pod_collect_to_vec(&cast(DType::U16, 2));
        assert_eq!(halves, [0, 1, 0, 0, 300, 65535, 0, 0, 0]);
        let halves: Vec<u32> = bytemuck::pod_collect_to_vec(&cast(DType::U32, 4));
        assert_eq!(halves[..4], [4_294_967_292, 1, 0, 4_294_966_996]);
        assert_eq!(cast(DType::U4, 1)[..5], [12, 1, 0, 4, 12]);
    }
}
