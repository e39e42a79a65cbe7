//! The types by which traces are told apart: what a traced function was specialised for.
//!
//! Tensors are typed by dtype and shape, variables also by which of them are the same, literals by
//! value, containers by their elements, anything else by a rule of its own ([`CustomType`]). Types
//! are ordered: a value of a subtype can be used wherever its supertype is asked for, as the fixed
//! size in `float32[3]` can where any is. The rules are those of TensorFlow's tracing protocol
//! (`tensorflow/core/function/trace_type`), and so is what types print.
//!
//! ```
//! use ferroflow_ir::{DType, PartialShape, TensorSpec, trace_type::TraceType};
//! let vector = |length| TraceType::Tensor(TensorSpec::new(DType::F32, PartialShape::vector(length)));
//! assert!(vector(Some(3)).is_subtype_of(&vector(None)));
//! assert_eq!(vector(Some(3)).common_supertype(&vector(Some(4))), Some(vector(None)));
//! assert_eq!(vector(None).to_string(), "TensorSpec(shape=(None,), dtype=tf.float32, name=None)");
//! ```

use crate::{dtype::DType, shape::PartialShape, spec::TensorSpec};
use std::{
    any::Any,
    fmt,
    hash::{Hash, Hasher},
    sync::Arc,
};

/// The type of an argument or result of a traced function.
#[derive(Clone, PartialEq, Eq, Hash)]
pub enum TraceType {
    /// A tensor of this dtype and shape.
    Tensor(TensorSpec),
    /// A variable.
    Variable(VariableSpec),
    /// This value and no other.
    Literal(Literal),
    /// A value that is left out.
    None,
    /// A list of values of these types.
    List(Vec<TraceType>),
    /// A tuple of values of these types.
    Tuple(Vec<TraceType>),
    /// A structure: its name, and its fields in order.
    Struct(Arc<str>, Vec<(Arc<str>, TraceType)>),
    /// A map, sorted by key.
    Dict(Vec<(MapKey, TraceType)>),
    /// A type with rules of its own.
    Custom(Arc<dyn CustomType>),
}

/// The type of a variable: what it holds, and which of the arguments are the same variable.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct VariableSpec {
    /// Dtype and shape of its value.
    pub value: TensorSpec,
    /// Whether gradients are taken by it unless asked otherwise.
    pub trainable: bool,
    /// The number of the variable among the arguments, by first appearance: only which arguments
    /// are the same variable is part of the type.
    pub alias_id: usize,
}

/// A value of the host language, typed by what it is.
///
/// The kind of the value counts: 1, 1.0 and true are three types. In TensorFlow they are one,
/// because Python takes them for equal.
#[derive(Clone, Debug)]
pub enum Literal {
    /// A flag.
    Bool(bool),
    /// An integer.
    Int(i64),
    /// An unsigned integer.
    UInt(u64),
    /// A float.
    Float(f64),
    /// A text.
    Str(Arc<str>),
    /// A dtype.
    DType(DType),
    /// A shape.
    Shape(PartialShape),
}

/// The key of an entry of a map.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub enum MapKey {
    /// A number.
    Int(i64),
    /// A name.
    Str(Arc<str>),
}

/// A type with rules of its own, for values that are neither tensors nor literals nor containers.
pub trait CustomType: Any + Send + Sync + fmt::Debug {
    /// Whether a value of this type can be used where `other` is asked for.
    fn is_subtype_of(&self, other: &dyn CustomType) -> bool;

    /// The most specific type that both are subtypes of, if there is one.
    fn common_supertype(&self, other: &dyn CustomType) -> Option<Arc<dyn CustomType>>;

    /// The value that stands for all values of this type while a function is traced.
    fn placeholder_value(&self) -> Option<Arc<dyn Any + Send + Sync>>;

    /// Whether the two are the same type.
    fn is_equal(&self, other: &dyn CustomType) -> bool;

    /// A number that is the same for equal types.
    fn hash_value(&self) -> u64;

    /// For downcasting to the concrete type.
    fn as_any(&self) -> &dyn Any;
}

impl TraceType {
    /// A tensor of this dtype and shape.
    pub fn tensor(dtype: DType, shape: impl Into<PartialShape>) -> TraceType {
        TraceType::Tensor(TensorSpec::new(dtype, shape))
    }

    /// Whether a value of this type can be used where `other` is asked for. The name of a spec
    /// only has to fit where `other` has one.
    pub fn is_subtype_of(&self, other: &TraceType) -> bool {
        match (self, other) {
            (TraceType::Tensor(a), TraceType::Tensor(b)) => {
                b.accepts(a) && (b.name.is_empty() || a.name == b.name)
            }
            (TraceType::Variable(a), TraceType::Variable(b)) => {
                let same_place = a.alias_id == b.alias_id && a.trainable == b.trainable;
                same_place && b.value.accepts(&a.value)
            }
            (TraceType::List(a), TraceType::List(b))
            | (TraceType::Tuple(a), TraceType::Tuple(b)) => are_subtypes(a.iter(), b.iter()),
            (TraceType::Struct(name, a), TraceType::Struct(other_name, b)) => {
                let keys = a.iter().map(|x| &x.0).eq(b.iter().map(|x| &x.0));
                name == other_name && keys && are_subtypes(values(a), values(b))
            }
            (TraceType::Dict(a), TraceType::Dict(b)) => {
                let keys = a.iter().map(|x| &x.0).eq(b.iter().map(|x| &x.0));
                keys && are_subtypes(values(a), values(b))
            }
            (TraceType::Custom(a), TraceType::Custom(b)) => a.is_subtype_of(&**b),
            (a, b) => a == b,
        }
    }

    /// The most specific type that both types are subtypes of, if there is one.
    pub fn common_supertype(&self, other: &TraceType) -> Option<TraceType> {
        Some(match (self, other) {
            (TraceType::Tensor(a), TraceType::Tensor(b)) if a.dtype == b.dtype => {
                let name = if a.name == b.name { a.name.clone() } else { String::new() };
                TraceType::Tensor(TensorSpec { name, ..generalize(a, b) })
            }
            (TraceType::Variable(a), TraceType::Variable(b)) => {
                let same_place = a.alias_id == b.alias_id && a.trainable == b.trainable;
                if !same_place || a.value.dtype != b.value.dtype {
                    return None;
                }
                TraceType::Variable(VariableSpec { value: generalize(&a.value, &b.value), ..*a })
            }
            (TraceType::List(a), TraceType::List(b)) => TraceType::List(supertypes(a, b)?),
            (TraceType::Tuple(a), TraceType::Tuple(b)) => TraceType::Tuple(supertypes(a, b)?),
            (TraceType::Struct(name, a), TraceType::Struct(other_name, b))
                if name == other_name =>
            {
                TraceType::Struct(name.clone(), entry_supertypes(a, b)?)
            }
            (TraceType::Dict(a), TraceType::Dict(b)) => TraceType::Dict(entry_supertypes(a, b)?),
            (TraceType::Custom(a), TraceType::Custom(b)) => {
                TraceType::Custom(a.common_supertype(&**b)?)
            }
            (a, b) if a == b => a.clone(),
            _ => return None,
        })
    }

    /// The specs of the tensors in values of this type, in order; of variables, their handles'.
    pub fn leaves(&self) -> Vec<&TraceType> {
        let mut leaves = Vec::new();
        self.collect_leaves(&mut leaves);
        leaves
    }

    /// Shows the types with rules of their own in this type.
    pub fn for_each_custom(&self, look: &mut dyn FnMut(&Arc<dyn CustomType>)) {
        match self {
            TraceType::Custom(custom) => look(custom),
            TraceType::Tensor(_)
            | TraceType::Variable(_)
            | TraceType::Literal(_)
            | TraceType::None => {}
            TraceType::List(items) | TraceType::Tuple(items) => {
                items.iter().for_each(|item| item.for_each_custom(look));
            }
            TraceType::Struct(_, fields) => {
                values(fields).for_each(|field| field.for_each_custom(look));
            }
            TraceType::Dict(entries) => {
                values(entries).for_each(|entry| entry.for_each_custom(look));
            }
        }
    }

    fn collect_leaves<'a>(&'a self, leaves: &mut Vec<&'a TraceType>) {
        match self {
            TraceType::Tensor(_) | TraceType::Variable(_) => leaves.push(self),
            TraceType::Literal(_) | TraceType::None | TraceType::Custom(_) => {}
            TraceType::List(items) | TraceType::Tuple(items) => {
                items.iter().for_each(|item| item.collect_leaves(leaves));
            }
            TraceType::Struct(_, fields) => {
                values(fields).for_each(|field| field.collect_leaves(leaves));
            }
            TraceType::Dict(entries) => {
                values(entries).for_each(|entry| entry.collect_leaves(leaves));
            }
        }
    }
}

impl From<TensorSpec> for TraceType {
    fn from(spec: TensorSpec) -> TraceType {
        TraceType::Tensor(spec)
    }
}

fn generalize(a: &TensorSpec, b: &TensorSpec) -> TensorSpec {
    TensorSpec::new(a.dtype, a.shape.generalize(&b.shape))
}

fn values<K>(entries: &[(K, TraceType)]) -> impl Iterator<Item = &TraceType> {
    entries.iter().map(|(_, value)| value)
}

fn are_subtypes<'a>(
    a: impl Iterator<Item = &'a TraceType>,
    b: impl Iterator<Item = &'a TraceType>,
) -> bool {
    let (a, b): (Vec<_>, Vec<_>) = (a.collect(), b.collect());
    a.len() == b.len() && a.iter().zip(&b).all(|(a, b)| a.is_subtype_of(b))
}

fn supertypes(a: &[TraceType], b: &[TraceType]) -> Option<Vec<TraceType>> {
    let pairs = a.iter().zip(b).map(|(a, b)| a.common_supertype(b));
    if a.len() == b.len() { pairs.collect() } else { None }
}

fn entry_supertypes<K: Clone + PartialEq>(
    a: &[(K, TraceType)],
    b: &[(K, TraceType)],
) -> Option<Vec<(K, TraceType)>> {
    let pairs = a.iter().zip(b).map(|((key, a), (other, b))| {
        if key == other { Some((key.clone(), a.common_supertype(b)?)) } else { None }
    });
    if a.len() == b.len() { pairs.collect() } else { None }
}

impl Literal {
    /// The bits that equal floats share.
    fn float_bits(value: f64) -> u64 {
        value.to_bits()
    }
}

/// Literals are equal when kind and value are; floats when their bits are, so that every value
/// equals itself.
impl PartialEq for Literal {
    fn eq(&self, other: &Literal) -> bool {
        match (self, other) {
            (Literal::Bool(a), Literal::Bool(b)) => a == b,
            (Literal::Int(a), Literal::Int(b)) => a == b,
            (Literal::UInt(a), Literal::UInt(b)) => a == b,
            (Literal::Float(a), Literal::Float(b)) => {
                Literal::float_bits(*a) == Literal::float_bits(*b)
            }
            (Literal::Str(a), Literal::Str(b)) => a == b,
            (Literal::DType(a), Literal::DType(b)) => a == b,
            (Literal::Shape(a), Literal::Shape(b)) => a == b,
            _ => false,
        }
    }
}

impl Eq for Literal {}

impl Hash for Literal {
    fn hash<H: Hasher>(&self, state: &mut H) {
        std::mem::discriminant(self).hash(state);
        match self {
            Literal::Bool(value) => value.hash(state),
            Literal::Int(value) => value.hash(state),
            Literal::UInt(value) => value.hash(state),
            Literal::Float(value) => Literal::float_bits(*value).hash(state),
            Literal::Str(value) => value.hash(state),
            Literal::DType(value) => value.hash(state),
            Literal::Shape(value) => value.hash(state),
        }
    }
}

impl PartialEq for dyn CustomType {
    fn eq(&self, other: &dyn CustomType) -> bool {
        self.is_equal(other)
    }
}

impl Eq for dyn CustomType {}

impl Hash for dyn CustomType {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.hash_value().hash(state);
    }
}

impl fmt::Display for Literal {
    /// As Python writes such values.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Literal::Bool(true) => f.write_str("True"),
            Literal::Bool(false) => f.write_str("False"),
            Literal::Int(value) => write!(f, "{value}"),
            Literal::UInt(value) => write!(f, "{value}"),
            Literal::Float(value) => write!(f, "{value:?}"),
            Literal::Str(text) => write!(f, "'{}'", text.escape_debug()),
            Literal::DType(dtype) => write!(f, "tf.{dtype}"),
            Literal::Shape(shape) => write!(f, "{}", PythonShape(shape)),
        }
    }
}

impl fmt::Display for MapKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            MapKey::Int(value) => write!(f, "{value}"),
            MapKey::Str(text) => write!(f, "'{}'", text.escape_debug()),
        }
    }
}

/// A shape as Python writes it: `(2, None)`, or `<unknown>` where not even the rank is known.
#[derive(Debug)]
pub struct PythonShape<'a>(pub &'a PartialShape);

impl fmt::Display for PythonShape<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(dims) = self.0.dims() else { return f.write_str("<unknown>") };
        f.write_str("(")?;
        for (index, dim) in dims.iter().enumerate() {
            f.write_str(if index > 0 { ", " } else { "" })?;
            match dim {
                Some(dim) => write!(f, "{dim}")?,
                None => f.write_str("None")?,
            }
        }
        f.write_str(if dims.len() == 1 { ",)" } else { ")" })
    }
}

impl fmt::Display for TraceType {
    /// As TensorFlow prints its trace types.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TraceType::Tensor(spec) => {
                let (shape, dtype) = (PythonShape(&spec.shape), spec.dtype);
                write!(f, "TensorSpec(shape={shape}, dtype=tf.{dtype}, name=")?;
                if spec.name.is_empty() {
                    f.write_str("None)")
                } else {
                    write!(f, "'{}')", spec.name)
                }
            }
            TraceType::Variable(VariableSpec { value, trainable, alias_id }) => {
                let (shape, dtype) = (PythonShape(&value.shape), value.dtype);
                let trainable = Literal::Bool(*trainable);
                write!(
                    f,
                    "VariableSpec(shape={shape}, dtype=tf.{dtype}, trainable={trainable}, \
                     alias_id={alias_id})"
                )
            }
            TraceType::Literal(value) => write!(f, "Literal[{value}]"),
            TraceType::None => f.write_str("Literal[None]"),
            TraceType::List(items) => write_items(f, "List", items, |f, item| write!(f, "{item}")),
            TraceType::Tuple(items) => {
                write_items(f, "Tuple", items, |f, item| write!(f, "{item}"))
            }
            TraceType::Struct(name, fields) => {
                write_items(f, name, fields, |f, (key, value)| write!(f, "['{key}', {value}]"))
            }
            TraceType::Dict(entries) => {
                write_items(f, "Dict", entries, |f, (key, value)| write!(f, "[{key}, {value}]"))
            }
            TraceType::Custom(custom) => write!(f, "{custom:?}"),
        }
    }
}

fn write_items<T>(
    f: &mut fmt::Formatter<'_>,
    name: &str,
    items: &[T],
    write: impl Fn(&mut fmt::Formatter<'_>, &T) -> fmt::Result,
) -> fmt::Result {
    write!(f, "{name}[")?;
    for (index, item) in items.iter().enumerate() {
        f.write_str(if index > 0 { ", " } else { "" })?;
        write(f, item)?;
    }
    f.write_str("]")
}

impl fmt::Debug for TraceType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn int(value: i64) -> TraceType {
        TraceType::Literal(Literal::Int(value))
    }

    fn tensor(dims: &[i64]) -> TraceType {
        TraceType::tensor(DType::F32, PartialShape::from_i64(dims).unwrap())
    }

    // spec: 64, 66, 67
    #[test]
    fn types_print_as_tensorflow_prints_them() {
        let name = TraceType::Tensor(TensorSpec {
            name: "q".into(),
            ..TensorSpec::new(DType::I32, PartialShape::Unknown)
        });
        assert_eq!(name.to_string(), "TensorSpec(shape=<unknown>, dtype=tf.int32, name='q')");
        assert_eq!(
            TraceType::List(vec![int(1), int(2)]).to_string(),
            "List[Literal[1], Literal[2]]"
        );
        let dict = TraceType::Dict(vec![(MapKey::Str("a".into()), TraceType::None)]);
        assert_eq!(dict.to_string(), "Dict[['a', Literal[None]]]");
        let point = TraceType::Struct("P".into(), vec![("a".into(), int(1))]);
        assert_eq!(point.to_string(), "P[['a', Literal[1]]]");
        assert_eq!(TraceType::Literal(Literal::Float(1.5)).to_string(), "Literal[1.5]");
        assert_ne!(TraceType::List(vec![int(1), int(2)]), TraceType::List(vec![int(2), int(1)]));
    }

    // spec: 62, 63, b10
    #[test]
    fn containers_are_subtypes_element_by_element() {
        let list = |items: &[TraceType]| TraceType::List(items.to_vec());
        assert!(list(&[tensor(&[1, 2])]).is_subtype_of(&list(&[tensor(&[-1, -1])])));
        assert!(!list(&[tensor(&[1, 2])]).is_subtype_of(&list(&[tensor(&[-1])])));
        assert!(!list(&[int(1)]).is_subtype_of(&TraceType::Tuple(vec![int(1)])));
        assert!(!TraceType::Tuple(vec![int(1)]).is_subtype_of(&list(&[int(1)])));
        assert!(!list(&[int(1), int(1)]).is_subtype_of(&list(&[int(1)])));
    }

    // spec: b12, b13
    #[test]
    fn a_name_makes_another_type() {
        let unnamed = TensorSpec::new(DType::F32, PartialShape::Unknown);
        let named = TensorSpec { name: "x".into(), ..unnamed.clone() };
        assert_eq!(TraceType::Tensor(unnamed.clone()), TraceType::Tensor(unnamed.clone()));
        assert_ne!(TraceType::Tensor(named.clone()), TraceType::Tensor(unnamed.clone()));
        assert!(TraceType::Tensor(named).is_subtype_of(&TraceType::Tensor(unnamed)));
    }

    #[test]
    fn supertypes_give_up_what_differs() {
        assert_eq!(tensor(&[2, 3]).common_supertype(&tensor(&[2, 4])), Some(tensor(&[2, -1])));
        let unknown = TraceType::tensor(DType::F32, PartialShape::Unknown);
        assert_eq!(tensor(&[2]).common_supertype(&tensor(&[2, 4])), Some(unknown));
        assert_eq!(int(1).common_supertype(&int(2)), None);
        let pair = |a, b| TraceType::Tuple(vec![a, b]);
        let wide = pair(tensor(&[2]), int(1)).common_supertype(&pair(tensor(&[3]), int(1)));
        assert_eq!(wide, Some(pair(tensor(&[-1]), int(1))));
        assert_eq!(pair(int(1), int(2)).common_supertype(&TraceType::List(vec![])), None);
    }
}
