//! `&&`, `||`, `!` and `assert!`, of truth values of Rust and of tensors.

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
pub struct Given<K, T> {
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

fn given<K, T>(result: Result<T>) -> Given<K, T> {
    Given { result, control: Of(PhantomData) }
}

/// Operands of `&&` and `||`.
#[diagnostic::on_unimplemented(
    message = "`&&` and `||` take a `bool` or a Tensor, not `{Self}`",
    label = "neither `bool` nor `Tensor`",
    note = "comparisons of tensors, such as `x.less(&y)`, give a `Result`: write `?` after them"
)]
pub trait Truth {
    /// The kind.
    type Kind: Kind;

    /// The value, where it is one of Rust or known.
    ///
    /// # Errors
    ///
    /// When a tensor is not one truth value.
    fn known(&self) -> Result<stage::Condition>;
}

impl Truth for bool {
    type Kind = Host;

    fn known(&self) -> Result<stage::Condition> {
        Ok(stage::Condition::Known(*self))
    }
}

impl Truth for Tensor {
    type Kind = Staged;

    fn known(&self) -> Result<stage::Condition> {
        stage::condition(self)
    }
}

impl Truth for &Tensor {
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
pub fn left<A: Truth>(side: A, asks: bool) -> LeftSide<A> {
    LeftSide { side, asks, part: None, known: !asks, location: here() }
}

impl<A: Truth> Control for LeftSide<A> {
    type Kind = A::Kind;

    fn is_live(&self) -> bool {
        self.part.is_some()
    }
}

impl<A: Truth> LeftSide<A> {
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
pub trait Logic<A>: Truth {
    /// The kind of the whole.
    type Whole: Kind;
    /// `bool` for two of Rust, otherwise `Tensor`.
    type Given;

    /// The value that is known.
    fn of_known(known: bool) -> Self::Given;

    /// The value of the right side.
    fn of_right(self) -> Self::Given;

    /// The right side as a tensor.
    fn tensor(self) -> Tensor;

    /// The tensor that is staged.
    fn of_tensor(tensor: Tensor) -> Self::Given;
}

impl Logic<bool> for bool {
    type Whole = Host;
    type Given = bool;

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
            type Given = Tensor;

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
pub fn right<A: Truth, B: Logic<A>>(
    left: LeftSide<A>,
    right: Option<B>,
) -> Given<B::Whole, B::Given> {
    given(both(left, right))
}

fn both<A: Truth, B: Logic<A>>(left: LeftSide<A>, right: Option<B>) -> Result<B::Given> {
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
    type Given;

    /// The opposite.
    fn negate(self) -> Given<Self::Kind, Self::Given>;
}

impl Negate for bool {
    type Kind = Host;
    type Given = bool;

    fn negate(self) -> Given<Host, bool> {
        given(Ok(!self))
    }
}

impl Negate for &bool {
    type Kind = Host;
    type Given = bool;

    fn negate(self) -> Given<Host, bool> {
        given(Ok(!*self))
    }
}

impl Negate for Tensor {
    type Kind = Staged;
    type Given = Tensor;

    #[track_caller]
    fn negate(self) -> Given<Staged, Tensor> {
        given(self.logical_not())
    }
}

impl Negate for &Tensor {
    type Kind = Staged;
    type Given = Tensor;

    #[track_caller]
    fn negate(self) -> Given<Staged, Tensor> {
        given(self.logical_not())
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

    /// Fails with the message where the value is false: at once for Rust's, when the graph runs for a
    /// tensor.
    fn check(self, message: impl FnOnce() -> String) -> Given<Self::Kind, ()>;
}

impl AssertCondition for bool {
    type Kind = Host;

    #[track_caller]
    fn check(self, message: impl FnOnce() -> String) -> Given<Host, ()> {
        if !self {
            panic!("{}", message());
        }
        given(Ok(()))
    }
}

impl AssertCondition for Tensor {
    type Kind = Staged;

    #[track_caller]
    fn check(self, message: impl FnOnce() -> String) -> Given<Staged, ()> {
        given(ops::assert(&self, &[&Tensor::from(message().as_str())]))
    }
}

impl AssertCondition for &Tensor {
    type Kind = Staged;

    #[track_caller]
    fn check(self, message: impl FnOnce() -> String) -> Given<Staged, ()> {
        self.clone().check(message)
    }
}
