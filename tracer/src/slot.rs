//! Functions that are made when they are first called, and live as long as the program.

use crate::sync::RwLock;
use std::{
    any::{Any, TypeId},
    collections::BTreeMap,
    sync::OnceLock,
};

/// Where a `static` keeps a function. Unlike a `LazyLock` it does not name the type, so that
/// `#[function]` may write it down before it is known whether there is such a function.
///
/// ```
/// use ferroflow_tracer::{Function, Tensor, function, slot::FunctionSlot};
/// fn double() -> &'static Function<(Tensor,), Tensor> {
///     static DOUBLE: FunctionSlot = FunctionSlot::new();
///     DOUBLE.get_or_init(|| function(|x: Tensor| &x + &x))
/// }
/// assert!(std::ptr::eq(double(), double()));
/// ```
#[derive(Default)]
pub struct FunctionSlot(OnceLock<Box<dyn Any + Send + Sync>>);

impl FunctionSlot {
    /// An empty slot.
    pub const fn new() -> FunctionSlot {
        FunctionSlot(OnceLock::new())
    }

    /// Value of the slot, made if it is empty.
    ///
    /// # Panics
    ///
    /// When it holds something of another type.
    pub fn get_or_init<T: Any + Send + Sync>(
        &'static self,
        make: impl FnOnce() -> T,
    ) -> &'static T {
        let value = self.0.get_or_init(|| Box::new(make()));
        value.downcast_ref().expect("a slot holds values of one type")
    }
}

/// Where a `static` keeps the functions that a generic one is: one for each choice of its parameters,
/// which a type stands for.
///
/// ```
/// use ferroflow_tracer::{Function, Tensor, function, slot::Slots};
/// struct Times<const N: i32>;
/// fn times<const N: i32>() -> &'static Function<(Tensor,), Tensor> {
///     static TIMES: Slots = Slots::new();
///     TIMES.get_or_init::<Times<N>, _>(|| function(|x: Tensor| &x * N))
/// }
/// assert!(std::ptr::eq(times::<2>(), times::<2>()));
/// assert!(!std::ptr::eq(times::<2>(), times::<3>()));
/// ```
#[derive(Default)]
pub struct Slots(RwLock<BTreeMap<TypeId, &'static (dyn Any + Send + Sync)>>);

impl Slots {
    /// No function yet.
    pub const fn new() -> Slots {
        Slots(RwLock::new(BTreeMap::new()))
    }

    /// The function for the choice `K`, made if there is none.
    ///
    /// # Panics
    ///
    /// When that is of another type.
    pub fn get_or_init<K: 'static, T: Any + Send + Sync>(
        &'static self,
        make: impl FnOnce() -> T,
    ) -> &'static T {
        let key = TypeId::of::<K>();
        let found = self.0.read().get(&key).copied();
        // Making one may ask for others.
        let value = found.unwrap_or_else(|| {
            let made: &'static (dyn Any + Send + Sync) = Box::leak(Box::new(make()));
            *self.0.write().entry(key).or_insert(made)
        });
        value.downcast_ref().expect("a slot holds values of one type")
    }
}
