//! Bodies being planned, and the values in them.

use super::{
    action::{Scheduled, TensorOperand, ValueLocation},
    buffers::Buffers,
};
use crate::{assign_devices::operand_specs, error::Result, origin::NodeOrigin};
use ferroflow_ir::{
    NodeDef, NodeId, Outlet,
    hash::{FastMap, FastSet},
    pass::{execution::Execution, specialize::Specialized},
};
use ferroflow_kernels::OperandSpec;
use smallvec::SmallVec;
use std::sync::Arc;

/// A buffer or slot, all of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Root {
    Buffer(usize),
    Slot(usize),
}

impl Root {
    /// The buffer or slot of which a value is all or a range.
    pub(super) fn of(place: &ValueLocation, buffers: &Buffers) -> Root {
        match place {
            ValueLocation::Arena(region) => Root::Buffer(buffers.find(region).0),
            ValueLocation::Slot(slot, _) => Root::Slot(*slot),
        }
    }
}

/// A slot of a program.
#[derive(Debug, Clone, Copy)]
pub(super) struct PlannedSlot {
    /// Whether it is filled once for each frame and never emptied.
    pub(super) is_constant: bool,
    /// The number of the device whose memory the tensor is in; the host's if `None`.
    pub(super) device: Option<usize>,
}

/// A body being planned.
pub(super) struct PlannedBody<'a> {
    pub(super) function: &'a Specialized,
    pub(super) places: FastMap<Outlet, ValueLocation>,
    pub(super) executions: FastMap<NodeId, Execution>,
    /// The outlets that results of aliases are other names for.
    pub(super) aliased: FastMap<NodeId, Outlet>,
    /// Results that are to be tensors in slots.
    pub(super) wanted: FastSet<Outlet>,
    /// Results that something reads, of the nodes that have several.
    pub(super) read: FastSet<Outlet>,
    pub(super) actions: Vec<Scheduled>,
}

impl PlannedBody<'_> {
    /// The outlet whose location this one shares.
    pub(super) fn origin_of(&self, outlet: Outlet) -> Outlet {
        self.aliased.get(&outlet.node).copied().unwrap_or(outlet)
    }

    /// The results that something reads, of the nodes that have several: nodes that have effects stay
    /// although nothing reads theirs, and are not asked.
    pub(super) fn read_results(function: &Specialized) -> FastSet<Outlet> {
        let graph = &function.graph;
        let inputs = graph.iter().flat_map(|(_, node)| node.inputs());
        let read = inputs.chain(&function.results);
        read.copied().filter(|outlet| graph[outlet.node].outputs().len() > 1).collect()
    }

    /// Whether something reads a result.
    pub(super) fn is_read(&self, outlet: Outlet) -> bool {
        self.function.graph[outlet.node].outputs().len() < 2 || self.read.contains(&outlet)
    }

    /// A value as an operand that leaves its slot as it is.
    pub(super) fn operand(&self, outlet: Outlet) -> TensorOperand {
        let ty = self.function.graph.ty(outlet).expect("every node here has typed results");
        let location = self.places[&outlet].clone();
        TensorOperand { place: location, dtype: ty.dtype, shape: ty.shape.known(), take: false }
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
pub(super) fn origin(id: NodeId, node: &NodeDef) -> Arc<NodeOrigin> {
    Arc::new(NodeOrigin {
        id,
        node: node.name.clone(),
        op: node.op.name().into(),
        function: node.function.clone().unwrap_or_else(|| "".into()),
        location: node.location,
    })
}
