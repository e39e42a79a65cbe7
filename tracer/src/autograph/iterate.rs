//! `for`: over anything of Rust, over the rows of tensors, over ranges that end at a tensor.

use super::{
    carry::Var,
    frame::Flows,
    kind::{Control, Host, Staged},
    repeat::Loop,
};
use crate::{
    context,
    error::{Error, Result},
    tensor::Tensor,
};
use ferroflow_ir::DType;

/// The numbers from 0 up to `end`, without it: those of Rust for a number of Rust, one loop of the
/// graph for a [`Tensor`].
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
/// # fn main() -> Result<()> {
/// assert_eq!(factorial(&Tensor::from(5))?.to_scalar::<i32>()?, 120);
/// # Ok(())
/// # }
/// ```
pub fn range<N: RangeEnd>(end: N) -> N::Range {
    end.range()
}

/// Where a [`range`] may end.
#[diagnostic::on_unimplemented(
    message = "a range ends at a whole number or a Tensor, not at `{Self}`",
    label = "neither a whole number nor a `Tensor`"
)]
pub trait RangeEnd {
    /// The numbers before it.
    type Range;

    /// The numbers before it.
    fn range(self) -> Self::Range;
}

macro_rules! numbers {
    ($($number:ty)*) => {$(
        impl RangeEnd for $number {
            type Range = std::ops::Range<$number>;

            fn range(self) -> std::ops::Range<$number> {
                0..self
            }
        }
    )*};
}

numbers!(i8 i16 i32 i64 isize u8 u16 u32 u64 usize);

impl RangeEnd for Tensor {
    type Range = TensorRange;

    fn range(self) -> TensorRange {
        TensorRange { end: self }
    }
}

impl RangeEnd for &Tensor {
    type Range = TensorRange;

    fn range(self) -> TensorRange {
        TensorRange { end: self.clone() }
    }
}

/// The numbers from 0 up to a tensor.
#[derive(Clone, Debug)]
pub struct TensorRange {
    end: Tensor,
}

/// What stands after `in`: asks by its type how it is looped over.
#[derive(Debug)]
pub struct Over<T>(pub T);

impl Over<TensorRange> {
    /// The loop over the range.
    pub fn iterate(self) -> TensorLoop {
        TensorLoop::new(self.0.end, None)
    }
}

impl Over<&TensorRange> {
    /// The loop over the range.
    pub fn iterate(self) -> TensorLoop {
        TensorLoop::new(self.0.end.clone(), None)
    }
}

impl Over<Tensor> {
    /// The loop over the rows.
    pub fn iterate(self) -> TensorLoop {
        TensorLoop::rows(self.0)
    }
}

impl Over<&Tensor> {
    /// The loop over the rows.
    pub fn iterate(self) -> TensorLoop {
        TensorLoop::rows(self.0.clone())
    }
}

/// How Rust loops over a value.
pub trait HostIterate {
    /// Its iterator.
    type Loop;

    /// The loop.
    fn iterate(self) -> Self::Loop;
}

impl<T: IntoIterator> HostIterate for Over<T> {
    type Loop = HostLoop<T::IntoIter>;

    fn iterate(self) -> HostLoop<T::IntoIter> {
        HostLoop(self.0.into_iter())
    }
}

/// A `for` at hand.
pub trait Iterate {
    /// What tells the kind of the loop.
    type Control: Control;
    /// What it loops over.
    type Item;

    /// The kind of the loop.
    fn control(&self) -> Self::Control;

    /// Opens the body of a loop that is staged.
    ///
    /// # Errors
    ///
    /// When the tensor cannot be looped over.
    fn start(&self, of: &mut Loop, flows: &Flows, vars: &mut [Var<'_>]) -> Result<()>;

    /// The next item.
    fn next(&mut self, of: &Loop) -> Option<Result<Self::Item>>;
}

/// A `for` of Rust.
#[derive(Debug)]
pub struct HostLoop<I>(I);

impl<I: Iterator> Iterate for HostLoop<I> {
    type Control = Host;
    type Item = I::Item;

    fn control(&self) -> Host {
        Host
    }

    fn start(&self, _: &mut Loop, _: &Flows, _: &mut [Var<'_>]) -> Result<()> {
        Ok(())
    }

    fn next(&mut self, _: &Loop) -> Option<Result<I::Item>> {
        self.0.next().map(Ok)
    }
}

/// A `for` over a tensor.
#[derive(Debug)]
pub struct TensorLoop {
    /// The number of iterations.
    end: Result<Tensor>,
    rows: Option<Tensor>,
    /// The next iteration, outside traces.
    next: i64,
}

/// Whether a `for` over a tensor is staged.
#[derive(Debug)]
pub struct TensorFor(bool);

impl Control for TensorFor {
    type Kind = Staged;

    fn is_live(&self) -> bool {
        self.0
    }
}

impl TensorLoop {
    fn new(end: Tensor, rows: Option<Tensor>) -> TensorLoop {
        let is_whole = matches!(end.dtype(), DType::I32 | DType::I64);
        let end = match is_whole && end.shape().rank().is_none_or(|rank| rank == 0) {
            true => Ok(end),
            false => Err(Error::Conversion {
                expected: "the end of a range: a scalar of dtype int32 or int64".into(),
                found: end.to_string(),
            }),
        };
        TensorLoop { end, rows, next: 0 }
    }

    fn rows(tensor: Tensor) -> TensorLoop {
        if tensor.shape().rank() == Some(0) {
            let (expected, found) = ("a tensor with rows".into(), format!("the scalar {tensor}"));
            let end = Err(Error::Conversion { expected, found });
            return TensorLoop { end, rows: None, next: 0 };
        }
        let end = match tensor.shape().dim(0).and_then(|size| i32::try_from(size).ok()) {
            Some(size) => Ok(Tensor::from(size)),
            None => tensor.shape_tensor().and_then(|shape| shape.gather(&Tensor::from(0))),
        };
        TensorLoop { end, rows: Some(tensor), next: 0 }
    }

    fn item(&self, index: Tensor) -> Result<Tensor> {
        match &self.rows {
            Some(rows) => rows.gather(&index),
            None => Ok(index),
        }
    }

    fn eager_next(&mut self) -> Result<Option<Tensor>> {
        let end = self.end.clone()?;
        let last = end.cast(DType::I64)?.to_scalar::<i64>()?;
        if self.next >= last {
            return Ok(None);
        }
        let index = Tensor::from(self.next).cast(end.dtype())?;
        self.next += 1;
        self.item(index).map(Some)
    }
}

impl Iterate for TensorLoop {
    type Control = TensorFor;
    type Item = Tensor;

    fn control(&self) -> TensorFor {
        TensorFor(context::is_tracing())
    }

    fn start(&self, of: &mut Loop, flows: &Flows, vars: &mut [Var<'_>]) -> Result<()> {
        of.start(Some(self.end.clone()?), flows, vars)
    }

    fn next(&mut self, of: &Loop) -> Option<Result<Tensor>> {
        match of.counter() {
            Some(counter) => Some(self.item(counter.clone())),
            None => self.eager_next().transpose(),
        }
    }
}
