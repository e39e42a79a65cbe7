//! From a specialised function to a linear program.
//!
//! 1. `planner` walks the nodes in order and decides for each how it runs (a kernel on known shapes,
//!    an op whose shapes come at run time, a body in the runtime, a loop, a branch) and what its
//!    results are: buffers, if they are plain elements of known shape, or slots. A view of a value is
//!    a range of its root. The result is a list of unscheduled actions.
//! 2. `liveness` derives from that list when buffers are in use, and after which action each slot is
//!    dead. Nothing else counts uses.
//! 3. `memory` lets steps write over operands that are dead (donation) and gives buffers offsets in
//!    one arena.
//! 4. `lower` emits the actions that run.
//! 5. `validate` runs them symbolically against the graph, if the context's switches ask for it.
//!
//! Loops and branches are nested lists of the same program: their bodies work on the same arena and
//! slots, so entering one costs nothing. Where they compute single numbers only, `scalar` makes
//! one action of them.

mod control;
mod device;
mod draft;
mod faults;
mod liveness;
mod lower;
mod memory;
mod planner;
mod scalar;
mod sequence;
mod step;
mod validate;

use crate::{ops::Body, placement::Placement};
use ferroflow_ir::{
    Attrs, DType, HostTensor, NodeId, OpDef, Shape, ValueType, error::SourceLocation, op::Call,
};
use ferroflow_kernels::{
    Device, DeviceBuffer, Kernel,
    frame::{Region, Step},
    optimizer::Optimizer,
    sequence::Sequence,
};
use smallvec::SmallVec;
use std::{fmt, sync::Arc};

pub(crate) use liveness::AnySlot;
pub(crate) use planner::plan;
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
    /// What is not on the host; `None` where everything is.
    pub(crate) devices: Option<Box<DeviceParts>>,
}

/// What a program needs besides the host's memory.
#[derive(Debug)]
pub(crate) struct DeviceParts {
    /// Slots of tensors in the memory of devices.
    pub(crate) n_slots: usize,
    /// Slots that hold constants in every frame.
    pub(crate) constants: Vec<(usize, DeviceBuffer)>,
    /// The arguments that come in the memory of devices, with their slots.
    pub(crate) args: Vec<(usize, usize)>,
    /// What runs where.
    pub(crate) placement: Placement,
}

impl Program {
    /// Visits the nodes that actions stem from.
    pub(crate) fn for_each_origin(&self, visit: &mut impl FnMut(&Origin)) {
        for_each_origin(&self.actions, visit);
    }
}

fn for_each_origin(actions: &[Action], visit: &mut impl FnMut(&Origin)) {
    for action in actions {
        match action {
            Action::Kernel(_, origin) => visit(origin),
            Action::Op(op) => visit(&op.origin),
            Action::Device(step) => visit(&step.origin),
            Action::DeviceOp(op) => visit(&op.origin),
            Action::Sequence(sequence) => for_each_origin(&sequence.plain, visit),
            Action::While(repeat) => {
                visit(&repeat.origin);
                for_each_origin(&repeat.condition, visit);
                for_each_origin(&repeat.body, visit);
            }
            Action::Branch(branch) => {
                visit(&branch.origin);
                branch.branches.iter().for_each(|branch| for_each_origin(branch, visit));
            }
            Action::Scalar(scalar) => for_each_origin(&scalar.plain, visit),
            Action::Copy(..) | Action::Fail(_) | Action::Clear(_) => {}
        }
    }
}

/// One thing a program does.
#[derive(Debug)]
#[expect(clippy::large_enum_variant, reason = "the large ones are the common ones")]
pub(crate) enum Action {
    /// Runs a kernel on known shapes.
    Kernel(Step, Arc<Origin>),
    /// Runs an op whose kernel depends on what the inputs turn out to be, or a body of the runtime.
    Op(OpAction),
    /// Copies a loop variable, the result of a branch, or a value between the host and a device.
    Copy(Operand, Place, Option<Arc<dyn Device>>),
    /// Repeats `body` as long as `test` is true after `condition`.
    While(Box<WhileAction>),
    /// Runs one of the branches.
    Branch(Box<BranchAction>),
    /// Computes single numbers, with the loops and branches among them.
    Scalar(Box<ScalarAction>),
    /// Fails.
    Fail(crate::Error),
    /// Empties slots.
    Clear(SmallVec<[AnySlot; 4]>),
    /// Runs a kernel of a device.
    Device(Box<DeviceStep>),
    /// Runs kernels of a device that follow each other.
    Sequence(Box<SequenceAction>),
    /// Runs a body that takes and gives tensors wherever they are.
    DeviceOp(Box<DeviceOpAction>),
}

impl Action {
    /// Whether the action takes the tensor out of a slot.
    fn takes(&self, slot: usize) -> bool {
        let is_taken = |operand: &Operand| {
            operand.take && matches!(operand.place, Place::Slot(taken, _) if taken == slot)
        };
        match self {
            Action::Op(op) => op.inputs.iter().any(is_taken),
            Action::DeviceOp(op) => op.inputs.iter().any(is_taken),
            Action::Copy(from, ..) => is_taken(from),
            Action::Kernel(..)
            | Action::While(_)
            | Action::Branch(_)
            | Action::Scalar(_)
            | Action::Fail(_)
            | Action::Clear(_)
            | Action::Device(_)
            | Action::Sequence(_) => false,
        }
    }
}

/// A call of a kernel on a device.
pub(crate) struct DeviceStep {
    pub(crate) device: Arc<dyn Device>,
    pub(crate) kernel: Arc<dyn Kernel>,
    /// The slots of its inputs; `None` for what the kernel was compiled with.
    pub(crate) sources: SmallVec<[Option<usize>; 4]>,
    pub(crate) sinks: SmallVec<[(usize, DType, Shape); 1]>,
    pub(crate) origin: Arc<Origin>,
}

impl fmt::Debug for DeviceStep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {:?} -> {:?}", self.device.name(), self.sources, self.sinks)
    }
}

/// Calls of kernels on a device that are started together.
#[derive(Debug)]
pub(crate) struct SequenceAction {
    pub(crate) device: Arc<dyn Device>,
    pub(crate) sequence: Arc<dyn Sequence>,
    /// The slots of what it reads and of what it leaves.
    pub(crate) inputs: Vec<usize>,
    pub(crate) outputs: Vec<(usize, DType, Shape)>,
    /// Where its calls stem from.
    pub(crate) origins: Vec<Arc<Origin>>,
    /// The same, call by call.
    pub(crate) plain: Vec<Action>,
}

/// A call of the runtime that takes and gives tensors wherever they are.
#[derive(Debug)]
pub(crate) struct DeviceOpAction {
    pub(crate) op: &'static OpDef,
    pub(crate) body: Option<Body>,
    pub(crate) attrs: Arc<Attrs>,
    pub(crate) inputs: SmallVec<[Operand; 4]>,
    pub(crate) outputs: SmallVec<[Place; 2]>,
    pub(crate) device: Arc<dyn Device>,
    pub(crate) origin: Arc<Origin>,
}

#[derive(Debug)]
pub(crate) struct OpAction {
    pub(crate) op: &'static OpDef,
    /// What runs it, where that is known ahead.
    pub(crate) body: Option<Body>,
    /// The optimizer, where it is a step of one.
    pub(crate) optimizer: Option<Optimizer>,
    pub(crate) attrs: Arc<Attrs>,
    pub(crate) inputs: SmallVec<[Operand; 4]>,
    /// The slots of the results.
    pub(crate) outputs: SmallVec<[usize; 2]>,
    /// The types that the graph has for the results.
    pub(crate) types: SmallVec<[ValueType; 1]>,
    pub(crate) origin: Arc<Origin>,
}

#[derive(Debug)]
pub(crate) struct WhileAction {
    pub(crate) condition: Vec<Action>,
    pub(crate) test: Operand,
    pub(crate) body: Vec<Action>,
    /// Where the variables are that rounds assign; `None` for those that never change.
    pub(crate) variables: Vec<Option<Place>>,
    pub(crate) origin: Arc<Origin>,
}

#[derive(Debug)]
pub(crate) struct BranchAction {
    pub(crate) call: Call,
    pub(crate) chooser: Operand,
    pub(crate) branches: Vec<Vec<Action>>,
    /// Where every branch leaves the results.
    pub(crate) results: Vec<Place>,
    pub(crate) origin: Arc<Origin>,
}

/// Where a value is.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Place {
    /// In the arena.
    Arena(Region),
    /// In a slot: all of the tensor, or these bytes of it.
    Slot(usize, Option<Region>),
    /// In a slot of tensors in the memory of devices.
    Device(usize),
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
    /// The node: all its inputs are read, all its results are written.
    pub(crate) id: NodeId,
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
