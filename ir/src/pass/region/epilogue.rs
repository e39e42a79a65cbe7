//! Anchors with an epilogue.

use super::{Inputs, MAX_INPUTS, MAX_OPERATIONS, Region, Search, formula};
use crate::{
    attr::{Attrs, NameAttrList},
    expr::Replacement,
    graph::{NodeId, Outlet},
    op::Lowering,
};
use std::collections::HashSet;

/// The region of an elementwise node and the last anchor among its inputs.
pub(super) fn before(search: &Search<'_>, root: NodeId) -> Option<Region> {
    let (graph, node) = (search.graph, &search.graph[root]);
    if !node.controls().is_empty() {
        return None;
    }
    let members = HashSet::from([root]);
    let inputs = node.inputs().iter().copied();
    let anchors = inputs.filter(|&input| is_anchor(search, input, root, &members));
    let anchor = anchors.max_by_key(|anchor| anchor.node)?;
    let (expr, inputs) = formula(graph, root)?;
    let op = graph[anchor.node].op.def()?;
    // Input 0 of the expression is the anchor's element.
    let mut extras = Inputs::default();
    let moved: Option<Vec<Replacement<'_>>> = inputs
        .iter()
        .map(|&input| {
            let position = if input == anchor { 0 } else { extras.position(input) + 1 };
            Some(Replacement::Input(position, graph.ty(input)?.dtype))
        })
        .collect();
    let expr = expr.substitute(&moved?);
    let inputs: Vec<Outlet> =
        graph[anchor.node].inputs().iter().copied().chain(extras.all).collect();
    if inputs.len() > MAX_INPUTS || expr.nodes().len() > MAX_OPERATIONS {
        return None;
    }
    let attrs = (*graph[anchor.node].attrs).clone();
    let attrs = Attrs::new().with("anchor", NameAttrList { name: op.name.into(), attrs });
    Some(Region { attrs, expr, inputs, members: HashSet::from([root, anchor.node]) })
}

/// Whether a value is that of a kernel, of the shape of `root`, which alone reads it.
fn is_anchor(search: &Search<'_>, value: Outlet, root: NodeId, members: &HashSet<NodeId>) -> bool {
    let graph = search.graph;
    let node = &graph[value.node];
    let is_kernel = node.op.def().is_some_and(|op| {
        matches!(op.lowering, Lowering::Kernel) && op.name != "_Region" && node.expr.is_none()
    });
    let shape = search.shape(value);
    is_kernel
        && shape.is_some()
        && shape == search.shape(root.into())
        && search.may_join(value.node, root, members)
}
