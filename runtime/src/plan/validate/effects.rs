//! The order of effects.

use super::values::{Environment, SymbolId, ValueNumbering};
use ferroflow_ir::{DType, Effect, NodeId, Outlet, pass::specialize::Specialized};
use smallvec::SmallVec;
use std::collections::HashMap;

/// The nodes with effects that have run in a body, and the latest of them by what they touch.
#[derive(Debug, Default)]
pub(super) struct Effects {
    /// The latest node that read or wrote a resource, and the latest that wrote it.
    resources: HashMap<SymbolId, Latest>,
    /// The same for any resource.
    any: Latest,
    /// The same for effects besides resources.
    other: Latest,
}

#[derive(Debug, Default, Clone, Copy)]
struct Latest {
    touched: Option<NodeId>,
    written: Option<NodeId>,
}

impl Latest {
    /// The node that should have come after `id`, if there is one.
    fn conflict(self, id: NodeId, writes: bool) -> Option<NodeId> {
        let last = if writes { self.touched } else { self.written };
        last.filter(|&last| last >= id)
    }

    fn note(&mut self, id: NodeId, writes: bool) {
        self.touched = self.touched.max(Some(id));
        if writes {
            self.written = self.written.max(Some(id));
        }
    }
}

impl Effects {
    /// Notes that a node runs; returns the node that ran before it though it comes later.
    pub(super) fn run(
        &mut self,
        environment: &mut Environment<'_>,
        numbers: &mut ValueNumbering,
        id: NodeId,
    ) -> Option<NodeId> {
        let function = environment.function;
        let node = &function.graph[id];
        let effect = node.op.def().map_or(Effect::Stateful, |op| op.effect);
        let writes = match effect {
            Effect::Pure => return None,
            Effect::OfCallee if !has_effects(function, id) => return None,
            Effect::Reads => false,
            Effect::Writes | Effect::Stateful | Effect::OfCallee => true,
        };
        let is_handle = |handle: &Outlet| {
            function.graph.ty(*handle).is_some_and(|ty| ty.dtype == DType::Resource)
        };
        let handles = node.inputs().iter().copied().filter(is_handle);
        let mut touched: SmallVec<[SymbolId; 4]> = SmallVec::new();
        if matches!(effect, Effect::Reads | Effect::Writes) {
            touched.extend(handles.filter_map(|x| Some(environment.value(x, numbers)?.number)));
        }
        let mut found = self.other.conflict(id, writes);
        if touched.is_empty() {
            found = found.or(self.any.conflict(id, writes));
            self.other.note(id, writes);
        }
        for handle in touched {
            let own = self.resources.entry(handle).or_default();
            found = found.or(own.conflict(id, writes));
            own.note(id, writes);
        }
        self.any.note(id, writes);
        found
    }
}

/// Whether a body nested in a node does anything that others could see.
pub(super) fn has_effects(function: &Specialized, id: NodeId) -> bool {
    let bodies = function.nested.get(&id).map_or(&[][..], Vec::as_slice);
    bodies.iter().any(|body| {
        body.failure.is_some()
            || body.graph.iter().any(|(id, node)| match node.op.def().map(|op| op.effect) {
                Some(Effect::Pure) => false,
                Some(Effect::OfCallee) => has_effects(body, id),
                Some(Effect::Reads | Effect::Writes | Effect::Stateful) | None => true,
            })
    })
}
