//! Values and actions before the arena is laid out, and the bodies they are drafted for.

use super::{Origin, device::DeviceDraft, scalar::ScalarCall};
use crate::{
    error::{Error, Result},
    place::operand_specs,
};
use ferroflow_ir::{
    Attrs, NodeDef, NodeId, OpDef, Outlet, Shape, ValueType,
    op::Call,
    pass::{execution::Execution, specialize::Specialized},
};
use ferroflow_kernels::{Kernel, OperandSpec, frame::Region};
use smallvec::SmallVec;
use std::{
    collections::{HashMap, HashSet},
    ops::Range,
    sync::Arc,
};

/// Where a value is, before the arena is laid out.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Draft {
    /// Bytes of a buffer.
    Buffer(usize, Range<usize>),
    /// A slot: all of the tensor, or these bytes of it.
    Slot(usize, Option<Region>),
    /// A slot of tensors in the memory of devices.
    Device(usize),
}

/// A buffer or slot, all of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Root {
    Buffer(usize),
    Slot(usize),
    Device(usize),
}

impl Draft {
    /// The buffer or slot of which this is all or a range.
    pub(super) fn root(&self) -> Root {
        match self {
            Draft::Buffer(buffer, _) => Root::Buffer(*buffer),
            Draft::Slot(slot, _) => Root::Slot(*slot),
            Draft::Device(slot) => Root::Device(*slot),
        }
    }
}

/// A value that is read as a tensor, before the arena is laid out.
#[derive(Debug, Clone)]
pub(super) struct DraftOperand {
    pub(super) place: Draft,
    pub(super) ty: ValueType,
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum SlotKind {
    Plain,
    /// Filled once for each frame and never emptied.
    Constant,
}

/// Which variable of all that there are while a function is planned.
pub(super) type VariableId = usize;

/// An action, before the arena is laid out.
pub(super) enum DraftAction {
    Kernel {
        kernel: Arc<dyn Kernel>,
        /// The call, if it is one on single elements.
        scalar: Option<Box<ScalarCall>>,
        sources: SmallVec<[Draft; 3]>,
        sinks: SmallVec<[DraftSink; 1]>,
        origin: Arc<Origin>,
    },
    Op {
        op: &'static OpDef,
        attrs: Arc<Attrs>,
        inputs: SmallVec<[DraftOperand; 4]>,
        outputs: SmallVec<[usize; 2]>,
        types: SmallVec<[ValueType; 1]>,
        origin: Arc<Origin>,
    },
    /// Copies a loop variable, the result of a branch, or a value between the host and a device.
    Copy {
        from: DraftOperand,
        to: Draft,
        device: Option<usize>,
    },
    /// Runs a kernel of a device.
    Device(DeviceDraft),
    /// Runs a body that takes and gives tensors wherever they are.
    DeviceOp {
        op: &'static OpDef,
        attrs: Arc<Attrs>,
        inputs: SmallVec<[DraftOperand; 4]>,
        outputs: SmallVec<[Draft; 2]>,
        device: usize,
        /// The only variable that it touches, if that is known.
        variable: Option<VariableId>,
        origin: Arc<Origin>,
    },
    While {
        condition: Vec<Positioned>,
        test: DraftOperand,
        body: Vec<Positioned>,
        variables: Vec<Option<Draft>>,
        origin: Arc<Origin>,
    },
    Branch {
        call: Call,
        chooser: DraftOperand,
        branches: Vec<Vec<Positioned>>,
        results: Vec<Draft>,
        origin: Arc<Origin>,
    },
    Fail(Error),
}

pub(super) enum DraftSink {
    Buffer(usize, usize),
    Slot(usize, ValueType, Shape),
    Unknown(usize),
}

pub(super) struct Positioned {
    pub(super) position: usize,
    pub(super) action: DraftAction,
}

/// A body being planned.
pub(super) struct Body<'a> {
    pub(super) function: &'a Specialized,
    /// Where values are.
    pub(super) places: HashMap<Outlet, Draft>,
    pub(super) executions: HashMap<NodeId, Execution>,
    /// Results that are to be tensors in slots.
    pub(super) wanted: HashSet<Outlet>,
    pub(super) actions: Vec<Positioned>,
}

impl Body<'_> {
    /// The outlet whose place this one shares.
    pub(super) fn origin_of(&self, outlet: Outlet) -> Outlet {
        let mut outlet = outlet;
        while self.executions.get(&outlet.node) == Some(&Execution::Alias) {
            outlet = self.function.graph[outlet.node].inputs()[0];
        }
        outlet
    }

    pub(super) fn operand(&self, outlet: Outlet) -> DraftOperand {
        let ty = self.function.graph.ty(outlet).expect("every node here has typed results").clone();
        DraftOperand { place: self.places[&outlet].clone(), ty }
    }

    /// The operands of a kernel, whose shapes are known.
    pub(super) fn specs(&self, node: &NodeDef) -> Result<SmallVec<[OperandSpec; 4]>> {
        operand_specs(&self.function.graph, node).ok_or_else(|| {
            let op = node.op.name().to_string();
            ferroflow_ir::Error::argument(op, "an input", "of known shape", "none").into()
        })
    }
}

/// The origin of an action that computes a node.
pub(super) fn origin(id: NodeId, node: &NodeDef) -> Arc<Origin> {
    Arc::new(Origin {
        id,
        node: node.name.clone(),
        op: node.op.name().into(),
        function: node.function.clone().unwrap_or_else(|| "".into()),
        location: node.location,
    })
}
