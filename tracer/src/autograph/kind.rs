//! Decision, by type and at compile time, between Rust's control flow and that of graphs.
//!
//! Each construct has a kind: [`Host`] if its condition is a `bool`, [`Staged`] if it is a
//! [`Tensor`](crate::Tensor). What only graphs need stands behind [`gate`], which gives a type
//! without values for [`Host`]: the compiler drops the code after it, and with it everything that
//! would ask more of a body than Rust does.

use super::carry::{Carry, FunctionResult};
use crate::{
    error::{Error, Result},
    value::NestedValue,
};
use std::convert::Infallible;

/// Rust's own control flow.
#[derive(Debug, Clone, Copy)]
pub struct Host;

/// Control flow that is part of the graph where a trace is made.
#[derive(Debug, Clone, Copy)]
pub struct Staged;

/// [`Host`] or [`Staged`].
pub trait Kind: 'static {
    /// Whether it is [`Staged`].
    const IS_STAGED: bool;
    /// Type that [`gate`] returns.
    type Gate;
    /// Type that [`host_gate`] returns.
    type HostGate;

    /// Lets only graphs pass.
    fn gate() -> Self::Gate;

    /// Lets only the host pass.
    fn host_gate() -> Self::HostGate;
}

impl Kind for Host {
    const IS_STAGED: bool = false;
    type Gate = Infallible;
    type HostGate = ();

    fn gate() -> Infallible {
        unreachable!("code for graphs stands behind a test that is never true for the host")
    }

    fn host_gate() {}
}

impl Kind for Staged {
    const IS_STAGED: bool = true;
    type Gate = ();
    type HostGate = Infallible;

    fn gate() {}

    fn host_gate() -> Infallible {
        unreachable!("code of the host stands behind a test that is never true for graphs")
    }
}

/// A construct at hand.
pub trait Control {
    /// Kind that its condition decides.
    type Kind: Kind;

    /// Whether it is being staged: its condition is a tensor without a value.
    fn is_live(&self) -> bool;
}

/// Whether a construct is being staged.
pub fn live(control: &impl Control) -> bool {
    control.is_live()
}

/// Has no value for constructs of Rust.
pub fn gate<C: Control>(_: &C) -> <C::Kind as Kind>::Gate {
    C::Kind::gate()
}

/// Has no value for constructs whose condition is a tensor.
pub fn host_gate<C: Control>(_: &C) -> <C::Kind as Kind>::HostGate {
    C::Kind::host_gate()
}

/// Whether the condition of a construct is a tensor.
pub fn staged<C: Control>(_: &C) -> bool {
    C::Kind::IS_STAGED
}

/// The kind of a construct that is always Rust's.
impl Control for Host {
    type Kind = Host;

    fn is_live(&self) -> bool {
        false
    }
}

/// Values that a construct of this kind can copy.
pub trait Copies<T> {
    /// The copy.
    fn copy(value: &T) -> T;
}

impl<T> Copies<T> for Host {
    fn copy(_: &T) -> T {
        unreachable!("copies are for graphs")
    }
}

impl<T: Clone> Copies<T> for Staged {
    fn copy(value: &T) -> T {
        value.clone()
    }
}

/// A copy of a value that ends a branch: in graphs the branch is run once for all, and the other one
/// after it.
pub fn copy<C: Control, T>(_: &C, value: &T) -> T
where
    C::Kind: Copies<T>,
{
    C::Kind::copy(value)
}

/// Has no value: code after it is there for the types it tells.
pub fn never() -> Infallible {
    unreachable!("it stands behind a test that is never true")
}

/// Whether code of this kind may fail in a function that returns `R`.
pub trait Fails<R> {
    /// The result of the function.
    fn fail(error: Error) -> R;
}

impl<R> Fails<R> for Host {
    fn fail(_: Error) -> R {
        unreachable!("control flow of the host does not fail")
    }
}

impl<R: FromError> Fails<R> for Staged {
    fn fail(error: Error) -> R {
        R::from_error(error)
    }
}

/// Types that a function may return that branches on tensors.
#[diagnostic::on_unimplemented(
    message = "code that branches on a Tensor returns a `Result`, not `{Self}`",
    label = "the condition is a Tensor, and tracing it may fail",
    note = "return `Result<T, E>`, where `E` is made `From` the tracer's `Error`"
)]
pub trait FromError {
    /// The failure.
    fn from_error(error: Error) -> Self;
}

#[diagnostic::do_not_recommend]
impl<T, E: From<Error>> FromError for std::result::Result<T, E> {
    fn from_error(error: Error) -> std::result::Result<T, E> {
        Err(error.into())
    }
}

/// The result of a function in which a construct failed.
pub fn fail<C: Control, R>(_: &C, error: Error) -> R
where
    C::Kind: Fails<R>,
{
    C::Kind::fail(error)
}

/// Values that may leave a function that returns `R` from within a construct of this kind.
pub trait Returns<R>: Fails<R> {
    /// Conversions of results to tensors and back.
    fn results() -> super::frame::ResultConversion<R>;
}

impl<R> Returns<R> for Host {
    fn results() -> super::frame::ResultConversion<R> {
        unreachable!("results of the host are returned as they are")
    }
}

impl<R: FunctionResult + FromError> Returns<R> for Staged {
    fn results() -> super::frame::ResultConversion<R> {
        super::frame::ResultConversion::new()
    }
}

/// Values that a construct of this kind can change.
pub trait Carries<T> {
    /// The place of the value.
    fn place(value: &mut T) -> &mut dyn super::carry::Assignable;
}

#[diagnostic::do_not_recommend]
impl<T> Carries<T> for Host {
    fn place(_: &mut T) -> &mut dyn super::carry::Assignable {
        unreachable!("the host changes values as Rust does")
    }
}

impl<T: Carry> Carries<T> for Staged {
    fn place(value: &mut T) -> &mut dyn super::carry::Assignable {
        value
    }
}

/// Values that a `break` under a construct of this kind may take along.
pub trait Breaks<V> {
    /// The value, with its structure told at run time.
    fn take(value: V) -> NestedValue;

    /// The value of this structure.
    ///
    /// # Errors
    ///
    /// When it has another one.
    fn make(value: NestedValue) -> Result<V>;
}

#[diagnostic::do_not_recommend]
impl<V> Breaks<V> for Host {
    fn take(_: V) -> NestedValue {
        unreachable!("the host leaves loops as Rust does")
    }

    fn make(_: NestedValue) -> Result<V> {
        unreachable!("the host leaves loops as Rust does")
    }
}

impl<V: Carry> Breaks<V> for Staged {
    fn take(value: V) -> NestedValue {
        value.to_value()
    }

    fn make(value: NestedValue) -> Result<V> {
        V::from_value(value)
    }
}

/// The value that a `break` takes along.
pub fn broken<C: Control, V>(_: &C, value: V) -> NestedValue
where
    C::Kind: Breaks<V>,
{
    C::Kind::take(value)
}

/// Whether a jump from a construct of this kind may end or continue a loop of kind `L`.
pub trait MayLeave<L> {}

impl<L> MayLeave<L> for Host {}

impl<L: LeftByTensors> MayLeave<L> for Staged {}

/// Loops that a condition that is a tensor may end.
#[diagnostic::on_unimplemented(
    message = "this jump depends on a Tensor, but the loop or block it leaves runs in Rust",
    label = "under a condition that is a Tensor",
    note = "loop over a Tensor or `range(tensor)`, or use `loop` or a `while` whose condition is a \
            Tensor; a loop of Rust is unrolled, and has the same iterations in every run"
)]
pub trait LeftByTensors {}

#[diagnostic::do_not_recommend]
impl LeftByTensors for Staged {}

/// Checks that a jump out of `from` may leave `to`.
pub fn may_leave<C: Control, L: Control>(_: &C, _: &L)
where
    C::Kind: MayLeave<L::Kind>,
{
}

/// Where an error may be returned.
#[diagnostic::on_unimplemented(
    message = "`Err(..)` under a condition that is a Tensor would fail every trace",
    label = "this branch is traced whatever the condition will be",
    note = "`assert!(condition, \"..\")` on a Tensor fails when the graph runs"
)]
pub trait ReturnsErrors {}

#[diagnostic::do_not_recommend]
impl ReturnsErrors for Host {}

/// Checks that an error may be returned.
pub fn returns_error<C: Control>(_: &C)
where
    C::Kind: ReturnsErrors,
{
}

/// Where a collection may change its length.
#[diagnostic::on_unimplemented(
    message = "a collection cannot change its length under a condition that is a Tensor",
    label = "would run once, while tracing, and not as often as the graph does",
    note = "use a `TensorArray`, or a loop of Rust, which is unrolled"
)]
pub trait Grows {}

#[diagnostic::do_not_recommend]
impl Grows for Host {}

/// Checks that a collection may change its length.
pub fn grows<C: Control>(_: &C)
where
    C::Kind: Grows,
{
}

/// Where a name may hide that of a variable which the construct around changes.
#[diagnostic::on_unimplemented(
    message = "a name hides this variable where a jump that depends on a Tensor follows",
    label = "changed by the code around the jump, which cannot reach it to keep its value",
    note = "give one of the two another name"
)]
pub trait Hides {}

#[diagnostic::do_not_recommend]
impl Hides for Host {}

/// Checks that a name may hide a variable.
pub fn hides<C: Control>(_: &C)
where
    C::Kind: Hides,
{
}

/// Where a closure may change what it captures and return early.
#[diagnostic::on_unimplemented(
    message = "a closure that returns under a condition that is a Tensor cannot assign to \
               variables outside it",
    label = "returns early if a Tensor says so",
    note = "return what changes, and assign it where the closure is called"
)]
pub trait ChangesCaptures {}

#[diagnostic::do_not_recommend]
impl ChangesCaptures for Host {}

/// Checks that a closure may change what it captures.
pub fn changes_captures<C: Control>(_: &C)
where
    C::Kind: ChangesCaptures,
{
}
