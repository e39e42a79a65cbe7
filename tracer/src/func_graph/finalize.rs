//! The end of a trace: functions of what was traced, and of parts of it.

use super::{
    Call, Created, Finished, FuncGraph, GraphState, Semantics, unique_id, values::small_constant,
};
use crate::{
    capture::Capture,
    error::{Error, Result},
    ops::NamedOp,
    tensor::{Repr, Symbolic, Tensor},
    variable::Variable,
};
use ferroflow_ir::{
    Attrs, FunctionDef, Graph, NodeId, Outlet,
    ops::names,
    pass::carve::{Feed, Subgraph},
};
use std::sync::Arc;

/// The first value of a variable that a trace creates.
#[derive(Clone)]
pub(crate) struct InitialValue {
    pub(crate) variable: Variable,
    /// The function that returns it, of the arguments of the trace.
    pub(crate) def: Arc<FunctionDef>,
    pub(crate) captures: Vec<Capture>,
    pub(crate) needs_arguments: bool,
    /// Whether the variable has the value already.
    pub(crate) is_known: bool,
}

impl FuncGraph {
    /// Ends the trace: a function that returns `outputs`, each through a node of its own.
    pub(crate) fn finish(self: &Arc<FuncGraph>, outputs: &[Tensor]) -> Result<Finished> {
        let created = self.state.with(|state| std::mem::take(&mut state.created));
        let first_values = created.iter().filter_map(|created| self.first_value(created));
        let first_values = first_values.collect::<Result<_>>()?;
        let results = self.results(outputs, |_, _| false)?;
        let state = self.state.with(GraphState::take);
        let (captures, capture_nodes) = state.captures.into_parts();
        let args: Vec<NodeId> = state.args.into_iter().chain(capture_nodes).collect();
        let graph = numbered(state.graph, &args);
        let control_results = state.order.into_must_run();
        let name = format!("__inference_{}_{}", self.name, unique_id());
        let attrs = Attrs::new();
        let def = FunctionDef { name: name.into(), graph, args, results, control_results, attrs };
        let created = created.into_iter().map(|created| created.variable).collect();
        Ok(Finished { def, library: self.library.clone(), captures, created, first_values })
    }

    /// Results of the function, each through a node of its own unless it is to be `direct`.
    fn results(
        self: &Arc<FuncGraph>,
        outputs: &[Tensor],
        direct: impl Fn(usize, Outlet) -> bool,
    ) -> Result<Vec<(String, Outlet)>> {
        static IDENTITY: NamedOp = NamedOp::new(names::IDENTITY);
        let mut results: Vec<(String, Outlet)> = Vec::with_capacity(outputs.len());
        for (index, output) in outputs.iter().enumerate() {
            let outlet = match &output.0 {
                Repr::Symbolic(symbolic)
                    if Arc::ptr_eq(&symbolic.graph, self) && direct(index, symbolic.outlet) =>
                {
                    symbolic.outlet
                }
                _ => {
                    let (op, attrs) = (IDENTITY.record(), Attrs::new());
                    let call = Call { op, attrs, inputs: &[output], name: "", location: None };
                    self.call(call)?[0].symbolic_in(self).expect("staged here")
                }
            };
            let name = if index == 0 { "identity".into() } else { format!("identity_{index}") };
            results.push((name, outlet));
        }
        Ok(results)
    }

    /// Ends a branch, or a part of a loop: a function of its arguments and of `captures`, tensors
    /// of the graph around it. Results that are the argument of the same number are that argument.
    pub(crate) fn finish_inside(
        self: &Arc<FuncGraph>,
        outputs: &[Tensor],
        captures: &[Tensor],
        passes_captures: bool,
    ) -> Result<FunctionDef> {
        let args = self.state.with(|state| state.args.clone());
        let mut results = self.results(outputs, |index, outlet| {
            args.get(index).is_some_and(|&arg| Outlet::from(arg) == outlet)
        })?;
        let mut nodes = Vec::with_capacity(captures.len());
        for capture in captures {
            nodes.push(self.outlet(capture, || "capture".into())?.node);
        }
        if passes_captures {
            let first = results.len();
            let passed = nodes.iter().enumerate();
            results.extend(
                passed.map(|(index, &node)| (format!("identity_{}", first + index), node.into())),
            );
        }
        let state = self.state.with(GraphState::take);
        let args: Vec<NodeId> = state.args.into_iter().chain(nodes).collect();
        Ok(FunctionDef {
            name: self.name.clone(),
            graph: numbered(state.graph, &args),
            args,
            results,
            control_results: state.order.into_must_run(),
            attrs: Attrs::new(),
        })
    }

    /// The function that computes the first value of a variable alone, from the arguments of this
    /// trace. A value that the variable has already is kept for variables to come, if it is small:
    /// memory is not held twice.
    fn first_value(&self, created: &Created) -> Option<Result<InitialValue>> {
        let variable = &created.variable;
        if let Repr::Symbolic(symbolic) = &created.initial.0 {
            let outlet = self.own_outlet(variable, symbolic);
            return Some(outlet.and_then(|outlet| self.carve(variable, outlet, false)));
        }
        let value = small_constant(&created.initial);
        let value = value.filter(|_| self.semantics == Semantics::Program)?;
        let outlet = self.state.with(|state| state.constant("initial_value", value));
        Some(outlet.and_then(|outlet| self.carve(variable, outlet, true)))
    }

    /// The position of an initial value, which must be in this graph.
    fn own_outlet(&self, variable: &Variable, value: &Symbolic) -> Result<Outlet> {
        if std::ptr::eq(&*value.graph, self) {
            return Ok(value.outlet);
        }
        let reason = match &value.graph.parent {
            Some(_) => "is computed in a branch or a loop: compute it outside",
            None => "belongs to the trace of another function: call this one outside others first",
        };
        let (function, variable) = (self.name.to_string(), variable.name().into());
        Err(Error::Initializer { function, variable, reason })
    }

    fn carve(&self, variable: &Variable, value: Outlet, is_known: bool) -> Result<InitialValue> {
        let name = format!("__initializer_{}_{}", self.name, unique_id());
        let (def, captures, needs_arguments) =
            self.state.with(|state| state.carve(value, &name))?;
        let (variable, def) = (variable.clone(), def.into());
        Ok(InitialValue { variable, def, captures, needs_arguments, is_known })
    }
}

impl GraphState {
    /// The function that computes `value` alone, the captures that it needs, and whether it needs
    /// arguments.
    fn carve(&self, value: Outlet, name: &str) -> Result<(FunctionDef, Vec<Capture>, bool)> {
        let needed = self.graph.reachable_from([value.node]);
        let needs_arguments = self.args.iter().any(|arg| needed.contains(arg));
        let (captures, capture_nodes) = self.captures.clone().into_parts();
        let captured = captures.into_iter().zip(capture_nodes);
        let (captures, capture_nodes): (Vec<Capture>, Vec<NodeId>) =
            captured.filter(|(_, node)| needed.contains(node)).unzip();
        let args = self.args.iter().copied().chain(capture_nodes).map(Outlet::from);
        let feeds = args.map(|outlet| Feed { outlet, ty: self.ty(outlet).clone() }).collect();
        let results = vec![("value".to_string(), value)];
        let part = Subgraph { feeds, results, targets: Vec::new(), last: Vec::new() };
        Ok((part.carve(&self.graph, name)?, captures, needs_arguments))
    }
}

/// The graph, with the arguments of a function numbered.
fn numbered(mut graph: Graph, args: &[NodeId]) -> Graph {
    for (index, &arg) in args.iter().enumerate() {
        let attrs = Attrs::clone(&graph[arg].attrs).with("index", index as i64);
        *graph.node_mut(arg).attrs = attrs.into();
    }
    graph
}
