//! Operands of operators: those that other operators give (see [`ops`](crate::ops)), and tensors
//! under the comparisons of Rust, which are refused with the way on.

use crate::{
    error::{Error, Result},
    tensor::Tensor,
};

/// What an operator takes from another one: asks by its type whether that may have failed.
#[derive(Debug)]
pub struct Operand<T>(pub T);

impl Operand<Result<Tensor>> {
    /// The tensor that an operator of tensors gave.
    ///
    /// # Errors
    ///
    /// That of the operator.
    pub fn value(self) -> Result<Tensor> {
        self.0
    }
}

/// An operand of Rust's own operators.
pub trait AnyOperand {
    /// Its type.
    type Value;

    /// The operand as it is.
    ///
    /// # Errors
    ///
    /// None.
    fn value(self) -> Result<Self::Value, Error>;
}

impl<T> AnyOperand for Operand<T> {
    type Value = T;

    fn value(self) -> Result<T, Error> {
        Ok(self.0)
    }
}

/// What a comparison of Rust compares: asks by its type whether it can.
#[derive(Debug)]
pub struct Compared<'a, T: ?Sized>(pub &'a T);

/// A tensor has no comparison of Rust: that of its elements is a tensor.
#[derive(Debug)]
pub struct TensorComparison;

impl Compared<'_, Tensor> {
    /// What is compared.
    pub fn kind(&self) -> TensorComparison {
        TensorComparison
    }
}

impl Compared<'_, &Tensor> {
    /// What is compared.
    pub fn kind(&self) -> TensorComparison {
        TensorComparison
    }
}

/// What values of Rust compare.
pub trait AnyCompared {
    /// What is compared.
    fn kind(&self) {}
}

impl<T: ?Sized> AnyCompared for Compared<'_, T> {}

/// What the operators of Rust compare.
#[diagnostic::on_unimplemented(
    message = "tensors are compared by methods: `x.lt(10.0)?`, `le`, `gt`, `ge`, `eq` and `ne`",
    label = "a comparison of tensors gives a tensor, not a `bool`",
    note = "`if x.lt(10.0)? {{ .. }}` is a choice of the graph"
)]
pub trait Comparable {}

impl Comparable for () {}

/// Checks that Rust compares what is compared.
pub fn comparable<K: Comparable>(_: K) {}
