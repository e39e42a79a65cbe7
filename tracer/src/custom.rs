//! Objects as arguments: known by identity, by value, or by their Rust type.
//!
//! For structures made of tensors, prefer a [`Nest`](crate::Nest) over a type with rules of its own:
//! its type is made of those of its fields, so that it is matched and widened like any other.

use crate::value::Custom;
use ferroflow_ir::trace_type::CustomType;
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
pub fn by_type<T: Any + Send + Sync>(object: &Arc<T>) -> Custom {
    Custom { value: object.clone(), ty: Arc::new(ByType { object: object.clone() }) }
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

struct ByType<T> {
    object: Arc<T>,
}

impl<T> fmt::Debug for ByType<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ByType[{}]", type_name::<T>())
    }
}

impl<T: Any + Send + Sync> CustomType for ByType<T> {
    fn is_subtype_of(&self, other: &dyn CustomType) -> bool {
        self.is_equal(other)
    }

    fn common_supertype(&self, other: &dyn CustomType) -> Option<Arc<dyn CustomType>> {
        let same = ByType { object: self.object.clone() };
        if self.is_equal(other) { Some(Arc::new(same)) } else { None }
    }

    fn placeholder_value(&self) -> Option<Arc<dyn Any + Send + Sync>> {
        Some(self.object.clone())
    }

    fn is_equal(&self, other: &dyn CustomType) -> bool {
        other.as_any().is::<ByType<T>>()
    }

    fn hash_value(&self) -> u64 {
        hash_of(std::any::TypeId::of::<ByType<T>>())
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
