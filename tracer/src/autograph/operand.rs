//! Operands of operators: those that other operators give (see [`ops`](crate::ops)), and tensors
//! under the comparisons of Rust, which are refused with the way on.

use crate::{
    error::{Error, Result},
    tensor::Tensor,
};

/// Operand of an operator that is the result of another: asks by its type whether that may have
/// failed.
#[derive(Debug)]
pub struct NestedOperand<T>(pub T);

impl NestedOperand<Result<Tensor>> {
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

impl<T> AnyOperand for NestedOperand<T> {
    type Value = T;

    fn value(self) -> Result<T, Error> {
        Ok(self.0)
    }
}

/// Operand of a comparison of Rust: asks by its type whether it can.
#[derive(Debug)]
pub struct Compared<'a, T: ?Sized>(pub &'a T);

/// A tensor has no comparison of Rust: that of its elements is a tensor.
#[derive(Debug)]
pub struct TensorComparison;

impl Compared<'_, Tensor> {
    /// Kind of the comparison.
    pub fn kind(&self) -> TensorComparison {
        TensorComparison
    }
}

impl Compared<'_, &Tensor> {
    /// Kind of the comparison.
    pub fn kind(&self) -> TensorComparison {
        TensorComparison
    }
}

/// Comparisons of values of Rust.
pub trait AnyCompared {
    /// Kind of the comparison.
    fn kind(&self) {}
}

impl<T: ?Sized> AnyCompared for Compared<'_, T> {}

/// Operands that the operators of Rust compare.
#[diagnostic::on_unimplemented(
    message = "tensors are compared by methods: `x.lt(10.0)?`, `le`, `gt`, `ge`, `eq` and `ne`",
    label = "a comparison of tensors gives a tensor, not a `bool`",
    note = "`if x.lt(10.0)? {{ .. }}` is a choice of the graph"
)]
pub trait Comparable {}

impl Comparable for () {}

/// Checks that Rust compares what is compared.
pub fn comparable<K: Comparable>(_: K) {}
