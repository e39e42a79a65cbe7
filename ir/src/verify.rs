//! Checks the rules of [the specification](crate) on a graph or a function.

use crate::{
    error::{Error, Result},
    function::FunctionDef,
    graph::{Graph, NodeDef},
    infer::{InputFacts, infer},
    spec::ValueType,
};
use smallvec::SmallVec;
use std::borrow::Cow;

/// Checks a graph: names, attributes, arguments, types and the absence of cycles.
///
/// # Errors
///
/// The first rule that is broken, with the node that breaks it.
pub fn verify_graph(graph: &Graph) -> Result<()> {
    for id in graph.topological_order()? {
        let node = &graph[id];
        verify_node(graph, node).map_err(node.locate(""))?;
    }
    Ok(())
}

/// Checks a function: its graph, and that arguments and results are in it.
///
/// # Errors
///
/// The first rule that is broken, with the node that breaks it.
pub fn verify_function(function: &FunctionDef) -> Result<()> {
    let graph = &function.graph;
    let malformed = |node: &str, rule: &'static str| {
        Err(Error::Malformed { node: node.into(), rule: Cow::Borrowed(rule) })
    };
    for (index, &arg) in function.args.iter().enumerate() {
        if !graph.contains(arg) || graph[arg].outputs().len() != 1 {
            return malformed(
                &format!("argument {index}"),
                "an argument is a node with one result",
            );
        }
    }
    for (name, outlet) in &function.results {
        if !graph.contains(outlet.node) || graph.ty(*outlet).is_none() {
            return malformed(name, "a result is a result of a node of the body");
        }
    }
    verify_graph(graph).map_err(|error| match error {
        Error::AtNode { node, op, location, source, .. } => {
            Error::AtNode { node, op, function: function.name.to_string(), location, source }
        }
        other => other,
    })
}

fn verify_node(graph: &Graph, node: &NodeDef) -> Result<()> {
    if node.name.is_empty() {
        let rule = "every node has a name".into();
        return Err(Error::Malformed { node: String::new(), rule });
    }
    let Some(op) = node.op.def() else { return Ok(()) };
    for attr in op.attrs {
        match node.attrs.get(attr.name) {
            Some(value) => attr.check(op.name, value)?,
            None => return Err(Error::argument(op.name, attr.name, "given", "nothing")),
        }
    }
    let types: Result<SmallVec<[&ValueType; 4]>> = node
        .inputs()
        .iter()
        .map(|&input| {
            graph.ty(input).ok_or_else(|| Error::Malformed {
                node: node.name.to_string(),
                rule: "an input is an existing result".into(),
            })
        })
        .collect();
    let types = types?;
    let inputs: SmallVec<[InputFacts<'_>; 4]> =
        types.iter().map(|ty| InputFacts { ty, value: None }).collect();
    let outputs = infer(op, &node.attrs, &inputs)?;
    let fits = outputs.len() == node.outputs().len()
        && outputs.iter().zip(node.outputs()).all(|(inferred, stated)| {
            inferred.dtype == stated.dtype && inferred.shape.is_compatible_with(&stated.shape)
        });
    if fits {
        return Ok(());
    }
    let rule = "the stated types of results agree with the inferred ones".into();
    Err(Error::Malformed { node: node.name.to_string(), rule })
}
