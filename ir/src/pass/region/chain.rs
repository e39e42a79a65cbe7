//! Chains of convolutions that are computed a few rows of an image at a time.
//!
//! It comes after [`regions`](super::regions): the members are convolutions and regions around one.
//! Between two of them a tensor is neither allocated nor written as a whole; what one has computed of
//! a few rows is in the cache when the next reads it. The pairs and threes of MobileNet are such
//! chains: pointwise, depthwise, pointwise.
//!
//! **Invariant:** as for regions, every member but the last has its only reader in the chain.

use super::{Search, dtypes};
use crate::{
    attr::{AttrValue, Attrs, NameAttrList},
    dtype::DType,
    error::Result,
    graph::{Graph, NodeDef, NodeId, Outlet},
    hash::FastSet,
    op::OpDef,
    ops::names,
    registry,
};
use std::sync::Arc;

/// The most convolutions of a chain.
const LONGEST: usize = 3;

/// Forms the chains of a graph that are profitable. `results` are the outlets others will ask for;
/// nodes that lose their last reader remain.
///
/// # Errors
///
/// None on a well-formed graph.
pub fn convolution_chains(
    graph: &mut Graph,
    results: &[Outlet],
    mut gains: impl FnMut(&Graph, &NodeDef) -> bool,
) -> Result<()> {
    let record = registry::find(names::FUSED_CONVOLUTIONS).expect("a built-in record");
    let kept: FastSet<NodeId> = results.iter().map(|outlet| outlet.node).collect();
    let mut absorbed: FastSet<NodeId> = FastSet::default();
    for &id in graph.topological_order()?.iter().rev() {
        if absorbed.contains(&id) {
            continue;
        }
        let chain = chain_to(&Search { graph, kept: &kept }, id);
        // The longest first.
        for first in 0..chain.len().saturating_sub(1) {
            let members = &chain[first..];
            let node = fused(graph, members, record);
            if gains(graph, &node) {
                let inputs = node.inputs().to_vec();
                let last = graph.node_mut(id);
                (*last.op, *last.attrs, *last.expr) = (node.op, node.attrs, None);
                graph.connect(id, inputs, [])?;
                absorbed.extend(members);
                break;
            }
        }
    }
    Ok(())
}

/// The convolutions that end with `last`, in order; none where it is not one.
fn chain_to(search: &Search<'_>, last: NodeId) -> Vec<NodeId> {
    let graph = search.graph;
    let mut chain = Vec::new();
    let mut next = Some(last).filter(|&last| graph[last].controls().is_empty());
    while let Some(id) = next.filter(|&id| is_convolution(&graph[id])) {
        chain.push(id);
        let input = graph[id].inputs()[0];
        let is_operand = graph[id].inputs()[1..].contains(&input);
        let may_join = search.may_join(input.node, last, |reader| reader == id);
        next = Some(input.node).filter(|_| may_join && !is_operand && chain.len() < LONGEST);
    }
    chain.reverse();
    chain
}

/// Whether a node is a convolution of `f32`, or a region around one.
fn is_convolution(node: &NodeDef) -> bool {
    let Some(op) = node.op.def() else { return false };
    let name = match op.name {
        names::REGION => node.attrs.func("anchor").map(|anchor| anchor.name.clone()),
        name => Ok(name.into()),
    };
    let convolves =
        name.is_ok_and(|name| matches!(&*name, names::CONV_2D | names::DEPTHWISE_CONV_2D_NATIVE));
    convolves && node.outputs().first().is_some_and(|ty| ty.dtype == DType::F32)
}

/// The node that computes a chain instead of its last member.
fn fused(graph: &Graph, members: &[NodeId], record: &'static OpDef) -> NodeDef {
    let mut inputs: Vec<Outlet> = Vec::new();
    let mut convolutions: Vec<NameAttrList> = Vec::new();
    for (index, &member) in members.iter().enumerate() {
        let node = &graph[member];
        inputs.extend(&node.inputs()[usize::from(index > 0)..]);
        convolutions.push(NameAttrList {
            name: node.op.name().into(),
            attrs: (*node.attrs).clone(),
            expr: node.expr.as_ref().map(Arc::clone),
        });
    }
    let attrs = Attrs::new()
        .with("Tin", dtypes(graph, &inputs))
        .with("T", DType::F32)
        .with("convolutions", AttrValue::Funcs(convolutions));
    let attrs = record.complete_attrs(attrs).expect("attributes of the record");
    let last = &graph[members[members.len() - 1]];
    let mut node = NodeDef::new(last.name.clone(), record, attrs)
        .with_inputs(inputs)
        .with_outputs(last.outputs().iter().cloned());
    node.device = last.device.clone();
    node
}
