//! Rust values made of tensors: what functions take and give.

#![expect(non_snake_case, reason = "values of tuples go by the names of their types")]

use crate::{
    custom,
    error::{Error, Result},
    tensor::Tensor,
    value::{Aliases, NestedValue, TensorLeaves, variable_spec},
    variable::Variable,
};
use ferroflow_ir::{
    DType, TraceType,
    trace_type::{Literal, MapKey},
};
use std::{
    any::{Any, type_name},
    collections::{BTreeMap, HashMap},
    sync::Arc,
};

/// A Rust value made of tensors, variables and literals.
///
/// Implemented for [`Tensor`], [`Variable`], numbers, `bool`, `String`, `Option`, `Vec`, arrays,
/// tuples, maps by name, `Arc<T>` (known by identity, held weakly) and [`NestedValue`]; derived for
/// structures of such.
///
/// ```
/// use ferroflow_tracer::{Nest, Tensor, value::Aliases};
/// let value = (Tensor::from([1i32, 2]), 3i64, None::<Tensor>);
/// let ty = value.to_value().trace_type(&mut Aliases::default());
/// assert_eq!(
///     ty.to_string(),
///     "Tuple[TensorSpec(shape=(2,), dtype=tf.int32, name=None), Literal[3], Literal[None]]"
/// );
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be passed to or returned by a traced function",
    label = "not known to be made of tensors, variables and literals",
    note = "a structure or enum of such is, with `#[derive(Nest)]`; any other object is an argument \
            with `#[derive(TraceType)]`, or by its identity as `Arc<{Self}>`"
)]
pub trait Nest: Sized {
    /// The value, with its structure told at run time.
    fn to_value(&self) -> NestedValue;

    /// The value of this type that has such a structure.
    ///
    /// # Errors
    ///
    /// [`Error::Conversion`] when there is none.
    fn from_value(value: NestedValue) -> Result<Self>;

    /// Whether the type of the value is `ty`: a quicker way to ask for what
    /// [`to_value`](Nest::to_value) tells.
    fn has_type(&self, ty: &TraceType, aliases: &mut Aliases) -> bool {
        self.to_value().trace_type(aliases) == *ty
    }

    /// Appends the tensors of the value: a quicker way to what [`to_value`](Nest::to_value) tells.
    fn leaves(&self, aliases: &mut Aliases, leaves: &mut TensorLeaves) {
        self.to_value().leaves(aliases, leaves);
    }

    /// The value of type `ty` made of `tensors`.
    ///
    /// # Errors
    ///
    /// [`Error::Conversion`] when there are too few, or the type is another.
    fn from_leaves(ty: &TraceType, tensors: &mut dyn Iterator<Item = Tensor>) -> Result<Self> {
        let value = NestedValue::build(ty, &mut |_| next(tensors).map(NestedValue::Tensor))?;
        Self::from_value(value)
    }
}

fn next(tensors: &mut dyn Iterator<Item = Tensor>) -> Result<Tensor> {
    tensors.next().ok_or_else(|| Error::Conversion {
        expected: "one more tensor".into(),
        found: "no more".into(),
    })
}

impl Nest for Tensor {
    fn to_value(&self) -> NestedValue {
        NestedValue::Tensor(self.clone())
    }

    fn from_value(value: NestedValue) -> Result<Tensor> {
        match value {
            NestedValue::Tensor(tensor) => Ok(tensor),
            other => Err(other.is_not("a tensor")),
        }
    }

    fn has_type(&self, ty: &TraceType, _: &mut Aliases) -> bool {
        let TraceType::Tensor(spec) = ty else { return false };
        spec.dtype == self.dtype() && spec.name.is_empty() && self.has_shape(&spec.shape)
    }

    fn leaves(&self, _: &mut Aliases, leaves: &mut TensorLeaves) {
        leaves.push(self.clone());
    }

    fn from_leaves(ty: &TraceType, tensors: &mut dyn Iterator<Item = Tensor>) -> Result<Tensor> {
        match ty {
            TraceType::Tensor(_) => next(tensors),
            other => Err(Error::Conversion {
                expected: "a tensor".into(),
                found: format!("a result of type {other}"),
            }),
        }
    }
}

impl Nest for Variable {
    fn to_value(&self) -> NestedValue {
        NestedValue::Variable(self.clone())
    }

    fn from_value(value: NestedValue) -> Result<Variable> {
        match value {
            NestedValue::Variable(variable) => Ok(variable),
            other => Err(other.is_not("a variable")),
        }
    }

    fn has_type(&self, ty: &TraceType, aliases: &mut Aliases) -> bool {
        let TraceType::Variable(spec) = ty else { return false };
        variable_spec(self, aliases) == *spec
    }

    fn leaves(&self, aliases: &mut Aliases, leaves: &mut TensorLeaves) {
        if aliases.number(self).1 {
            leaves.push(self.handle());
        }
    }
}

macro_rules! literals {
    ($($rust:ty: $variant:ident, |$value:ident| $to:expr, |$literal:ident| $from:expr;)*) => {$(
        impl Nest for $rust {
            fn to_value(&self) -> NestedValue {
                let $value = self;
                NestedValue::Literal(Literal::$variant($to))
            }

            fn from_value(value: NestedValue) -> Result<$rust> {
                if let NestedValue::Literal(Literal::$variant($literal)) = &value
                    && let Some(value) = $from
                {
                    return Ok(value);
                }
                Err(value.is_not(type_name::<$rust>()))
            }

            fn has_type(&self, ty: &TraceType, _: &mut Aliases) -> bool {
                let $value = self;
                matches!(ty, TraceType::Literal(literal) if *literal == Literal::$variant($to))
            }

            fn leaves(&self, _: &mut Aliases, _: &mut TensorLeaves) {}
        }
    )*};
}

literals! {
    bool: Bool, |value| *value, |value| Some(*value);
    i8: Int, |value| (*value).into(), |value| (*value).try_into().ok();
    i16: Int, |value| (*value).into(), |value| (*value).try_into().ok();
    i32: Int, |value| (*value).into(), |value| (*value).try_into().ok();
    i64: Int, |value| *value, |value| Some(*value);
    isize: Int, |value| *value as i64, |value| (*value).try_into().ok();
    u8: UInt, |value| (*value).into(), |value| (*value).try_into().ok();
    u16: UInt, |value| (*value).into(), |value| (*value).try_into().ok();
    u32: UInt, |value| (*value).into(), |value| (*value).try_into().ok();
    u64: UInt, |value| *value, |value| Some(*value);
    usize: UInt, |value| *value as u64, |value| (*value).try_into().ok();
    f32: Float, |value| (*value).into(), |value| Some(*value as f32);
    f64: Float, |value| *value, |value| Some(*value);
    String: Str, |value| value.as_str().into(), |value| Some(value.to_string());
    DType: DType, |value| *value, |value| Some(*value);
    ferroflow_ir::PartialShape: Shape, |value| value.clone(), |value| Some(value.clone());
}

impl Nest for () {
    fn to_value(&self) -> NestedValue {
        NestedValue::None
    }

    fn from_value(value: NestedValue) -> Result<()> {
        match value {
            NestedValue::None => Ok(()),
            other => Err(other.is_not("no value")),
        }
    }
}

impl<T: Nest> Nest for Option<T> {
    fn to_value(&self) -> NestedValue {
        self.as_ref().map_or(NestedValue::None, Nest::to_value)
    }

    fn from_value(value: NestedValue) -> Result<Option<T>> {
        match value {
            NestedValue::None => Ok(None),
            value => T::from_value(value).map(Some),
        }
    }

    fn has_type(&self, ty: &TraceType, aliases: &mut Aliases) -> bool {
        match self {
            None => *ty == TraceType::None,
            Some(value) => value.has_type(ty, aliases),
        }
    }

    fn leaves(&self, aliases: &mut Aliases, leaves: &mut TensorLeaves) {
        self.iter().for_each(|value| value.leaves(aliases, leaves));
    }
}

fn have_types<T: Nest>(items: &[T], ty: &TraceType, aliases: &mut Aliases) -> bool {
    let TraceType::List(types) = ty else { return false };
    let mut pairs = items.iter().zip(types);
    items.len() == types.len() && pairs.all(|(item, ty)| item.has_type(ty, aliases))
}

impl<T: Nest> Nest for Vec<T> {
    fn to_value(&self) -> NestedValue {
        NestedValue::List(self.iter().map(Nest::to_value).collect())
    }

    fn from_value(value: NestedValue) -> Result<Vec<T>> {
        match value {
            NestedValue::List(items) => items.into_iter().map(T::from_value).collect(),
            other => Err(other.is_not("a list")),
        }
    }

    fn has_type(&self, ty: &TraceType, aliases: &mut Aliases) -> bool {
        have_types(self, ty, aliases)
    }

    fn leaves(&self, aliases: &mut Aliases, leaves: &mut TensorLeaves) {
        self.iter().for_each(|item| item.leaves(aliases, leaves));
    }
}

impl<T: Nest, const N: usize> Nest for [T; N] {
    fn to_value(&self) -> NestedValue {
        NestedValue::List(self.iter().map(Nest::to_value).collect())
    }

    fn from_value(value: NestedValue) -> Result<[T; N]> {
        let items: Vec<T> = Vec::from_value(value)?;
        let (expected, found) = (format!("{N} values"), format!("{}", items.len()));
        items.try_into().map_err(|_| Error::Conversion { expected, found })
    }

    fn has_type(&self, ty: &TraceType, aliases: &mut Aliases) -> bool {
        have_types(self, ty, aliases)
    }

    fn leaves(&self, aliases: &mut Aliases, leaves: &mut TensorLeaves) {
        self.iter().for_each(|item| item.leaves(aliases, leaves));
    }
}

impl<T: Nest> Nest for BTreeMap<String, T> {
    fn to_value(&self) -> NestedValue {
        let keyed =
            |(key, value): (&String, &T)| (MapKey::Str(key.as_str().into()), value.to_value());
        NestedValue::Dict(self.iter().map(keyed).collect())
    }

    fn from_value(value: NestedValue) -> Result<BTreeMap<String, T>> {
        let NestedValue::Dict(entries) = value else { return Err(value.is_not("a map")) };
        let keyed = |(key, value): (MapKey, NestedValue)| match key {
            MapKey::Str(key) => Ok((key.to_string(), T::from_value(value)?)),
            MapKey::Int(key) => {
                Err(Error::Conversion { expected: "names as keys".into(), found: format!("{key}") })
            }
        };
        entries.into_iter().map(keyed).collect()
    }
}

impl<T: Nest> Nest for HashMap<String, T> {
    fn to_value(&self) -> NestedValue {
        let keyed =
            |(key, value): (&String, &T)| (MapKey::Str(key.as_str().into()), value.to_value());
        NestedValue::Dict(self.iter().map(keyed).collect())
    }

    fn from_value(value: NestedValue) -> Result<HashMap<String, T>> {
        Ok(BTreeMap::from_value(value)?.into_iter().collect())
    }
}

/// An object: the trace is for this very one, as long as it lives.
impl<T: Any + Send + Sync> Nest for Arc<T> {
    fn to_value(&self) -> NestedValue {
        NestedValue::Custom(custom::by_identity(self))
    }

    fn from_value(value: NestedValue) -> Result<Arc<T>> {
        custom::object(&value)
    }
}

impl Nest for NestedValue {
    fn to_value(&self) -> NestedValue {
        self.clone()
    }

    fn from_value(value: NestedValue) -> Result<NestedValue> {
        Ok(value)
    }
}

macro_rules! tuples {
    ($($($name:ident)*;)*) => {$(
        impl<$($name: Nest),*> Nest for ($($name,)*) {
            fn to_value(&self) -> NestedValue {
                let ($($name,)*) = self;
                NestedValue::Tuple(vec![$($name.to_value()),*])
            }

            fn from_value(value: NestedValue) -> Result<Self> {
                let NestedValue::Tuple(items) = value else { return Err(value.is_not("a tuple")) };
                let expected = [$(stringify!($name)),*].len();
                if items.len() != expected {
                    let expected = &format!("a tuple of {expected}");
                    return Err(NestedValue::Tuple(items).is_not(expected));
                }
                let mut items = items.into_iter();
                Ok(($($name::from_value(items.next().unwrap_or_default())?,)*))
            }

            fn has_type(&self, ty: &TraceType, aliases: &mut Aliases) -> bool {
                let ($($name,)*) = self;
                let TraceType::Tuple(types) = ty else { return false };
                let mut types = types.iter();
                $(types.next().is_some_and(|ty| $name.has_type(ty, aliases)) &&)*
                    types.next().is_none()
            }

            fn leaves(&self, aliases: &mut Aliases, leaves: &mut TensorLeaves) {
                let ($($name,)*) = self;
                $($name.leaves(aliases, leaves);)*
            }
        }
    )*};
}

tuples! {
    A;
    A B;
    A B C;
    A B C D;
    A B C D E;
    A B C D E F;
    A B C D E F G;
    A B C D E F G H;
}
