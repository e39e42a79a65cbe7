//! Ops that a file may hold: namespaces that are allowed, and what is there for debugging only.

use crate::{
    error::{Error, Result},
    proto::{GraphDef, NodeDef},
};
use std::collections::HashSet;

/// Treatment of ops that find faults and change no value: assertions, numeric checks and prints.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum DebugOps {
    /// They are saved.
    #[default]
    Keep,
    /// They are left out, as by `experimental_debug_stripper` of `tf.saved_model.SaveOptions`: a
    /// model that is served pays for none of them, and detects none of what they do.
    Strip,
}

/// Checks that the namespaces of all ops, such as `Acme` of `Acme>Twice`, are among these.
///
/// # Errors
///
/// [`Error::OpNamespace`] for the first that is not.
pub(super) fn check_namespaces(graph: &GraphDef, allowed: &[String]) -> Result<()> {
    for node in nodes(graph) {
        let Some((namespace, _)) = node.op.split_once('>') else { continue };
        if !allowed.iter().any(|name| name == namespace) {
            let (op, namespace) = (node.op.clone(), namespace.to_string());
            return Err(Error::OpNamespace { op, namespace, allowed: allowed.to_vec() });
        }
    }
    Ok(())
}

/// Makes assertions and prints into ops that do nothing, and checks of values into their values.
///
/// Source: `_strip_debug_nodes` in TensorFlow's `saved_model/save.py`, which knows `Assert`,
/// `PrintV2`, `CheckNumerics` and `Print`.
pub(super) fn strip_debug_ops(graph: &mut GraphDef) {
    graph.node.iter_mut().for_each(|node| strip(node, &HashSet::new()));
    let functions = graph.library.iter_mut().flat_map(|library| &mut library.function);
    for function in functions {
        let args = function.signature.iter().flat_map(|signature| &signature.input_arg);
        let args: HashSet<&str> = args.map(|arg| arg.name.as_str()).collect();
        function.node_def.iter_mut().for_each(|node| strip(node, &args));
    }
}

/// Strips a node of a function with these arguments, which no op waits for.
fn strip(node: &mut NodeDef, args: &HashSet<&str>) {
    let (op, n_values) = match node.op.as_str() {
        "Assert" | "PrintV2" => ("NoOp", 0),
        "CheckNumerics" | "CheckNumericsV2" | "Print" => ("Identity", 1),
        _ => return,
    };
    node.op = op.into();
    node.attr.retain(|name, _| name.starts_with('_') || (n_values > 0 && name == "T"));
    let inputs = std::mem::take(&mut node.input).into_iter().enumerate();
    let inputs = inputs.filter_map(|(index, input)| match input.split(':').next() {
        _ if index < n_values || input.starts_with('^') => Some(input),
        Some(source) if !args.contains(source) => Some(format!("^{source}")),
        _ => None,
    });
    node.input = inputs.collect();
    let mut seen = HashSet::new();
    node.input.retain(|input| seen.insert(input.clone()));
}

fn nodes(graph: &GraphDef) -> impl Iterator<Item = &NodeDef> {
    let functions = graph.library.iter().flat_map(|library| &library.function);
    graph.node.iter().chain(functions.flat_map(|function| &function.node_def))
}
