//! The control flow of TensorFlow 1 as calls of functions.
//!
//! TensorFlow 1 writes branches and loops as nodes that let values through or stop them: `Switch`
//! sends a value to one of its results and leaves the other *dead*, whatever has a dead input is
//! dead too, and `Merge` gives the input that is alive. A loop is a *frame*: `Enter` leads in,
//! `NextIteration` leads from the end of one round to the `Merge` at the head of the next, `Exit`
//! leads out (Yu et al., *Dynamic control flow in large-scale machine learning*, EuroSys 2018).
//! No graph here has dead values: this pass makes each frame a `While` and each choice an
//! `If`, with their branches and bodies as functions in the library.
//!
//! 1. `frames` tells which node runs in which frame.
//! 2. `loops` makes the frames calls, the innermost first. What `LoopCond` needs is the condition;
//!    what comes after a `Switch` on it is the body; the `Merge`s are the variables.
//! 3. `conditions` works on graphs without cycles: the bodies, the conditions, and what remains
//!    of the graph itself. `liveness` finds for every node under which choices it is alive. Nodes
//!    that are alive under the same outermost choice become the branches of one call, and branches
//!    are treated the same way again. A node with effects that waits for a `Switch` is thereby in
//!    the branch where it belongs.
//!
//! What does not fit this picture, such as a `Merge` of values that may be alive together, is an
//! error that names the node.

mod conditions;
mod frames;
mod liveness;
mod loops;
mod outline;

use crate::{
    error::{Error, Result},
    free_name::free_name,
    function::{FunctionDef, FunctionLibrary},
    graph::{Graph, NodeDef, NodeId},
    hash::FastSet,
    limits::Limits,
    op::{Effect, OpDef},
    registry,
};
use frames::Frames;
use outline::{OutlinedRegion, OutlinedResult, Wiring};
use std::{
    collections::HashSet,
    sync::{Arc, Mutex, PoisonError},
};

/// Makes the control flow of TensorFlow 1 in a function into calls of functions, which are added
/// to `library`. A function that has none is given back as it is.
///
/// # Errors
///
/// [`Error::Argument`] for an `Exit` outside all loops and for nodes that take values of different
/// loops, [`Error::Unsupported`] for a flow of values that no functions stand for, [`Error::Limit`]
/// for one that nests too deep; each at the node.
pub fn functionalize(
    function: FunctionDef,
    library: &FunctionLibrary,
    limits: &Limits,
) -> Result<FunctionDef> {
    if !is_needed(function.graph.iter().map(|(_, node)| node.op.name())) {
        return Ok(function);
    }
    check(&function.graph)?;
    // Names are found to be free and taken by one thread at a time.
    static NAMING: Mutex<()> = Mutex::new(());
    let _guard = NAMING.lock().unwrap_or_else(PoisonError::into_inner);
    let scope = Scope { library, limits };
    let live = function.live_nodes(library);
    let frames = Frames::of(&function.graph, &live, limits)?;
    let FunctionDef { name, graph, args, results, control_results, attrs } = function;
    let targets: FastSet<NodeId> = control_results.iter().copied().collect();
    let mut wiring = Wiring::new(graph, name.clone(), scope);
    let members = loops::make_calls(&mut wiring, &frames, &targets)?;
    let part = OutlinedRegion {
        name: name.to_string(),
        args: Vec::new(),
        members,
        results: results.iter().map(|(_, outlet)| OutlinedResult::Value(*outlet)).collect(),
        controls: control_results,
    };
    let outline = wiring.outline(part)?;
    let args = args.iter().map(|arg| outline.moved[arg]).collect();
    let names = results.into_iter().map(|(name, _)| name);
    let results = names.zip(outline.function.results).map(|(name, (_, outlet))| (name, outlet));
    let results: Vec<_> = results.collect();
    let must_be_alive = vec![true; results.len()];
    let function = FunctionDef { args, results, attrs, ..outline.function };
    conditions::make_calls(function, &must_be_alive, scope, 0)
}

/// Whether ops of these names have control flow of TensorFlow 1 among them.
pub fn is_needed<'a>(ops: impl IntoIterator<Item = &'a str>) -> bool {
    let flows = |op: &str| flow_of(op).is_some_and(|flow| flow != Flow::LoopCond);
    ops.into_iter().any(flows)
}

/// The nodes in an order in which each comes after its inputs, but for the one that carries values
/// into the next round of a loop.
///
/// # Errors
///
/// [`Error::Malformed`] naming a node on a cycle that is no loop.
pub fn order(graph: &Graph) -> Result<Vec<NodeId>> {
    let nodes: Vec<NodeId> = graph.ids().collect();
    outline::order(graph, &nodes, |id, sources| {
        let node = &graph[id];
        let is_head = flow(node) == Some(Flow::Merge);
        let inputs = node.inputs().iter().map(|input| input.node);
        let closes = |id: &NodeId| is_head && flow(&graph[*id]) == Some(Flow::NextIteration);
        sources.extend(inputs.filter(|id| !closes(id)).chain(node.controls().iter().copied()));
    })
}

/// Checks that nothing goes in circles but loops, and that the nodes that steer have the inputs
/// they need.
fn check(graph: &Graph) -> Result<()> {
    order(graph)?;
    for (_, node) in graph.iter() {
        let fits = match (flow(node), node.inputs().len()) {
            (Some(Flow::Switch), n) => n == 2,
            (Some(Flow::Merge), n) => n > 0,
            (Some(_), n) => n == 1,
            (None, _) => true,
        };
        if !fits {
            let (node, rule) = (node.name.to_string(), "it has the inputs its op needs".into());
            return Err(Error::Malformed { node, rule });
        }
    }
    Ok(())
}

/// Effect of a node on the flow of control.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Flow {
    /// Returns a value as one of two results.
    Switch,
    Merge,
    Enter,
    Exit,
    NextIteration,
    LoopCond,
}

fn flow(node: &NodeDef) -> Option<Flow> {
    flow_of(node.op.name())
}

/// Whether an op is control flow of TensorFlow 1, which becomes calls of functions.
pub fn is_control_flow(op: &str) -> bool {
    flow_of(op).is_some_and(|flow| flow != Flow::LoopCond)
}

/// Control flow of ops by name, as most have no record and do not run. Those on references do
/// what the others do.
fn flow_of(op: &str) -> Option<Flow> {
    match op.strip_prefix("Ref").unwrap_or(op) {
        "Switch" => Some(Flow::Switch),
        "Merge" => Some(Flow::Merge),
        "Enter" => Some(Flow::Enter),
        "Exit" => Some(Flow::Exit),
        "NextIteration" => Some(Flow::NextIteration),
        "LoopCond" => Some(Flow::LoopCond),
        _ => None,
    }
}

/// Where functions go, and how deep they may nest.
#[derive(Clone, Copy)]
struct Scope<'a> {
    library: &'a FunctionLibrary,
    limits: &'a Limits,
}

impl Scope<'_> {
    fn has_effect(&self, node: &NodeDef) -> bool {
        let effect = self.library.effect_of(&node.op, &node.attrs);
        matches!(effect, Effect::Writes | Effect::Stateful)
    }

    fn is_pure(&self, node: &NodeDef) -> bool {
        self.library.effect_of(&node.op, &node.attrs) == Effect::Pure
    }

    /// Adds a function to the library, under its own name or one like it.
    fn insert(&self, mut function: FunctionDef) -> Result<Arc<str>> {
        let name = self.free_name(&function.name, &HashSet::new());
        function.name = name.clone();
        self.library.insert(function)?;
        Ok(name)
    }

    /// A name like `base` that is neither in the library nor among `taken`.
    fn free_name(&self, base: &Arc<str>, taken: &HashSet<Arc<str>>) -> Arc<str> {
        free_name(base, |name| self.library.contains(name) || taken.contains(name)).into()
    }

    fn check_depth(&self, depth: usize) -> Result<()> {
        let limit = self.limits.call_depth;
        if depth <= limit {
            return Ok(());
        }
        let what = "loops and branches inside each other".into();
        Err(Error::Limit { what, needed: format!("{depth} levels"), limit: limit as u64 })
    }
}

/// The record of an op this pass makes calls of.
fn record(name: &str) -> &'static OpDef {
    registry::find(name).expect("a built-in record")
}

/// The error of a node that no functions can stand for.
fn irregular(node: &NodeDef, what: &'static str) -> Error {
    let op = node.op.name().to_string();
    Error::Unsupported { op: op.clone().into(), what: what.into() }.at_node(&node.name, &op, "")
}

#[cfg(test)]
mod tests;
