//! Structures and enums as [`Nest`](crate::Nest)s: what `#[derive(Nest)]` calls.
//!
//! A structure becomes a [`NestedValue::Struct`] of its name, a variant of an enum one that is called
//! `Enum::Variant`; fields without names are called `0`, `1` and so on.

use crate::{
    error::{Error, Result},
    value::NestedValue,
};
use ferroflow_ir::TraceType;
use std::{slice, sync::Arc, vec};

/// A structure of this name with these fields.
///
/// ```
/// use ferroflow_tracer::{Nest, structs};
/// let point = structs::value("Point", [("x", 1.0.into()), ("y", 2.0.into())]);
/// assert_eq!(format!("{point:?}"), "Point(x=1.0, y=2.0)");
/// let mut fields = structs::StructFields::of(point, "Point")?;
/// assert!(fields.are("Point", &["x", "y"]));
/// assert_eq!(f64::from_value(fields.take())?, 1.0);
/// assert_eq!(f64::from_value(fields.take())?, 2.0);
/// # Ok::<(), ferroflow_tracer::Error>(())
/// ```
pub fn value<const N: usize>(name: &str, fields: [(&str, NestedValue); N]) -> NestedValue {
    NestedValue::Struct(name.into(), fields.map(|(key, value)| (key.into(), value)).into())
}

/// The types of the fields, if `ty` is that of a structure of this name with so many.
pub fn types<'a>(
    ty: &'a TraceType,
    name: &str,
    n_fields: usize,
) -> Option<&'a [(Arc<str>, TraceType)]> {
    match ty {
        TraceType::Struct(found, fields) if **found == *name && fields.len() == n_fields => {
            Some(fields)
        }
        _ => None,
    }
}

/// The fields of a structure, taken one by one.
#[derive(Debug)]
pub struct StructFields {
    name: Arc<str>,
    fields: vec::IntoIter<(Arc<str>, NestedValue)>,
}

impl StructFields {
    /// The fields of `value`.
    ///
    /// # Errors
    ///
    /// [`Error::Conversion`] when it is no structure.
    pub fn of(value: NestedValue, expected: &str) -> Result<StructFields> {
        match value {
            NestedValue::Struct(name, fields) => {
                Ok(StructFields { name, fields: fields.into_iter() })
            }
            other => Err(other.is_not(expected)),
        }
    }

    /// Whether they are those of a structure of this name with these fields.
    pub fn are(&self, name: &str, keys: &[&str]) -> bool {
        have_keys(&self.name, self.fields.as_slice(), name, keys)
    }

    /// The next field; no value when there is none left.
    pub fn take(&mut self) -> NestedValue {
        self.fields.next().map(|(_, value)| value).unwrap_or_default()
    }

    /// The error of a structure that is not what it should be.
    pub fn are_not(self, expected: &str) -> Error {
        NestedValue::Struct(self.name, self.fields.collect()).is_not(expected)
    }
}

/// The types of the fields of a structure, taken one by one.
#[derive(Debug)]
pub struct FieldTypes<'a> {
    ty: &'a TraceType,
    name: &'a str,
    fields: slice::Iter<'a, (Arc<str>, TraceType)>,
}

impl<'a> FieldTypes<'a> {
    /// The types of the fields of `ty`.
    ///
    /// # Errors
    ///
    /// [`Error::Conversion`] when it is no structure.
    pub fn of(ty: &'a TraceType, expected: &str) -> Result<FieldTypes<'a>> {
        match ty {
            TraceType::Struct(name, fields) => Ok(FieldTypes { ty, name, fields: fields.iter() }),
            other => Err(is_not(other, expected)),
        }
    }

    /// Whether they are those of a structure of this name with these fields.
    pub fn are(&self, name: &str, keys: &[&str]) -> bool {
        have_keys(self.name, self.fields.as_slice(), name, keys)
    }

    /// The type of the next field; that of no value when there is none left.
    pub fn take(&mut self) -> &'a TraceType {
        self.fields.next().map_or(&TraceType::None, |(_, ty)| ty)
    }

    /// The error of a structure that is not what it should be.
    pub fn are_not(&self, expected: &str) -> Error {
        is_not(self.ty, expected)
    }
}

fn is_not(ty: &TraceType, expected: &str) -> Error {
    Error::Conversion { expected: expected.into(), found: format!("a value of type {ty}") }
}

fn have_keys<T>(found: &str, fields: &[(Arc<str>, T)], name: &str, keys: &[&str]) -> bool {
    found == name && fields.iter().map(|(key, _)| &**key).eq(keys.iter().copied())
}
