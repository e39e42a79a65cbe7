//! Arithmetic on element types, for kernels that are written once for all of them.

use bytemuck::Pod;
use half::{bf16, f16};
use num_complex::Complex;

/// An element type with arithmetic. Integers wrap; 16-bit floats accumulate in `f32`.
pub(crate) trait Number: Pod + Send + Sync + PartialEq + std::fmt::Debug {
    /// The type sums are kept in.
    type Acc: Number<Acc = Self::Acc>;
    /// The type the sum of a mean is kept in: integers do not wrap.
    type Wide: Number;
    /// 0.
    const ZERO: Self;
    /// 1.
    const ONE: Self;
    /// The mean of nothing: NaN for real floats, else 0.
    const MEAN_OF_NOTHING: Self;
    /// The value in the type of sums.
    fn to_acc(self) -> Self::Acc;
    /// The value a sum stands for.
    fn from_acc(acc: Self::Acc) -> Self;
    /// The value in the type means are kept in.
    fn to_wide(self) -> Self::Wide;
    /// The value a mean stands for.
    fn from_wide(wide: Self::Wide) -> Self;
    /// The sum.
    fn plus(self, other: Self) -> Self;
    /// The difference.
    fn minus(self, other: Self) -> Self;
    /// The product.
    fn times(self, other: Self) -> Self;
    /// The quotient; integers truncate, and return 0 for a divisor of 0.
    fn over(self, other: Self) -> Self;
    /// The number `n`.
    fn count(n: usize) -> Self;
    /// The square root; of integers, that of the number as a float, truncated, and of negative ones
    /// what an x86 processor makes of NaN.
    fn root(self) -> Self;
    /// The squared magnitude.
    fn squared(self) -> Self;
    /// The complex conjugate; real numbers are their own.
    #[inline(always)]
    fn conjugate(self) -> Self {
        self
    }
}

/// An element type with an order.
pub(crate) trait Ordered: Number + PartialOrd {
    /// No value is smaller.
    const LOWEST: Self;
    /// No value is larger.
    const HIGHEST: Self;
    /// The larger; NaN if either is.
    fn larger(self, other: Self) -> Self;
    /// The smaller; NaN if either is.
    fn smaller(self, other: Self) -> Self;
    /// The number as TensorFlow's comparisons take it: 0 for a zero of either sign and for one that
    /// is subnormal, in `f32` where it is a 16-bit float.
    #[inline(always)]
    fn flushed(self) -> Self {
        self
    }
}

macro_rules! integers {
    ($($type:ty as $wide:ty, root of negative $nan:expr;)*) => {$(
        impl Number for $type {
            type Acc = $type;
            type Wide = $wide;
            const ZERO: $type = 0;
            const ONE: $type = 1;
            const MEAN_OF_NOTHING: $type = 0;
            fn to_acc(self) -> $type { self }
            fn from_acc(acc: $type) -> $type { acc }
            fn to_wide(self) -> $wide { self.into() }
            fn from_wide(wide: $wide) -> $type { wide as $type }
            fn plus(self, other: $type) -> $type { self.wrapping_add(other) }
            fn minus(self, other: $type) -> $type { self.wrapping_sub(other) }
            fn times(self, other: $type) -> $type { self.wrapping_mul(other) }
            fn over(self, other: $type) -> $type {
                if other == 0 { 0 } else { self.wrapping_div(other) }
            }
            fn count(n: usize) -> $type { n as $type }
            #[allow(unused_comparisons, reason = "some of these types have no sign")]
            fn root(self) -> $type {
                if self < 0 { $nan } else { (self as f64).sqrt() as $type }
            }
            fn squared(self) -> $type { self.wrapping_mul(self) }
        }
        impl Ordered for $type {
            const LOWEST: $type = <$type>::MIN;
            const HIGHEST: $type = <$type>::MAX;
            fn larger(self, other: $type) -> $type { Ord::max(self, other) }
            fn smaller(self, other: $type) -> $type { Ord::min(self, other) }
        }
    )*};
}

integers! {
    i8 as i64, root of negative 0;
    i16 as i64, root of negative 0;
    i32 as i64, root of negative i32::MIN;
    i64 as i64, root of negative i64::MIN;
    u8 as u64, root of negative 0;
    u16 as u64, root of negative 0;
    u32 as u64, root of negative 0;
    u64 as u64, root of negative 0;
}

macro_rules! floats {
    ($($type:ty)*) => {$(
        impl Number for $type {
            type Acc = $type;
            type Wide = $type;
            const ZERO: $type = 0.0;
            const ONE: $type = 1.0;
            const MEAN_OF_NOTHING: $type = <$type>::NAN;
            #[inline(always)]
            fn to_wide(self) -> $type { self }
            fn from_wide(wide: $type) -> $type { wide }
            #[inline(always)]
            fn to_acc(self) -> $type { self }
            #[inline(always)]
            fn from_acc(acc: $type) -> $type { acc }
            #[inline(always)]
            fn plus(self, other: $type) -> $type { self + other }
            #[inline(always)]
            fn minus(self, other: $type) -> $type { self - other }
            #[inline(always)]
            fn times(self, other: $type) -> $type { self * other }
            #[inline(always)]
            fn over(self, other: $type) -> $type { self / other }
            fn count(n: usize) -> $type { n as $type }
            fn root(self) -> $type { self.sqrt() }
            #[inline(always)]
            fn squared(self) -> $type { self * self }
        }
        impl Ordered for $type {
            const LOWEST: $type = <$type>::NEG_INFINITY;
            const HIGHEST: $type = <$type>::INFINITY;
            #[inline(always)]
            fn larger(self, other: $type) -> $type {
                if self.is_nan() || self > other { self } else { other }
            }
            #[inline(always)]
            fn smaller(self, other: $type) -> $type {
                if self.is_nan() || self < other { self } else { other }
            }
            #[inline(always)]
            fn flushed(self) -> $type {
                if self.abs() < <$type>::MIN_POSITIVE { 0.0 } else { self }
            }
        }
    )*};
}

floats! { f32 f64 }

macro_rules! halves {
    ($($type:ty)*) => {$(
        impl Number for $type {
            type Acc = f32;
            type Wide = f32;
            const ZERO: $type = <$type>::ZERO;
            const ONE: $type = <$type>::ONE;
            const MEAN_OF_NOTHING: $type = <$type>::NAN;
            #[inline(always)]
            fn to_wide(self) -> f32 { self.to_f32() }
            fn from_wide(wide: f32) -> $type { <$type>::from_f32(wide) }
            #[inline(always)]
            fn to_acc(self) -> f32 { self.to_f32() }
            #[inline(always)]
            fn from_acc(acc: f32) -> $type { <$type>::from_f32(acc) }
            fn plus(self, other: $type) -> $type { Self::from_acc(self.to_f32() + other.to_f32()) }
            fn minus(self, other: $type) -> $type { Self::from_acc(self.to_f32() - other.to_f32()) }
            fn times(self, other: $type) -> $type { Self::from_acc(self.to_f32() * other.to_f32()) }
            fn over(self, other: $type) -> $type { Self::from_acc(self.to_f32() / other.to_f32()) }
            fn count(n: usize) -> $type { Self::from_acc(n as f32) }
            fn root(self) -> $type { Self::from_acc(self.to_f32().sqrt()) }
            fn squared(self) -> $type { self.times(self) }
        }
        impl Ordered for $type {
            const LOWEST: $type = <$type>::NEG_INFINITY;
            const HIGHEST: $type = <$type>::INFINITY;
            fn larger(self, other: $type) -> $type {
                if self.is_nan() || self > other { self } else { other }
            }
            fn smaller(self, other: $type) -> $type {
                if self.is_nan() || self < other { self } else { other }
            }
            #[inline(always)]
            fn flushed(self) -> $type {
                if self.to_f32().abs() < f32::MIN_POSITIVE { <$type>::ZERO } else { self }
            }
        }
    )*};
}

halves! { f16 bf16 }

macro_rules! complexes {
    ($($part:ty)*) => {$(
        impl Number for Complex<$part> {
            type Acc = Complex<$part>;
            const ZERO: Complex<$part> = Complex::new(0.0, 0.0);
            type Wide = Complex<$part>;
            const ONE: Complex<$part> = Complex::new(1.0, 0.0);
            const MEAN_OF_NOTHING: Complex<$part> = Complex::new(0.0, 0.0);
            fn to_wide(self) -> Complex<$part> { self }
            fn from_wide(wide: Complex<$part>) -> Complex<$part> { wide }
            fn to_acc(self) -> Complex<$part> { self }
            fn from_acc(acc: Complex<$part>) -> Complex<$part> { acc }
            fn plus(self, other: Complex<$part>) -> Complex<$part> { self + other }
            fn minus(self, other: Complex<$part>) -> Complex<$part> { self - other }
            fn times(self, other: Complex<$part>) -> Complex<$part> { self * other }
            fn over(self, other: Complex<$part>) -> Complex<$part> { self / other }
            fn count(n: usize) -> Complex<$part> { Complex::new(n as $part, 0.0) }
            fn root(self) -> Complex<$part> { self.sqrt() }
            fn squared(self) -> Complex<$part> { Complex::new(self.norm_sqr(), 0.0) }
            fn conjugate(self) -> Complex<$part> { self.conj() }
        }
    )*};
}

complexes! { f32 f64 }
