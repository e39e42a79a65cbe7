//! The kind of a `loop`, which has no condition: that of the constructs around the jumps out of it.

use super::kind::{Control, Host, Kind, Staged};
use crate::context;
use std::marker::PhantomData;

/// Of which kind a jump out of a `loop` is: inferred from the constructs around the jump.
#[derive(Debug)]
pub struct Tied<K>(PhantomData<fn() -> K>);

/// A kind that is told later.
pub fn tied<K: Kind>() -> Tied<K> {
    Tied(PhantomData)
}

/// Tells it: that of a construct around the jump.
pub fn tie<C: Control>(_: &C, _: &Tied<C::Kind>) {}

/// The kind of what has parts of two kinds.
pub trait JoinKind<K> {
    /// [`Staged`] if one of them is.
    type Joined: Kind;
}

impl<K: Kind> JoinKind<K> for Host {
    type Joined = K;
}

impl<K: Kind> JoinKind<K> for Staged {
    type Joined = Staged;
}

/// The kind of both.
pub fn join<A: JoinKind<B>, B>(_: &Tied<A>, _: &Tied<B>) -> Tied<A::Joined> {
    Tied(PhantomData)
}

/// A `loop` at hand, of the kind of the jumps that end it.
#[derive(Debug)]
pub struct LoopOf<K>(PhantomData<fn() -> K>);

/// Begins a `loop`.
pub fn loop_of<K: Kind>(_: &Tied<K>) -> LoopOf<K> {
    LoopOf(PhantomData)
}

impl<K: Kind> Control for LoopOf<K> {
    type Kind = K;

    fn is_live(&self) -> bool {
        K::IS_STAGED && context::is_tracing()
    }
}
