//! Values and actions before the arena is laid out, and the bodies they are drafted for.

use super::{Covers, Origin, device::DeviceDraft, placing::DevicePlace, scalar::ScalarCall};
use crate::error::{Error, Result};
use ferroflow_ir::{
    Attrs, HostTensor, Lowering, NodeDef, NodeId, OpDef, Outlet, Shape, ValueType, op::Call,
    pass::specialize::Specialized,
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
    Copy(DraftOperand, Draft),
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
    /// Copies a value between the host and a device.
    Transfer {
        from: DraftOperand,
        to: Draft,
        device: usize,
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

/// How a node runs.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Mode {
    /// It is an argument or a constant.
    Source,
    /// Its result is its input under another shape.
    Alias,
    /// Everything about it is known.
    Kernel,
    /// It is run as an op of its own.
    Op,
    /// It is a loop or a branch.
    Call,
}

/// A body being planned.
pub(super) struct Body<'a> {
    pub(super) function: &'a Specialized,
    /// Where values are on the host.
    pub(super) places: HashMap<Outlet, Draft>,
    /// Where values are on devices.
    pub(super) device_places: HashMap<Outlet, DevicePlace>,
    pub(super) modes: HashMap<NodeId, Mode>,
    /// Results that are to be tensors in slots.
    pub(super) wanted: HashSet<Outlet>,
    pub(super) actions: Vec<Positioned>,
}

impl Body<'_> {
    pub(super) fn mode(&self, node: &NodeDef) -> Result<Mode> {
        let graph = &self.function.graph;
        let Some(op) = node.op.def() else { return Ok(Mode::Op) };
        if op.call != Call::None {
            return Ok(Mode::Call);
        }
        if op.inputs.is_empty() && (op.name == "_Arg" || node.attrs.tensor("value").is_ok()) {
            return Ok(Mode::Source);
        }
        let known = |ty: &ValueType| ty.shape.known().is_some();
        let types = node.inputs().iter().map(|&input| graph.ty(input));
        let inputs_known = types.clone().all(|ty| ty.is_some_and(known));
        match op.lowering {
            Lowering::Runtime | Lowering::Interface | Lowering::Composite(_) => Ok(Mode::Op),
            Lowering::Alias(_) => {
                let source = types.clone().next().flatten();
                let same_bits =
                    source.is_some_and(|ty| ty.dtype.size() == node.outputs()[0].dtype.size());
                let fits = known(&node.outputs()[0]) && inputs_known && same_bits;
                Ok(if fits { Mode::Alias } else { Mode::Op })
            }
            Lowering::Elementwise(_)
            | Lowering::Fused
            | Lowering::Reduce(_)
            | Lowering::View(_)
            | Lowering::Kernel => {
                let host = op.host_inputs(&node.attrs)?;
                let steered = node.inputs().iter().zip(&host);
                let values_known =
                    steered.clone().all(|(&input, &host)| !host || self.constant(input).is_some());
                Ok(if inputs_known && values_known { Mode::Kernel } else { Mode::Op })
            }
        }
    }

    /// The value of an outlet that is a constant.
    pub(super) fn constant(&self, outlet: Outlet) -> Option<&HostTensor> {
        let node = &self.function.graph[outlet.node];
        let is_source = node.op.def().is_some_and(|op| op.inputs.is_empty());
        if is_source { node.attrs.tensor("value").ok() } else { None }
    }

    /// The outlet whose place this one shares.
    pub(super) fn origin_of(&self, outlet: Outlet) -> Outlet {
        let mut outlet = outlet;
        while self.modes.get(&outlet.node) == Some(&Mode::Alias) {
            outlet = self.function.graph[outlet.node].inputs()[0];
        }
        outlet
    }

    pub(super) fn operand(&self, outlet: Outlet) -> DraftOperand {
        let ty = self.function.graph.ty(outlet).expect("every node here has typed results").clone();
        DraftOperand { place: self.places[&outlet].clone(), ty }
    }

    pub(super) fn specs(&self, node: &NodeDef) -> Result<SmallVec<[OperandSpec; 4]>> {
        let graph = &self.function.graph;
        let spec = |&input: &Outlet| {
            if let Some(value) = self.constant(input) {
                return Ok(OperandSpec::known(value.clone()));
            }
            let ty = graph.ty(input).expect("every node here has typed results");
            let shape = ty.shape.known().ok_or_else(|| {
                let op = node.op.name().to_string();
                ferroflow_ir::Error::argument(op, "an input", "of known shape", &ty.shape)
            })?;
            Ok(OperandSpec::new(ty.dtype, shape))
        };
        node.inputs().iter().map(spec).collect()
    }
}

/// The origin of an action that computes this much of the graph.
pub(super) fn origin(covers: Covers, node: &NodeDef) -> Arc<Origin> {
    Arc::new(Origin {
        covers,
        node: node.name.clone(),
        op: node.op.name().into(),
        function: node.function.clone().unwrap_or_else(|| "".into()),
        location: node.location,
    })
}
