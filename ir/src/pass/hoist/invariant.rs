//! The nodes of a loop whose results are the same in all rounds.

use super::loop_call::LoopCall;
use crate::{
    graph::{Graph, NodeDef, NodeId, Outlet},
    op::{CallKind, Effect, Lowering, OpDef},
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
struct Permission {
    /// Nodes that can fail: the function they are in runs at least once.
    fallible: bool,
    /// Nodes that read variables: nothing in the loop writes to any.
    reads: bool,
}

impl Invariants {
    /// The invariants of a loop, whose body `runs` at least once.
    pub(super) fn of(call: &LoopCall<'_>, runs: bool) -> Invariants {
        let reads = call.functions.iter().all(|function| is_read_only(function));
        let of = |side: usize, fallible: bool| {
            movable(call, side, Permission { fallible, reads: fallible && reads })
        };
        Invariants([of(0, true), of(1, runs)])
    }
}

/// Whether all effects in a function, and in those inside it, are reads.
fn is_read_only(function: &Specialized) -> bool {
    let reads = |node: &NodeDef| match node.op.def().map(|op| op.effect) {
        Some(Effect::Pure | Effect::Reads | Effect::OfCallee) => true,
        Some(Effect::Writes | Effect::Stateful) | None => false,
    };
    function.failure.is_none()
        && function.graph.iter().all(|(_, node)| reads(node))
        && function.nested.values().flatten().all(is_read_only)
}

/// The nodes that depend on variables that never change and on constants, and can be computed
/// whatever those are.
fn movable(call: &LoopCall<'_>, side: usize, permission: Permission) -> BTreeSet<NodeId> {
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
        if known && varies && may_move(graph, node, permission) {
            nodes.insert(id);
        }
    }
    nodes
}

fn may_move(graph: &Graph, node: &NodeDef, permission: Permission) -> bool {
    let Some(op) = node.op.def() else { return false };
    let plain = |ty: &ValueType| ty.shape.is_known() && ty.dtype.size().is_some();
    let inputs = node.inputs().iter().map(|&input| graph.ty(input));
    let inputs: Option<SmallVec<[&ValueType; 4]>> = inputs.collect();
    let Some(inputs) = inputs.filter(|_| node.outputs().iter().all(plain)) else { return false };
    let all_plain = inputs.iter().all(|ty| plain(ty));
    match (op.effect, op.call) {
        (Effect::Pure, CallKind::None) => all_plain && !fails(graph, op, node, permission),
        (Effect::Reads, CallKind::None) => permission.reads,
        _ => false,
    }
}

/// Whether a node without effects may fail though it must not.
fn fails(graph: &Graph, op: &OpDef, node: &NodeDef, permission: Permission) -> bool {
    match op.lowering {
        Lowering::Elementwise(_) => !permission.fallible && !cannot_fail(graph, node),
        Lowering::Reduce(_) | Lowering::Alias(_) | Lowering::View(_) => false,
        Lowering::Composite(_) | Lowering::Kernel | Lowering::Runtime => !permission.fallible,
        Lowering::Fused | Lowering::Interface => true,
    }
}
