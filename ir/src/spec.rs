//! Knowledge about tensors before they exist.

use crate::{
    dtype::DType,
    host_tensor::HostTensor,
    shape::{Dim, PartialShape},
};
use std::fmt;

/// A dtype and what is known of the shape, with an optional name.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct TensorSpec {
    /// The element type.
    pub dtype: DType,
    /// The shape, as far as it is known.
    pub shape: PartialShape,
    /// The name of the argument it describes; empty when it has none.
    pub name: String,
}

impl TensorSpec {
    /// An unnamed spec.
    pub fn new(dtype: DType, shape: impl Into<PartialShape>) -> TensorSpec {
        TensorSpec { dtype, shape: shape.into(), name: String::new() }
    }

    /// The spec that only this tensor's dtype and shape satisfy.
    pub fn like(tensor: &HostTensor) -> TensorSpec {
        TensorSpec::new(tensor.dtype(), tensor.shape())
    }

    /// Whether a tensor of spec `other` may be used where this spec is asked for.
    pub fn accepts(&self, other: &TensorSpec) -> bool {
        self.dtype == other.dtype && other.shape.is_subtype_of(&self.shape)
    }
}

impl fmt::Debug for TensorSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl fmt::Display for TensorSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.name.is_empty() {
            write!(f, "{}: ", self.name)?;
        }
        write!(f, "{}{}", self.dtype, self.shape)
    }
}

/// Knowledge about a value inside a graph: its spec and, for a handle, what it refers to.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ValueType {
    /// The element type.
    pub dtype: DType,
    /// The shape, as far as it is known.
    pub shape: PartialShape,
    /// For resource and variant values: dtype and shape of what the handle refers to (the
    /// variable's value, the elements of the list), where known.
    pub pointee: Option<Box<TensorSpec>>,
    /// For lists of tensors: what is known besides; nothing if `None`.
    pub items: Option<Box<ListItems>>,
}

/// Knowledge about the elements of a list.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ListItems {
    /// The number of elements.
    pub length: Dim,
    /// A shape that all elements have which were written since the list was made; `None` if none was.
    pub written: Option<PartialShape>,
}

impl ListItems {
    /// The knowledge that holds of either list.
    #[must_use]
    pub fn generalize(&self, other: &ListItems) -> ListItems {
        let written = match (&self.written, &other.written) {
            (None, known) | (known, None) => known.clone(),
            (Some(a), Some(b)) => Some(a.generalize(b)),
        };
        ListItems { length: self.length.filter(|_| self.length == other.length), written }
    }
}

impl ValueType {
    /// The type of a tensor.
    pub fn new(dtype: DType, shape: impl Into<PartialShape>) -> ValueType {
        ValueType { dtype, shape: shape.into(), pointee: None, items: None }
    }

    /// The type of a scalar handle.
    pub fn handle(dtype: DType, pointee: TensorSpec) -> ValueType {
        let pointee = Some(Box::new(pointee));
        ValueType { pointee, ..ValueType::new(dtype, PartialShape::scalar()) }
    }

    /// The most specific type that holds for values of both, which have one dtype.
    ///
    /// ```
    /// use ferroflow_ir::{DType, PartialShape, ValueType};
    ///
    /// let of = |dims: [usize; 2]| ValueType::new(DType::F32, PartialShape::ranked(dims.map(Some)));
    /// assert_eq!(of([2, 3]).generalize(&of([4, 3])).to_string(), "float32[?,3]");
    /// ```
    #[must_use]
    pub fn generalize(&self, other: &ValueType) -> ValueType {
        let pointee = match (&self.pointee, &other.pointee) {
            (Some(a), Some(b)) if a.dtype == b.dtype => {
                Some(Box::new(TensorSpec::new(a.dtype, a.shape.generalize(&b.shape))))
            }
            _ => None,
        };
        let items = self.items.as_deref().zip(other.items.as_deref());
        ValueType {
            dtype: self.dtype,
            shape: self.shape.generalize(&other.shape),
            pointee,
            items: items.map(|(a, b)| Box::new(a.generalize(b))),
        }
    }
}

impl fmt::Display for ValueType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", self.dtype, self.shape)?;
        match &self.pointee {
            Some(pointee) => write!(f, "<{pointee}>"),
            None => Ok(()),
        }
    }
}
