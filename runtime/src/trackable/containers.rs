//! Containers and values of the standard library as objects.

use super::{Description, Identity, ObjectKind, Trackable};
use crate::variable::ResourceVariable;
use ferroflow_ir::DType;
use std::{
    collections::{BTreeMap, HashMap},
    fmt::Display,
    marker::PhantomData,
    path::PathBuf,
    sync::{Arc, Mutex, OnceLock, PoisonError, RwLock},
};

impl Trackable for ResourceVariable {
    fn describe(&self, object: &mut Description<'_>) {
        object.is(ObjectKind::Variable(self.clone()));
    }

    fn identity(&self) -> Option<Identity> {
        Some(Identity::of_resource(&self.handle()))
    }
}

/// The names by which TensorFlow knows containers.
const LIST: &str = "trackable_list_wrapper";
const TUPLE: &str = "trackable_tuple_wrapper";
const DICT: &str = "trackable_dict_wrapper";

fn describe_list<'a, T: Trackable + 'a>(
    items: impl Iterator<Item = &'a T>,
    object: &mut Description<'_>,
) {
    object.has_type(LIST);
    for (index, item) in items.enumerate() {
        object.child(index.to_string(), item);
    }
}

impl<T: Trackable> Trackable for Vec<T> {
    fn describe(&self, object: &mut Description<'_>) {
        describe_list(self.iter(), object);
    }
}

impl<T: Trackable, const N: usize> Trackable for [T; N] {
    fn describe(&self, object: &mut Description<'_>) {
        describe_list(self.iter(), object);
    }
}

impl<K: Display + Ord, T: Trackable> Trackable for BTreeMap<K, T> {
    fn describe(&self, object: &mut Description<'_>) {
        object.has_type(DICT);
        for (name, child) in self {
            object.child(name.to_string(), child);
        }
    }
}

impl<K: Display + Ord, T: Trackable, S> Trackable for HashMap<K, T, S> {
    fn describe(&self, object: &mut Description<'_>) {
        object.has_type(DICT);
        let mut sorted: Vec<_> = self.iter().collect();
        sorted.sort_by_key(|(name, _)| *name);
        for (name, child) in sorted {
            object.child(name.to_string(), child);
        }
    }
}

/// Describes a container as the object inside.
macro_rules! same_as_inner {
    ($($pointer:ty),*) => {$(
        impl<T: Trackable + ?Sized> Trackable for $pointer {
            fn describe(&self, object: &mut Description<'_>) {
                (**self).describe(object);
            }

            fn identity(&self) -> Option<Identity> {
                (**self).identity()
            }

            fn hand_on(&self, to: &mut dyn FnMut(&dyn Trackable)) -> bool {
                (**self).hand_on(to)
            }
        }
    )*};
}

same_as_inner!(&T, Box<T>);

impl<T: Trackable + ?Sized> Trackable for Arc<T> {
    fn describe(&self, object: &mut Description<'_>) {
        (**self).describe(object);
    }

    /// The object behind a lock is looked at only when the container is known not to have been
    /// reached before, so that objects may lead to each other in a circle.
    fn identity(&self) -> Option<Identity> {
        let own = || Identity::of_address(Arc::as_ptr(self).cast::<()>() as usize);
        Some((**self).identity().unwrap_or_else(own))
    }
}

/// Describes a container that may be empty.
macro_rules! optional {
    ($($option:ident: $get:ident),*) => {$(
        impl<T: Trackable> Trackable for $option<T> {
            fn describe(&self, object: &mut Description<'_>) {
                if let Some(value) = self.$get() {
                    value.describe(object);
                }
            }

            fn identity(&self) -> Option<Identity> {
                self.$get()?.identity()
            }

            fn hand_on(&self, to: &mut dyn FnMut(&dyn Trackable)) -> bool {
                self.$get().into_iter().for_each(|value| to(value));
                true
            }
        }
    )*};
}

optional!(Option: as_ref, OnceLock: get);

/// Describes the object behind a lock, which is held meanwhile.
macro_rules! behind_lock {
    ($($lock:ident: $enter:ident),*) => {$(
        impl<T: Trackable> Trackable for $lock<T> {
            fn describe(&self, object: &mut Description<'_>) {
                self.$enter().unwrap_or_else(PoisonError::into_inner).describe(object);
            }

            fn hand_on(&self, to: &mut dyn FnMut(&dyn Trackable)) -> bool {
                to(&*self.$enter().unwrap_or_else(PoisonError::into_inner));
                true
            }
        }
    )*};
}

behind_lock!(Mutex: lock, RwLock: read);

/// Plain values are part of no graph.
macro_rules! plain {
    ($($ty:ty),*) => {$(
        impl Trackable for $ty {
            fn describe(&self, _: &mut Description<'_>) {}

            fn hand_on(&self, _: &mut dyn FnMut(&dyn Trackable)) -> bool {
                true
            }
        }
    )*};
}

plain!((), bool, char, i8, i16, i32, i64, isize, u8, u16, u32, u64, usize, f32, f64);
plain!(str, String, DType, PathBuf);

impl<T> Trackable for PhantomData<T> {
    fn describe(&self, _: &mut Description<'_>) {}

    fn hand_on(&self, _: &mut dyn FnMut(&dyn Trackable)) -> bool {
        true
    }
}

macro_rules! tuples {
    ($($($name:ident $index:tt)*;)*) => {$(
        impl<$($name: Trackable),*> Trackable for ($($name,)*) {
            fn describe(&self, object: &mut Description<'_>) {
                object.has_type(TUPLE);
                $(object.child(stringify!($index), &self.$index);)*
            }
        }
    )*};
}

tuples! {
    A 0;
    A 0 B 1;
    A 0 B 1 C 2;
    A 0 B 1 C 2 D 3;
    A 0 B 1 C 2 D 3 E 4;
    A 0 B 1 C 2 D 3 E 4 F 5;
    A 0 B 1 C 2 D 3 E 4 F 5 G 6;
    A 0 B 1 C 2 D 3 E 4 F 5 G 6 H 7;
}
