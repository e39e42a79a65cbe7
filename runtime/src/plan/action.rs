//! Actions of a program, on values in an arena and in slots.
//!
//! The planner makes actions on addresses of its own, a range for each buffer; emission moves them
//! to the arena, where buffers share memory. Nothing else of an action changes.

use crate::{
    error::Error, kernel_call::UnreadOutputs, last_call::LastCall, origin::NodeOrigin,
    runtime_call::HostBody,
};
use ferroflow_ir::{Attrs, DType, Expr, OpDef, Shape, ValueType, op::CallKind};
use ferroflow_kernels::{
    Device, OperandSpec,
    cost::OpCost,
    frame::{ArenaRange, LaunchStep, StepSink, StepSource},
    kernel_graph::RecordedKernelGraph,
    optimizer::OptimizerKind,
    scalar::{BytecodePosition, Register, ScalarBytecode},
};
use smallvec::SmallVec;
use std::{fmt, sync::Arc};

/// An action with its position among all.
#[derive(Debug)]
pub(crate) struct Scheduled {
    pub(crate) position: usize,
    pub(crate) action: Action,
    /// The slots that are emptied after it.
    pub(crate) dead: SmallVec<[usize; 2]>,
}

/// A part of a program.
#[derive(Debug)]
#[expect(clippy::large_enum_variant, reason = "the large ones are the common ones")]
pub(crate) enum Action {
    /// Runs a kernel of the host or of a device on known shapes.
    Kernel(KernelAction),
    /// Runs an op whose kernel depends on what the inputs turn out to be, or a body of the runtime.
    Op(OpAction),
    /// Copies a loop variable, the result of a branch, or a value between the host and a device.
    Copy(CopyAction),
    /// Repeats `body` as long as `test` is true after `condition`.
    While(Box<WhileAction>),
    /// Runs one of the branches.
    Branch(Box<BranchAction>),
    /// Runs several actions as one.
    Group(Box<ActionGroup>),
    /// Fails.
    Fail(Error),
}

/// A call of a kernel.
pub(crate) struct KernelAction {
    pub(crate) cost: OpCost,
    pub(crate) step: LaunchStep,
    /// The call, if it is one on single elements of the host.
    pub(super) scalar: Option<Box<ScalarCall>>,
    pub(crate) origin: Arc<NodeOrigin>,
}

impl fmt::Debug for KernelAction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {:?}", self.origin.node, self.step)
    }
}

/// A call of the runtime.
#[derive(Debug)]
pub(crate) struct OpAction {
    pub(crate) op: &'static OpDef,
    /// The body, where it is known ahead.
    pub(crate) body: Option<HostBody>,
    /// The optimizer, where it is a step of one.
    pub(crate) optimizer: Option<OptimizerKind>,
    pub(crate) attrs: Arc<Attrs>,
    /// The kernel of its last call, where it runs with what its inputs turn out to be.
    pub(crate) last: LastCall,
    pub(crate) inputs: SmallVec<[TensorOperand; 4]>,
    pub(crate) outputs: SmallVec<[OpOutput; 2]>,
    /// The device of the node, which takes and returns tensors wherever they are; the host if
    /// `None`.
    pub(crate) device: Option<Arc<dyn Device>>,
    /// The only variable that it touches, if that is known.
    pub(super) variable: Option<VariableId>,
    pub(crate) origin: Arc<NodeOrigin>,
}

/// A result of an op.
#[derive(Debug)]
pub(crate) struct OpOutput {
    /// The slot that it goes to; `None` where nothing reads it.
    pub(crate) slot: Option<usize>,
    /// The type that the graph has for it.
    pub(crate) ty: ValueType,
    /// Whether it is left in the memory of the op's device.
    pub(crate) on_device: bool,
}

impl OpAction {
    /// The results that nothing reads.
    pub(crate) fn unread(&self) -> UnreadOutputs {
        let indices = self.outputs.iter().enumerate();
        indices.filter(|(_, output)| output.slot.is_none()).map(|(index, _)| index).collect()
    }
}

impl OpOutput {
    /// The memory that it goes to.
    pub(super) fn location(&self) -> Option<ValueLocation> {
        self.slot.map(|slot| ValueLocation::Slot(slot, None))
    }
}

/// A variable of all that there are while a function is planned.
pub(super) type VariableId = usize;

/// A copy of a value.
#[derive(Debug)]
pub(crate) struct CopyAction {
    pub(crate) from: TensorOperand,
    pub(crate) to: ValueLocation,
    /// The device whose memory it is copied to; the host's if `None`.
    pub(crate) device: Option<Arc<dyn Device>>,
}

#[derive(Debug)]
pub(crate) struct WhileAction {
    pub(crate) condition: Vec<Scheduled>,
    pub(crate) test: TensorOperand,
    pub(crate) body: Vec<Scheduled>,
    /// The variables that rounds assign; `None` for those that never change.
    pub(crate) variables: Vec<Option<ValueLocation>>,
    pub(crate) origin: Arc<NodeOrigin>,
}

#[derive(Debug)]
pub(crate) struct BranchAction {
    pub(crate) call: CallKind,
    /// The predicate or branch index.
    pub(crate) index: TensorOperand,
    pub(crate) branches: Vec<Vec<Scheduled>>,
    /// The memory in which every branch leaves the results.
    pub(crate) results: Vec<ValueLocation>,
    pub(crate) origin: Arc<NodeOrigin>,
}

/// Actions that run as one.
#[derive(Debug)]
pub(crate) struct ActionGroup {
    /// The actions themselves, for runs of which every op is noted.
    pub(crate) actions: Vec<Scheduled>,
    pub(crate) program: GroupProgram,
}

/// The program that stands for a group of actions.
#[derive(Debug)]
pub(crate) enum GroupProgram {
    /// Computes single numbers, with the loops and branches among them.
    Scalar(ScalarProgram),
    /// Starts kernels of a device together.
    KernelGraph(KernelGraph),
}

/// Calls of kernels on a device that are started together.
#[derive(Debug)]
pub(crate) struct KernelGraph {
    pub(crate) device: Arc<dyn Device>,
    pub(crate) recorded: Arc<dyn RecordedKernelGraph>,
    /// The slots that it reads, and those that it fills.
    pub(crate) inputs: Vec<usize>,
    pub(crate) outputs: Vec<(usize, DType, Shape)>,
    /// The origins of its calls.
    pub(crate) origins: Vec<Arc<NodeOrigin>>,
}

/// A run of actions on single numbers as one.
#[derive(Debug)]
pub(crate) struct ScalarProgram {
    pub(crate) program: ScalarBytecode,
    pub(crate) loads: Vec<Load>,
    pub(crate) stores: Vec<Store>,
    /// The positions of the program from which on errors stem from a node.
    pub(crate) origins: Vec<(BytecodePosition, Arc<NodeOrigin>)>,
}

/// A number that is read before the program runs.
#[derive(Debug)]
pub(crate) struct Load {
    pub(crate) from: ValueLocation,
    pub(crate) to: Register,
}

/// A number that is written after the program has run.
#[derive(Debug)]
pub(crate) struct Store {
    pub(crate) from: Register,
    pub(crate) to: ArenaRange,
}

/// A call of an elementwise op on single elements.
pub(super) struct ScalarCall {
    pub(super) op: &'static OpDef,
    pub(super) attrs: Arc<Attrs>,
    pub(super) specs: SmallVec<[OperandSpec; 4]>,
    pub(super) expr: Option<Arc<Expr>>,
    pub(super) output: DType,
}

/// The memory of a value.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum ValueLocation {
    /// Bytes of the arena; while a function is planned, of the addresses of a buffer.
    Arena(ArenaRange),
    /// A slot: all of the tensor, or these bytes of it.
    Slot(usize, Option<ArenaRange>),
}

impl ValueLocation {
    /// The slot, if it is one.
    pub(crate) fn slot(&self) -> Option<usize> {
        match self {
            ValueLocation::Slot(slot, _) => Some(*slot),
            ValueLocation::Arena(_) => None,
        }
    }

    /// The memory that a step reads; `None` for a value that its kernel was compiled with.
    pub(crate) fn of_source(source: &StepSource) -> Option<ValueLocation> {
        match source {
            StepSource::Arena(region) => Some(ValueLocation::Arena(region.clone())),
            StepSource::Slot(slot) => Some(ValueLocation::Slot(*slot, None)),
            StepSource::SlotBytes(slot, bytes) => {
                Some(ValueLocation::Slot(*slot, Some(bytes.clone())))
            }
            StepSource::Compiled => None,
        }
    }

    /// The memory that a step writes; `None` for a result that nothing reads.
    pub(crate) fn of_sink(sink: &StepSink) -> Option<ValueLocation> {
        match sink {
            StepSink::Arena(region) => Some(ValueLocation::Arena(region.clone())),
            StepSink::Slot(slot, ..) | StepSink::Unknown(slot) => {
                Some(ValueLocation::Slot(*slot, None))
            }
            StepSink::Unread => None,
        }
    }
}

/// A value that is read as a tensor.
#[derive(Debug, Clone)]
pub(crate) struct TensorOperand {
    pub(crate) place: ValueLocation,
    pub(crate) dtype: DType,
    /// The shape, if it is known ahead; otherwise that of the tensor in the slot.
    pub(crate) shape: Option<Shape>,
    /// Whether the tensor is taken out of its slot.
    pub(crate) take: bool,
}

/// The effect of an action on a value.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum ActionAccess {
    Read,
    Write,
}

impl Action {
    /// The node that the action stems from; `None` for copies, groups and failures.
    pub(crate) fn origin(&self) -> Option<&Arc<NodeOrigin>> {
        match self {
            Action::Kernel(kernel) => Some(&kernel.origin),
            Action::Op(op) => Some(&op.origin),
            Action::While(repeat) => Some(&repeat.origin),
            Action::Branch(branch) => Some(&branch.origin),
            Action::Copy(_) | Action::Group(_) | Action::Fail(_) => None,
        }
    }

    /// The lists of actions within it.
    pub(crate) fn nested(&self) -> SmallVec<[&[Scheduled]; 2]> {
        match self {
            Action::While(repeat) => SmallVec::from_buf([&repeat.condition[..], &repeat.body]),
            Action::Branch(branch) => branch.branches.iter().map(Vec::as_slice).collect(),
            Action::Group(group) => SmallVec::from_slice(&[&group.actions[..]]),
            Action::Kernel(_) | Action::Op(_) | Action::Copy(_) | Action::Fail(_) => {
                SmallVec::new()
            }
        }
    }

    /// Visits the values that the action itself accesses, reads first; those of nested lists are
    /// accessed by the actions there.
    pub(crate) fn for_each_access(&self, visit: &mut impl FnMut(ActionAccess, &ValueLocation)) {
        match self {
            Action::Kernel(KernelAction { step, .. }) => {
                let sources = step.sources().iter().filter_map(ValueLocation::of_source);
                sources.for_each(|place| visit(ActionAccess::Read, &place));
                let sinks = step.sinks().iter().filter_map(ValueLocation::of_sink);
                sinks.for_each(|place| visit(ActionAccess::Write, &place));
            }
            Action::Op(OpAction { inputs, outputs, .. }) => {
                inputs.iter().for_each(|input| visit(ActionAccess::Read, &input.place));
                let outputs = outputs.iter().filter_map(OpOutput::location);
                outputs.for_each(|place| visit(ActionAccess::Write, &place));
            }
            Action::Copy(CopyAction { from, to, .. }) => {
                visit(ActionAccess::Read, &from.place);
                visit(ActionAccess::Write, to);
            }
            Action::While(repeat) => visit(ActionAccess::Read, &repeat.test.place),
            Action::Branch(branch) => visit(ActionAccess::Read, &branch.index.place),
            Action::Group(_) | Action::Fail(_) => {}
        }
    }

    /// Whether the action takes the tensor out of a slot.
    pub(super) fn takes(&self, slot: usize) -> bool {
        let is_taken = |operand: &TensorOperand| operand.take && operand.place.slot() == Some(slot);
        match self {
            Action::Op(op) => op.inputs.iter().any(is_taken),
            Action::Copy(copy) => is_taken(&copy.from),
            Action::Kernel(_)
            | Action::While(_)
            | Action::Branch(_)
            | Action::Group(_)
            | Action::Fail(_) => false,
        }
    }
}

/// Visits the nodes that actions stem from.
pub(crate) fn for_each_origin(actions: &[Scheduled], visit: &mut impl FnMut(&NodeOrigin)) {
    for Scheduled { action, .. } in actions {
        action.origin().into_iter().for_each(|origin| visit(origin));
        action.nested().into_iter().for_each(|actions| for_each_origin(actions, visit));
    }
}
