//! `for`: over anything of Rust, over the rows of tensors, over ranges that end at a tensor.

use super::{
    carry::Var,
    frame::Flows,
    kind::{Control, Host, Staged},
    ranges::{RangeNumber, dtype_of},
    repeat::AutographLoop,
    steps::Steps,
};
use crate::{
    context,
    error::{Error, Result},
    tensor::Tensor,
};
use ferroflow_ir::DType;

/// Expression after `in`: asks by its type how it is looped over.
///
/// Method resolution tries tensors and data sets first, by value, and iterators of Rust after them, by
/// reference: a data set may be both.
#[derive(Debug)]
pub struct Over<T>(Option<T>);

impl<T> Over<T> {
    /// The value of this expression.
    pub fn new(value: T) -> Over<T> {
        Over(Some(value))
    }

    /// The value.
    pub(super) fn into_inner(self) -> T {
        taken(self.0)
    }
}

fn taken<T>(value: Option<T>) -> T {
    value.expect("a value is looped over once")
}

impl Over<Tensor> {
    /// The loop over the rows.
    pub fn iterate(self) -> TensorLoop {
        TensorLoop::rows(self.into_inner())
    }
}

impl Over<&Tensor> {
    /// The loop over the rows.
    pub fn iterate(self) -> TensorLoop {
        TensorLoop::rows(self.into_inner().clone())
    }
}

/// Loops of Rust over a value.
pub trait HostIterate {
    /// Its iterator.
    type Loop;

    /// The loop.
    fn iterate(self) -> Self::Loop;
}

impl<T: IntoIterator> HostIterate for &mut Over<T> {
    type Loop = HostLoop<T::IntoIter>;

    fn iterate(self) -> HostLoop<T::IntoIter> {
        HostLoop(taken(self.0.take()).into_iter())
    }
}

/// A `for` at hand.
pub trait Iterate {
    /// Type that tells the kind of the loop.
    type Control: Control;
    /// Type of its items.
    type Item;

    /// The kind of the loop.
    fn control(&self) -> Self::Control;

    /// Opens the body of a loop that is staged.
    ///
    /// # Errors
    ///
    /// When the tensor cannot be looped over.
    fn start(&self, of: &mut AutographLoop, flows: &Flows, vars: &mut [Var<'_>]) -> Result<()>;

    /// The next item.
    fn next(&mut self, of: &AutographLoop) -> Option<Result<Self::Item>>;
}

/// A `for` of Rust.
#[derive(Debug)]
pub struct HostLoop<I>(pub(super) I);

impl<I: Iterator> Iterate for HostLoop<I> {
    type Control = Host;
    type Item = I::Item;

    fn control(&self) -> Host {
        Host
    }

    fn start(&self, _: &mut AutographLoop, _: &Flows, _: &mut [Var<'_>]) -> Result<()> {
        Ok(())
    }

    fn next(&mut self, _: &AutographLoop) -> Option<Result<I::Item>> {
        self.0.next().map(Ok)
    }
}

/// A `for` over a tensor.
#[derive(Debug)]
pub struct TensorLoop {
    /// The number of iterations.
    end: Result<Tensor>,
    items: Items,
    /// The next iteration, outside traces.
    next: i64,
}

/// Items of the iterations.
#[derive(Debug)]
enum Items {
    /// Its number.
    Numbers,
    /// The number `start + step * iteration`, of 64 bits until it has the dtype of the range.
    Steps { start: Tensor, step: Tensor, dtype: DType },
    /// The row of its number.
    Rows(Tensor),
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
    fn new(end: Result<Tensor>, items: Items) -> TensorLoop {
        TensorLoop { end, items, next: 0 }
    }

    /// The loop that counts from 0.
    pub(super) fn up_to(end: Tensor) -> TensorLoop {
        let is_whole = matches!(end.dtype(), DType::I32 | DType::I64);
        let end = match is_whole && end.shape().rank().is_none_or(|rank| rank == 0) {
            true => Ok(end),
            false => Err(Error::Conversion {
                expected: "the end of a range: a scalar of dtype int32 or int64".into(),
                found: end.to_string(),
            }),
        };
        TensorLoop::new(end, Items::Numbers)
    }

    /// The loop from a first number to an end, in steps.
    pub(super) fn between(bounds: [RangeNumber; 2], step: Option<RangeNumber>) -> TensorLoop {
        let made = stepping(bounds, step);
        let (end, items) = match made {
            Ok((end, items)) => (Ok(end), items),
            Err(error) => (Err(error), Items::Numbers),
        };
        TensorLoop::new(end, items)
    }

    fn rows(tensor: Tensor) -> TensorLoop {
        if tensor.shape().rank() == Some(0) {
            let (expected, found) = ("a tensor with rows".into(), format!("the scalar {tensor}"));
            return TensorLoop::new(Err(Error::Conversion { expected, found }), Items::Numbers);
        }
        let end = match tensor.shape().dim(0).and_then(|size| i32::try_from(size).ok()) {
            Some(size) => Ok(Tensor::from(size)),
            None => tensor.shape_tensor().and_then(|shape| shape.gather(&Tensor::from(0))),
        };
        TensorLoop::new(end, Items::Rows(tensor))
    }

    fn item(&self, index: Tensor) -> Result<Tensor> {
        match &self.items {
            Items::Numbers => Ok(index),
            Items::Rows(rows) => rows.gather(&index),
            Items::Steps { start, step, dtype } => {
                let passed = (index.cast(DType::I64)? * step)?;
                (start + passed)?.cast(*dtype)
            }
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

/// The number of iterations between bounds, and what they are about. A step of 0 is divided by when
/// the graph runs, which fails.
fn stepping(bounds: [RangeNumber; 2], step: Option<RangeNumber>) -> Result<(Tensor, Items)> {
    let all: Vec<&RangeNumber> = bounds.iter().chain(&step).collect();
    let dtype = dtype_of(&all)?;
    let [start, end] = bounds.map(RangeNumber::tensor);
    let start = start?;
    let distance = (end? - &start)?;
    let Some(step) = step else {
        return Ok((distance, Items::Steps { start, step: Tensor::from(1i64), dtype }));
    };
    let step = step.tensor()?;
    let last = ((distance + &step)? - step.sign()?)?;
    Ok((last.floor_div(&step)?, Items::Steps { start, step, dtype }))
}

impl Iterate for TensorLoop {
    type Control = TensorFor;
    type Item = Tensor;

    fn control(&self) -> TensorFor {
        TensorFor(context::is_tracing())
    }

    fn start(&self, of: &mut AutographLoop, flows: &Flows, vars: &mut [Var<'_>]) -> Result<()> {
        of.start(Some(Steps::Count(self.end.clone()?)), flows, vars)
    }

    fn next(&mut self, of: &AutographLoop) -> Option<Result<Tensor>> {
        match of.step() {
            Some(counter) => Some(self.item(counter.clone())),
            None => self.eager_next().transpose(),
        }
    }
}
