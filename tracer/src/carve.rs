//! Functions made of a part of another's graph.

use crate::{
    capture::Capture,
    concrete_function::ConcreteFunction,
    error::{Error, Result},
    func_graph::{Finished, unique_id},
    function_spec::ParameterSpec,
};
use ferroflow_ir::{
    Attrs, FunctionDef, FunctionType, Graph, NodeDef, NodeId, Outlet, TraceType, ValueType,
    function_type::{Parameter, ParameterKind},
    registry,
};
use std::collections::HashSet;

/// The function between the tensors `inputs`, which are fed, and `outputs`.
pub(crate) fn prune(
    function: &ConcreteFunction,
    inputs: &[&str],
    outputs: &[&str],
) -> Result<ConcreteFunction> {
    let def = function.def();
    let mut graph = def.graph.clone();
    let fed: Vec<Outlet> = inputs.iter().map(|name| outlet(&graph, name)).collect::<Result<_>>()?;
    let fetches: Vec<Fetch> =
        outputs.iter().map(|name| fetch(&graph, name)).collect::<Result<_>>()?;
    let mut args = Vec::with_capacity(fed.len());
    for &from in &fed {
        let arg = argument(&mut graph, from, args.len())?;
        graph.replace_uses(from, arg.into());
        args.push(arg);
    }
    let fetches: Vec<Fetch> = fetches
        .into_iter()
        .map(|fetch| match fed.iter().position(|&from| fetch == Fetch::Tensor(from)) {
            Some(index) => Fetch::Tensor(args[index].into()),
            None => fetch,
        })
        .collect();
    let needed = needed(&graph, &fetches);
    let n_args = function.n_args();
    if let Some(&missing) = def.args[..n_args].iter().find(|arg| needed.contains(arg)) {
        let found = format!("argument `{}`, which is not fed", def.graph[missing].name);
        let expected = format!("inputs that `{}` can be computed from", outputs.join("`, `"));
        return Err(Error::Conversion { expected, found });
    }
    let mut captures: Vec<Capture> = Vec::new();
    let n_fed = args.len();
    for (&arg, capture) in def.args[n_args..].iter().zip(function.captures()) {
        if needed.contains(&arg) {
            captures.push(capture.clone());
            args.push(arg);
        }
    }
    let kept: HashSet<NodeId> = needed.into_iter().chain(args.iter().copied()).collect();
    graph.retain(&kept)?;
    let tensors = outputs.iter().zip(&fetches).filter_map(|(name, fetch)| match fetch {
        Fetch::Tensor(outlet) => Some((name.replace(':', "_"), *outlet)),
        Fetch::Operation(_) => None,
    });
    let results = tensors.collect();
    let operations = fetches.iter().filter_map(|fetch| match fetch {
        Fetch::Tensor(_) => None,
        Fetch::Operation(id) => Some(*id),
    });
    let others = def.control_results.iter().copied().filter(|id| kept.contains(id));
    let control_results = others.chain(operations).collect();
    let name = format!("__pruned_{}_{}", function.rust_name(), unique_id()).into();
    let pruned = FunctionDef { name, graph, args, results, control_results, attrs: Attrs::new() };
    let (function_type, parameters) = describe(&pruned, n_fed, &fetches);
    let library = function.library().clone();
    let (created, first_values) = Default::default();
    let finished = Finished { def: pruned, library, captures, created, first_values };
    let name = function.rust_name().clone();
    let owned = function.owned_variables().to_vec();
    Ok(ConcreteFunction::new(name, function_type, parameters, finished, Vec::new(), owned))
}

/// What is asked of a part of a graph.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Fetch {
    Tensor(Outlet),
    /// A node that runs.
    Operation(NodeId),
}

impl Fetch {
    fn node(self) -> NodeId {
        match self {
            Fetch::Tensor(outlet) => outlet.node,
            Fetch::Operation(id) => id,
        }
    }
}

/// What is meant by this name: the tensor `node:index`, or the operation `node`.
fn fetch(graph: &Graph, name: &str) -> Result<Fetch> {
    match graph.find(name) {
        Some(id) => Ok(Fetch::Operation(id)),
        None => outlet(graph, name).map(Fetch::Tensor),
    }
}

/// The tensor of this name: `node:index`, or `node` for its first result.
fn outlet(graph: &Graph, name: &str) -> Result<Outlet> {
    let (node, index) = name.rsplit_once(':').unwrap_or((name, "0"));
    let found = graph.find(node).zip(index.parse::<usize>().ok());
    let found = found.filter(|(id, index)| *index < graph[*id].outputs().len());
    let (id, index) = found.ok_or_else(|| Error::Conversion {
        expected: "a tensor of the graph".into(),
        found: format!("`{name}`"),
    })?;
    Ok(Outlet::new(id, index))
}

fn argument(graph: &mut Graph, from: Outlet, index: usize) -> Result<NodeId> {
    let ty: ValueType = graph.ty(from).expect("every node of a trace has types").clone();
    let op = registry::find("_Arg").expect("a built-in record");
    let attrs = Attrs::new().with("T", ty.dtype).with("index", index as i64);
    let base = format!("{}_fed", graph[from.node].name);
    let name = graph.unique_name(&base);
    Ok(graph.add(NodeDef::new(name, op, attrs).with_outputs([ty]))?)
}

/// The nodes that must run for what is asked.
fn needed(graph: &Graph, fetches: &[Fetch]) -> HashSet<NodeId> {
    graph.reachable_from(fetches.iter().map(|fetch| fetch.node()))
}

fn describe(
    def: &FunctionDef,
    n_fed: usize,
    fetches: &[Fetch],
) -> (FunctionType, Vec<ParameterSpec>) {
    let names = (0..n_fed).map(|index| def.arg_name(index));
    let specs = names.clone().map(ParameterSpec::new).collect();
    let parameters = names.enumerate().map(|(index, name)| {
        let ty = def.arg_type(index);
        let ty = Some(TraceType::tensor(ty.dtype, ty.shape.clone()));
        Parameter { name: name.into(), kind: ParameterKind::PositionalOrKeyword, ty }
    });
    let mut function_type = FunctionType::new(parameters.collect());
    let outputs = fetches.iter().map(|fetch| match fetch {
        Fetch::Tensor(outlet) => {
            let ty = def.graph.ty(*outlet).expect("every node of a trace has types");
            TraceType::tensor(ty.dtype, ty.shape.clone())
        }
        Fetch::Operation(_) => TraceType::None,
    });
    let mut outputs: Vec<TraceType> = outputs.collect();
    function_type.output =
        Some(if outputs.len() == 1 { outputs.remove(0) } else { TraceType::List(outputs) });
    (function_type, specs)
}
