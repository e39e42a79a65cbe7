//! Values whose structure is known at run time: what arguments and results are made of.
//!
//! Rust types become [`NestedValue`]s and come back from them through [`Nest`](crate::Nest). A value has
//! a [`TraceType`]; the type and the tensors, in order, make the value again.

use crate::{
    error::{Error, Result},
    tensor::Tensor,
    variable::Variable,
};
use ferroflow_ir::{
    TraceType,
    trace_type::{CustomType, Literal, MapKey, VariableSpec},
};
use smallvec::SmallVec;
use std::{any::Any, collections::BTreeMap, fmt, sync::Arc};

/// A value of any structure.
#[derive(Clone, Default)]
pub enum NestedValue {
    /// No value.
    #[default]
    None,
    /// A value of Rust, part of the trace.
    Literal(Literal),
    /// A tensor.
    Tensor(Tensor),
    /// A variable.
    Variable(Variable),
    /// A list.
    List(Vec<NestedValue>),
    /// A tuple.
    Tuple(Vec<NestedValue>),
    /// A structure: its name, and its fields in order.
    Struct(Arc<str>, Vec<(Arc<str>, NestedValue)>),
    /// A map.
    Dict(BTreeMap<MapKey, NestedValue>),
    /// Anything else, with the type it goes by.
    Custom(Custom),
}

/// A value that is neither a tensor nor a literal nor a container.
#[derive(Clone)]
pub struct Custom {
    /// The value.
    pub value: Arc<dyn Any + Send + Sync>,
    /// Its type.
    pub ty: Arc<dyn CustomType>,
}

/// Variables that have been seen, so that types say which are the same.
#[derive(Debug, Default)]
pub struct Aliases(SmallVec<[usize; 4]>);

impl Aliases {
    /// The number of the variable, by first appearance, and whether this is that.
    pub(crate) fn number(&mut self, variable: &Variable) -> (usize, bool) {
        let id = variable.id();
        match self.0.iter().position(|&seen| seen == id) {
            Some(number) => (number, false),
            None => {
                self.0.push(id);
                (self.0.len() - 1, true)
            }
        }
    }
}

impl NestedValue {
    /// The type by which traces are told apart.
    pub fn trace_type(&self, aliases: &mut Aliases) -> TraceType {
        match self {
            NestedValue::None => TraceType::None,
            NestedValue::Literal(literal) => TraceType::Literal(literal.clone()),
            NestedValue::Tensor(tensor) => TraceType::Tensor(tensor.spec()),
            NestedValue::Variable(variable) => {
                TraceType::Variable(variable_spec(variable, aliases))
            }
            NestedValue::List(items) => TraceType::List(types(items, aliases)),
            NestedValue::Tuple(items) => TraceType::Tuple(types(items, aliases)),
            NestedValue::Struct(name, fields) => {
                let typed = |(key, value): &(Arc<str>, NestedValue)| {
                    (key.clone(), value.trace_type(aliases))
                };
                TraceType::Struct(name.clone(), fields.iter().map(typed).collect())
            }
            NestedValue::Dict(entries) => {
                let typed = |(key, value): (&MapKey, &NestedValue)| {
                    (key.clone(), value.trace_type(aliases))
                };
                TraceType::Dict(entries.iter().map(typed).collect())
            }
            NestedValue::Custom(custom) => TraceType::Custom(custom.ty.clone()),
        }
    }

    /// Appends the tensors in it, and the handles of its variables, each variable once.
    pub fn leaves(&self, aliases: &mut Aliases, leaves: &mut TensorLeaves) {
        match self {
            NestedValue::None | NestedValue::Literal(_) | NestedValue::Custom(_) => {}
            NestedValue::Tensor(tensor) => leaves.push(tensor.clone()),
            NestedValue::Variable(variable) => {
                if aliases.number(variable).1 {
                    leaves.push(variable.handle());
                }
            }
            NestedValue::List(items) | NestedValue::Tuple(items) => {
                items.iter().for_each(|item| item.leaves(aliases, leaves));
            }
            NestedValue::Struct(_, fields) => {
                fields.iter().for_each(|(_, field)| field.leaves(aliases, leaves));
            }
            NestedValue::Dict(entries) => {
                entries.values().for_each(|entry| entry.leaves(aliases, leaves));
            }
        }
    }

    /// The value of this type that is made of `tensors`, which are asked for one by one.
    ///
    /// # Errors
    ///
    /// Those of `tensors`; [`Error::Conversion`] when the type stands for an object that is gone.
    pub fn build(
        ty: &TraceType,
        tensors: &mut dyn FnMut(&TraceType) -> Result<NestedValue>,
    ) -> Result<NestedValue> {
        Ok(match ty {
            TraceType::Tensor(_) | TraceType::Variable(_) => tensors(ty)?,
            TraceType::Literal(literal) => NestedValue::Literal(literal.clone()),
            TraceType::None => NestedValue::None,
            TraceType::List(items) => NestedValue::List(build_all(items, tensors)?),
            TraceType::Tuple(items) => NestedValue::Tuple(build_all(items, tensors)?),
            TraceType::Struct(name, fields) => {
                let field = |(key, ty): &(Arc<str>, TraceType)| {
                    Ok((key.clone(), NestedValue::build(ty, tensors)?))
                };
                NestedValue::Struct(name.clone(), fields.iter().map(field).collect::<Result<_>>()?)
            }
            TraceType::Dict(entries) => {
                let entry = |(key, ty): &(MapKey, TraceType)| {
                    Ok((key.clone(), NestedValue::build(ty, tensors)?))
                };
                NestedValue::Dict(entries.iter().map(entry).collect::<Result<_>>()?)
            }
            TraceType::Custom(custom) => {
                let value = custom.placeholder_value().ok_or_else(|| Error::Conversion {
                    expected: format!("a value of type {custom:?}"),
                    found: "one that its owner has dropped".into(),
                })?;
                NestedValue::Custom(Custom { value, ty: custom.clone() })
            }
        })
    }

    /// A list of values.
    pub fn list(items: impl IntoIterator<Item = impl Into<NestedValue>>) -> NestedValue {
        NestedValue::List(items.into_iter().map(Into::into).collect())
    }

    /// A tuple of values.
    pub fn tuple(items: impl IntoIterator<Item = impl Into<NestedValue>>) -> NestedValue {
        NestedValue::Tuple(items.into_iter().map(Into::into).collect())
    }

    /// A map of values by name.
    pub fn dict<'a>(entries: impl IntoIterator<Item = (&'a str, NestedValue)>) -> NestedValue {
        let keyed = entries.into_iter().map(|(key, value)| (MapKey::Str(key.into()), value));
        NestedValue::Dict(keyed.collect())
    }

    /// The tensor.
    ///
    /// # Errors
    ///
    /// [`Error::Conversion`] when it is something else.
    pub fn tensor(&self) -> Result<&Tensor> {
        match self {
            NestedValue::Tensor(tensor) => Ok(tensor),
            other => Err(other.is_not("a tensor")),
        }
    }

    /// The value under a name, of maps and structures.
    pub fn get(&self, name: &str) -> Option<&NestedValue> {
        match self {
            NestedValue::Dict(entries) => entries.get(&MapKey::Str(name.into())),
            NestedValue::Struct(_, fields) => {
                fields.iter().find(|(key, _)| &**key == name).map(|(_, value)| value)
            }
            _ => None,
        }
    }

    /// The items of a list or tuple.
    pub fn items(&self) -> Option<&[NestedValue]> {
        match self {
            NestedValue::List(items) | NestedValue::Tuple(items) => Some(items),
            _ => None,
        }
    }

    /// The error of a value that is not what it should be.
    pub fn is_not(&self, expected: &str) -> Error {
        Error::Conversion { expected: expected.into(), found: format!("{self:?}") }
    }
}

/// Tensors in the order of their positions in a value.
pub type TensorLeaves = SmallVec<[Tensor; 4]>;

fn types(items: &[NestedValue], aliases: &mut Aliases) -> Vec<TraceType> {
    items.iter().map(|item| item.trace_type(aliases)).collect()
}

fn build_all(
    types: &[TraceType],
    tensors: &mut dyn FnMut(&TraceType) -> Result<NestedValue>,
) -> Result<Vec<NestedValue>> {
    types.iter().map(|ty| NestedValue::build(ty, tensors)).collect()
}

pub(crate) fn variable_spec(variable: &Variable, aliases: &mut Aliases) -> VariableSpec {
    let (alias_id, _) = aliases.number(variable);
    VariableSpec { value: variable.spec(), trainable: variable.is_trainable(), alias_id }
}

macro_rules! value_from {
    ($($rust:ty => |$value:ident| $result:expr;)*) => {$(
        impl From<$rust> for NestedValue {
            fn from($value: $rust) -> NestedValue {
                $result
            }
        }
    )*};
}

value_from! {
    Tensor => |tensor| NestedValue::Tensor(tensor);
    &Tensor => |tensor| NestedValue::Tensor(tensor.clone());
    Variable => |variable| NestedValue::Variable(variable);
    &Variable => |variable| NestedValue::Variable(variable.clone());
    Literal => |literal| NestedValue::Literal(literal);
    bool => |value| NestedValue::Literal(Literal::Bool(value));
    i32 => |value| NestedValue::Literal(Literal::Int(value.into()));
    i64 => |value| NestedValue::Literal(Literal::Int(value));
    f32 => |value| NestedValue::Literal(Literal::Float(value.into()));
    f64 => |value| NestedValue::Literal(Literal::Float(value));
    &str => |text| NestedValue::Literal(Literal::Str(text.into()));
    () => |_value| NestedValue::None;
}

impl fmt::Debug for Custom {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.ty, f)
    }
}

impl fmt::Debug for NestedValue {
    /// As Python writes such values.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let joined = |items: &[NestedValue]| {
            items.iter().map(|item| format!("{item:?}")).collect::<Vec<_>>().join(", ")
        };
        match self {
            NestedValue::None => f.write_str("None"),
            NestedValue::Literal(literal) => fmt::Display::fmt(literal, f),
            NestedValue::Tensor(tensor) => fmt::Debug::fmt(tensor, f),
            NestedValue::Variable(variable) => fmt::Debug::fmt(variable, f),
            NestedValue::List(items) => write!(f, "[{}]", joined(items)),
            NestedValue::Tuple(items) if items.len() == 1 => write!(f, "({},)", joined(items)),
            NestedValue::Tuple(items) => write!(f, "({})", joined(items)),
            NestedValue::Struct(name, fields) => {
                let fields = fields.iter().map(|(key, value)| format!("{key}={value:?}"));
                write!(f, "{name}({})", fields.collect::<Vec<_>>().join(", "))
            }
            NestedValue::Dict(entries) => {
                let entries = entries.iter().map(|(key, value)| format!("{key}: {value:?}"));
                write!(f, "{{{}}}", entries.collect::<Vec<_>>().join(", "))
            }
            NestedValue::Custom(custom) => fmt::Debug::fmt(custom, f),
        }
    }
}
