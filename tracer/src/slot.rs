//! Functions that are made when they are first called, and live as long as the program.

use std::{any::Any, sync::OnceLock};

/// Where a `static` keeps a function. Unlike a `LazyLock` it does not name the type, so that
/// `#[function]` may write it down before it is known whether there is such a function.
///
/// ```
/// use ferroflow_tracer::{Function, Tensor, function, slot::Slot};
/// fn double() -> &'static Function<(Tensor,), Tensor> {
///     static DOUBLE: Slot = Slot::new();
///     DOUBLE.get_or_init(|| function(|x: Tensor| &x + &x))
/// }
/// assert!(std::ptr::eq(double(), double()));
/// ```
#[derive(Default)]
pub struct Slot(OnceLock<Box<dyn Any + Send + Sync>>);

impl Slot {
    /// An empty slot.
    pub const fn new() -> Slot {
        Slot(OnceLock::new())
    }

    /// What the slot holds, made if it is empty.
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
