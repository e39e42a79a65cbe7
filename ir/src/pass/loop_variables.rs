//! Loop variables that nothing needs: neither the condition, nor effects, nor a result that is read.
//!
//! A list whose items were multiplied before the loop, a record of states that is not returned, a counter
//! beside another one. What rounds compute for them goes with them; as everywhere, calls without effects whose
//! results nothing reads do not run, though they could fail. Whoever reads the result of a variable that is the
//! same in all rounds reads its initial value.

use super::{
    placement::{location, own_location, set_locations},
    prune::{effectful, prune_body},
    specialize::Specialized,
};
use crate::{
    dtype::DType,
    error::Result,
    graph::{Graph, NodeId, Outlet},
    hash::{FastMap, FastSet},
    op::CallKind,
};
use std::{collections::HashSet, sync::Arc};

/// Removes variables from the loops of a body and of the bodies inside it.
///
/// # Errors
///
/// None on a well-formed body.
pub fn prune_loop_variables(body: &mut Specialized) -> Result<()> {
    if body.nested.is_empty() {
        return Ok(());
    }
    let is_loop =
        |&id: &NodeId| body.graph[id].op.def().is_some_and(|op| op.call == CallKind::While);
    // Those that come last read the results of others.
    let order = body.graph.topological_order()?;
    let loops: Vec<NodeId> = order.into_iter().rev().filter(is_loop).collect();
    loops.into_iter().try_for_each(|id| prune_loop(body, id))?;
    prune_body(body)?;
    // What is inside comes last, as less of it is read then.
    for nested in body.nested.values_mut().flatten() {
        prune_body(nested)?;
        prune_loop_variables(nested)?;
    }
    Ok(())
}

fn prune_loop(body: &mut Specialized, id: NodeId) -> Result<()> {
    let Some([condition, rounds]) = body.nested.get(&id).map(Vec::as_slice) else { return Ok(()) };
    if condition.failure.is_some() || rounds.failure.is_some() {
        return Ok(());
    }
    let n = rounds.args.len();
    if [rounds.results.len(), condition.args.len(), body.graph[id].inputs().len()] != [n; 3] {
        return Ok(()); // Verification tells.
    }
    let mut initial: FastMap<Outlet, Outlet> = FastMap::default();
    for index in (0..n).filter(|&index| rounds.results[index] == rounds.args[index]) {
        let (result, input) = (Outlet::new(id, index), body.graph[id].inputs()[index]);
        // The type that others know may be wider than that of the value; and who reads a resource after the
        // loop reads what rounds have made of it.
        let ty = body.graph.ty(result);
        let is_same = ty == body.graph.ty(input)
            && ty.is_some_and(|ty| ty.dtype != DType::Resource)
            && location(&body.graph, result) == location(&body.graph, input);
        initial.extend(is_same.then_some((result, input)));
    }
    let readers: FastSet<NodeId> = body.graph.data_consumers(id).collect();
    let read = readers.iter().flat_map(|&reader| body.graph[reader].inputs()).chain(&body.results);
    let is_own = |outlet: &&Outlet| outlet.node == id && !initial.contains_key(outlet);
    let read: HashSet<usize> = read.filter(is_own).map(|outlet| outlet.index as usize).collect();
    let mut kept = needed(condition, rounds, read);
    if kept.is_empty() && n > 0 {
        kept.push(0); // A loop has a variable.
    }
    let moved =
        kept.iter().enumerate().map(|(to, &from)| (Outlet::new(id, from), Outlet::new(id, to)));
    let moved: FastMap<Outlet, Outlet> = moved.chain(initial).collect();
    readers.into_iter().for_each(|reader| body.graph.replace_inputs(reader, &moved));
    body.results.iter_mut().for_each(|result| *result = *moved.get(result).unwrap_or(result));
    if kept.len() < n { keep(body, id, &kept) } else { Ok(()) }
}

/// The variables that a loop needs to compute those that are `read` of it, in order.
fn needed(condition: &Specialized, rounds: &Specialized, read: HashSet<usize>) -> Vec<usize> {
    let mut queue: Vec<usize> = read.into_iter().collect();
    let mut walk = Walk::new(condition);
    let roots = condition.results.iter().map(|result| result.node);
    walk.to(roots.chain(effectful(condition)), &mut queue);
    let mut walk = Walk::new(rounds);
    walk.to(effectful(rounds), &mut queue);
    let mut is_needed = vec![false; rounds.args.len()];
    while let Some(index) = queue.pop() {
        if !std::mem::replace(&mut is_needed[index], true) {
            walk.to([rounds.results[index].node], &mut queue);
        }
    }
    (0..is_needed.len()).filter(|&index| is_needed[index]).collect()
}

/// The nodes that others are computed from.
struct Walk<'a> {
    graph: &'a Graph,
    args: FastMap<NodeId, usize>,
    seen: FastSet<NodeId>,
}

impl Walk<'_> {
    fn new(body: &Specialized) -> Walk<'_> {
        let args = body.args.iter().enumerate().map(|(index, arg)| (arg.node, index)).collect();
        Walk { graph: &body.graph, args, seen: FastSet::default() }
    }

    /// Walks on to what these nodes are computed from; adds the arguments that turn up to `args`.
    fn to(&mut self, roots: impl IntoIterator<Item = NodeId>, args: &mut Vec<usize>) {
        let mut queue: Vec<NodeId> = roots.into_iter().collect();
        while let Some(id) = queue.pop() {
            if self.seen.insert(id) {
                let node = &self.graph[id];
                queue.extend(node.inputs().iter().map(|input| input.node));
                queue.extend(node.controls());
                args.extend(self.args.get(&id));
            }
        }
    }
}

/// Leaves a loop with these of its variables.
fn keep(body: &mut Specialized, id: NodeId, kept: &[usize]) -> Result<()> {
    let mut node = body.graph[id].clone();
    let inputs: Vec<Outlet> = kept.iter().map(|&index| node.inputs()[index]).collect();
    let outputs: Vec<_> = kept.iter().map(|&index| node.outputs()[index].clone()).collect();
    let locations: Vec<Box<str>> =
        kept.iter().map(|&index| own_location(&node, index).into()).collect();
    let dtypes: Vec<DType> = outputs.iter().map(|ty| ty.dtype).collect();
    Arc::make_mut(&mut node.attrs).set("T", dtypes);
    set_locations(&mut node, &locations);
    let controls = node.controls().to_vec();
    let call = body.graph.node_mut(id);
    (*call.attrs, *call.outputs) = (node.attrs, outputs.into_iter().collect());
    body.graph.connect(id, inputs, controls)?;
    for (function, has_results) in body.nested.get_mut(&id).into_iter().flatten().zip([false, true])
    {
        function.args = kept.iter().map(|&index| function.args[index]).collect();
        for (index, arg) in function.args.iter().enumerate() {
            Arc::make_mut(function.graph.node_mut(arg.node).attrs).set("index", index as i64);
        }
        if has_results {
            function.results = kept.iter().map(|&index| function.results[index]).collect();
        }
    }
    Ok(())
}
