//! Hoisting: what a loop computes anew each time round, though nothing it depends on changes, is
//! computed once before the loop.
//!
//! - `invariant`: nodes whose operands are the same in all rounds.
//! - `list_items`: the items of a list that is the same in all rounds, and matmuls of them.
//!
//! A loop may not run at all: what can fail moves only if the first evaluation of the condition is
//! known to be true, and from the condition itself, which is always evaluated. A read of a variable that
//! was read before the loop cannot fail. Reads of variables move only if nothing in the loop writes to any,
//! and the number of rounds does not depend on what is read: a loop may wait for another caller.

mod invariant;
mod list_items;
mod loop_call;

use super::{
    first_round::has_first_round,
    rebuild::{Rebuilt, rebuild},
    specialize::{Evaluate, Specialized},
};
use crate::{
    error::Result,
    graph::{NodeDef, NodeId},
    op::CallKind,
};
use invariant::Invariants;
use loop_call::LoopCall;

/// Moves nodes out of the loops of a body, from conditions and bodies of loops alike. What they
/// compute becomes a variable of the loop that never changes. `evaluate` computes conditions whose
/// operands are known.
///
/// # Errors
///
/// None on a well-formed body.
pub fn hoist(body: &mut Specialized, evaluate: &dyn Evaluate) -> Result<()> {
    let is_loop = |node: &NodeDef| node.op.def().is_some_and(|op| op.call == CallKind::While);
    if !body.nested.keys().any(|&id| is_loop(&body.graph[id])) {
        return Ok(());
    }
    rebuild(body, |outer, source, id, functions| {
        let node = outer.node(&source[id]);
        match functions {
            [condition, body]
                if is_loop(&node) && condition.failure.is_none() && body.failure.is_none() =>
            {
                add_loop(outer, LoopCall::new(node, condition, body), evaluate)
            }
            _ => outer.graph.add(node),
        }
    })
}

/// Adds a call of a loop, and what moves before it.
fn add_loop(
    outer: &mut Rebuilt,
    mut call: LoopCall<'_>,
    evaluate: &dyn Evaluate,
) -> Result<NodeId> {
    let runs = has_first_round(call.functions[0], &call.inputs, &outer.graph, evaluate);
    let invariants = Invariants::of(&call, &outer.graph, runs);
    call.move_invariants(outer, &invariants)?;
    list_items::gather(&mut call, outer, runs)?;
    outer.graph.add(call.into_node())
}
