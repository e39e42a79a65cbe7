//! Values that graphs can carry: what branches give, and what loops change.

use super::kind::{Carries, Control};
use crate::{
    control_flow::TensorArray, error::Result, nest::Nest, tensor::Tensor, value::NestedValue,
    variable::Variable,
};
use std::collections::{BTreeMap, HashMap};

/// A value made of tensors, which a branch or loop of a graph can change.
///
/// Numbers of Rust are not: they are known when the graph is made. Derived with
/// [`Nest`](macro@crate::Nest); fields that are no tensors must then stay the same.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be carried by `if`, `while` or `for` whose condition is a Tensor",
    label = "assigned or produced under a condition that is a Tensor, so it must be made of tensors",
    note = "a value of Rust is known while tracing and cannot depend on a Tensor: make it a `Tensor`, \
            or a tuple, `Vec` or `#[derive(Nest)]` structure of tensors; a reference is cloned"
)]
pub trait Carry: Nest {}

impl Carry for Tensor {}
impl Carry for Variable {}
impl Carry for NestedValue {}
impl Carry for TensorArray {}
impl Carry for () {}
impl<T: Carry> Carry for Option<T> {}
impl<T: Carry> Carry for Vec<T> {}
impl<T: Carry, const N: usize> Carry for [T; N] {}
impl<T: Carry> Carry for BTreeMap<String, T> {}
impl<T: Carry> Carry for HashMap<String, T> {}

macro_rules! tuples {
    ($($($name:ident)*;)*) => {$(
        impl<$($name: Carry),*> Carry for ($($name,)*) {}
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

/// Results of a branch or a function: a value, or a failure.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be the value of code whose condition is a Tensor",
    label = "produced under a condition that is a Tensor, so it must be made of tensors",
    note = "a value of Rust is known while tracing and cannot depend on a Tensor: make it a `Tensor`, \
            or a tuple, `Vec` or `#[derive(Nest)]` structure of tensors; a reference is cloned"
)]
pub trait FunctionResult: Sized {
    /// The value.
    ///
    /// # Errors
    ///
    /// The failure itself.
    fn into_value(self) -> std::result::Result<NestedValue, Self>;

    /// Converts a value back.
    ///
    /// # Errors
    ///
    /// When it has another structure.
    fn from_value(value: NestedValue) -> Result<Self>;
}

impl<T: Carry> FunctionResult for T {
    fn into_value(self) -> std::result::Result<NestedValue, T> {
        Ok(self.to_value())
    }

    fn from_value(value: NestedValue) -> Result<T> {
        Nest::from_value(value)
    }
}

impl<T: Carry, E> FunctionResult for std::result::Result<T, E> {
    fn into_value(self) -> std::result::Result<NestedValue, Self> {
        match self {
            Ok(value) => Ok(value.to_value()),
            Err(error) => Err(Err(error)),
        }
    }

    fn from_value(value: NestedValue) -> Result<Self> {
        Ok(Ok(T::from_value(value)?))
    }
}

/// A place whose value can be taken and set.
pub trait Assignable {
    /// The value.
    fn get(&self) -> NestedValue;

    /// Sets the value.
    ///
    /// # Errors
    ///
    /// When it has another structure.
    fn set(&mut self, value: NestedValue) -> Result<()>;
}

impl<T: Nest> Assignable for T {
    fn get(&self) -> NestedValue {
        self.to_value()
    }

    fn set(&mut self, value: NestedValue) -> Result<()> {
        *self = T::from_value(value)?;
        Ok(())
    }
}

/// A variable that a construct changes.
pub struct Var<'a> {
    pub(super) name: &'static str,
    pub(super) place: &'a mut dyn Assignable,
}

impl std::fmt::Debug for Var<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} = {:?}", self.name, self.place.get())
    }
}

/// A variable that the construct changes, by its name in the code.
pub fn carry<'a, C: Control, T>(_: &C, name: &'static str, value: &'a mut T) -> Var<'a>
where
    C::Kind: Carries<T>,
{
    Var { name, place: C::Kind::place(value) }
}

pub(super) fn values(vars: &[Var<'_>]) -> Vec<NestedValue> {
    vars.iter().map(|var| var.place.get()).collect()
}

pub(super) fn set(vars: &mut [Var<'_>], values: &[NestedValue]) -> Result<()> {
    vars.iter_mut().zip(values).try_for_each(|(var, value)| var.place.set(value.clone()))
}

/// Names of the variables in messages.
pub(super) fn names(vars: &[Var<'_>]) -> Vec<String> {
    vars.iter().map(|var| format!("`{}`", var.name)).collect()
}

/// The value of a branch, on its way out.
#[derive(Debug)]
pub struct ValueSlot<V>(pub(super) Option<V>);

impl<V> ValueSlot<V> {
    /// Nothing yet.
    #[expect(clippy::new_without_default, reason = "only macros make it")]
    pub fn new() -> ValueSlot<V> {
        ValueSlot(None)
    }

    /// Keeps the value.
    pub fn put(&mut self, value: V) {
        self.0 = Some(value);
    }

    /// A value like those that are kept.
    pub fn typed(&self, value: V) -> V {
        value
    }

    /// The value.
    pub fn take(&mut self) -> V {
        self.0.take().expect("a branch that ends gives a value")
    }
}
