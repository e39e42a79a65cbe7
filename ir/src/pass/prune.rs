//! Dead code: nodes whose results are not needed and whose running has no effect.

use super::specialize::Specialized;
use crate::{
    error::Result,
    graph::{Graph, NodeDef, NodeId},
    hash::FastSet,
    op::Effect,
};

/// Removes the nodes that neither `roots` nor nodes with effects need.
///
/// # Errors
///
/// None on a well-formed graph.
pub fn prune(graph: &mut Graph, roots: impl IntoIterator<Item = NodeId>) -> Result<()> {
    let effectful = graph.iter().filter_map(|(id, node)| match node.op.effect() {
        Effect::Pure | Effect::Reads => None,
        Effect::Writes | Effect::Stateful | Effect::OfCallee => Some(id),
    });
    let live = graph.reachable_from(roots.into_iter().chain(effectful));
    graph.retain(&live)
}

/// Removes the nodes of a specialised body that neither its results nor effects need, with the bodies of
/// loops and branches that go.
///
/// # Errors
///
/// None on a well-formed graph.
pub fn prune_body(body: &mut Specialized) -> Result<()> {
    let live = live(body);
    body.graph.retain(&live)?;
    body.nested.retain(|id, _| live.contains(id));
    Ok(())
}

/// The nodes of a specialised body that its arguments, its results and effects need.
pub fn live(body: &Specialized) -> FastSet<NodeId> {
    let roots = body.results.iter().chain(&body.args).map(|outlet| outlet.node);
    body.graph.reachable_from(roots.chain(effectful(body)))
}

/// The nodes of a specialised body whose running does more than to compute their results.
pub(super) fn effectful(body: &Specialized) -> impl Iterator<Item = NodeId> {
    let effectful = body.graph.iter().filter(|&(id, node)| has_effect(body, id, node));
    effectful.map(|(id, _)| id)
}

/// Whether running a node does more than to compute its results. Loops and branches do what is in their
/// bodies, of which one may be known to fail.
fn has_effect(body: &Specialized, id: NodeId, node: &NodeDef) -> bool {
    match (node.op.effect(), body.nested.get(&id)) {
        (Effect::Pure | Effect::Reads, _) => false,
        (Effect::OfCallee, Some(bodies)) => bodies.iter().any(|nested| {
            nested.failure.is_some()
                || nested.graph.iter().any(|(id, node)| has_effect(nested, id, node))
        }),
        (Effect::OfCallee, None) | (Effect::Writes | Effect::Stateful, _) => true,
    }
}
