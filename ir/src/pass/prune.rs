//! Dead code: nodes whose results are not needed and whose running has no effect.

use crate::{
    error::Result,
    graph::{Graph, NodeId},
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
