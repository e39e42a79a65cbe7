//! Objects as arguments: known by identity, by value, or by their Rust type.
//!
//! For structures made of tensors, prefer a [`Nest`](crate::Nest) over a type with rules of its own:
//! its type is made of those of its fields, so that it is matched and widened like any other.

use crate::{
    error::Result,
    value::{Custom, NestedValue},
};
use ferroflow_ir::{TraceType, trace_type::CustomType};
use std::{
    any::{Any, type_name},
    fmt,
    hash::{DefaultHasher, Hash, Hasher},
    sync::{Arc, Weak},
};

/// The object goes by its identity, and equals no other; the type does not keep it alive.
pub fn by_identity<T: Any + Send + Sync>(object: &Arc<T>) -> Custom {
    known_by(object, |_, _| false)
}

/// The object goes by its identity or its value; the type does not keep it alive.
pub fn by_value<T: Any + Send + Sync + PartialEq>(object: &Arc<T>) -> Custom {
    known_by(object, |a, b| a == b)
}

/// All objects of the Rust type go by one type; a trace sees the one it was made with.
///
/// ```
/// use ferroflow_tracer::{NestedValue, custom, function};
/// use std::sync::Arc;
/// # fn main() -> ferroflow_tracer::Result<()> {
/// let f = function(|_: NestedValue| ());
/// f(NestedValue::Custom(custom::by_type(&Arc::new("a mango"))))?;
/// f(NestedValue::Custom(custom::by_type(&Arc::new("an apple"))))?;
/// assert_eq!(f.tracing_count(), 1);
/// # Ok(())
/// # }
/// ```
pub fn by_type<T: Any + Send + Sync>(object: &Arc<T>) -> Custom {
    kept(object, "ByType", |_, _| true)
}

/// Equal objects go by one type, which keeps the one it was made of; a trace sees that. An object
/// that does not equal itself is traced anew each time.
///
/// ```
/// use ferroflow_tracer::{NestedValue, custom, function};
/// use std::sync::Arc;
/// # fn main() -> ferroflow_tracer::Result<()> {
/// let f = function(|_: NestedValue| ());
/// for fruit in ["a mango", "an apple", "a mango"] {
///     f(NestedValue::Custom(custom::by_kept_value(&Arc::new(fruit))))?;
/// }
/// assert_eq!(f.tracing_count(), 2);
/// # Ok(())
/// # }
/// ```
pub fn by_kept_value<T: Any + Send + Sync + PartialEq>(object: &Arc<T>) -> Custom {
    kept(object, "ByValue", |a, b| a == b)
}

/// Whether `ty` is the type of `object` by [`by_type`] or [`by_kept_value`], whichever made it.
pub fn has_type<T: Any + Send + Sync>(object: &T, ty: &TraceType) -> bool {
    let TraceType::Custom(ty) = ty else { return false };
    let kept = ty.as_any().downcast_ref::<Kept<T>>();
    kept.is_some_and(|kept| (kept.is_same)(object, &kept.object))
}

/// The object of this Rust type in a [`NestedValue::Custom`].
///
/// # Errors
///
/// [`Error::Conversion`](crate::Error::Conversion) when it is something else.
pub fn object<T: Any + Send + Sync>(value: &NestedValue) -> Result<Arc<T>> {
    let is_not = || value.is_not(type_name::<T>());
    let NestedValue::Custom(custom) = value else { return Err(is_not()) };
    custom.value.clone().downcast::<T>().map_err(|_| is_not())
}

fn known_by<T: Any + Send + Sync>(object: &Arc<T>, is_same: fn(&T, &T) -> bool) -> Custom {
    let ty = Known { object: Arc::downgrade(object), is_same };
    Custom { value: object.clone(), ty: Arc::new(ty) }
}

struct Known<T> {
    object: Weak<T>,
    is_same: fn(&T, &T) -> bool,
}

impl<T> fmt::Debug for Known<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = if self.object.strong_count() > 0 { "" } else { ", dropped" };
        write!(f, "Weakref[{}{state}]", type_name::<T>())
    }
}

impl<T: Any + Send + Sync> CustomType for Known<T> {
    fn is_subtype_of(&self, other: &dyn CustomType) -> bool {
        self.is_equal(other)
    }

    fn common_supertype(&self, other: &dyn CustomType) -> Option<Arc<dyn CustomType>> {
        let same = Known { object: self.object.clone(), is_same: self.is_same };
        if self.is_equal(other) { Some(Arc::new(same)) } else { None }
    }

    fn placeholder_value(&self) -> Option<Arc<dyn Any + Send + Sync>> {
        self.object.upgrade().map(|object| object as Arc<dyn Any + Send + Sync>)
    }

    fn is_equal(&self, other: &dyn CustomType) -> bool {
        let Some(other) = other.as_any().downcast_ref::<Known<T>>() else { return false };
        let (Some(a), Some(b)) = (self.object.upgrade(), other.object.upgrade()) else {
            return false;
        };
        Arc::ptr_eq(&a, &b) || (self.is_same)(&a, &b)
    }

    fn hash_value(&self) -> u64 {
        // Objects that are equal by value share no more than their type.
        hash_of(std::any::TypeId::of::<T>())
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

fn kept<T: Any + Send + Sync>(
    object: &Arc<T>,
    rule: &'static str,
    is_same: fn(&T, &T) -> bool,
) -> Custom {
    let ty = Kept { object: object.clone(), rule, is_same };
    Custom { value: object.clone(), ty: Arc::new(ty) }
}

struct Kept<T> {
    object: Arc<T>,
    rule: &'static str,
    is_same: fn(&T, &T) -> bool,
}

impl<T> fmt::Debug for Kept<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}[{}]", self.rule, type_name::<T>())
    }
}

impl<T: Any + Send + Sync> CustomType for Kept<T> {
    fn is_subtype_of(&self, other: &dyn CustomType) -> bool {
        self.is_equal(other)
    }

    fn common_supertype(&self, other: &dyn CustomType) -> Option<Arc<dyn CustomType>> {
        let same = Kept { object: self.object.clone(), ..*self };
        if self.is_equal(other) { Some(Arc::new(same)) } else { None }
    }

    fn placeholder_value(&self) -> Option<Arc<dyn Any + Send + Sync>> {
        Some(self.object.clone())
    }

    fn is_equal(&self, other: &dyn CustomType) -> bool {
        let Some(other) = other.as_any().downcast_ref::<Kept<T>>() else { return false };
        self.rule == other.rule && (self.is_same)(&self.object, &other.object)
    }

    fn hash_value(&self) -> u64 {
        // Objects that are equal by value share no more than their type.
        hash_of((std::any::TypeId::of::<T>(), self.rule))
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

fn hash_of(value: impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    value.hash(&mut hasher);
    hasher.finish()
}
