//! A body that is built anew, node by node: passes that put nodes before others do so.

use super::{placement::Reason, specialize::Specialized};
use crate::{
    error::Result,
    graph::{Graph, NodeDef, NodeId, Outlet},
};
use smallvec::SmallVec;
use std::collections::HashMap;

/// The part of a body that is there again.
#[derive(Default)]
pub(super) struct Rebuilt {
    pub(super) graph: Graph,
    moved: HashMap<NodeId, NodeId>,
    /// Reasons why nodes run where they do.
    pub(super) reasons: HashMap<NodeId, Reason>,
}

impl Rebuilt {
    /// The outlet that stands for one of the body as it was.
    pub(super) fn outlet(&self, outlet: Outlet) -> Outlet {
        Outlet { node: self.moved[&outlet.node], index: outlet.index }
    }

    /// A node of the body as it was, which reads the nodes that are there again.
    pub(super) fn node(&mut self, node: &NodeDef) -> NodeDef {
        let inputs: SmallVec<[Outlet; 4]> =
            node.inputs().iter().map(|input| self.outlet(*input)).collect();
        let controls: SmallVec<[NodeId; 2]> =
            node.controls().iter().map(|control| self.moved[control]).collect();
        let mut node = node.clone().with_inputs(inputs).with_controls(controls);
        node.name = self.graph.unique_name(&node.name).into();
        node
    }
}

/// Builds a body anew. `add` adds a node of the graph as it was, whose functions may change with it, and
/// whatever comes before it.
///
/// # Errors
///
/// Those of `add`.
pub(super) fn rebuild(
    body: &mut Specialized,
    mut add: impl FnMut(&mut Rebuilt, &Graph, NodeId, &mut [Specialized]) -> Result<NodeId>,
) -> Result<()> {
    let source = std::mem::take(&mut body.graph);
    let mut nested = std::mem::take(&mut body.nested);
    let mut rebuilt = Rebuilt::default();
    for id in source.ids() {
        let mut functions = nested.remove(&id);
        let new = add(&mut rebuilt, &source, id, functions.as_deref_mut().unwrap_or_default())?;
        rebuilt.moved.insert(id, new);
        rebuilt.reasons.extend(body.reasons.get(&id).map(|&reason| (new, reason)));
        body.nested.extend(functions.map(|functions| (new, functions)));
    }
    for outlet in body.args.iter_mut().chain(&mut body.results) {
        *outlet = rebuilt.outlet(*outlet);
    }
    (body.graph, body.reasons) = (rebuilt.graph, rebuilt.reasons);
    Ok(())
}
