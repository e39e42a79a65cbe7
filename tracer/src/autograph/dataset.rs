//! `for` over data sets: elements that the host makes, one by one, while the graph runs.
//!
//! A data set that is looped over in a trace is captured: each run of the loop begins with its first
//! element. The first element, made while the loop is traced, tells the structure and dtypes of all,
//! and the ranks of their tensors; sizes may differ from element to element.

use super::{
    carry::Var,
    frame::Flows,
    iterate::{Iterate, Over},
    kind::{Control, Staged},
    repeat::AutographLoop,
    steps::{DatasetSteps, Steps},
};
use crate::{
    context,
    control_flow::structure::{Difference, difference, names, tensors, with_tensors},
    error::{Error, Result},
    nest::Nest,
    tensor::Tensor,
    value::NestedValue,
};
use ferroflow_ir::{HostTensor, PartialShape, ValueType};
use ferroflow_runtime::ops::{HostStream, host_dataset};
use std::fmt;

/// The elements of one run over a data set.
pub type DatasetElements<T> = Box<dyn Iterator<Item = Result<T>> + Send>;

/// A data set that a `for` of a function goes through while the graph runs.
///
/// ```
/// use ferroflow_tracer::{GraphDataset, Result, Tensor, autograph::DatasetElements, function};
///
/// #[derive(Clone)]
/// struct Countdown(i32);
///
/// impl GraphDataset for Countdown {
///     type Element = Tensor;
///
///     fn elements(&self) -> DatasetElements<Tensor> {
///         Box::new((0..self.0).rev().map(|n| Ok(Tensor::from(n))))
///     }
/// }
///
/// # fn main() -> Result<()> {
/// let numbers = Countdown(4);
/// let sum = function(ferroflow_tracer::autograph!(move |start: Tensor| -> Result<Tensor> {
///     let mut sum = start;
///     for n in &numbers {
///         sum = (sum * 10 + n)?;
///     }
///     Ok(sum)
/// }));
/// assert_eq!(sum.call((1,))?.to_scalar::<i32>()?, 13210);
/// assert_eq!(sum.call((2,))?.to_scalar::<i32>()?, 23210);
/// assert_eq!(sum.tracing_count(), 1);
/// # Ok(())
/// # }
/// ```
pub trait GraphDataset: Clone + Send + Sync + 'static {
    /// Type of the elements: made of tensors.
    type Element: Nest;

    /// The elements, from the first one on. They are made outside traces.
    fn elements(&self) -> DatasetElements<Self::Element>;
}

/// Loops over data sets.
pub trait DatasetIterate {
    /// The kind of loop.
    type Loop;

    /// The loop.
    fn iterate(self) -> Self::Loop;
}

impl<D: GraphDataset> DatasetIterate for Over<&D> {
    type Loop = DatasetLoop<D>;

    fn iterate(self) -> DatasetLoop<D> {
        let dataset = self.into_inner().clone();
        match context::is_tracing() {
            true => DatasetLoop { first: Some(first_element(&dataset)), dataset, at_hand: None },
            false => DatasetLoop { at_hand: Some(dataset.elements()), dataset, first: None },
        }
    }
}

/// The first element, which tells the types of all.
fn first_element<D: GraphDataset>(dataset: &D) -> Result<NestedValue> {
    let first = context::init_scope(|| dataset.elements().next()).transpose()?;
    first.map(|first| first.to_value()).ok_or_else(|| Error::ControlFlow {
        what: "a loop over a data set without elements".into(),
        why: "whose types are not known: an element is needed while the loop is traced",
    })
}

/// A `for` over a data set.
pub struct DatasetLoop<D: GraphDataset> {
    dataset: D,
    /// The first element, in traces.
    first: Option<Result<NestedValue>>,
    /// The elements that are left, outside traces.
    at_hand: Option<DatasetElements<D::Element>>,
}

impl<D: GraphDataset> fmt::Debug for DatasetLoop<D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DatasetLoop").field("first", &self.first).finish_non_exhaustive()
    }
}

/// Whether a `for` over a data set is staged.
#[derive(Debug)]
pub struct DatasetFor(bool);

impl Control for DatasetFor {
    type Kind = Staged;

    fn is_live(&self) -> bool {
        self.0
    }
}

impl<D: GraphDataset> DatasetLoop<D> {
    fn first(&self) -> Result<&NestedValue> {
        match &self.first {
            Some(Ok(first)) => Ok(first),
            Some(Err(error)) => Err(error.clone()),
            None => Err(Error::ControlFlow {
                what: "a loop over a data set".into(),
                why: "which began outside the trace that it is continued in",
            }),
        }
    }
}

impl<D: GraphDataset> Iterate for DatasetLoop<D> {
    type Control = DatasetFor;
    type Item = D::Element;

    fn control(&self) -> DatasetFor {
        DatasetFor(self.first.is_some())
    }

    fn start(&self, of: &mut AutographLoop, flows: &Flows, vars: &mut [Var<'_>]) -> Result<()> {
        let first = self.first()?;
        let types: Vec<ValueType> = tensors(first).iter().map(any_size).collect();
        let hosted = host_dataset({
            let (dataset, first) = (self.dataset.clone(), first.clone());
            move || stream(&dataset, first.clone())
        });
        let elements = DatasetSteps::of(&Tensor::from(hosted), &types)?;
        of.start(Some(Steps::Elements(elements)), flows, vars)
    }

    fn next(&mut self, of: &AutographLoop) -> Option<Result<D::Element>> {
        match of.element() {
            Some(components) => Some(self.element(components)),
            None => self.at_hand.as_mut()?.next(),
        }
    }
}

impl<D: GraphDataset> DatasetLoop<D> {
    fn element(&self, components: Result<Vec<Tensor>>) -> Result<D::Element> {
        D::Element::from_value(with_tensors(self.first()?, &mut components?.into_iter()))
    }
}

/// The type of tensors of this dtype and rank.
fn any_size(tensor: &Tensor) -> ValueType {
    let shape = tensor.shape().rank().map_or(PartialShape::Unknown, PartialShape::of_rank);
    ValueType::new(tensor.dtype(), shape)
}

/// The components of the elements of one run, which have to be like those of the first one.
fn stream<D: GraphDataset>(dataset: &D, first: NestedValue) -> HostStream {
    let mut elements = context::init_scope(|| dataset.elements());
    let mut n_done = 0;
    Box::new(move |_| {
        context::init_scope(|| {
            let Some(element) = elements.next() else { return Ok(None) };
            n_done += 1;
            components(&first, element, n_done).map(Some).map_err(Error::into_runtime)
        })
    })
}

fn components<T: Nest>(
    first: &NestedValue,
    element: Result<T>,
    number: usize,
) -> Result<Vec<HostTensor>> {
    let element = element?.to_value();
    let name = format!("element {number}");
    if let Some(Difference { what, first, second }) = difference(first, &element, &name) {
        return Err(Error::Conversion {
            expected: format!("{what} of a data set as the first element has it, {first}"),
            found: second,
        });
    }
    let found = tensors(&element);
    let with_names = found.iter().zip(tensors(first)).zip(names(first, &name));
    for ((tensor, first), name) in with_names {
        if tensor.shape().rank() != first.shape().rank() {
            return Err(Error::Conversion {
                expected: format!("{name} of a data set of the rank of the first, {first}"),
                found: tensor.to_string(),
            });
        }
    }
    found.iter().map(|tensor| tensor.host().cloned()).collect()
}
