//! Tensors: with a value, or standing for one in a trace.

use crate::{
    error::{Error, Result},
    func_graph::FuncGraph,
};
use bytes::Bytes;
use ferroflow_ir::{
    DType, Element, HostTensor, Outlet, PartialShape, Shape, TensorSpec, ValueType,
    error::SourceLocation, trace_type::PythonShape,
};
use ferroflow_runtime::EagerTensor;
use std::{
    fmt,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

/// A tensor. Cheap to clone; clones share memory.
///
/// Outside functions a tensor is eager: it has a value. While a function is traced tensors are
/// symbolic: they name a result of the graph that is built, and have a dtype and what is known of a
/// shape, but no value.
///
/// ```
/// use ferroflow_tracer::Tensor;
/// # fn main() -> ferroflow_tracer::Result<()> {
/// let x = Tensor::from([[1.0f32, 2.0], [3.0, 4.0]]);
/// let y = (&x * &x)?;
/// assert_eq!(y.to_vec::<f32>()?, [1.0, 4.0, 9.0, 16.0]);
/// assert_eq!(y.to_string(), "[[ 1.  4.]\n [ 9. 16.]]");
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Tensor(pub(crate) Repr, Id);

/// Identity of eager tensors that share memory: the result of an op may be its argument seen anew.
/// Clones are the same tensor.
#[derive(Clone, Copy)]
struct Id(u64);

impl Id {
    fn new() -> Id {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        Id(NEXT.fetch_add(1, Ordering::Relaxed))
    }
}

#[derive(Clone)]
pub(crate) enum Repr {
    Eager(EagerTensor),
    Symbolic(Arc<Symbolic>),
    /// Result of an operator that cannot return an error, such as `+=`, where it failed.
    Failed(Arc<Failed>),
}

/// A tensor that an operator failed to compute: its users get the error.
pub(crate) struct Failed {
    error: Error,
    ty: ValueType,
}

/// A result of a node of a trace.
pub(crate) struct Symbolic {
    pub(crate) graph: Arc<FuncGraph>,
    pub(crate) outlet: Outlet,
    pub(crate) ty: ValueType,
    pub(crate) location: Option<SourceLocation>,
}

impl Tensor {
    /// A tensor of this shape with these elements, in row-major order.
    ///
    /// # Errors
    ///
    /// When their number is not that of the shape.
    pub fn from_slice<T: Element>(shape: &[usize], elements: &[T]) -> Result<Tensor> {
        let shape = Shape::new(shape.iter().copied())?;
        Ok(HostTensor::from_slice(shape, elements)?.into())
    }

    /// A tensor of this shape with these texts, in row-major order.
    ///
    /// # Errors
    ///
    /// When their number is not that of the shape.
    pub fn from_strings(
        shape: &[usize],
        strings: impl IntoIterator<Item = impl Into<Bytes>>,
    ) -> Result<Tensor> {
        let shape = Shape::new(shape.iter().copied())?;
        let strings = strings.into_iter().map(Into::into).collect();
        Ok(HostTensor::from_strings(shape, strings)?.into())
    }

    /// The dtype.
    pub fn dtype(&self) -> DType {
        match &self.0 {
            Repr::Eager(tensor) => tensor.dtype(),
            Repr::Symbolic(symbolic) => symbolic.ty.dtype,
            Repr::Failed(failed) => failed.ty.dtype,
        }
    }

    /// The shape, as far as it is known; of eager tensors all of it.
    pub fn shape(&self) -> PartialShape {
        match &self.0 {
            Repr::Eager(tensor) => tensor.shape().into(),
            Repr::Symbolic(symbolic) => symbolic.ty.shape.clone(),
            Repr::Failed(failed) => failed.ty.shape.clone(),
        }
    }

    /// Dtype and shape.
    pub fn spec(&self) -> TensorSpec {
        TensorSpec::new(self.dtype(), self.shape())
    }

    /// Whether it stands for a value in a trace.
    pub fn is_symbolic(&self) -> bool {
        matches!(self.0, Repr::Symbolic(_))
    }

    /// The tensor with its value.
    ///
    /// # Errors
    ///
    /// [`Error::Symbolic`] in a trace.
    pub fn eager(&self) -> Result<&EagerTensor> {
        self.value("an eager call")
    }

    /// The tensor with its value, released by its holder.
    ///
    /// # Errors
    ///
    /// [`Error::Symbolic`] in a trace.
    pub fn into_eager(self) -> Result<EagerTensor> {
        match self.0 {
            Repr::Eager(tensor) => Ok(tensor),
            Repr::Symbolic(_) | Repr::Failed(_) => self.eager().cloned(),
        }
    }

    /// The value in host memory.
    ///
    /// # Errors
    ///
    /// [`Error::Symbolic`] in a trace; when the tensor is in the memory of another device.
    pub fn host(&self) -> Result<&HostTensor> {
        Ok(self.value("reading the value")?.host()?)
    }

    fn value(&self, what: &'static str) -> Result<&EagerTensor> {
        match &self.0 {
            Repr::Eager(tensor) => Ok(tensor),
            Repr::Symbolic(symbolic) => Err(self.symbolic(&symbolic.graph, what)),
            Repr::Failed(failed) => Err(failed.error.clone()),
        }
    }

    /// The tensor in place of which `error` came up: it fails where it is used. Dtype and shape
    /// stay those of this one.
    pub(crate) fn failed(&self, error: Error) -> Tensor {
        Tensor(Repr::Failed(Arc::new(Failed { error, ty: self.value_type() })), Id::new())
    }

    /// Checks that this is no tensor that an operator failed to compute.
    ///
    /// # Errors
    ///
    /// The error of the operator.
    pub(crate) fn check(&self) -> Result<()> {
        match &self.0 {
            Repr::Failed(failed) => Err(failed.error.clone()),
            Repr::Eager(_) | Repr::Symbolic(_) => Ok(()),
        }
    }

    fn symbolic(&self, graph: &FuncGraph, what: &'static str) -> Error {
        Error::Symbolic { tensor: self.to_string(), function: graph.name().into(), what }
    }

    /// The elements, in row-major order.
    ///
    /// # Errors
    ///
    /// [`Error::Symbolic`] in a trace; when the dtype is not that of `T`.
    pub fn to_vec<T: Element>(&self) -> Result<Vec<T>> {
        Ok(self.host()?.as_slice::<T>()?.to_vec())
    }

    /// The only element.
    ///
    /// # Errors
    ///
    /// [`Error::Symbolic`] in a trace; when the dtype is not that of `T`, or there are more
    /// elements or none.
    pub fn to_scalar<T: Element>(&self) -> Result<T> {
        Ok(self.host()?.as_scalar::<T>()?)
    }

    /// The only element, a bool.
    ///
    /// # Errors
    ///
    /// [`Error::Symbolic`] in a trace: a condition that is not known while tracing cannot choose
    /// between lines of Rust; when the dtype is not bool, or there are more elements or none.
    pub fn to_bool(&self) -> Result<bool> {
        match &self.0 {
            Repr::Eager(tensor) => Ok(tensor.host()?.as_bool()?),
            Repr::Symbolic(symbolic) => {
                Err(self.symbolic(&symbolic.graph, "branching on it in Rust"))
            }
            Repr::Failed(failed) => Err(failed.error.clone()),
        }
    }

    /// The only element, as text.
    ///
    /// # Errors
    ///
    /// [`Error::Symbolic`] in a trace; when the dtype is not string, there are more elements or
    /// none, or the bytes are not UTF-8.
    pub fn to_text(&self) -> Result<String> {
        let strings = self.host()?.strings()?;
        let wrong = |found: String| Error::Conversion { expected: "one text".into(), found };
        let [bytes] = strings else { return Err(wrong(format!("{} strings", strings.len()))) };
        String::from_utf8(bytes.to_vec()).map_err(|error| wrong(error.to_string()))
    }

    /// Whether this is all that is known of the shape.
    pub(crate) fn has_shape(&self, shape: &PartialShape) -> bool {
        match (&self.0, shape.dims()) {
            (Repr::Eager(tensor), Some(dims)) => {
                let own = tensor.shape().iter();
                own.len() == dims.len() && own.zip(dims).all(|(own, dim)| Some(*own) == *dim)
            }
            (Repr::Eager(_), None) => false,
            (Repr::Symbolic(symbolic), _) => symbolic.ty.shape == *shape,
            (Repr::Failed(failed), _) => failed.ty.shape == *shape,
        }
    }

    /// Where the tensor is in `graph`, if it is one of its results.
    pub(crate) fn symbolic_in(&self, graph: &Arc<FuncGraph>) -> Option<Outlet> {
        match &self.0 {
            Repr::Symbolic(symbolic) if Arc::ptr_eq(&symbolic.graph, graph) => {
                Some(symbolic.outlet)
            }
            Repr::Symbolic(_) | Repr::Eager(_) | Repr::Failed(_) => None,
        }
    }

    pub(crate) fn from_symbolic(symbolic: Symbolic) -> Tensor {
        Tensor(Repr::Symbolic(Arc::new(symbolic)), Id(0))
    }

    /// Identity of this eager tensor among all others.
    pub(crate) fn id(&self) -> u64 {
        self.1.0
    }

    /// Whether this is the same tensor as another, not only an equal one: clones are the same.
    ///
    /// ```
    /// use ferroflow_tracer::Tensor;
    /// let (x, y) = (Tensor::from([1.0f32]), Tensor::from([1.0f32]));
    /// assert!(x.is_same(&x.clone()) && !x.is_same(&y));
    /// ```
    pub fn is_same(&self, other: &Tensor) -> bool {
        match (&self.0, &other.0) {
            (Repr::Symbolic(a), Repr::Symbolic(b)) => {
                Arc::ptr_eq(&a.graph, &b.graph) && a.outlet == b.outlet
            }
            (Repr::Eager(_), Repr::Eager(_)) => self.id() == other.id(),
            _ => false,
        }
    }

    /// The value, where it is known while tracing.
    pub(crate) fn known_value(&self) -> Option<HostTensor> {
        match &self.0 {
            Repr::Eager(tensor) => tensor.host().ok().cloned(),
            Repr::Symbolic(symbolic) => symbolic.graph.known_value(symbolic.outlet),
            Repr::Failed(_) => None,
        }
    }

    pub(crate) fn value_type(&self) -> ValueType {
        match &self.0 {
            Repr::Eager(tensor) => ferroflow_runtime::resource::value_type(tensor),
            Repr::Symbolic(symbolic) => symbolic.ty.clone(),
            Repr::Failed(failed) => failed.ty.clone(),
        }
    }
}

impl From<EagerTensor> for Tensor {
    fn from(tensor: EagerTensor) -> Tensor {
        Tensor(Repr::Eager(tensor), Id::new())
    }
}

impl From<HostTensor> for Tensor {
    fn from(tensor: HostTensor) -> Tensor {
        EagerTensor::from(tensor).into()
    }
}

impl From<&Tensor> for Tensor {
    fn from(tensor: &Tensor) -> Tensor {
        tensor.clone()
    }
}

impl TryFrom<&Tensor> for bool {
    type Error = Error;

    /// The only element, a bool: [`Tensor::to_bool`].
    fn try_from(tensor: &Tensor) -> Result<bool> {
        tensor.to_bool()
    }
}

impl fmt::Display for Tensor {
    /// The value, as NumPy prints arrays; of a symbolic tensor its name, shape and dtype, as
    /// TensorFlow prints those.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Repr::Eager(tensor) => match tensor.host() {
                Ok(host) => fmt::Display::fmt(host, f),
                Err(_) => write!(f, "<{} elsewhere>", tensor.spec()),
            },
            Repr::Symbolic(symbolic) => {
                let (name, dtype) =
                    (symbolic.graph.outlet_name(symbolic.outlet), symbolic.ty.dtype);
                match &symbolic.ty.shape {
                    PartialShape::Unknown => write!(f, "Tensor(\"{name}\", dtype={dtype})"),
                    shape => {
                        let shape = PythonShape(shape);
                        write!(f, "Tensor(\"{name}\", shape={shape}, dtype={dtype})")
                    }
                }
            }
            Repr::Failed(failed) => write!(f, "<failed: {}>", failed.error),
        }
    }
}

impl fmt::Debug for Tensor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Repr::Eager(tensor) => {
                let (shape, dtype) = (PartialShape::from(tensor.shape()), tensor.dtype());
                write!(f, "Tensor({self}, shape={}, dtype={dtype})", PythonShape(&shape))
            }
            Repr::Symbolic(_) | Repr::Failed(_) => fmt::Display::fmt(self, f),
        }
    }
}
