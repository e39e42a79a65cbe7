//! Working in the type that sums are kept in: `f32` for 16-bit floats, the type itself for others.

use crate::{
    number::Number,
    simd::{Vectorized, vectorize},
};
use half::{bf16, f16, slice::HalfFloatSliceExt};
use num_complex::Complex;
use std::borrow::Cow;

/// Rounds a number.
pub(crate) type Round<A> = fn(A) -> A;

/// An element type whose elements can be had in the type of sums, many at a time.
pub(crate) trait WideElement: Number {
    /// Rounds a sum to what this type can hold, where that is narrower.
    const ROUND: Option<Round<Self::Acc>>;

    /// The elements in the type of sums.
    fn widen(elements: &[Self]) -> Cow<'_, [Self::Acc]>;

    /// Has `fill` write elements in the type of sums, and rounds them into `out`. What `fill` finds
    /// is what was in `out`.
    fn through_acc<R>(out: &mut [Self], fill: impl FnOnce(&mut [Self::Acc]) -> R) -> R;
}

macro_rules! as_they_are {
    ($($type:ty)*) => {$(
        impl WideElement for $type {
            const ROUND: Option<Round<Self>> = None;

            fn widen(elements: &[Self]) -> Cow<'_, [Self]> {
                Cow::Borrowed(elements)
            }

            fn through_acc<R>(out: &mut [Self], fill: impl FnOnce(&mut [Self]) -> R) -> R {
                fill(out)
            }
        }
    )*};
}

as_they_are! { f32 f64 Complex<f32> Complex<f64> i8 i16 i32 i64 u8 u16 u32 u64 }

macro_rules! through_f32 {
    ($($type:ty, $widen:expr, $narrow:expr;)*) => {$(
        impl WideElement for $type {
            const ROUND: Option<Round<f32>> = Some(|x| Self::from_f32(x).to_f32());

            fn widen(elements: &[Self]) -> Cow<'_, [f32]> {
                let widen: fn(&[Self], &mut [f32]) = $widen;
                let mut wide = vec![0.0; elements.len()];
                widen(elements, &mut wide);
                Cow::Owned(wide)
            }

            fn through_acc<R>(out: &mut [Self], fill: impl FnOnce(&mut [f32]) -> R) -> R {
                let narrow: fn(&[f32], &mut [Self]) = $narrow;
                let mut wide = Self::widen(out).into_owned();
                let result = fill(&mut wide);
                narrow(&wide, out);
                result
            }
        }
    )*};
}

through_f32! {
    f16, |from, to| from.convert_to_f32_slice(to), |from, to| to.convert_from_f32_slice(from);
    bf16, |from, to| vectorize(Convert(from, to, bf16::to_f32)),
        |from, to| vectorize(Convert(from, to, bf16::from_f32));
}

/// Elements converted one by one.
struct Convert<'a, T, U, F>(&'a [T], &'a mut [U], F);

impl<T: Copy, U, F: Fn(T) -> U> Vectorized for Convert<'_, T, U, F> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        self.1.iter_mut().zip(self.0).for_each(|(to, &from)| *to = (self.2)(from));
    }
}
