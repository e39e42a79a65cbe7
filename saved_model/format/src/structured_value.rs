//! Nests of containers with tensor specs and host values as leaves: how a SavedModel describes
//! the arguments and results of functions. The format has the types of Python: what has no
//! counterpart here keeps its name, and is written again as it was read.

pub use crate::proto::type_spec_proto::TypeSpecClass;
use ferroflow_ir::{DType, HostTensor, PartialShape, TensorSpec};
use std::{collections::BTreeMap, fmt};

/// A value in a signature.
#[derive(Debug, Clone, PartialEq)]
pub enum StructuredValue {
    /// Python's `None`.
    None,
    /// A float.
    Float(f64),
    /// An integer.
    Int(i64),
    /// A text.
    String(String),
    /// A bool.
    Bool(bool),
    /// A shape.
    Shape(PartialShape),
    /// A dtype.
    DType(DType),
    /// Any tensor of this dtype and shape.
    TensorSpec(TensorSpec),
    /// Any tensor of this dtype and shape between two bounds.
    BoundedTensorSpec {
        /// Dtype, shape and name.
        spec: TensorSpec,
        /// The smallest value, broadcast to the shape.
        minimum: HostTensor,
        /// The largest value, broadcast to the shape.
        maximum: HostTensor,
    },
    /// Any value of a type that is made of several tensors.
    TypeSpec(Box<TypeSpec>),
    /// A list.
    List(Vec<StructuredValue>),
    /// A tuple.
    Tuple(Vec<StructuredValue>),
    /// A dictionary, in the order of the keys.
    Dict(BTreeMap<String, StructuredValue>),
    /// A tuple of a named type whose fields have names.
    NamedTuple {
        /// The name of the type.
        name: String,
        /// The fields, in the order of the type.
        fields: Vec<(String, StructuredValue)>,
    },
    /// A tensor itself.
    Tensor(HostTensor),
    /// A NumPy array itself.
    Numpy(HostTensor),
}

/// A type that is made of several tensors, such as a sparse tensor.
#[derive(Debug, Clone, PartialEq)]
pub struct TypeSpec {
    /// Class of the type, if it is one of TensorFlow's own.
    pub class: TypeSpecClass,
    /// The name of the class, which tells registered and extension types apart.
    pub class_name: String,
    /// State of the class: dtypes, shapes and the like.
    pub state: StructuredValue,
    /// The number of tensors in a value.
    pub n_components: usize,
}

impl TypeSpec {
    /// The specs of the tensors in a value, in the order of its components, where the class tells
    /// them.
    pub fn components(&self) -> Vec<Option<TensorSpec>> {
        let state = match &self.state {
            StructuredValue::Tuple(state) => &state[..],
            _ => &[],
        };
        let vector = |dtype| TensorSpec::new(dtype, PartialShape::of_rank(1));
        let known = match (self.class, state) {
            (
                TypeSpecClass::RaggedTensorSpec,
                [
                    StructuredValue::Shape(shape),
                    StructuredValue::DType(dtype),
                    StructuredValue::Int(ragged_rank),
                    StructuredValue::DType(splits),
                    ..,
                ],
            ) if usize::try_from(*ragged_rank).is_ok_and(|rank| rank + 1 == self.n_components) => {
                let inner = shape.dims().and_then(|dims| dims.get(self.n_components..));
                let values = inner.map_or(PartialShape::Unknown, |inner| {
                    PartialShape::ranked(std::iter::once(None).chain(inner.iter().copied()))
                });
                let splits = std::iter::repeat_n(vector(*splits), self.n_components - 1);
                std::iter::once(TensorSpec::new(*dtype, values)).chain(splits).collect()
            }
            (
                TypeSpecClass::SparseTensorSpec,
                [StructuredValue::Shape(shape), StructuredValue::DType(dtype), ..],
            ) => {
                let indices = PartialShape::ranked([None, shape.rank()]);
                let dense_shape = PartialShape::vector(shape.rank());
                vec![
                    TensorSpec::new(DType::I64, indices),
                    vector(*dtype),
                    TensorSpec::new(DType::I64, dense_shape),
                ]
            }
            (TypeSpecClass::VariableSpec, _) => {
                vec![TensorSpec::new(DType::Resource, PartialShape::scalar())]
            }
            _ => return std::iter::repeat_n(None, self.n_components).collect(),
        };
        known.into_iter().map(Some).collect()
    }
}

impl fmt::Display for StructuredValue {
    /// As Python writes such values, with specs as `dtype[shape]`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            StructuredValue::None => f.write_str("None"),
            StructuredValue::Float(value) => write!(f, "{value:?}"),
            StructuredValue::Int(value) => write!(f, "{value}"),
            StructuredValue::String(value) => write!(f, "{value:?}"),
            StructuredValue::Bool(value) => f.write_str(if *value { "True" } else { "False" }),
            StructuredValue::Shape(shape) => write!(f, "{shape}"),
            StructuredValue::DType(dtype) => write!(f, "{dtype}"),
            StructuredValue::TensorSpec(spec) => write!(f, "{spec}"),
            StructuredValue::BoundedTensorSpec { spec, minimum, maximum } => {
                write!(f, "{spec} from {minimum:?} to {maximum:?}")
            }
            StructuredValue::TypeSpec(spec) => match &spec.state {
                state @ StructuredValue::Tuple(_) => write!(f, "{}{state}", spec.class_name),
                state => write!(f, "{}({state})", spec.class_name),
            },
            StructuredValue::List(values) => {
                f.write_str("[")?;
                write_list(f, values.iter(), |f, value| write!(f, "{value}"))?;
                f.write_str("]")
            }
            StructuredValue::Tuple(values) => {
                f.write_str("(")?;
                write_list(f, values.iter(), |f, value| write!(f, "{value}"))?;
                f.write_str(if values.len() == 1 { ",)" } else { ")" })
            }
            StructuredValue::Dict(fields) => {
                f.write_str("{")?;
                write_list(f, fields.iter(), |f, (key, value)| write!(f, "{key:?}: {value}"))?;
                f.write_str("}")
            }
            StructuredValue::NamedTuple { name, fields } => {
                write!(f, "{name}(")?;
                write_list(f, fields.iter(), |f, (key, value)| write!(f, "{key}={value}"))?;
                f.write_str(")")
            }
            StructuredValue::Tensor(value) | StructuredValue::Numpy(value) => {
                write!(f, "{value:?}")
            }
        }
    }
}

fn write_list<T>(
    f: &mut fmt::Formatter<'_>,
    items: impl Iterator<Item = T>,
    write: impl Fn(&mut fmt::Formatter<'_>, T) -> fmt::Result,
) -> fmt::Result {
    for (index, item) in items.enumerate() {
        if index > 0 {
            f.write_str(", ")?;
        }
        write(f, item)?;
    }
    Ok(())
}
