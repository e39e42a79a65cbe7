//! The numbers that formulas compute with, and what several formulas share.

use crate::number::Number;
use half::{bf16, f16};
use num_complex::Complex;
use num_traits::Float;
use std::ops::{Add, Div, Mul, Neg, Sub};

/// Numbers that formulas compute with.
pub(super) trait ArithmeticField:
    Number
    + Add<Output = Self>
    + Sub<Output = Self>
    + Mul<Output = Self>
    + Div<Output = Self>
    + Neg<Output = Self>
{
    /// The number.
    fn of(value: f64) -> Self;

    /// Reciprocal of the square root, rounded once.
    fn reciprocal_root(self) -> Self;
}

macro_rules! fields {
    ($($type:ty, $value:ident => $number:expr;)*) => {$(
        impl ArithmeticField for $type {
            #[inline(always)]
            fn of($value: f64) -> $type { $number }

            #[inline(always)]
            fn reciprocal_root(self) -> $type {
                let wide = self.to_acc();
                <$type>::from_acc(<Self as Number>::Acc::ONE.over(wide.root()))
            }
        }
    )*};
}

fields! {
    f16, value => f16::from_f64(value);
    bf16, value => bf16::from_f64(value);
    f32, value => value as f32;
    f64, value => value;
    Complex<f32>, value => Complex::new(value as f32, 0.0);
    Complex<f64>, value => Complex::new(value, 0.0);
}

/// Real numbers.
pub(super) trait RealField: ArithmeticField + Float {}

impl<A: ArithmeticField + Float> RealField for A {}

/// -1, 0 or 1; NaN of NaN.
pub(super) fn sign<A: RealField>(x: A) -> A {
    if x > A::zero() {
        A::one()
    } else if x < A::zero() {
        -A::one()
    } else {
        x
    }
}

/// `x` moved towards 0 by `distance`, at most to 0.
pub(super) fn shrunk<A: RealField>(x: A, distance: A) -> A {
    sign(x) * (x.abs() - distance).max(A::zero())
}

/// The proximal step of penalties `l1` and `l2`.
pub(super) fn proximal<A: RealField>(x: A, rate: A, l1: A, l2: A) -> A {
    let x = if l1 > A::zero() { shrunk(x, rate * l1) } else { x };
    x / (A::one() + rate * l2)
}
