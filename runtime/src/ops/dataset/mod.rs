//! Data sets of `tf.data`: descriptions of sequences of elements, and the streams that run them.
//!
//! A [`Dataset`] is a value of dtype variant and never changes: what makes elements, and the tensors
//! and functions it needs for that. A [`Stream`] is one run over it, and computes an element when it is
//! asked for one. Elements come in the order that TensorFlow calls deterministic; what TensorFlow does
//! ahead or on several threads (prefetching, parallel calls) is done here when it is needed.
//!
//! **Invariant:** data sets nest no deeper than [`Limits::call_depth`](ferroflow_ir::Limits), and
//! neither do the streams and function calls that run at the same time ([`Scope::deeper`]).

mod batch;
mod bodies;
mod cache;
mod choose;
mod combine;
mod compress;
mod consume;
mod example;
mod flat;
mod function;
mod generator;
mod group;
mod host;
mod iterator;
mod iterator_state;
mod map;
mod map_defun;
mod multi_device;
mod node;
mod options;
mod pad;
mod rebatch;
mod replicas;
mod sampling;
mod select;
mod shuffle;
mod source;
mod sparse;
mod sparse_slices;
mod string_handle;
#[cfg(test)]
mod tests;
mod unique;
mod window;

pub(super) use bodies::BODIES;
pub use host::{HostStream, dataset_stream, host_dataset};
use node::DatasetNode;

use crate::{
    error::{Error, Result},
    scope::Scope,
};
use ferroflow_ir::{Code, DType, Error as IrError, Handle, HostTensor, PartialShape, budget};
use std::{any::Any, fmt, sync::Arc};

/// The components of an element.
type Components = Vec<HostTensor>;

/// The number of elements of a data set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Cardinality {
    Known(u64),
    Infinite,
    Unknown,
}

impl Cardinality {
    /// The number as TensorFlow tells it.
    fn to_i64(self) -> i64 {
        match self {
            Cardinality::Known(n) => i64::try_from(n).unwrap_or(i64::MAX),
            Cardinality::Infinite => -1,
            Cardinality::Unknown => -2,
        }
    }

    /// A known number changed; the others stay what they are.
    fn map(self, change: impl FnOnce(u64) -> u64) -> Cardinality {
        match self {
            Cardinality::Known(n) => Cardinality::Known(change(n)),
            Cardinality::Infinite | Cardinality::Unknown => self,
        }
    }
}

/// Source of the elements of a kind of data set.
trait DatasetSource: fmt::Debug + Send + Sync + 'static {
    /// A run over the elements, from the first one on.
    fn stream(&self) -> Stream;

    /// The number of elements, as far as it is known without a run.
    fn cardinality(&self) -> Cardinality;
}

/// A function of the state it owns that returns the next element, or nothing at the end.
type Next = dyn FnMut(Scope<'_>) -> Result<Option<Components>> + Send;

/// A run over a data set.
struct Stream(Box<Next>);

impl Stream {
    /// A run whose elements are what `next` returns.
    fn new<F>(next: F) -> Stream
    where
        F: FnMut(Scope<'_>) -> Result<Option<Components>> + Send + 'static,
    {
        Stream(Box::new(next))
    }

    /// The next element; nothing at the end.
    fn next(&mut self, scope: Scope<'_>) -> Result<Option<Components>> {
        budget::check()?;
        (self.0)(scope.deeper(1)?)
    }
}

impl fmt::Debug for Stream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Stream")
    }
}

/// A data set as a value of dtype variant.
#[derive(Debug, Clone)]
struct Dataset {
    source: Arc<dyn DatasetSource>,
    /// Depth of the data sets nested in it.
    depth: usize,
    /// The op that made it, if one did.
    node: Option<Arc<DatasetNode>>,
}

impl Handle for Dataset {
    fn as_any(&self) -> &dyn Any {
        self
    }
}

impl Dataset {
    /// A data set of elements that are there.
    fn listed(elements: Vec<Components>) -> Dataset {
        let depth = elements.iter().flatten().map(depth_in).max().unwrap_or(0);
        let source = Arc::new(source::Listed(Arc::new(elements)));
        Dataset { source, depth, node: None }
    }

    fn stream(&self) -> Stream {
        self.source.stream()
    }

    fn cardinality(&self) -> Cardinality {
        self.source.cardinality()
    }
}

/// The depth of the data sets in a tensor, plus one; 0 if there is none in it.
fn depth_in(tensor: &HostTensor) -> usize {
    if tensor.dtype() != DType::Variant {
        return 0;
    }
    let handles = tensor.handles().unwrap_or_default();
    let datasets = handles.iter().filter_map(|handle| handle.as_any().downcast_ref::<Dataset>());
    datasets.map(|dataset| dataset.depth + 1).max().unwrap_or(0)
}

/// Dtypes and shapes of the components of elements.
#[derive(Debug, Clone)]
struct ElementSpec {
    dtypes: Vec<DType>,
    shapes: Vec<PartialShape>,
}

impl ElementSpec {
    /// Checks that an element has these components.
    ///
    /// # Errors
    ///
    /// [`IrError::Argument`] when it has others.
    fn check(&self, op: &'static str, element: &[HostTensor]) -> Result<()> {
        let pairs = self.dtypes.iter().zip(&self.shapes);
        let fits = |(tensor, (dtype, shape)): (&HostTensor, (&DType, &PartialShape))| {
            tensor.dtype() == *dtype && shape.is_compatible_with(&tensor.shape().into())
        };
        if element.len() == self.dtypes.len() && element.iter().zip(pairs.clone()).all(fits) {
            return Ok(());
        }
        let told: Vec<String> = pairs.map(|(dtype, shape)| format!("{dtype}{shape}")).collect();
        let found = element.iter().map(|tensor| format!("{}{}", tensor.dtype(), tensor.shape()));
        let found: Vec<String> = found.collect();
        Err(IrError::argument(op, "element", told.join(", "), found.join(", ")).into())
    }
}

/// The error of an op that asks for an element after the last one.
fn end_of_sequence() -> Error {
    Error::Status { code: Code::OutOfRange, message: "End of sequence".into() }
}

/// Counts the rounds of a run that could go on without end.
struct RoundLimit<'a> {
    scope: Scope<'a>,
    left: u64,
}

impl<'a> RoundLimit<'a> {
    fn new(scope: Scope<'a>) -> RoundLimit<'a> {
        RoundLimit { scope, left: scope.context.limits().loop_iterations }
    }

    /// # Errors
    ///
    /// [`IrError::Limit`] when there were too many, and [`Error::Interrupted`] when the budget of the
    /// call is over.
    fn count(&mut self) -> Result<()> {
        let limit = self.scope.context.limits().loop_iterations;
        let error = || {
            let needed = format!("more than {limit} elements");
            IrError::Limit { what: "the data set".into(), needed, limit }
        };
        self.left = self.left.checked_sub(1).ok_or_else(error)?;
        Ok(budget::take_round()?)
    }
}

/// Counts the bytes of elements that a run keeps.
#[derive(Debug, Default)]
struct KeptBytes(usize);

impl KeptBytes {
    /// # Errors
    ///
    /// [`IrError::Limit`] when all that is kept is larger than a tensor may be.
    fn add(&mut self, scope: Scope<'_>, element: &[HostTensor]) -> Result<()> {
        let limit = scope.context.limits().tensor_bytes;
        self.0 = element.iter().map(bytes_of).fold(self.0, usize::saturating_add);
        if self.0 > limit {
            let (what, needed) = ("the elements of a data set".into(), self.0.to_string());
            return Err(IrError::Limit { what, needed, limit: limit as u64 }.into());
        }
        Ok(())
    }

    fn remove(&mut self, element: &[HostTensor]) {
        self.0 = element.iter().map(bytes_of).fold(self.0, usize::saturating_sub);
    }
}

/// The bytes of a tensor and what is around them.
fn bytes_of(tensor: &HostTensor) -> usize {
    let elements = match (tensor.strings(), tensor.is_plain()) {
        (Ok(strings), _) => strings.iter().map(|text| text.len() + size_of_val(text)).sum(),
        (Err(_), true) => tensor.bytes().len(),
        (Err(_), false) => tensor.len() * size_of::<Arc<dyn Handle>>(),
    };
    elements + size_of::<HostTensor>()
}
