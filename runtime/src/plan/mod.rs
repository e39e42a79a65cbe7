//! From a specialised function to a linear program.
//!
//! Planning has two stages. `draft` walks the nodes in order and decides for each how it runs
//! (a kernel on known shapes, an op whose shapes come at run time, a body in the runtime, a loop, a
//! branch) and where its results go: to the arena, if they are plain elements of known shape, or to
//! a slot. `layout` then gives every arena buffer its offset and every slot the moment it is
//! emptied.
//!
//! Loops and branches are nested lists of the same program: their bodies work on the same arena and
//! slots, so entering one costs nothing. Where they compute single numbers only, `scalar` makes
//! one action of them.

mod draft;
mod layout;
mod scalar;

use crate::ops::Body;
use ferroflow_ir::{Attrs, DType, HostTensor, OpDef, Shape, error::SourceLocation, op::Call};
use ferroflow_kernels::frame::{Region, Step};
use smallvec::SmallVec;
use std::sync::Arc;

pub(crate) use draft::plan;
pub(crate) use scalar::{ScalarAction, Source};

/// A compiled function.
#[derive(Debug)]
pub(crate) struct Program {
    pub(crate) actions: Vec<Action>,
    /// Bytes of arena.
    pub(crate) arena: usize,
    pub(crate) n_slots: usize,
    /// Slots that hold constants in every frame.
    pub(crate) constants: Vec<(usize, HostTensor)>,
    /// The slots of the arguments that are not constants.
    pub(crate) args: Vec<usize>,
    pub(crate) results: Vec<Operand>,
}

/// One thing a program does.
#[derive(Debug)]
#[expect(clippy::large_enum_variant, reason = "the large ones are the common ones")]
pub(crate) enum Action {
    /// Runs a kernel on known shapes.
    Kernel(Step, Arc<Origin>),
    /// Runs an op whose kernel depends on what the inputs turn out to be, or a body of the runtime.
    Op(OpAction),
    /// Copies a loop variable or the result of a branch.
    Copy(Operand, Place),
    /// Repeats `body` as long as `test` is true after `condition`.
    While(Box<WhileAction>),
    /// Runs one of the branches.
    Branch(Box<BranchAction>),
    /// Computes single numbers, with the loops and branches among them.
    Scalar(Box<ScalarAction>),
    /// Fails.
    Fail(crate::Error),
    /// Empties slots.
    Clear(SmallVec<[usize; 4]>),
}

#[derive(Debug)]
pub(crate) struct OpAction {
    pub(crate) op: &'static OpDef,
    /// What runs it, where that is known ahead.
    pub(crate) body: Option<Body>,
    pub(crate) attrs: Arc<Attrs>,
    pub(crate) inputs: SmallVec<[Operand; 4]>,
    /// The slots of the results.
    pub(crate) outputs: SmallVec<[usize; 2]>,
    pub(crate) origin: Arc<Origin>,
}

#[derive(Debug)]
pub(crate) struct WhileAction {
    pub(crate) condition: Vec<Action>,
    pub(crate) test: Operand,
    pub(crate) body: Vec<Action>,
    pub(crate) origin: Arc<Origin>,
}

#[derive(Debug)]
pub(crate) struct BranchAction {
    pub(crate) call: Call,
    pub(crate) chooser: Operand,
    pub(crate) branches: Vec<Vec<Action>>,
    pub(crate) origin: Arc<Origin>,
}

/// Where a value is.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Place {
    /// In the arena.
    Arena(Region),
    /// In a slot: all of the tensor, or these bytes of it.
    Slot(usize, Option<Region>),
}

/// A value that is read as a tensor.
#[derive(Debug, Clone)]
pub(crate) struct Operand {
    pub(crate) place: Place,
    pub(crate) dtype: DType,
    /// The shape, if it is known ahead; otherwise that of the tensor in the slot.
    pub(crate) shape: Option<Shape>,
    /// Whether nobody reads the slot after this.
    pub(crate) take: bool,
}

/// Which node of which function an action stems from, for error messages.
#[derive(Debug)]
pub(crate) struct Origin {
    pub(crate) node: Box<str>,
    pub(crate) op: Box<str>,
    pub(crate) function: Arc<str>,
    pub(crate) location: Option<SourceLocation>,
}

impl Origin {
    pub(crate) fn locate(&self, error: impl Into<crate::Error>) -> crate::Error {
        let error = error.into().at_node(&self.node, &self.op, &self.function);
        error.written_at(self.location)
    }
}
