//! Values that functions of a SavedModel take and return: nests of containers with tensors and host
//! values as leaves.

use crate::structured_value::{StructuredValue, TypeSpecClass};
use ferroflow_ir::{DType, HostTensor, PartialShape, TensorSpec};
use ferroflow_runtime::EagerTensor;
use std::{collections::BTreeMap, fmt};

/// An argument or a result, with tensors of some kind.
#[derive(Debug, Clone)]
pub enum PythonValue<T = EagerTensor> {
    /// A tensor.
    Tensor(T),
    /// Nothing.
    None,
    /// A bool of the host.
    Bool(bool),
    /// An integer of the host.
    Int(i64),
    /// A float of the host.
    Float(f64),
    /// A text of the host.
    String(String),
    /// A dtype.
    DType(DType),
    /// A shape.
    Shape(PartialShape),
    /// A list.
    List(Vec<PythonValue<T>>),
    /// A tuple.
    Tuple(Vec<PythonValue<T>>),
    /// A dictionary.
    Dict(BTreeMap<String, PythonValue<T>>),
    /// A tuple of a named type whose fields have names.
    NamedTuple {
        /// The name of the type.
        name: String,
        /// The fields, in the order of the type.
        fields: Vec<(String, PythonValue<T>)>,
    },
    /// A value made of several tensors.
    Composite(CompositeTensor<T>),
}

/// A value made of several tensors, such as a sparse tensor.
#[derive(Debug, Clone)]
pub struct CompositeTensor<T = EagerTensor> {
    /// Class of the type.
    pub class: TypeSpecClass,
    /// Its tensors: of a ragged tensor the flat values and then the row splits from the outermost
    /// on; of a sparse tensor indices, values and dense shape; of indexed slices values and
    /// indices, and a dense shape if there is one.
    pub components: Vec<T>,
}

/// A tensor in a value: one with elements, or one of a trace.
pub trait TensorLeaf: Clone + From<EagerTensor> {
    /// Dtype and shape.
    fn spec(&self) -> TensorSpec;

    /// The tensor with its elements, if there are any yet.
    fn eager(&self) -> Option<&EagerTensor>;
}

impl TensorLeaf for EagerTensor {
    fn spec(&self) -> TensorSpec {
        EagerTensor::spec(self)
    }

    fn eager(&self) -> Option<&EagerTensor> {
        Some(self)
    }
}

impl<T> PythonValue<T> {
    /// The value with tensors of another kind, if there is one for each.
    pub(crate) fn try_map<U>(&self, map: &dyn Fn(&T) -> Option<U>) -> Option<PythonValue<U>> {
        let all = |values: &[PythonValue<T>]| {
            values.iter().map(|value| value.try_map(map)).collect::<Option<Vec<_>>>()
        };
        let named =
            |(name, value): (&String, &PythonValue<T>)| Some((name.clone(), value.try_map(map)?));
        Some(match self {
            PythonValue::Tensor(tensor) => PythonValue::Tensor(map(tensor)?),
            PythonValue::None => PythonValue::None,
            PythonValue::Bool(value) => PythonValue::Bool(*value),
            PythonValue::Int(value) => PythonValue::Int(*value),
            PythonValue::Float(value) => PythonValue::Float(*value),
            PythonValue::String(value) => PythonValue::String(value.clone()),
            PythonValue::DType(dtype) => PythonValue::DType(*dtype),
            PythonValue::Shape(shape) => PythonValue::Shape(shape.clone()),
            PythonValue::List(values) => PythonValue::List(all(values)?),
            PythonValue::Tuple(values) => PythonValue::Tuple(all(values)?),
            PythonValue::Dict(fields) => {
                PythonValue::Dict(fields.iter().map(named).collect::<Option<_>>()?)
            }
            PythonValue::NamedTuple { name, fields } => {
                let fields = fields.iter().map(|(name, value)| named((name, value)));
                PythonValue::NamedTuple {
                    name: name.clone(),
                    fields: fields.collect::<Option<_>>()?,
                }
            }
            PythonValue::Composite(composite) => {
                let components = composite.components.iter().map(map).collect::<Option<_>>()?;
                PythonValue::Composite(CompositeTensor { class: composite.class, components })
            }
        })
    }
}

impl PythonValue {
    /// The value as a tensor: one as it is, a host value as a tensor of this dtype.
    pub fn to_tensor(&self, dtype: DType) -> Option<EagerTensor> {
        match self {
            PythonValue::Tensor(tensor) => Some(tensor.clone()),
            value => converted(value, dtype),
        }
    }

    /// The tensor, if it is one.
    pub fn tensor(&self) -> Option<&EagerTensor> {
        match self {
            PythonValue::Tensor(tensor) => Some(tensor),
            _ => None,
        }
    }
}

impl From<EagerTensor> for PythonValue {
    fn from(tensor: EagerTensor) -> PythonValue {
        PythonValue::Tensor(tensor)
    }
}

impl From<HostTensor> for PythonValue {
    fn from(tensor: HostTensor) -> PythonValue {
        PythonValue::Tensor(tensor.into())
    }
}

impl<T: TensorLeaf> fmt::Display for PythonValue<T> {
    /// As Python writes such values, with tensors as `dtype[shape]`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let list = |f: &mut fmt::Formatter<'_>, values: &[PythonValue<T>]| {
            values.iter().enumerate().try_for_each(|(index, value)| {
                write!(f, "{}{value}", if index > 0 { ", " } else { "" })
            })
        };
        match self {
            PythonValue::Tensor(tensor) => write!(f, "{}", tensor.spec()),
            PythonValue::None => f.write_str("None"),
            PythonValue::Bool(value) => f.write_str(if *value { "True" } else { "False" }),
            PythonValue::Int(value) => write!(f, "{value}"),
            PythonValue::Float(value) => write!(f, "{value:?}"),
            PythonValue::String(value) => write!(f, "{value:?}"),
            PythonValue::DType(dtype) => write!(f, "{dtype}"),
            PythonValue::Shape(shape) => write!(f, "{shape}"),
            PythonValue::List(values) => {
                f.write_str("[")?;
                list(f, values)?;
                f.write_str("]")
            }
            PythonValue::Tuple(values) => {
                f.write_str("(")?;
                list(f, values)?;
                f.write_str(if values.len() == 1 { ",)" } else { ")" })
            }
            PythonValue::Dict(fields) => {
                f.write_str("{")?;
                for (index, (key, value)) in fields.iter().enumerate() {
                    write!(f, "{}{key:?}: {value}", if index > 0 { ", " } else { "" })?;
                }
                f.write_str("}")
            }
            PythonValue::NamedTuple { name, fields } => {
                write!(f, "{name}(")?;
                for (index, (key, value)) in fields.iter().enumerate() {
                    write!(f, "{}{key}={value}", if index > 0 { ", " } else { "" })?;
                }
                f.write_str(")")
            }
            PythonValue::Composite(composite) => write!(f, "{:?}", composite.class),
        }
    }
}

/// Whether host values may become tensors.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Conversion {
    Forbidden,
    Allowed,
}

/// The tensors of `value` in order, if it is what `pattern` describes.
pub(crate) fn matched<T: TensorLeaf>(
    pattern: &StructuredValue,
    value: &PythonValue<T>,
    conversion: Conversion,
) -> Option<Vec<T>> {
    let mut tensors = Vec::new();
    matches(pattern, value, conversion, &mut tensors).then_some(tensors)
}

fn matches<T: TensorLeaf>(
    pattern: &StructuredValue,
    value: &PythonValue<T>,
    conversion: Conversion,
    tensors: &mut Vec<T>,
) -> bool {
    let mut each = |patterns: &[(&StructuredValue, &PythonValue<T>)]| {
        patterns.iter().all(|(pattern, value)| matches(pattern, value, conversion, tensors))
    };
    match (pattern, value) {
        (StructuredValue::TensorSpec(spec), value)
        | (StructuredValue::BoundedTensorSpec { spec, .. }, value) => {
            let tensor = match value {
                PythonValue::Tensor(tensor) => Some(tensor.clone()),
                _ if conversion == Conversion::Allowed => converted(value, spec.dtype).map(T::from),
                _ => None,
            };
            let fits = |tensor: &T| spec.accepts(&tensor.spec());
            let tensor = tensor.filter(fits);
            let found = tensor.is_some();
            tensors.extend(tensor);
            found
        }
        (StructuredValue::TypeSpec(spec), PythonValue::Composite(composite)) => {
            tensors.extend(composite.components.iter().cloned());
            let specs = spec.components();
            let fits = |(spec, component): (&Option<TensorSpec>, &T)| {
                spec.as_ref().is_none_or(|spec| spec.accepts(&component.spec()))
            };
            spec.class == composite.class
                && specs.len() == composite.components.len()
                && specs.iter().zip(&composite.components).all(fits)
        }
        (StructuredValue::None, PythonValue::None) => true,
        (StructuredValue::Bool(a), PythonValue::Bool(b)) => a == b,
        (StructuredValue::String(a), PythonValue::String(b)) => a == b,
        (StructuredValue::DType(a), PythonValue::DType(b)) => a == b,
        (StructuredValue::Shape(a), PythonValue::Shape(b)) => a == b,
        // As in Python, 1, 1.0 and True are equal.
        (StructuredValue::Int(_) | StructuredValue::Float(_) | StructuredValue::Bool(_), value) => {
            let wanted = match pattern {
                StructuredValue::Int(value) => *value as f64,
                StructuredValue::Float(value) => *value,
                StructuredValue::Bool(value) => f64::from(u8::from(*value)),
                _ => return false,
            };
            match value {
                PythonValue::Int(value) => *value as f64 == wanted,
                PythonValue::Float(value) => {
                    *value == wanted || (value.is_nan() && wanted.is_nan())
                }
                PythonValue::Bool(value) => f64::from(u8::from(*value)) == wanted,
                _ => false,
            }
        }
        (StructuredValue::Tensor(a) | StructuredValue::Numpy(a), PythonValue::Tensor(b)) => {
            b.eager().is_some_and(|b| b.host().is_ok_and(|b| a == b))
        }
        (StructuredValue::List(a), PythonValue::List(b))
        | (StructuredValue::Tuple(a), PythonValue::Tuple(b)) => {
            a.len() == b.len() && each(&Vec::from_iter(a.iter().zip(b)))
        }
        (StructuredValue::Dict(a), PythonValue::Dict(b)) => {
            a.keys().eq(b.keys()) && each(&Vec::from_iter(a.values().zip(b.values())))
        }
        (
            StructuredValue::NamedTuple { fields: a, .. },
            PythonValue::NamedTuple { fields: b, .. },
        ) => {
            let same_names = a.iter().map(|(key, _)| key).eq(b.iter().map(|(key, _)| key));
            same_names
                && each(&Vec::from_iter(a.iter().map(|(_, a)| a).zip(b.iter().map(|(_, b)| b))))
        }
        _ => false,
    }
}

/// A host value as a tensor of the dtype asked for, where it can be one.
fn converted<T: TensorLeaf>(value: &PythonValue<T>, dtype: DType) -> Option<EagerTensor> {
    let tensor = match (value, dtype) {
        (PythonValue::Bool(value), DType::Bool) => HostTensor::scalar_bool(*value),
        (PythonValue::String(value), DType::String) => HostTensor::scalar_string(value.clone()),
        (PythonValue::Int(value), DType::I32) => HostTensor::scalar(i32::try_from(*value).ok()?),
        (PythonValue::Int(value), DType::I64) => HostTensor::scalar(*value),
        (PythonValue::Int(value), DType::F32) => HostTensor::scalar(*value as f32),
        (PythonValue::Int(value), DType::F64) => HostTensor::scalar(*value as f64),
        (PythonValue::Float(value), DType::F32) => HostTensor::scalar(*value as f32),
        (PythonValue::Float(value), DType::F64) => HostTensor::scalar(*value),
        (PythonValue::List(values) | PythonValue::Tuple(values), dtype) => {
            return stacked(values, dtype);
        }
        _ => return None,
    };
    Some(tensor.into())
}

/// A list of host values of one shape as one tensor.
fn stacked<T: TensorLeaf>(values: &[PythonValue<T>], dtype: DType) -> Option<EagerTensor> {
    let rows: Option<Vec<HostTensor>> = values
        .iter()
        .map(|value| match value {
            PythonValue::Tensor(tensor) => tensor.eager()?.host().ok().cloned(),
            value => converted(value, dtype)?.into_host().ok(),
        })
        .collect();
    let rows = rows?;
    let shape = rows.first().map_or_else(Default::default, |row| row.shape().clone());
    if rows.iter().any(|row| *row.shape() != shape || row.dtype() != dtype) {
        return None;
    }
    let dims = std::iter::once(rows.len()).chain(shape.iter().copied());
    let shape = ferroflow_ir::Shape::new(dims).ok()?;
    let tensor = if dtype == DType::String {
        let strings = rows.iter().flat_map(|row| row.strings().unwrap_or(&[]).to_vec());
        HostTensor::from_strings(shape, strings.collect())
    } else {
        let bytes: Vec<u8> = rows.iter().flat_map(|row| row.bytes().to_vec()).collect();
        HostTensor::from_bytes(dtype, shape, &bytes)
    };
    tensor.ok().map(EagerTensor::from)
}

/// The value that `pattern` describes, with these tensors in its tensor positions; `None` if
/// there are too few.
pub(crate) fn packed<T: TensorLeaf>(
    pattern: &StructuredValue,
    mut tensors: &mut dyn Iterator<Item = T>,
) -> Option<PythonValue<T>> {
    let mut list = |patterns: &[StructuredValue]| {
        patterns
            .iter()
            .map(|pattern| packed(pattern, tensors))
            .collect::<Option<Vec<PythonValue<T>>>>()
    };
    Some(match pattern {
        StructuredValue::TensorSpec(_) | StructuredValue::BoundedTensorSpec { .. } => {
            PythonValue::Tensor(tensors.next()?)
        }
        StructuredValue::TypeSpec(spec) => {
            let n = spec.n_components;
            let components: Vec<T> = (&mut tensors).take(n).collect();
            if components.len() < n {
                return None;
            }
            PythonValue::Composite(CompositeTensor { class: spec.class, components })
        }
        StructuredValue::None => PythonValue::None,
        StructuredValue::Float(value) => PythonValue::Float(*value),
        StructuredValue::Int(value) => PythonValue::Int(*value),
        StructuredValue::String(value) => PythonValue::String(value.clone()),
        StructuredValue::Bool(value) => PythonValue::Bool(*value),
        StructuredValue::Shape(shape) => PythonValue::Shape(shape.clone()),
        StructuredValue::DType(dtype) => PythonValue::DType(*dtype),
        StructuredValue::Tensor(tensor) | StructuredValue::Numpy(tensor) => {
            PythonValue::Tensor(EagerTensor::from(tensor.clone()).into())
        }
        StructuredValue::List(patterns) => PythonValue::List(list(patterns)?),
        StructuredValue::Tuple(patterns) => PythonValue::Tuple(list(patterns)?),
        StructuredValue::Dict(fields) => PythonValue::Dict(
            fields
                .iter()
                .map(|(key, pattern)| Some((key.clone(), packed(pattern, tensors)?)))
                .collect::<Option<_>>()?,
        ),
        StructuredValue::NamedTuple { name, fields } => PythonValue::NamedTuple {
            name: name.clone(),
            fields: fields
                .iter()
                .map(|(key, pattern)| Some((key.clone(), packed(pattern, tensors)?)))
                .collect::<Option<_>>()?,
        },
    })
}

/// A value from a file: a default, or one that a function was traced with. Specs in it
/// become `None`.
pub(crate) fn host_value(value: &StructuredValue) -> PythonValue {
    packed::<EagerTensor>(value, &mut std::iter::empty()).unwrap_or(PythonValue::None)
}

/// The tensor specs of a pattern in order; components whose class is not known have none.
pub(crate) fn tensor_specs(pattern: &StructuredValue) -> Vec<Option<TensorSpec>> {
    let mut specs = Vec::new();
    collect_specs(pattern, &mut specs);
    specs
}

fn collect_specs(pattern: &StructuredValue, specs: &mut Vec<Option<TensorSpec>>) {
    match pattern {
        StructuredValue::TensorSpec(spec) | StructuredValue::BoundedTensorSpec { spec, .. } => {
            specs.push(Some(spec.clone()));
        }
        StructuredValue::TypeSpec(spec) => {
            specs.extend(spec.components());
        }
        StructuredValue::List(patterns) | StructuredValue::Tuple(patterns) => {
            patterns.iter().for_each(|pattern| collect_specs(pattern, specs));
        }
        StructuredValue::Dict(fields) => {
            fields.values().for_each(|pattern| collect_specs(pattern, specs));
        }
        StructuredValue::NamedTuple { fields, .. } => {
            fields.iter().for_each(|(_, pattern)| collect_specs(pattern, specs));
        }
        StructuredValue::None
        | StructuredValue::Float(_)
        | StructuredValue::Int(_)
        | StructuredValue::String(_)
        | StructuredValue::Bool(_)
        | StructuredValue::Shape(_)
        | StructuredValue::DType(_)
        | StructuredValue::Tensor(_)
        | StructuredValue::Numpy(_) => {}
    }
}
