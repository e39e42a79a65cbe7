//! Traced functions the way of TensorFlow 1: as graphs that sessions run.

use ferroflow_ir::{
    Attrs, DType, FunctionDef, Graph, HostTensor, NodeDef, NodeId, TensorSpec, ValueType,
    ops::names, registry,
};
use ferroflow_runtime::{self as runtime, VariableState};
use ferroflow_saved_model::{
    self as saved_model, Session,
    convert::{FunctionGraph, clean_name, function_graph},
};
use ferroflow_tracer::{Capture, ConcreteFunction, Error, Result, context::context};

/// The graph of a function, with its state, in a session.
#[derive(Debug)]
pub struct FunctionSession {
    /// The session.
    pub session: Session,
    /// The tensors to feed, one for each argument.
    pub inputs: Vec<String>,
    /// The tensors to fetch, one for each result.
    pub outputs: Vec<String>,
    /// The op that has all effects of the function happen; results have them happen too.
    pub control_output: Option<String>,
}

/// The graph of a traced function in a session of its own.
///
/// The variables that the function captures become variables of the session, with their names (or
/// ones made of them, where two have the same) and the values they have now; tensors that it
/// captures become constants. [`simple_save`](saved_model::simple_save) makes a SavedModel of it.
///
/// ```
/// use ferroflow::{Tensor, Variable, function, ir::DType, session, spec};
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let w = Variable::named("w", 3.0f32)?;
/// let f = {
///     let w = w.clone();
///     function(move |x: Tensor| &x * &w).with_parameters(["x"])
/// };
/// let f = session::to_session(&f.concrete_for([spec(DType::F32, [])])?)?;
/// let x = Tensor::from(2.0f32).eager()?.clone();
/// let y = f.session.run(&[("x:0", x)], &["Identity:0"], &[])?;
/// assert_eq!(y[0].host()?.as_scalar::<f32>()?, 6.0);
/// # Ok(())
/// # }
/// ```
///
/// # Errors
///
/// When the function captures state that is gone or no variable, a tensor of another trace, or
/// holds what no file can.
pub fn to_session(function: &ConcreteFunction) -> Result<FunctionSession> {
    let mut def = FunctionDef::clone(function.def());
    let captured = def.args.split_off(function.n_args());
    let mut values = Vec::new();
    for (arg, capture) in captured.into_iter().zip(function.captures()) {
        let replaced = match capture {
            Capture::Ambient(_) => {
                let expected = "a function that needs nothing from its callers' scopes".into();
                return Err(Error::Conversion { expected, found: format!("{capture:?}") });
            }
            Capture::Tensor(tensor) => constant(&mut def.graph, arg, tensor.host()?.clone())?,
            Capture::Resource(handle) => {
                let state = handle.downcast::<VariableState>("a variable")?;
                let node = variable(&mut def.graph, arg, &state.clone().into())?;
                if state.is_initialized() {
                    values.push((def.graph[node].name.to_string(), state.read()?));
                }
                node
            }
        };
        for (_, result) in def.results.iter_mut().filter(|(_, result)| result.node == arg) {
            *result = replaced.into();
        }
    }
    let FunctionGraph { graph_def, inputs, outputs, control_output } =
        function_graph(&def, function.library())?;
    let session = Session::of_graph_def(&context(), graph_def).map_err(of_files)?;
    let variables = session.variables().map_err(of_files)?;
    for (name, value) in values {
        variables[&name].assign(value)?;
    }
    Ok(FunctionSession { session, inputs, outputs, control_output })
}

/// Replaces an argument by a variable of the session.
fn variable(
    graph: &mut Graph,
    arg: NodeId,
    variable: &runtime::ResourceVariable,
) -> Result<NodeId> {
    let (dtype, shape) = (variable.dtype(), variable.shape().clone());
    let name = graph.unique_name(&clean_name(variable.name()));
    let attrs = Attrs::new()
        .with("dtype", dtype)
        .with("shape", shape.clone())
        .with("shared_name", name.as_str());
    let ty = ValueType::handle(DType::Resource, TensorSpec::new(dtype, shape));
    replace(graph, arg, names::VAR_HANDLE_OP, name, attrs, ty)
}

/// Replaces an argument by a constant.
fn constant(graph: &mut Graph, arg: NodeId, value: HostTensor) -> Result<NodeId> {
    let name = graph.unique_name(&graph[arg].name.clone());
    let ty = ValueType::new(value.dtype(), value.shape());
    let attrs = Attrs::new().with("dtype", value.dtype()).with("value", value);
    replace(graph, arg, names::CONST, name, attrs, ty)
}

fn replace(
    graph: &mut Graph,
    arg: NodeId,
    op: &str,
    name: String,
    attrs: Attrs,
    ty: ValueType,
) -> Result<NodeId> {
    let op = registry::find(op).expect("a built-in record");
    let node = NodeDef::new(name, op, op.complete_attrs(attrs)?).with_outputs([ty]);
    Ok(graph.replace(arg, node)?)
}

pub(crate) fn of_files(error: saved_model::Error) -> Error {
    match error {
        saved_model::Error::Program(error) => (*error).into(),
        saved_model::Error::Runtime(error) => (*error).into(),
        other => Error::host(other),
    }
}
