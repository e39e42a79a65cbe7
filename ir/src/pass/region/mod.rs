//! Fused regions: an op and the elementwise work before and after it become one node.
//!
//! It comes after [`fuse`](super::fuse), which has made one node of each chain of elementwise ops.
//! A region is one `_Region` node, of one of two kinds:
//!
//! - **epilogue**: an anchor op (a matmul, a convolution) and the elementwise expression that its
//!   result goes through: a bias, an activation, a residual, the factors of a batch normalisation;
//! - **rows**: reductions over the same axes of one shape, with the elementwise expressions before,
//!   between and after them: softmax, layer norm, the norm of rows, a mean of squares.
//!
//! **Invariant:** every node of a region but the last has all its readers inside the region, no
//! control edges, and the last node's device; none is a result. So no path leaves a region and
//! comes back, and values that others read stay.

mod chain;
mod epilogue;
mod rows;
mod split;

#[cfg(test)]
mod tests;

pub use chain::convolution_chains;
pub use rows::softmax;
pub use split::split_epilogues;

use super::fuse::{Inputs, MAX_INPUTS, MAX_OPERATIONS, dtypes, formula, is_safe_elementwise};
use crate::{
    attr::Attrs,
    error::Result,
    expr::Expr,
    graph::{Graph, NodeDef, NodeId, Outlet},
    hash::FastSet,
    op::OpDef,
    ops::names,
    registry,
    shape::Shape,
};
use std::sync::Arc;

/// Forms the regions of a graph that are profitable on the device they run on.
/// `results` are the outlets others will ask for. Nodes without readers should have been pruned, as
/// they count as readers; those that lose their last reader remain.
///
/// # Errors
///
/// None on a well-formed graph.
pub fn regions(
    graph: &mut Graph,
    results: &[Outlet],
    mut gains: impl FnMut(&Graph, &NodeDef) -> bool,
) -> Result<()> {
    let region = registry::find(names::REGION).expect("a built-in record");
    let kept: FastSet<NodeId> = results.iter().map(|outlet| outlet.node).collect();
    let order = graph.topological_order()?;
    let mut absorbed: FastSet<NodeId> = FastSet::default();
    let finders: [fn(&Search<'_>, NodeId) -> Vec<Region>; 2] =
        [|search, root| rows::around(search, root).into_iter().collect(), epilogue::before];
    for find in finders {
        for &id in order.iter().rev() {
            if absorbed.contains(&id) {
                continue;
            }
            for found in find(&Search { graph, kept: &kept }, id) {
                let node = found.node(graph, id, region);
                if gains(graph, &node) {
                    let inputs = node.inputs().to_vec();
                    let root = graph.node_mut(id);
                    (*root.op, *root.attrs, *root.expr) = (node.op, node.attrs, node.expr);
                    graph.connect(id, inputs, [])?;
                    absorbed.extend(found.members);
                    break;
                }
            }
        }
    }
    Ok(())
}

/// A region that replaces a node.
struct Region {
    /// All attributes but the types.
    attrs: Attrs,
    expr: Expr,
    inputs: Vec<Outlet>,
    /// The nodes it computes, the last one among them.
    members: FastSet<NodeId>,
}

impl Region {
    /// The node that computes the region instead of `root`.
    fn node(&self, graph: &Graph, root: NodeId, region: &'static OpDef) -> NodeDef {
        let root = &graph[root];
        let types = dtypes(graph, &self.inputs);
        let attrs = self.attrs.clone().with("Tin", types).with("T", self.expr.dtype());
        let attrs = region.complete_attrs(attrs).expect("attributes of the record");
        let mut node = NodeDef::new(root.name.clone(), region, attrs)
            .with_inputs(self.inputs.iter().copied())
            .with_outputs(root.outputs().iter().cloned());
        node.device = root.device.clone();
        node.expr = Some(Arc::new(self.expr.clone()));
        node
    }
}

/// A graph in which regions are looked for.
struct Search<'a> {
    graph: &'a Graph,
    /// Nodes whose results are asked for from outside.
    kept: &'a FastSet<NodeId>,
}

impl Search<'_> {
    fn shape(&self, outlet: Outlet) -> Option<Shape> {
        self.graph.ty(outlet)?.shape.known()
    }

    /// Whether a node may be a part of a region that ends with `root`, and that its readers are in.
    fn may_join(&self, id: NodeId, root: NodeId, is_in: impl Fn(NodeId) -> bool) -> bool {
        let node = &self.graph[id];
        !self.kept.contains(&id)
            && node.outputs().len() == 1
            && node.controls().is_empty()
            && node.device == self.graph[root].device
            && self.graph.consumers(id).all(is_in)
            && self.graph.consumers(id).all(|reader| !self.graph[reader].controls().contains(&id))
    }
}
