//! A body that is built anew, node by node: passes that put nodes before others do so.

use super::{placement::Reason, specialize::Specialized};
use crate::{
    error::Result,
    graph::{Graph, NodeDef, NodeId, Outlet},
    hash::{FastMap, FastSet},
};
use smallvec::SmallVec;

/// The part of a body that is there again.
#[derive(Default)]
pub(super) struct Rebuilt {
    pub(super) graph: Graph,
    moved: FastMap<NodeId, NodeId>,
    /// Reasons why nodes run where they do.
    pub(super) reasons: FastMap<NodeId, Reason>,
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
    add: impl FnMut(&mut Rebuilt, &Graph, NodeId, &mut [Specialized]) -> Result<NodeId>,
) -> Result<()> {
    // Arguments come before what reads them, also those that a pass added last.
    let args: FastSet<NodeId> = body.args.iter().map(|arg| arg.node).collect();
    let (mut order, others): (Vec<NodeId>, Vec<NodeId>) =
        body.graph.ids().partition(|id| args.contains(id));
    order.extend(others);
    rebuild_in_order(body, order, add)
}

/// As [`rebuild`], in an order in which nodes come after what they read. For a node that comes twice, the
/// second one that is added stands for it from then on.
///
/// # Errors
///
/// Those of `add`.
pub(super) fn rebuild_in_order(
    body: &mut Specialized,
    order: Vec<NodeId>,
    mut add: impl FnMut(&mut Rebuilt, &Graph, NodeId, &mut [Specialized]) -> Result<NodeId>,
) -> Result<()> {
    let source = std::mem::take(&mut body.graph);
    let mut nested = std::mem::take(&mut body.nested);
    let mut rebuilt = Rebuilt::default();
    for id in order {
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        dtype::DType,
        pass::{
            test_bodies::{function, specialized},
            verify::verify,
        },
        shape::Shape,
        spec::ValueType,
    };

    /// Loops get variables after what is in their bodies.
    #[test]
    fn arguments_that_were_added_last_come_first() {
        let types = [ValueType::new(DType::F32, Shape::scalar())];
        let def = function(&types, |b, args| Ok(vec![b.call("Neg", "y", args)?[0]]));
        let mut body = specialized(&def, &types);
        let mut last = body.graph[body.args[0].node].clone();
        last.name = "last".into();
        let last = body.graph.add(last).unwrap();
        body.args.push(last.into());
        body.graph.connect(body.results[0].node, [last.into()], []).unwrap();
        rebuild(&mut body, |rebuilt, source, id, _| {
            let node = rebuilt.node(&source[id]);
            rebuilt.graph.add(node)
        })
        .unwrap();
        verify(&body, "building anew").unwrap();
        assert_eq!(body.graph[body.results[0].node].inputs(), [body.args[1]]);
    }
}
