//! Ops that a model needs, and those of them that can run.

mod absent;
mod table;

pub use absent::reason;
pub use table::table;

use ferroflow_ir::{Lowering, OutsideAccess, pass::functionalize::is_control_flow};
use ferroflow_runtime::Context;
use ferroflow_saved_model::{
    Result, add_ops,
    convert::{is_linked, op_of_file, reference_twin},
    proto, read_message,
};
use std::{collections::BTreeMap, path::Path};

/// The ops of all graphs and functions of a SavedModel, with the number of nodes of each.
pub fn ops_of_model(model: &proto::SavedModel) -> BTreeMap<String, usize> {
    let mut ops = BTreeMap::new();
    model.meta_graphs.iter().filter_map(|meta| meta.graph_def.as_ref()).for_each(|graph| {
        count(graph, &mut ops);
    });
    ops
}

/// The ops of a GraphDef in a file, with the number of nodes of each.
///
/// # Errors
///
/// When the file cannot be read or is no GraphDef.
pub fn ops_of_graph(path: &Path) -> Result<BTreeMap<String, usize>> {
    let mut ops = BTreeMap::new();
    count(&read_message(path)?, &mut ops);
    Ok(ops)
}

/// Calls of functions are no ops.
fn count(graph: &proto::GraphDef, ops: &mut BTreeMap<String, usize>) {
    let functions = graph.library.as_ref().map_or(&[][..], |library| &library.function);
    let names: std::collections::HashSet<&str> = functions
        .iter()
        .filter_map(|function| function.signature.as_ref())
        .map(|signature| signature.name.as_str())
        .collect();
    let nodes = functions.iter().flat_map(|function| &function.node_def).chain(&graph.node);
    for node in nodes.filter(|node| !names.contains(node.op.as_str())) {
        *ops.entry(node.op.clone()).or_default() += 1;
    }
}

/// Access of nodes of this op to what is outside of the model that holds them.
pub fn outside_access(context: &Context, op: &str) -> Option<OutsideAccess> {
    add_ops(context);
    op_of_file(context.registry(), op)?.outside
}

/// Whether nodes of this op can run, for some dtypes at least.
pub fn is_supported(context: &Context, op: &str) -> bool {
    if is_control_flow(op) || is_linked(op) {
        return true;
    }
    add_ops(context);
    op_of_file(context.registry(), op).is_some_and(|record| {
        // Reference variables become resource variables when a graph is converted.
        let twin_runs = |twin: &str| {
            let record = context.registry().find(twin);
            is_supported(context, twin) || record.is_some_and(|record| context.supports(record))
        };
        context.supports(record)
            || matches!(record.lowering, Lowering::Interface)
                && reference_twin(op).is_some_and(twin_runs)
    })
}
