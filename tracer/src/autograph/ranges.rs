//! `range` and `a..b`: the numbers that a `for` counts through, of Rust or of a graph.

use super::iterate::{Over, TensorLoop};
use crate::{
    error::{Error, Result},
    tensor::Tensor,
};
use ferroflow_ir::DType;

/// The numbers from 0 up to `end`, without it; or those from a first one, in steps of another
/// number: numbers of Rust where all bounds are, one loop of the graph where one is a [`Tensor`].
///
/// In [`#[function]`](macro@crate::function) a `for` over `range(start, end)` or `range(start, end,
/// step)` is one over `range((start, end))` or `range((start, end, step))`, and a `for` over
/// `start..end` counts up to a tensor, too.
///
/// ```
/// use ferroflow_tracer::{Result, Tensor, function, range};
///
/// #[function]
/// fn factorial(n: &Tensor) -> Result<Tensor> {
///     let mut product = Tensor::from(1);
///     for i in range(n) {
///         product = (product * (i + 1)?)?;
///     }
///     Ok(product)
/// }
///
/// #[function]
/// fn odd_factors(n: &Tensor) -> Result<Tensor> {
///     let mut product = Tensor::from(1);
///     for i in range(1, n, 2) {
///         product = (product * i)?;
///     }
///     Ok(product)
/// }
///
/// # fn main() -> Result<()> {
/// assert_eq!(factorial(&Tensor::from(5))?.to_scalar::<i32>()?, 120);
/// assert_eq!(odd_factors(&Tensor::from(8))?.to_scalar::<i32>()?, 105);
/// # Ok(())
/// # }
/// ```
pub fn range<B: RangeBounds>(bounds: B) -> RangeOf<B> {
    RangeOf(bounds)
}

/// The numbers between bounds, as [`range`] returns them.
#[derive(Clone, Debug)]
pub struct RangeOf<B>(B);

/// Bounds that [`range`] takes: an end, a start and an end, or a start, an end and a step.
#[diagnostic::on_unimplemented(
    message = "a range ends at a whole number or a Tensor, not at `{Self}`",
    label = "neither a whole number nor a `Tensor`"
)]
pub trait RangeBounds {}

impl<N: HostInteger> RangeBounds for N {}
impl<N: HostInteger> RangeBounds for (N, N) {}
impl<N: HostInteger> RangeBounds for (N, N, N) {}

/// An integer of Rust.
pub trait HostInteger: Copy + PartialOrd {
    /// Nothing, which no step is.
    const ZERO: Self;

    /// The number, if it is one of these.
    fn into_i64(self) -> Option<i64>;

    /// The sum, if it is one of these.
    fn plus(self, other: Self) -> Option<Self>;
}

macro_rules! integers {
    ($($number:ident)*) => {$(
        impl HostInteger for $number {
            const ZERO: $number = 0;

            fn into_i64(self) -> Option<i64> {
                self.try_into().ok()
            }

            fn plus(self, other: $number) -> Option<$number> {
                self.checked_add(other)
            }
        }
    )*};
}

integers!(i8 i16 i32 i64 isize u8 u16 u32 u64 usize);

impl<N: HostInteger> IntoIterator for RangeOf<N>
where
    std::ops::Range<N>: Iterator<Item = N>,
{
    type Item = N;
    type IntoIter = std::ops::Range<N>;

    fn into_iter(self) -> Self::IntoIter {
        N::ZERO..self.0
    }
}

impl<N: HostInteger> IntoIterator for RangeOf<(N, N)>
where
    std::ops::Range<N>: Iterator<Item = N>,
{
    type Item = N;
    type IntoIter = std::ops::Range<N>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.0..self.0.1
    }
}

impl<N: HostInteger> IntoIterator for RangeOf<(N, N, N)> {
    type Item = N;
    type IntoIter = RangeSteps<N>;

    /// # Panics
    ///
    /// When the step is 0, as [`Iterator::step_by`] does.
    fn into_iter(self) -> RangeSteps<N> {
        let (start, end, step) = self.0;
        assert!(step != N::ZERO, "the step of a range is 0");
        RangeSteps { next: Some(start), end, step }
    }
}

/// The numbers from `next` to `end`, in steps.
#[derive(Clone, Debug)]
pub struct RangeSteps<N> {
    next: Option<N>,
    end: N,
    step: N,
}

impl<N: HostInteger> Iterator for RangeSteps<N> {
    type Item = N;

    fn next(&mut self) -> Option<N> {
        let next = self.next?;
        let is_inside = if self.step > N::ZERO { next < self.end } else { next > self.end };
        self.next = is_inside.then(|| next.plus(self.step)).flatten();
        is_inside.then_some(next)
    }
}

/// A bound of a range.
#[derive(Clone, Debug)]
pub enum RangeNumber {
    /// Known while tracing, if it is one of 64 bits.
    Host(Option<i64>),
    /// A tensor.
    Tensor(Tensor),
}

/// Bounds of a range that another bound makes one of tensors.
pub trait RangeBound {
    /// The bound.
    fn into_number(self) -> RangeNumber;
}

impl<N: HostInteger> RangeBound for N {
    fn into_number(self) -> RangeNumber {
        RangeNumber::Host(self.into_i64())
    }
}

impl RangeBound for Tensor {
    fn into_number(self) -> RangeNumber {
        RangeNumber::Tensor(self)
    }
}

impl RangeBound for &Tensor {
    fn into_number(self) -> RangeNumber {
        RangeNumber::Tensor(self.clone())
    }
}

macro_rules! loops_of_tensors {
    ($([$($generics:tt)*] $bounds:ty, |$bound:pat_param| $made:expr;)*) => {$(
        impl<$($generics)*> RangeBounds for $bounds {}

        impl<$($generics)*> Over<RangeOf<$bounds>> {
            /// The loop over the range.
            pub fn iterate(self) -> TensorLoop {
                let $bound = self.into_inner().0;
                $made
            }
        }
    )*};
}

// Ranges of integers are looped over by a trait, so that their type may follow from the body.
loops_of_tensors! {
    [] Tensor, |end| TensorLoop::up_to(end);
    ['a] &'a Tensor, |end| TensorLoop::up_to(end.clone());
    [A: RangeBound] (A, Tensor), |(a, b)| between(a, b);
    ['a, A: RangeBound] (A, &'a Tensor), |(a, b)| between(a, b);
    [N: HostInteger] (Tensor, N), |(a, b)| between(a, b);
    ['a, N: HostInteger] (&'a Tensor, N), |(a, b)| between(a, b);
    [A: RangeBound, B: RangeBound] (A, B, Tensor), |(a, b, by)| stepped(a, b, by);
    ['a, A: RangeBound, B: RangeBound] (A, B, &'a Tensor), |(a, b, by)| stepped(a, b, by);
    [A: RangeBound, N: HostInteger] (A, Tensor, N), |(a, b, by)| stepped(a, b, by);
    ['a, A: RangeBound, N: HostInteger] (A, &'a Tensor, N), |(a, b, by)| stepped(a, b, by);
    [M: HostInteger, N: HostInteger] (Tensor, M, N), |(a, b, by)| stepped(a, b, by);
    ['a, M: HostInteger, N: HostInteger] (&'a Tensor, M, N), |(a, b, by)| stepped(a, b, by);
}

fn between(start: impl RangeBound, end: impl RangeBound) -> TensorLoop {
    TensorLoop::between([start.into_number(), end.into_number()], None)
}

fn stepped(start: impl RangeBound, end: impl RangeBound, step: impl RangeBound) -> TensorLoop {
    TensorLoop::between([start.into_number(), end.into_number()], Some(step.into_number()))
}

impl Over<&RangeOf<Tensor>> {
    /// The loop over the range.
    pub fn iterate(self) -> TensorLoop {
        TensorLoop::up_to(self.into_inner().0.clone())
    }
}

/// `start..end` after `in`: asks by its types whether Rust counts.
#[derive(Debug)]
pub struct Between<A, B>(pub A, pub B);

macro_rules! between {
    ($([$($generics:tt)*] $start:ty, $end:ty;)*) => {$(
        impl<$($generics)*> Between<$start, $end> {
            /// The range.
            pub fn range(self) -> RangeOf<($start, $end)> {
                RangeOf((self.0, self.1))
            }
        }
    )*};
}

between! {
    [A: RangeBound] A, Tensor;
    ['a, A: RangeBound] A, &'a Tensor;
    [N: HostInteger] Tensor, N;
    ['a, N: HostInteger] &'a Tensor, N;
}

/// `start..end` as Rust has it.
pub trait HostBetween {
    /// The range.
    type Range;

    /// The range.
    fn range(self) -> Self::Range;
}

impl<T> HostBetween for Between<T, T> {
    type Range = std::ops::Range<T>;

    fn range(self) -> std::ops::Range<T> {
        self.0..self.1
    }
}

impl RangeNumber {
    /// The number as a tensor of 64 bits.
    pub(super) fn tensor(self) -> Result<Tensor> {
        match self {
            RangeNumber::Tensor(tensor) => tensor.cast(DType::I64),
            RangeNumber::Host(number) => {
                number.map(Tensor::from).ok_or_else(|| wrong("a larger one"))
            }
        }
    }

    fn fits(&self, dtype: DType) -> bool {
        match self {
            RangeNumber::Tensor(_) => true,
            RangeNumber::Host(number) => {
                number.is_some_and(|number| dtype == DType::I64 || i32::try_from(number).is_ok())
            }
        }
    }
}

/// The dtype of the numbers between bounds: that of the tensors among these.
pub(super) fn dtype_of(bounds: &[&RangeNumber]) -> Result<DType> {
    let mut found = None;
    for bound in bounds {
        let RangeNumber::Tensor(tensor) = bound else { continue };
        let is_whole = matches!(tensor.dtype(), DType::I32 | DType::I64);
        let is_scalar = tensor.shape().rank().is_none_or(|rank| rank == 0);
        if !is_whole || !is_scalar || found.is_some_and(|dtype| dtype != tensor.dtype()) {
            return Err(wrong(tensor));
        }
        found = Some(tensor.dtype());
    }
    let dtype = found.unwrap_or(DType::I64);
    match bounds.iter().find(|bound| !bound.fits(dtype)) {
        Some(bound) => Err(wrong(format!("{bound:?} beside {dtype}"))),
        None => Ok(dtype),
    }
}

fn wrong(found: impl std::fmt::Display) -> Error {
    Error::Conversion {
        expected: "bounds of a range: scalars of dtype int32, or of int64, and numbers that fit"
            .into(),
        found: found.to_string(),
    }
}
