//! GraphDef files: what there is to feed and to compute.

use super::Report;
use anyhow::Result;
use ferroflow::{
    ir::{ops::names, registry},
    saved_model::{
        convert,
        proto::{GraphDef, NodeDef, attr_value::Value as Attr},
        read_message,
    },
};
use serde_json::json;
use std::{collections::HashSet, path::Path};

/// The inputs, the outputs and the size of a graph.
///
/// # Errors
///
/// When the file is no GraphDef.
pub(super) fn overview(path: &Path) -> Result<Report> {
    let graph: GraphDef = read_message(path)?;
    let inputs: Vec<(&str, String)> = inputs(&graph);
    let outputs: Vec<&str> = outputs(&graph);
    let n_functions = graph.library.as_ref().map_or(0, |library| library.function.len());
    let mut lines =
        vec![format!("a GraphDef of {} nodes, {n_functions} functions", graph.node.len())];
    lines.extend(inputs.iter().map(|(name, ty)| format!("  input {name}: {ty}")));
    lines.extend(outputs.iter().map(|name| format!("  output {name}")));
    let fields = inputs.iter().map(|(name, ty)| json!({ "name": name, "type": ty }));
    let json = json!({
        "nodes": graph.node.len(),
        "functions": n_functions,
        "inputs": fields.collect::<Vec<_>>(),
        "outputs": outputs,
    });
    Ok(Report { text: lines.join("\n"), json })
}

/// The names of results that no node reads, as examples of what to compute.
///
/// # Errors
///
/// When the file is no GraphDef.
pub(super) fn output_names(path: &Path) -> Result<Vec<String>> {
    let graph: GraphDef = read_message(path)?;
    Ok(outputs(&graph).into_iter().map(str::to_string).collect())
}

fn inputs(graph: &GraphDef) -> Vec<(&str, String)> {
    let placeholders = graph.node.iter().filter(|node| is_placeholder(node));
    placeholders.map(|node| (node.name.as_str(), ty(node))).collect()
}

/// Whether a node is of an op that is fed, such as `PlaceholderWithDefault`.
fn is_placeholder(node: &NodeDef) -> bool {
    node.op.starts_with(names::PLACEHOLDER)
}

/// Dtype and shape of a placeholder.
fn ty(node: &NodeDef) -> String {
    let attr = |name: &str| node.attr.get(name).and_then(|attr| attr.value.as_ref());
    let dtype = match attr("dtype") {
        Some(Attr::Type(number)) => convert::dtype(*number).ok(),
        _ => None,
    };
    let shape = match attr("shape") {
        Some(Attr::Shape(shape)) => convert::shape(shape).ok(),
        _ => None,
    };
    let dtype = dtype.map_or("unknown dtype", |(dtype, _)| dtype.name());
    format!("{dtype}{}", shape.map_or_else(|| "<unknown>".into(), |shape| shape.to_string()))
}

/// The nodes that compute something and whose results no node reads.
fn outputs(graph: &GraphDef) -> Vec<&str> {
    let source = |input: &str| -> String {
        input.trim_start_matches('^').split(':').next().unwrap_or_default().to_string()
    };
    let data = |node: &NodeDef| -> Vec<String> {
        node.input.iter().filter(|input| !input.starts_with('^')).map(|i| source(i)).collect()
    };
    let read: HashSet<String> = graph.node.iter().flat_map(data).collect();
    let is_output = |node: &&NodeDef| {
        let has_results = registry::find(&node.op).is_none_or(|op| !op.outputs.is_empty());
        has_results
            && node.op != names::CONST
            && !is_placeholder(node)
            && !read.contains(&node.name)
    };
    graph.node.iter().filter(is_output).map(|node| node.name.as_str()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn outputs_are_results_that_no_node_reads() {
        let node = |name: &str, op: &str, inputs: &[&str]| NodeDef {
            name: name.into(),
            op: op.into(),
            input: inputs.iter().map(ToString::to_string).collect(),
            ..NodeDef::default()
        };
        let node = vec![
            node("x", names::PLACEHOLDER, &[]),
            node("y", "Split", &["x", "^z"]),
            node("z", "Neg", &["y:1"]),
            node("group", "NoOp", &["^y"]),
        ];
        let graph = GraphDef { node, ..GraphDef::default() };
        assert_eq!(outputs(&graph), ["z"]);
        assert_eq!(inputs(&graph), [("x", "unknown dtype<unknown>".to_string())]);
    }
}
