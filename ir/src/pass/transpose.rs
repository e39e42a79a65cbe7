//! Transposed operands of matmuls: a matmul reads its operand the other way round, and the transposition is
//! not needed.

use super::execution::constant;
use crate::{
    error::Result,
    graph::{Graph, NodeDef, NodeId, Outlet},
    ops::names,
};
use std::sync::Arc;

/// Has matmuls of real numbers read the operands of transpositions of the last two dimensions.
///
/// # Errors
///
/// None on a well-formed graph.
pub fn transposes_into_matmuls(graph: &mut Graph) -> Result<()> {
    let ids: Vec<NodeId> = graph.ids().collect();
    for id in ids {
        let Some(names) = graph[id].op.def().and_then(|op| op.matmul) else { continue };
        for (index, name) in names.into_iter().enumerate() {
            while let Some(source) = transposed(graph, graph[id].inputs()[index]) {
                let turned = !graph[id].attrs.bool(name)?;
                turn(graph, id, index, source, name, turned)?;
            }
        }
    }
    Ok(())
}

fn turn(
    graph: &mut Graph,
    id: NodeId,
    index: usize,
    source: Outlet,
    name: &'static str,
    turned: bool,
) -> Result<()> {
    let node = &graph[id];
    let mut inputs = node.inputs().to_vec();
    inputs[index] = source;
    let controls = node.controls().to_vec();
    let attrs = Arc::new((*node.attrs).clone().with(name, turned));
    *graph.node_mut(id).attrs = attrs;
    graph.connect(id, inputs, controls)
}

/// The operand of a transposition of the last two dimensions.
fn transposed(graph: &Graph, outlet: Outlet) -> Option<Outlet> {
    let node: &NodeDef = &graph[outlet.node];
    if node.op.name() != names::TRANSPOSE {
        return None;
    }
    let &[source, order] = node.inputs() else { return None };
    let order = constant(graph, order)?.to_i64s().ok()?;
    let rank = order.len();
    if rank < 2 || graph.ty(source)?.dtype.is_complex() {
        return None;
    }
    let mut swapped: Vec<i64> = (0..rank as i64).collect();
    swapped.swap(rank - 2, rank - 1);
    (order == swapped && graph.ty(source)?.shape.rank() == Some(rank)).then_some(source)
}
