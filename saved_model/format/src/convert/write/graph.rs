//! Graphs.

use super::{
    function::{called, effects, library_message},
    node::node_message,
};
use crate::proto;
use ferroflow_ir::{
    Attrs, Error, FunctionDef, FunctionLibrary, Graph, NodeDef, NodeId, Outlet, Result, registry,
    tensor_name,
};

/// The version of GraphDef that is written: that of TensorFlow 2.21.
const PRODUCER: i32 = 2474;

/// The oldest version that readers of the graph may have.
const MIN_CONSUMER: i32 = 12;

/// The message of a graph and of the functions it calls.
///
/// # Errors
///
/// [`Error::Unsupported`], naming the node, for what a file cannot hold; [`Error::NotFound`] for a
/// function that the library does not have.
pub fn graph_message(graph: &Graph, library: &FunctionLibrary) -> Result<proto::GraphDef> {
    let input = |outlet: Outlet| {
        let name = &graph[outlet.node].name;
        Ok(if outlet.index == 0 { name.to_string() } else { tensor_name::of(graph, outlet) })
    };
    let control = |id: NodeId| graph[id].name.to_string();
    let node = graph
        .iter()
        .map(|(id, node)| node_message(graph, id, input, control).map_err(node.locate("")));
    let node = node.collect::<Result<_>>()?;
    let functions = library_message(called(graph), library)?;
    let library = Some(functions).filter(|library| !library.function.is_empty());
    let versions =
        proto::VersionDef { producer: PRODUCER, min_consumer: MIN_CONSUMER, ..Default::default() };
    Ok(proto::GraphDef { node, versions: Some(versions), library, ..proto::GraphDef::default() })
}

/// A function as a graph of its own.
#[derive(Clone, Debug)]
pub struct FunctionGraph {
    /// The graph.
    pub graph_def: proto::GraphDef,
    /// The tensors to feed, one for each argument, captures last.
    pub inputs: Vec<String>,
    /// The tensors to fetch, one for each result.
    pub outputs: Vec<String>,
    /// The op that has all effects of the function happen; results have them happen too.
    pub control_output: Option<String>,
}

/// The message of a function as a graph: arguments are placeholders, and a call that fetches a
/// result has the effects of the function happen, as in the graphs of TensorFlow's functions.
///
/// # Errors
///
/// As [`graph_message`].
pub fn function_graph(function: &FunctionDef, library: &FunctionLibrary) -> Result<FunctionGraph> {
    let mut graph = function.graph.clone();
    let mut results: Vec<Outlet> = function.results.iter().map(|(_, outlet)| *outlet).collect();
    let mut inputs = Vec::new();
    for &arg in &function.args {
        let placeholder = placeholder(&mut graph, arg)?;
        results.iter_mut().filter(|result| result.node == arg).for_each(|result| {
            *result = placeholder.into();
        });
        inputs.push(tensor_name::of(&graph, placeholder.into()));
    }
    let effects = effects(function, library);
    let control_output = match effects.is_empty() {
        true => None,
        false => {
            let after = tie(&mut graph, &effects, &mut results)?;
            Some(graph[after].name.to_string())
        }
    };
    let outputs = results.iter().map(|&result| tensor_name::of(&graph, result)).collect();
    let graph_def = graph_message(&graph, library)?;
    Ok(FunctionGraph { graph_def, inputs, outputs, control_output })
}

/// Makes a placeholder of an argument. Where the name is none that nodes in files have, it gets
/// another.
fn placeholder(graph: &mut Graph, arg: NodeId) -> Result<NodeId> {
    let op = registry::find("Placeholder").expect("a built-in record");
    let ty = graph[arg].outputs().first().cloned();
    let ty = ty.ok_or_else(|| Error::NotFound {
        kind: "type of argument",
        name: graph[arg].name.to_string(),
    })?;
    let mut attrs = Attrs::clone(&graph[arg].attrs);
    attrs.remove("T");
    attrs.remove("index");
    let attrs = attrs.with("dtype", ty.dtype).with("shape", ty.shape.clone());
    let clean = clean_name(&graph[arg].name);
    if clean == *graph[arg].name {
        let node = graph.node_mut(arg);
        (*node.op, *node.attrs) = (op.into(), attrs.into());
        return Ok(arg);
    }
    let name = graph.unique_name(&clean);
    graph.replace(arg, NodeDef::new(name, op, attrs).with_outputs([ty]))
}

/// A name as nodes in files may have it: `[A-Za-z0-9.][A-Za-z0-9_.\\/>-]*`.
pub fn clean_name(name: &str) -> String {
    let fits = |c: char| c.is_ascii_alphanumeric() || "_./\\>-".contains(c);
    let clean: String = name.chars().map(|c| if fits(c) { c } else { '_' }).collect();
    let begins_well = clean.starts_with(|c: char| c.is_ascii_alphanumeric() || c == '.');
    if begins_well { clean } else { format!("arg{clean}") }
}

/// Makes each result come after all of `effects`, by way of one node, which it returns. A result
/// that others use, too, gets a node of its own.
fn tie(graph: &mut Graph, effects: &[NodeId], results: &mut [Outlet]) -> Result<NodeId> {
    let op = |name: &str| registry::find(name).expect("a built-in record");
    let name = graph.unique_name("NoOp");
    let after = NodeDef::new(name, op("NoOp"), Attrs::new());
    let after = graph.add(after.with_controls(effects.iter().copied()))?;
    for result in results {
        let node = &graph[result.node];
        let only_for_this = graph.consumers(result.node).next().is_none();
        if only_for_this && !node.inputs().is_empty() {
            let inputs = node.inputs().to_vec();
            let controls: Vec<NodeId> = node.controls().iter().copied().chain([after]).collect();
            graph.connect(result.node, inputs, controls)?;
            continue;
        }
        let ty = graph.ty(*result).cloned().ok_or_else(|| Error::NotFound {
            kind: "type of result",
            name: tensor_name::of(graph, *result),
        })?;
        let attrs = Attrs::new().with("T", ty.dtype);
        let name = graph.unique_name("Identity");
        let identity = NodeDef::new(name, op("Identity"), attrs)
            .with_inputs([*result])
            .with_controls([after])
            .with_outputs([ty]);
        *result = graph.add(identity)?.into();
    }
    Ok(after)
}

#[cfg(test)]
mod tests {
    use super::*;
    use ferroflow_ir::{Attrs, DType, PartialShape, TensorSpec, ValueType, build::GraphBuilder};

    fn scalar() -> ValueType {
        ValueType::new(DType::F32, PartialShape::scalar())
    }

    /// A line for each node: name, op and inputs.
    fn lines(graph: &proto::GraphDef) -> Vec<String> {
        let line = |node: &proto::NodeDef| {
            format!("{} = {}({})", node.name, node.op, node.input.join(", "))
        };
        graph.node.iter().map(line).collect()
    }

    fn check(function: &FunctionDef, nodes: &[&str], outputs: &[&str]) {
        let found = function_graph(function, &FunctionLibrary::new()).unwrap();
        assert_eq!(lines(&found.graph_def), nodes);
        assert_eq!(found.outputs, outputs);
    }

    #[test]
    fn a_condition_of_an_import_is_an_assertion_in_files() {
        let mut builder = GraphBuilder::new();
        let holds = ValueType::new(DType::Bool, PartialShape::scalar());
        let holds = builder.arg("holds", holds).unwrap();
        let x = builder.arg("x", scalar()).unwrap();
        let attrs = Attrs::new().with("T", vec![DType::F32]);
        builder.call_with("_Require", "require", attrs, &[holds, x]).unwrap();
        let function = builder.finish_function("f", &[("y", x)]);
        let found = function_graph(&function, &FunctionLibrary::new()).unwrap();
        assert!(lines(&found.graph_def).contains(&"require = Assert(holds, x)".into()));
    }

    #[test]
    fn arguments_are_placeholders() {
        let mut builder = GraphBuilder::new();
        let x = builder.arg("x", ValueType::new(DType::F32, PartialShape::vector(None))).unwrap();
        let unique = builder.call("Unique", "u", &[x]).unwrap();
        let y = builder.call("Identity", "y", &[unique[1]]).unwrap()[0];
        let function = builder.finish_function("f", &[("y", y)]);
        check(&function, &["x = Placeholder()", "u = Unique(x)", "y = Identity(u:1)"], &["y:0"]);
        let graph = function_graph(&function, &FunctionLibrary::new()).unwrap();
        assert_eq!(graph.inputs, ["x:0"]);
        assert_eq!(graph.control_output, None);
        let names: Vec<&String> = graph.graph_def.node[0].attr.keys().collect();
        assert_eq!(names, ["dtype", "shape"]);
        let versions = graph.graph_def.versions.unwrap();
        assert_eq!((versions.producer, versions.min_consumer), (2474, 12));
    }

    #[test]
    fn names_that_files_cannot_hold_change() {
        let mut builder = GraphBuilder::new();
        let x = builder.arg("x:0", scalar()).unwrap();
        let y = builder.call("Square", "y", &[x]).unwrap()[0];
        let function = builder.finish_function("f", &[("x", x), ("y", y)]);
        check(&function, &["y = Square(x_0)", "x_0 = Placeholder()"], &["x_0:0", "y:0"]);
    }

    #[test]
    fn results_have_effects_happen() {
        let mut builder = GraphBuilder::new();
        let variable = TensorSpec::new(DType::F32, PartialShape::scalar());
        let v = builder.arg("v", ValueType::handle(DType::Resource, variable)).unwrap();
        let x = builder.arg("x", scalar()).unwrap();
        builder.call("AssignAddVariableOp", "add", &[v, x]).unwrap();
        let y = builder.call("Square", "y", &[x]).unwrap()[0];
        let z = builder.call("Square", "z", &[y]).unwrap()[0];
        let function = builder.finish_function("f", &[("x", x), ("y", y), ("z", z)]);
        check(
            &function,
            &[
                "v = Placeholder()",
                "x = Placeholder()",
                "add = AssignAddVariableOp(v, x)",
                "y = Square(x)",
                "z = Square(y, ^NoOp)",
                "NoOp = NoOp(^add)",
                "Identity = Identity(x, ^NoOp)",
                "Identity_1 = Identity(y, ^NoOp)",
            ],
            &["Identity:0", "Identity_1:0", "z:0"],
        );
        let graph = function_graph(&function, &FunctionLibrary::new()).unwrap();
        assert_eq!(graph.control_output.as_deref(), Some("NoOp"));
    }

    #[test]
    fn functions_come_with_all_they_call() {
        let library = FunctionLibrary::new();
        let calling = |name: &str, callee: Option<&str>| {
            let mut builder = GraphBuilder::new();
            let x = builder.arg("x", scalar()).unwrap();
            let y = match callee {
                Some(callee) => {
                    let f = ferroflow_ir::NameAttrList::new(callee);
                    let attrs = Attrs::new().with("f", f).with("Tout", vec![DType::F32]);
                    builder.call_with("PartitionedCall", "call", attrs, &[x]).unwrap()[0]
                }
                None => x,
            };
            builder.finish_function(name, &[("y", y)])
        };
        library.insert(calling("inner", None)).unwrap();
        library.insert(calling("middle", Some("inner"))).unwrap();
        library.insert(calling("unused", None)).unwrap();
        let outer = function_graph(&calling("outer", Some("middle")), &library).unwrap();
        let functions = outer.graph_def.library.unwrap().function;
        let names = functions.iter().map(|f| f.signature.as_ref().unwrap().name.as_str());
        assert_eq!(names.collect::<Vec<_>>(), ["inner", "middle"]);
        let missing = function_graph(&calling("outer", Some("gone")), &library).unwrap_err();
        assert_eq!(missing.to_string(), "function `gone` does not exist");
    }

    #[test]
    fn internal_ops_are_refused() {
        let mut builder = GraphBuilder::new();
        builder.arg("x", scalar()).unwrap();
        let error = graph_message(&builder.finish(), &FunctionLibrary::new()).unwrap_err();
        let expected = "_Arg is not supported: internal ops have no meaning in files \
                        (node `x`, op _Arg)";
        assert_eq!(error.to_string(), expected);
    }
}
