//! GraphDefs of functions, and functions of GraphDefs.
//!
//! ```
//! use ferroflow::{Tensor, function, graph_def, ir::DType, spec};
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let f = function(|x: Tensor| x.square()?.square()).with_parameters(["x"]);
//! let graph = graph_def::to_graph_def(&f.concrete_for([spec(DType::F32, [])])?)?;
//! let names: Vec<&str> = graph.node.iter().map(|node| node.name.as_str()).collect();
//! assert_eq!(names, ["x", "Square", "Square_1", "Identity"]);
//!
//! let x = [("x:0", Tensor::from(3.0f32))];
//! let y = graph_def::import_graph_def(&graph, &x, &["Identity:0"])?;
//! assert_eq!(y[0].to_scalar::<f32>()?, 81.0);
//! # Ok(())
//! # }
//! ```

use ferroflow_ir::pass::infer_types::infer_types;
use ferroflow_saved_model::{
    add_ops,
    convert::{self, rename_functions},
    graph::{LoadedGraph, Request},
    proto::GraphDef,
    write_message,
};
use ferroflow_tracer::{ConcreteFunction, Result, Tensor, context::context};
use std::{
    path::Path,
    sync::atomic::{AtomicU64, Ordering},
};

pub use ferroflow_ir::pass::carve::OtherEffects;
pub use ferroflow_saved_model::convert::FunctionGraph;

/// The graph of a traced function, with the functions it calls.
///
/// Arguments are `Placeholder` nodes, in the end those of what the function captures: values of
/// variables are no part of a graph. Nodes and attributes are those of [`ConcreteFunction::graph`];
/// who fetches a result has the effects of the function happen.
///
/// # Errors
///
/// When the function holds what no file can.
pub fn to_graph_def(function: &ConcreteFunction) -> Result<GraphDef> {
    Ok(function_graph(function)?.graph_def)
}

/// As [`to_graph_def`], with the names of the tensors to feed and to fetch.
///
/// # Errors
///
/// As [`to_graph_def`].
pub fn function_graph(function: &ConcreteFunction) -> Result<FunctionGraph> {
    Ok(convert::function_graph(function.def(), function.library())?)
}

/// Writes the graph of a traced function to a file, such as `graph.pb`.
///
/// # Errors
///
/// As [`to_graph_def`], and when the file cannot be written.
pub fn write_graph_def(
    function: &ConcreteFunction,
    path: impl AsRef<Path>,
) -> ferroflow_saved_model::Result<()> {
    let graph = convert::function_graph(function.def(), function.library())?;
    Ok(write_message(path.as_ref(), &graph.graph_def)?)
}

/// A function of the part of a graph that computes `outputs` from `inputs`, tensors named as in
/// `Square:0`. Other effects of the graph happen in every call, or not at all.
///
/// Variables that the graph makes are those of their names in the context at hand.
///
/// # Errors
///
/// When the graph is malformed, there is no such tensor, or the part has a loop that only sessions
/// of TensorFlow 1 run.
pub fn graph_function(
    graph: &GraphDef,
    inputs: &[&str],
    outputs: &[&str],
    effects: OtherEffects,
) -> Result<ConcreteFunction> {
    let context = context();
    add_ops(&context);
    let number = unique_number();
    let mut graph = graph.clone();
    // A function may be imported twice, even into one trace.
    rename_functions(&mut graph, |name| format!("{name}_imported_{number}"));
    let graph = LoadedGraph::new(graph, context.registry(), context.limits())?;
    let request = Request::new(inputs, outputs, &[]);
    let mut def = graph.part(&format!("__imported_graph_{number}"), &request, effects)?;
    infer_types(&mut def.graph)?;
    ConcreteFunction::from_def("imported_graph", def, graph.library().clone(), Vec::new())
}

/// Values of `outputs` in a graph when the tensors named in `inputs` are replaced by others. In a
/// trace this is a call of a function.
///
/// # Errors
///
/// As [`graph_function`], and whatever fails in the graph, such as a placeholder that is not
/// replaced.
#[track_caller]
pub fn import_graph_def(
    graph: &GraphDef,
    inputs: &[(&str, Tensor)],
    outputs: &[&str],
) -> Result<Vec<Tensor>> {
    let (names, tensors): (Vec<&str>, Vec<Tensor>) = inputs.iter().cloned().unzip();
    graph_function(graph, &names, outputs, OtherEffects::Drop)?.call_flat(&tensors)
}

fn unique_number() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    NEXT.fetch_add(1, Ordering::Relaxed)
}
