//! Levels: how many nodes that make sizes of data are before a node, one after the other.
//!
//! Effects count as dependencies, so that nodes in the order of their levels keep the order of effects.

use super::{Kept, NodeRun, is_worth};
use crate::{
    function::FunctionLibrary,
    graph::{Graph, NodeId},
    hash::FastMap,
    op::Effect,
    pass::specialize::Specialized,
};
use std::collections::BTreeMap;

/// The nodes that are kept, in the order of their levels: of each those that make no sizes, which may move, then
/// those that do.
pub(super) fn levels(
    function: &Specialized,
    library: &FunctionLibrary,
    kept: &Kept,
    all: bool,
) -> Vec<NodeRun> {
    let mut by_level: BTreeMap<usize, [Vec<NodeId>; 2]> = BTreeMap::new();
    for (id, level) in levels_of(&function.graph, library, kept) {
        let makes_sizes = kept.makers.contains(&id);
        by_level.entry(level).or_default()[usize::from(makes_sizes)].push(id);
    }
    let mut runs = Vec::new();
    for (level, [between, makers]) in by_level {
        let is_worth = |&id: &NodeId| match all {
            true => is_worth(&function.graph[id]),
            false => multiplies_matrices(function, id),
        };
        let moves = level > 0 && between.iter().any(is_worth);
        runs.extend([NodeRun { nodes: between, moves }, NodeRun { nodes: makers, moves: false }]);
    }
    runs
}

/// The kept nodes in their order, with their levels.
fn levels_of(graph: &Graph, library: &FunctionLibrary, kept: &Kept) -> Vec<(NodeId, usize)> {
    // The levels of what depends on a node, and on the effects so far.
    let mut after: FastMap<NodeId, usize> = FastMap::default();
    let (mut after_effects, mut after_writes) = (0, 0);
    let mut levels = Vec::new();
    for (id, node) in graph.iter().filter(|(id, _)| kept.nodes.contains(id)) {
        let effect = library.effect_of(&node.op, &node.attrs);
        let before =
            node.inputs().iter().map(|input| input.node).chain(node.controls().iter().copied());
        let before = before.filter_map(|id| after.get(&id).copied()).max().unwrap_or(0);
        let level = match effect {
            Effect::Pure | Effect::OfCallee => before,
            Effect::Reads => before.max(after_writes),
            Effect::Writes | Effect::Stateful => before.max(after_effects),
        };
        let next = level + usize::from(kept.makers.contains(&id));
        after.insert(id, next);
        match effect {
            Effect::Pure | Effect::OfCallee => {}
            Effect::Reads => after_effects = after_effects.max(next),
            Effect::Writes | Effect::Stateful => {
                after_effects = next;
                after_writes = next;
            }
        }
        levels.push((id, level));
    }
    levels
}

/// Whether a node, or one in a loop or branch that it is, is a matmul or convolution of unknown shape.
fn multiplies_matrices(function: &Specialized, id: NodeId) -> bool {
    let node = &function.graph[id];
    let is_matmul = node.op.def().is_some_and(|op| op.multiply_adds.is_some());
    let is_float = node.outputs().first().is_some_and(|ty| ty.dtype.is_float());
    let inside = function.nested.get(&id).into_iter().flatten();
    (is_matmul && is_float && is_worth(node))
        || inside.into_iter().any(|body| {
            let mut ids = body.graph.ids();
            ids.any(|id| multiplies_matrices(body, id))
        })
}
