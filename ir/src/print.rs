//! The text form of graphs and functions: one line per node, for people and for tests.

use crate::{
    function::FunctionDef,
    graph::{Graph, NodeDef, NodeId, Outlet},
    ops::names,
};
use std::fmt;

impl fmt::Display for Graph {
    /// Nodes in topological order (in order of addition where there is none):
    ///
    /// ```text
    /// %sum = AddV2(%a, %b) {T: float32} : float32[2,3]
    /// ```
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_nodes(self, f, "")
    }
}

impl fmt::Display for FunctionDef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "function @{}(", self.name)?;
        for index in 0..self.args.len() {
            if index > 0 {
                f.write_str(", ")?;
            }
            write!(f, "%{}: {}", self.arg_name(index), self.arg_type(index))?;
        }
        f.write_str(") {\n")?;
        write_nodes(&self.graph, f, "  ")?;
        f.write_str("  return ")?;
        for (index, (name, outlet)) in self.results.iter().enumerate() {
            if index > 0 {
                f.write_str(", ")?;
            }
            write!(f, "{name} = {}", Name(&self.graph, *outlet))?;
        }
        for id in &self.control_results {
            write!(f, " ^{}", self.graph[*id].name)?;
        }
        f.write_str("\n}\n")
    }
}

fn write_nodes(graph: &Graph, f: &mut fmt::Formatter<'_>, indent: &str) -> fmt::Result {
    let order: Vec<NodeId> = graph.topological_order().unwrap_or_else(|_| graph.ids().collect());
    let nodes = order.iter().map(|&id| &graph[id]).filter(|node| node.op.name() != names::ARG);
    for node in nodes {
        f.write_str(indent)?;
        write_node(graph, node, f)?;
        f.write_str("\n")?;
    }
    Ok(())
}

fn write_node(graph: &Graph, node: &NodeDef, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    write!(f, "%{} = {}(", node.name, node.op.name())?;
    for (index, input) in node.inputs().iter().enumerate() {
        if index > 0 {
            f.write_str(", ")?;
        }
        write!(f, "{}", Name(graph, *input))?;
    }
    for (index, control) in node.controls().iter().enumerate() {
        let separator = if index > 0 || !node.inputs().is_empty() { ", " } else { "" };
        write!(f, "{separator}^{}", graph[*control].name)?;
    }
    f.write_str(")")?;
    let mut attrs = node.attrs.iter().filter(|(name, _)| !name.starts_with('_')).peekable();
    if attrs.peek().is_some() {
        f.write_str(" {")?;
        for (index, (name, value)) in attrs.enumerate() {
            if index > 0 {
                f.write_str(", ")?;
            }
            write!(f, "{name}: {value}")?;
        }
        f.write_str("}")?;
    }
    let is_shown =
        [names::FUSED_EXPRESSIONS, names::REGION, names::ROW_CALL].contains(&node.op.name());
    if let Some(expr) = node.expr.as_ref().filter(|_| is_shown) {
        write!(f, " = {expr}")?;
    }
    for (index, output) in node.outputs().iter().enumerate() {
        write!(f, "{} {output}", if index == 0 { " :" } else { "," })?;
    }
    if !node.device.is_empty() {
        write!(f, " @{}", node.device)?;
    }
    Ok(())
}

/// A result as an operand: `%node`, or `%node:1` for results after the first.
struct Name<'a>(&'a Graph, Outlet);

impl fmt::Display for Name<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Name(graph, outlet) = self;
        write!(f, "%{}", graph[outlet.node].name)?;
        if outlet.index > 0 { write!(f, ":{}", outlet.index) } else { Ok(()) }
    }
}
