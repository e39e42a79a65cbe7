//! `&&`, `||`, `!` and `assert!`, of bools of Rust and of tensors.

use super::{
    frame::{Flows, here},
    kind::{Control, Host, Kind, Staged},
};
use crate::{
    control_flow::stage::{self, ChoiceKind, Closed, RegionTrace, choose},
    error::Result,
    ops,
    tensor::Tensor,
};
use ferroflow_ir::error::SourceLocation;
use std::marker::PhantomData;

/// Result of an operator, with its kind.
#[derive(Debug)]
pub struct LogicResult<K, T> {
    /// The value.
    pub result: Result<T>,
    /// The kind.
    pub control: Of<K>,
}

/// A kind.
#[derive(Debug)]
pub struct Of<K>(PhantomData<fn() -> K>);

impl<K: Kind> Control for Of<K> {
    type Kind = K;

    fn is_live(&self) -> bool {
        false
    }
}

fn logic_result<K, T>(result: Result<T>) -> LogicResult<K, T> {
    LogicResult { result, control: Of(PhantomData) }
}

/// Operands of `&&` and `||`.
#[diagnostic::on_unimplemented(
    message = "`&&` and `||` take a `bool` or a Tensor, not `{Self}`",
    label = "neither `bool` nor `Tensor`",
    note = "comparisons of tensors, such as `x.less(&y)`, give a `Result`: write `?` after them"
)]
pub trait LogicOperand {
    /// The kind.
    type Kind: Kind;

    /// The value, where it is one of Rust or known.
    ///
    /// # Errors
    ///
    /// When a tensor is not one truth value.
    fn known(&self) -> Result<stage::Condition>;
}

impl LogicOperand for bool {
    type Kind = Host;

    fn known(&self) -> Result<stage::Condition> {
        Ok(stage::Condition::Known(*self))
    }
}

impl LogicOperand for Tensor {
    type Kind = Staged;

    fn known(&self) -> Result<stage::Condition> {
        stage::condition(self)
    }
}

impl LogicOperand for &Tensor {
    type Kind = Staged;

    fn known(&self) -> Result<stage::Condition> {
        stage::condition(self)
    }
}

/// The left side of `&&` or `||`.
#[derive(Debug)]
pub struct LeftSide<A> {
    side: A,
    /// The value that asks for the right side.
    asks: bool,
    part: Option<(RegionTrace, Tensor)>,
    known: bool,
    location: SourceLocation,
}

/// Begins an `&&`, for which `asks` is true, or an `||`.
#[track_caller]
pub fn left<A: LogicOperand>(side: A, asks: bool) -> LeftSide<A> {
    LeftSide { side, asks, part: None, known: !asks, location: here() }
}

impl<A: LogicOperand> Control for LeftSide<A> {
    type Kind = A::Kind;

    fn is_live(&self) -> bool {
        self.part.is_some()
    }
}

impl<A: LogicOperand> LeftSide<A> {
    /// Whether the right side is asked for.
    ///
    /// # Errors
    ///
    /// When the left side is not one truth value.
    pub fn asks(&mut self, _: &Flows) -> Result<bool> {
        match self.side.known()? {
            stage::Condition::Known(known) => {
                self.known = known;
                Ok(known == self.asks)
            }
            stage::Condition::Staged(chooser) => {
                let name = if self.asks { "cond_true" } else { "cond_false" };
                self.part = Some((RegionTrace::open(name)?, chooser));
                Ok(true)
            }
        }
    }
}

/// Result of `&&` and `||` for two sides.
#[diagnostic::on_unimplemented(
    message = "`&&` and `||` take a `bool` or a Tensor, not `{Self}`",
    label = "neither `bool` nor `Tensor`",
    note = "comparisons of tensors, such as `x.less(&y)`, give a `Result`: write `?` after them"
)]
pub trait Logic<A>: LogicOperand {
    /// The kind of the whole.
    type Whole: Kind;
    /// `bool` for two of Rust, otherwise `Tensor`.
    type Output;

    /// The value that is known.
    fn of_known(known: bool) -> Self::Output;

    /// The value of the right side.
    fn of_right(self) -> Self::Output;

    /// The right side as a tensor.
    fn tensor(self) -> Tensor;

    /// The tensor that is staged.
    fn of_tensor(tensor: Tensor) -> Self::Output;
}

impl Logic<bool> for bool {
    type Whole = Host;
    type Output = bool;

    fn of_known(known: bool) -> bool {
        known
    }

    fn of_right(self) -> bool {
        self
    }

    fn tensor(self) -> Tensor {
        self.into()
    }

    fn of_tensor(_: Tensor) -> bool {
        unreachable!("truth values of Rust are known")
    }
}

macro_rules! logic_of_tensors {
    ($($left:ty, $right:ty;)*) => {$(
        impl Logic<$left> for $right {
            type Whole = Staged;
            type Output = Tensor;

            fn of_known(known: bool) -> Tensor {
                known.into()
            }

            fn of_right(self) -> Tensor {
                self.into()
            }

            fn tensor(self) -> Tensor {
                self.into()
            }

            fn of_tensor(tensor: Tensor) -> Tensor {
                tensor
            }
        }
    )*};
}

logic_of_tensors! {
    bool, Tensor;
    bool, &Tensor;
    Tensor, bool;
    Tensor, Tensor;
    Tensor, &Tensor;
    &Tensor, bool;
    &Tensor, Tensor;
    &Tensor, &Tensor;
}

/// The value of `&&` or `||`.
pub fn right<A: LogicOperand, B: Logic<A>>(
    left: LeftSide<A>,
    right: Option<B>,
) -> LogicResult<B::Whole, B::Output> {
    logic_result(both(left, right))
}

fn both<A: LogicOperand, B: Logic<A>>(left: LeftSide<A>, right: Option<B>) -> Result<B::Output> {
    let Some(right) = right else { return Ok(B::of_known(left.known)) };
    let Some((part, chooser)) = left.part else { return Ok(right.of_right()) };
    let right = match right.known()? {
        stage::Condition::Known(known) => known.into(),
        stage::Condition::Staged(right) => right,
    };
    let right = part.close(vec![right])?;
    let name = if left.asks { "cond_false" } else { "cond_true" };
    let other = RegionTrace::open(name)?.close(vec![Tensor::from(!left.asks)])?;
    let branches: Vec<Closed> = if left.asks { vec![right, other] } else { vec![other, right] };
    let mut results = choose(ChoiceKind::If, &chooser, branches, left.location)?;
    Ok(B::of_tensor(results.remove(0)))
}

/// Result of `!` in a condition.
pub trait Negate {
    /// The kind.
    type Kind: Kind;
    /// `bool` or `Tensor`.
    type Output;

    /// The opposite.
    fn negate(self) -> LogicResult<Self::Kind, Self::Output>;
}

impl Negate for bool {
    type Kind = Host;
    type Output = bool;

    fn negate(self) -> LogicResult<Host, bool> {
        logic_result(Ok(!self))
    }
}

impl Negate for &bool {
    type Kind = Host;
    type Output = bool;

    fn negate(self) -> LogicResult<Host, bool> {
        logic_result(Ok(!*self))
    }
}

impl Negate for Tensor {
    type Kind = Staged;
    type Output = Tensor;

    #[track_caller]
    fn negate(self) -> LogicResult<Staged, Tensor> {
        logic_result(self.logical_not())
    }
}

impl Negate for &Tensor {
    type Kind = Staged;
    type Output = Tensor;

    #[track_caller]
    fn negate(self) -> LogicResult<Staged, Tensor> {
        logic_result(self.logical_not())
    }
}

/// Conditions that `assert!` takes.
#[diagnostic::on_unimplemented(
    message = "`assert!` takes a `bool` or a Tensor, not `{Self}`",
    label = "neither `bool` nor `Tensor`",
    note = "comparisons of tensors, such as `x.less(&y)`, give a `Result`: write `?` after them"
)]
pub trait AssertCondition {
    /// The kind.
    type Kind: Kind;

    /// Fails with the message where the value is false: at once for Rust's, when the graph runs for
    /// a tensor.
    fn check(self, message: impl FnOnce() -> String) -> LogicResult<Self::Kind, ()>;
}

impl AssertCondition for bool {
    type Kind = Host;

    #[track_caller]
    fn check(self, message: impl FnOnce() -> String) -> LogicResult<Host, ()> {
        if !self {
            panic!("{}", message());
        }
        logic_result(Ok(()))
    }
}

impl AssertCondition for Tensor {
    type Kind = Staged;

    #[track_caller]
    fn check(self, message: impl FnOnce() -> String) -> LogicResult<Staged, ()> {
        logic_result(ops::assert(&self, &[&Tensor::from(message().as_str())]))
    }
}

impl AssertCondition for &Tensor {
    type Kind = Staged;

    #[track_caller]
    fn check(self, message: impl FnOnce() -> String) -> LogicResult<Staged, ()> {
        self.clone().check(message)
    }
}
