//! Attributes: the compile-time arguments of ops.

use crate::{
    dtype::DType,
    error::{Error, Result},
    expr::Expr,
    host_tensor::HostTensor,
    op::AttrKind,
    shape::PartialShape,
};
use bytes::Bytes;
use std::{fmt, sync::Arc};

/// A function or an op by name, with what it is instantiated with.
#[derive(Clone, PartialEq, Debug)]
pub struct NameAttrList {
    /// Its name.
    pub name: Arc<str>,
    /// Its attributes.
    pub attrs: Attrs,
    /// The scalar expression of an op that holds one. Only graphs in memory have it: a file does not.
    pub expr: Option<Arc<Expr>>,
}

impl NameAttrList {
    /// A function without attributes.
    pub fn new(name: impl Into<Arc<str>>) -> NameAttrList {
        NameAttrList::with_attrs(name, Attrs::default())
    }

    /// A function or an op with attributes.
    pub fn with_attrs(name: impl Into<Arc<str>>, attrs: Attrs) -> NameAttrList {
        NameAttrList { name: name.into(), attrs, expr: None }
    }
}

impl fmt::Display for NameAttrList {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "@{}", self.name)?;
        let Some(expr) = &self.expr else { return Ok(()) };
        match self.attrs.func("anchor") {
            Ok(anchor) => write!(f, "({anchor} = {expr})"),
            Err(_) => write!(f, "({expr})"),
        }
    }
}

/// The value of an attribute.
#[derive(Clone, PartialEq)]
pub enum AttrValue {
    /// A byte string, mostly UTF-8.
    String(Bytes),
    /// An integer.
    Int(i64),
    /// A float.
    Float(f32),
    /// A flag.
    Bool(bool),
    /// A dtype.
    Type(DType),
    /// A shape.
    Shape(PartialShape),
    /// A tensor.
    Tensor(HostTensor),
    /// A function.
    Func(NameAttrList),
    /// The name of an attribute of the surrounding function, to be replaced by its value.
    Placeholder(String),
    /// A list of byte strings.
    Strings(Vec<Bytes>),
    /// A list of integers.
    Ints(Vec<i64>),
    /// A list of floats.
    Floats(Vec<f32>),
    /// A list of flags.
    Bools(Vec<bool>),
    /// A list of dtypes.
    Types(Vec<DType>),
    /// A list of shapes.
    Shapes(Vec<PartialShape>),
    /// A list of tensors.
    Tensors(Vec<HostTensor>),
    /// A list of functions.
    Funcs(Vec<NameAttrList>),
}

impl AttrValue {
    /// A string value.
    pub fn string(text: impl Into<String>) -> AttrValue {
        AttrValue::String(Bytes::from(text.into()))
    }

    /// The number of entries: of a list, or what an integer counts.
    pub fn length(&self) -> Option<i64> {
        let length = match self {
            AttrValue::Int(count) => return Some(*count),
            AttrValue::Strings(list) => list.len(),
            AttrValue::Ints(list) => list.len(),
            AttrValue::Floats(list) => list.len(),
            AttrValue::Bools(list) => list.len(),
            AttrValue::Types(list) => list.len(),
            AttrValue::Shapes(list) => list.len(),
            AttrValue::Tensors(list) => list.len(),
            AttrValue::Funcs(list) => list.len(),
            AttrValue::String(_)
            | AttrValue::Float(_)
            | AttrValue::Bool(_)
            | AttrValue::Type(_)
            | AttrValue::Shape(_)
            | AttrValue::Tensor(_)
            | AttrValue::Func(_)
            | AttrValue::Placeholder(_) => return None,
        };
        Some(length as i64)
    }

    /// The kind of this value; `None` for a placeholder, which stands for any kind.
    pub fn kind(&self) -> Option<AttrKind> {
        Some(match self {
            AttrValue::String(_) => AttrKind::String,
            AttrValue::Int(_) => AttrKind::Int,
            AttrValue::Float(_) => AttrKind::Float,
            AttrValue::Bool(_) => AttrKind::Bool,
            AttrValue::Type(_) => AttrKind::Type,
            AttrValue::Shape(_) => AttrKind::Shape,
            AttrValue::Tensor(_) => AttrKind::Tensor,
            AttrValue::Func(_) => AttrKind::Func,
            AttrValue::Placeholder(_) => return None,
            AttrValue::Strings(_) => AttrKind::Strings,
            AttrValue::Ints(_) => AttrKind::Ints,
            AttrValue::Floats(_) => AttrKind::Floats,
            AttrValue::Bools(_) => AttrKind::Bools,
            AttrValue::Types(_) => AttrKind::Types,
            AttrValue::Shapes(_) => AttrKind::Shapes,
            AttrValue::Tensors(_) => AttrKind::Tensors,
            AttrValue::Funcs(_) => AttrKind::Funcs,
        })
    }

    /// Whether this is a list without elements. On the wire such a list has no kind of its own,
    /// so it may stand for a list of any kind.
    pub fn is_empty_list(&self) -> bool {
        match self {
            AttrValue::Strings(list) => list.is_empty(),
            AttrValue::Ints(list) => list.is_empty(),
            AttrValue::Floats(list) => list.is_empty(),
            AttrValue::Bools(list) => list.is_empty(),
            AttrValue::Types(list) => list.is_empty(),
            AttrValue::Shapes(list) => list.is_empty(),
            AttrValue::Tensors(list) => list.is_empty(),
            AttrValue::Funcs(list) => list.is_empty(),
            AttrValue::String(_)
            | AttrValue::Int(_)
            | AttrValue::Float(_)
            | AttrValue::Bool(_)
            | AttrValue::Type(_)
            | AttrValue::Shape(_)
            | AttrValue::Tensor(_)
            | AttrValue::Func(_)
            | AttrValue::Placeholder(_) => false,
        }
    }
}

macro_rules! attr_from {
    ($($rust:ty => $variant:ident),* $(,)?) => {
        $(impl From<$rust> for AttrValue {
            fn from(value: $rust) -> AttrValue { AttrValue::$variant(value) }
        })*
    };
}

attr_from! {
    i64 => Int, f32 => Float, bool => Bool, DType => Type, PartialShape => Shape,
    HostTensor => Tensor, NameAttrList => Func, Vec<i64> => Ints, Vec<f32> => Floats,
    Vec<bool> => Bools, Vec<DType> => Types, Vec<PartialShape> => Shapes, Vec<Bytes> => Strings,
}

macro_rules! attr_from_slices {
    ($($rust:ty => $variant:ident),* $(,)?) => {
        $(impl From<&[$rust]> for AttrValue {
            fn from(list: &[$rust]) -> AttrValue { AttrValue::$variant(list.to_vec()) }
        })*
    };
}

attr_from_slices! {
    i64 => Ints, f32 => Floats, bool => Bools, DType => Types, PartialShape => Shapes,
    HostTensor => Tensors, NameAttrList => Funcs,
}

impl From<&[&str]> for AttrValue {
    fn from(list: &[&str]) -> AttrValue {
        AttrValue::Strings(
            list.iter().map(|text| Bytes::copy_from_slice(text.as_bytes())).collect(),
        )
    }
}

impl From<&[String]> for AttrValue {
    fn from(list: &[String]) -> AttrValue {
        AttrValue::Strings(list.iter().map(|text| Bytes::from(text.clone())).collect())
    }
}

impl From<&str> for AttrValue {
    fn from(text: &str) -> AttrValue {
        AttrValue::string(text)
    }
}

impl fmt::Debug for AttrValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl fmt::Display for AttrValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            AttrValue::String(text) => write!(f, "{:?}", String::from_utf8_lossy(text)),
            AttrValue::Int(value) => write!(f, "{value}"),
            AttrValue::Float(value) => write!(f, "{value:?}"),
            AttrValue::Bool(value) => write!(f, "{value}"),
            AttrValue::Type(dtype) => write!(f, "{dtype}"),
            AttrValue::Shape(shape) => write!(f, "{shape}"),
            AttrValue::Tensor(tensor) => write!(f, "{tensor:?}"),
            AttrValue::Func(function) => write!(f, "{function}"),
            AttrValue::Placeholder(name) => write!(f, "${name}"),
            AttrValue::Strings(list) => f
                .debug_list()
                .entries(list.iter().map(|text| String::from_utf8_lossy(text)))
                .finish(),
            AttrValue::Ints(list) => write!(f, "{list:?}"),
            AttrValue::Floats(list) => write!(f, "{list:?}"),
            AttrValue::Bools(list) => write!(f, "{list:?}"),
            AttrValue::Types(list) => {
                let names: Vec<_> = list.iter().map(|dtype| dtype.name()).collect();
                write!(f, "[{}]", names.join(", "))
            }
            AttrValue::Shapes(list) => write!(f, "{list:?}"),
            AttrValue::Tensors(list) => write!(f, "{list:?}"),
            AttrValue::Funcs(list) => {
                let names: Vec<_> = list.iter().map(NameAttrList::to_string).collect();
                write!(f, "[{}]", names.join(", "))
            }
        }
    }
}

/// The attributes of one node, in the order of their names.
#[derive(Clone, PartialEq, Default)]
pub struct Attrs(Vec<(Box<str>, AttrValue)>);

macro_rules! getters {
    ($($(#[$doc:meta])* $name:ident -> $type:ty, $variant:ident($value:ident) => $result:expr;)*) => {
        $(
            $(#[$doc])*
            ///
            /// # Errors
            ///
            /// [`Error::Argument`] when it is absent or of another kind.
            pub fn $name(&self, name: &str) -> Result<$type> {
                match self.get(name) {
                    Some(AttrValue::$variant($value)) => Ok($result),
                    other => Err(self.wrong(name, stringify!($variant), other)),
                }
            }
        )*
    };
}

impl Attrs {
    /// No attributes.
    pub fn new() -> Attrs {
        Attrs::default()
    }

    /// Sets an attribute, replacing an earlier value.
    pub fn set(&mut self, name: impl Into<Box<str>>, value: impl Into<AttrValue>) {
        let (name, value) = (name.into(), value.into());
        match self.index_of(&name) {
            Ok(at) => self.0[at].1 = value,
            Err(at) => self.0.insert(at, (name, value)),
        }
    }

    /// These attributes with one more set.
    #[must_use]
    pub fn with(mut self, name: impl Into<Box<str>>, value: impl Into<AttrValue>) -> Attrs {
        self.set(name, value);
        self
    }

    /// The value of an attribute.
    pub fn get(&self, name: &str) -> Option<&AttrValue> {
        self.index_of(name).ok().map(|at| &self.0[at].1)
    }

    /// Where an attribute is, or would be.
    fn index_of(&self, name: &str) -> std::result::Result<usize, usize> {
        self.0.binary_search_by(|(known, _)| (**known).cmp(name))
    }

    /// Removes an attribute.
    pub fn remove(&mut self, name: &str) -> Option<AttrValue> {
        self.index_of(name).ok().map(|at| self.0.remove(at).1)
    }

    /// Names and values, in the order of the names.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &AttrValue)> {
        self.0.iter().map(|(name, value)| (&**name, value))
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    getters! {
        /// The integer `name`.
        int -> i64, Int(value) => *value;
        /// The float `name`.
        float -> f32, Float(value) => *value;
        /// The flag `name`.
        bool -> bool, Bool(value) => *value;
        /// The dtype `name`.
        dtype -> DType, Type(value) => *value;
        /// The shape `name`.
        shape -> &PartialShape, Shape(value) => value;
        /// The tensor `name`.
        tensor -> &HostTensor, Tensor(value) => value;
        /// The function `name`.
        func -> &NameAttrList, Func(value) => value;
        /// The byte string `name`.
        bytes -> &Bytes, String(value) => value;
    }

    /// The integer `name` as a number of things in memory.
    ///
    /// # Errors
    ///
    /// [`Error::Argument`] when it is absent, of another kind, negative, or more than can be
    /// addressed.
    pub fn size(&self, name: &str) -> Result<usize> {
        let size = usize::try_from(self.int(name)?);
        size.map_err(|_| self.wrong(name, "a number of things in memory", self.get(name)))
    }

    /// The string `name`, which must be UTF-8.
    ///
    /// # Errors
    ///
    /// [`Error::Argument`] when it is absent or not such a string.
    pub fn string(&self, name: &str) -> Result<&str> {
        let bytes = self.bytes(name)?;
        std::str::from_utf8(bytes).map_err(|_| self.wrong(name, "UTF-8 text", self.get(name)))
    }

    /// The list of integers `name`.
    ///
    /// # Errors
    ///
    /// [`Error::Argument`] when it is absent or of another kind.
    pub fn ints(&self, name: &str) -> Result<&[i64]> {
        self.list(name, "a list of integers", |value| match value {
            AttrValue::Ints(list) => Some(list.as_slice()),
            _ => None,
        })
    }

    /// The list of floats `name`.
    ///
    /// # Errors
    ///
    /// [`Error::Argument`] when it is absent or of another kind.
    pub fn floats(&self, name: &str) -> Result<&[f32]> {
        self.list(name, "a list of floats", |value| match value {
            AttrValue::Floats(list) => Some(list.as_slice()),
            _ => None,
        })
    }

    /// The list of dtypes `name`.
    ///
    /// # Errors
    ///
    /// [`Error::Argument`] when it is absent or of another kind.
    pub fn types(&self, name: &str) -> Result<&[DType]> {
        self.list(name, "a list of dtypes", |value| match value {
            AttrValue::Types(list) => Some(list.as_slice()),
            _ => None,
        })
    }

    /// The list of shapes `name`.
    ///
    /// # Errors
    ///
    /// [`Error::Argument`] when it is absent or of another kind.
    pub fn shapes(&self, name: &str) -> Result<&[PartialShape]> {
        self.list(name, "a list of shapes", |value| match value {
            AttrValue::Shapes(list) => Some(list.as_slice()),
            _ => None,
        })
    }

    /// The list of byte strings `name`.
    ///
    /// # Errors
    ///
    /// [`Error::Argument`] when it is absent or of another kind.
    pub fn strings(&self, name: &str) -> Result<&[Bytes]> {
        self.list(name, "a list of strings", |value| match value {
            AttrValue::Strings(list) => Some(list.as_slice()),
            _ => None,
        })
    }

    /// The list of functions `name`.
    ///
    /// # Errors
    ///
    /// [`Error::Argument`] when it is absent or of another kind.
    pub fn funcs(&self, name: &str) -> Result<&[NameAttrList]> {
        self.list(name, "a list of functions", |value| match value {
            AttrValue::Funcs(list) => Some(list.as_slice()),
            _ => None,
        })
    }

    fn list<'a, T>(
        &'a self,
        name: &str,
        expected: &'static str,
        pick: impl FnOnce(&'a AttrValue) -> Option<&'a [T]>,
    ) -> Result<&'a [T]> {
        match self.get(name) {
            Some(value) if value.is_empty_list() => Ok(&[]),
            Some(value) => pick(value).ok_or_else(|| self.wrong(name, expected, Some(value))),
            None => Err(self.wrong(name, expected, None)),
        }
    }

    fn wrong(&self, name: &str, expected: &'static str, found: Option<&AttrValue>) -> Error {
        let found = found.map_or_else(|| "nothing".to_string(), AttrValue::to_string);
        Error::argument("attribute", name.to_string(), expected, found)
    }
}

impl fmt::Debug for Attrs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.iter()).finish()
    }
}

impl<N: Into<Box<str>>> FromIterator<(N, AttrValue)> for Attrs {
    fn from_iter<I: IntoIterator<Item = (N, AttrValue)>>(pairs: I) -> Attrs {
        let set = |attrs: Attrs, (name, value): (N, AttrValue)| attrs.with(name, value);
        pairs.into_iter().fold(Attrs::new(), set)
    }
}
