//! The nodes of a graph or function of a SavedModel, as text or for Graphviz.

use super::Report;
use anyhow::{Context as _, Result};
use ferroflow::saved_model::proto::{MetaGraphDef, NodeDef};
use serde_json::{Value, json};
use std::fmt::Write;

/// The nodes of a function, or of the main graph if `function` is empty.
///
/// # Errors
///
/// When there is no such function.
pub(super) fn graph(meta_graph: &MetaGraphDef, function: &str, is_dot: bool) -> Result<Report> {
    let graph = meta_graph.graph_def.as_ref().context("the MetaGraph has no graph")?;
    let nodes = match function {
        "" => &graph.node,
        name => {
            let functions = graph.library.as_ref().map_or(&[][..], |library| &library.function);
            let name_of = |function: &ferroflow::saved_model::proto::FunctionDef| {
                function
                    .signature
                    .as_ref()
                    .map_or(String::new(), |signature| signature.name.clone())
            };
            let found = functions.iter().find(|function| name_of(function) == name);
            let found = found.with_context(|| {
                let mut names: Vec<String> = functions.iter().map(name_of).collect();
                names.sort();
                format!("there is no function `{name}`; there are [{}]", names.join(", "))
            })?;
            &found.node_def
        }
    };
    let text = if is_dot { dot(function, nodes) } else { lines(nodes) };
    let nodes: Vec<Value> = nodes
        .iter()
        .map(|node| {
            json!({ "name": node.name, "op": node.op, "inputs": node.input, "device": node.device })
        })
        .collect();
    Ok(Report { text, json: json!({ "function": function, "nodes": nodes }) })
}

/// A line for each node: its name, op and inputs.
fn lines(nodes: &[NodeDef]) -> String {
    let line = |node: &NodeDef| {
        let device = match node.device.as_str() {
            "" => String::new(),
            device => format!(" on {device}"),
        };
        format!("{} = {}({}){device}", node.name, node.op, node.input.join(", "))
    };
    nodes.iter().map(line).collect::<Vec<_>>().join("\n")
}

/// The graph in the DOT language; control edges are dashed.
fn dot(name: &str, nodes: &[NodeDef]) -> String {
    let name = if name.is_empty() { "graph" } else { name };
    let mut text = format!("digraph {} {{\n  node [shape=box];\n", quoted(name));
    for node in nodes {
        let label = quoted(&format!("{}\n{}", node.name, node.op));
        let _ = writeln!(text, "  {} [label={label}];", quoted(&node.name));
        for input in &node.input {
            let style = if input.starts_with('^') { " [style=dashed]" } else { "" };
            let source = input.trim_start_matches('^').split(':').next().unwrap_or_default();
            let _ = writeln!(text, "  {} -> {}{style};", quoted(source), quoted(&node.name));
        }
    }
    text + "}"
}

/// A text as a quoted identifier of the DOT language.
fn quoted(text: &str) -> String {
    let escaped = text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
    format!("\"{escaped}\"")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn graphs_are_written_for_graphviz() {
        let node = |name: &str, op: &str, inputs: &[&str]| NodeDef {
            name: name.into(),
            op: op.into(),
            input: inputs.iter().map(ToString::to_string).collect(),
            ..NodeDef::default()
        };
        let nodes = [node("x", "Placeholder", &[]), node("y\"", "Split", &["x:1", "^x"])];
        assert_eq!(lines(&nodes), "x = Placeholder()\ny\" = Split(x:1, ^x)");
        let expected = r#"digraph "graph" {
  node [shape=box];
  "x" [label="x\nPlaceholder"];
  "y\"" [label="y\"\nSplit"];
  "x" -> "y\"";
  "x" -> "y\"" [style=dashed];
}"#;
        assert_eq!(dot("", &nodes), expected);
    }
}
