//! Hoisting: what a loop computes anew each time round, though nothing it depends on changes, is
//! computed once before the loop.
//!
//! - `invariant`: nodes whose operands are the same in all rounds.
//! - `list_items`: the items of a list that is the same in all rounds, and matmuls of them.
//!
//! A loop may not run at all: what can fail moves only if the first evaluation of the condition is
//! known to be true, and from the condition itself, which is always evaluated.

mod invariant;
mod list_items;
mod loop_call;

use super::{
    placement::Reason,
    specialize::{Evaluate, Specialized},
};
use crate::{
    error::Result,
    graph::{Graph, NodeDef, NodeId, Outlet},
    op::CallKind,
};
use invariant::Invariants;
use loop_call::LoopCall;
use smallvec::SmallVec;
use std::collections::{HashMap, HashSet};

/// Moves nodes out of the loops of a body, from conditions and bodies of loops alike. What they
/// compute becomes a variable of the loop that never changes. `evaluate` computes conditions whose
/// operands are known.
///
/// # Errors
///
/// None on a well-formed body.
pub fn hoist(body: &mut Specialized, evaluate: &dyn Evaluate) -> Result<()> {
    let loops: HashSet<NodeId> = body
        .nested
        .iter()
        .filter(|(id, functions)| {
            let is_loop = body.graph[**id].op.def().is_some_and(|op| op.call == CallKind::While);
            is_loop && functions.len() == 2 && functions.iter().all(|it| it.failure.is_none())
        })
        .map(|(&id, _)| id)
        .collect();
    if loops.is_empty() {
        return Ok(());
    }
    let source = std::mem::take(&mut body.graph);
    let mut nested = std::mem::take(&mut body.nested);
    let mut outer = Outer::default();
    for id in source.ids() {
        let node = &source[id];
        let inputs: SmallVec<[Outlet; 4]> =
            node.inputs().iter().map(|input| outer.outlet(*input)).collect();
        let controls: SmallVec<[NodeId; 2]> =
            node.controls().iter().map(|control| outer.moved[control]).collect();
        let mut node = node.clone().with_inputs(inputs).with_controls(controls);
        node.name = outer.graph.unique_name(&node.name).into();
        let mut functions = nested.remove(&id);
        let new = match &mut functions {
            Some(functions) if loops.contains(&id) => outer.add_loop(node, functions, evaluate)?,
            _ => outer.graph.add(node)?,
        };
        outer.moved.insert(id, new);
        if let Some(&reason) = body.reasons.get(&id) {
            outer.reasons.insert(new, reason);
        }
        if let Some(functions) = functions {
            body.nested.insert(new, functions);
        }
    }
    for outlet in body.args.iter_mut().chain(&mut body.results) {
        *outlet = outer.outlet(*outlet);
    }
    (body.graph, body.reasons) = (outer.graph, outer.reasons);
    Ok(())
}

/// The body around the loops, built anew: what is moved comes before the loop.
#[derive(Default)]
struct Outer {
    graph: Graph,
    moved: HashMap<NodeId, NodeId>,
    reasons: HashMap<NodeId, Reason>,
}

impl Outer {
    fn outlet(&self, outlet: Outlet) -> Outlet {
        Outlet { node: self.moved[&outlet.node], index: outlet.index }
    }

    fn add_loop(
        &mut self,
        node: NodeDef,
        functions: &mut [Specialized],
        evaluate: &dyn Evaluate,
    ) -> Result<NodeId> {
        let [condition, body] = functions else { return self.graph.add(node) };
        let mut call = LoopCall::new(node, condition, body);
        let runs = call.runs(&self.graph, evaluate);
        let invariants = Invariants::of(&call, runs);
        call.move_invariants(self, &invariants)?;
        list_items::gather(&mut call, self, runs)?;
        self.graph.add(call.into_node())
    }
}
