//! The nodes of a loop whose results are the same in all rounds.

use super::loop_call::LoopCall;
use crate::{
    function::callees,
    graph::{Graph, NodeDef, NodeId, Outlet},
    hash::FastSet,
    op::{CallKind, Effect, Lowering, OpDef},
    ops::names,
    pass::{
        execution::{cannot_fail, constant},
        specialize::Specialized,
    },
    spec::ValueType,
};
use smallvec::SmallVec;
use std::collections::BTreeSet;

/// The nodes that leave the functions of a loop: those of the condition, those of the body.
pub(super) struct Invariants(pub(super) [BTreeSet<NodeId>; 2]);

/// The nodes that may move besides those that cannot fail and have no effect.
#[derive(Clone, Copy)]
struct Permission<'a> {
    /// Nodes that can fail: the function they are in runs at least once.
    fallible: bool,
    /// Nodes that read variables: nothing in the loop writes to any.
    reads: bool,
    /// The variables that are read before the loop, which reads in it can read, too.
    read_before: &'a FastSet<Outlet>,
}

impl Invariants {
    /// The invariants of a loop, whose body `runs` at least once; `outer` has what comes before it.
    pub(super) fn of(call: &LoopCall<'_>, outer: &Graph, runs: bool) -> Invariants {
        let reads = call.functions.iter().all(|function| is_read_only(function)) && !waits(call);
        let read_before = &read_variables(outer);
        let of = |side: usize, fallible: bool| {
            movable(call, side, Permission { fallible, reads, read_before })
        };
        Invariants([of(0, true), of(1, runs)])
    }
}

/// The handles of the variables that nodes read.
fn read_variables(graph: &Graph) -> FastSet<Outlet> {
    let reads = graph.iter().filter(|(_, node)| node.op.name() == READ);
    reads.filter_map(|(_, node)| node.inputs().first().copied()).collect()
}

/// The op that reads a variable.
const READ: &str = names::READ_VARIABLE_OP;

/// Whether all effects in a function, and in those inside it, are reads. Other functions that nodes
/// refer to may do anything.
fn is_read_only(function: &Specialized) -> bool {
    let reads = |(id, node): (NodeId, &NodeDef)| match node.op.def().map(|op| op.effect) {
        Some(Effect::Pure | Effect::Reads) => callees(&node.attrs).is_empty(),
        Some(Effect::OfCallee) => function.nested.contains_key(&id),
        Some(Effect::Writes | Effect::Stateful) | None => false,
    };
    function.failure.is_none()
        && function.graph.iter().all(reads)
        && function.nested.values().flatten().all(is_read_only)
}

/// Whether the number of rounds may depend on what is read in them.
fn waits(call: &LoopCall<'_>) -> bool {
    let [condition, body] = &call.functions;
    // The arguments that a result is computed from, unless more than they counts.
    let arguments = |function: &Specialized, result: usize| -> Option<Vec<usize>> {
        let root = function.results.get(result)?.node;
        let reached = function.graph.reachable_from([root]);
        let is_argument = |id: &NodeId| function.args.iter().any(|arg| arg.node == *id);
        let is_pure = |id: &NodeId| function.graph[*id].op.effect() == Effect::Pure;
        let known = reached.iter().all(|id| is_argument(id) || is_pure(id));
        let positions = function.args.iter().enumerate();
        let found = positions.filter(|(_, arg)| reached.contains(&arg.node));
        known.then(|| found.map(|(position, _)| position).collect())
    };
    let Some(mut open) = arguments(condition, 0) else { return true };
    let mut deciding: BTreeSet<usize> = open.iter().copied().collect();
    while let Some(variable) = open.pop() {
        let Some(found) = arguments(body, variable) else { return true };
        open.extend(found.into_iter().filter(|&variable| deciding.insert(variable)));
    }
    false
}

/// The nodes that depend on variables that never change and on constants, and can be computed
/// whatever those are.
fn movable(call: &LoopCall<'_>, side: usize, permission: Permission<'_>) -> BTreeSet<NodeId> {
    let graph = &call.functions[side].graph;
    let mut nodes = BTreeSet::new();
    for (id, node) in graph.iter() {
        let is_constant = |input: &Outlet| constant(graph, *input).is_some();
        let mut inputs = node.inputs().iter();
        let known = inputs.all(|input| {
            is_constant(input)
                || nodes.contains(&input.node)
                || call.fixed_input(side, *input).is_some()
        });
        let varies = node.inputs().iter().any(|input| !is_constant(input));
        let is_set = || {
            let handle = node.inputs().first().and_then(|&input| call.fixed_input(side, input));
            node.op.name() == READ
                && handle.is_some_and(|handle| permission.read_before.contains(&handle))
        };
        if known && varies && may_move(graph, node, permission, is_set) {
            nodes.insert(id);
        }
    }
    nodes
}

/// Whether a node may move; `is_set` tells that it reads a variable that has a value.
fn may_move(
    graph: &Graph,
    node: &NodeDef,
    permission: Permission<'_>,
    is_set: impl FnOnce() -> bool,
) -> bool {
    let Some(op) = node.op.def().filter(|_| callees(&node.attrs).is_empty()) else {
        return false;
    };
    let plain = |ty: &ValueType| ty.shape.is_known() && ty.dtype.size().is_some();
    let inputs = node.inputs().iter().map(|&input| graph.ty(input));
    let inputs: Option<SmallVec<[&ValueType; 4]>> = inputs.collect();
    let Some(inputs) = inputs.filter(|_| node.outputs().iter().all(plain)) else { return false };
    let all_plain = inputs.iter().all(|ty| plain(ty));
    match (op.effect, op.call) {
        (Effect::Pure, CallKind::None) => all_plain && !fails(graph, op, node, permission),
        (Effect::Reads, CallKind::None) => permission.reads && (permission.fallible || is_set()),
        _ => false,
    }
}

/// Whether a node without effects may fail though it must not.
fn fails(graph: &Graph, op: &OpDef, node: &NodeDef, permission: Permission<'_>) -> bool {
    match op.lowering {
        Lowering::Elementwise(_) => !permission.fallible && !cannot_fail(graph, node),
        // The values of host operands were checked where they are constants.
        Lowering::Reduce(_) | Lowering::Alias(_) | Lowering::View(_) => {
            !permission.fallible && !are_host_operands_constant(graph, op, node)
        }
        Lowering::Composite(_) | Lowering::Kernel | Lowering::HostKernel(_) | Lowering::Runtime => {
            !permission.fallible
        }
        Lowering::Fused | Lowering::Interface => true,
    }
}

fn are_host_operands_constant(graph: &Graph, op: &OpDef, node: &NodeDef) -> bool {
    op.host_inputs(&node.attrs).is_ok_and(|host| {
        let mut operands = node.inputs().iter().zip(host);
        operands.all(|(&input, is_host)| !is_host || constant(graph, input).is_some())
    })
}
