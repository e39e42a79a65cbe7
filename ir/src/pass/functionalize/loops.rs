//! Frames as calls of `While`.

use super::{
    Flow, conditions, flow,
    frames::{Frames, LoopFrame, OUTSIDE},
    irregular,
    outline::{self, OutlinedRegion, OutlinedResult, Wiring},
};
use crate::{
    attr::{Attrs, NameAttrList},
    dtype::DType,
    error::Result,
    function::FunctionDef,
    graph::{NodeId, Outlet},
    hash::{FastMap, FastSet},
};
use std::sync::Arc;

/// Adds a call for each frame, the innermost first; returns the nodes of the outermost one. In
/// `targets` are nodes that run though no result needs them.
pub(super) fn make_calls(
    wiring: &mut Wiring<'_>,
    frames: &Frames,
    targets: &FastSet<NodeId>,
) -> Result<Vec<NodeId>> {
    // What calls of frames inside have added to each frame.
    let mut added: Vec<Vec<NodeId>> = vec![Vec::new(); frames.len()];
    for index in (OUTSIDE + 1..frames.len()).rev() {
        let frame = frames.get(index);
        let members = members(wiring, frame, &added[index]);
        let moved = match condition(wiring, &members)? {
            Some(condition) => {
                let parts = Loop::read(wiring, frame, members, condition, targets)?;
                vec![parts.into_call(wiring)?]
            }
            None => open(wiring, frame, members)?,
        };
        added[frame.parent].extend(moved);
    }
    Ok(members(wiring, frames.get(OUTSIDE), &added[OUTSIDE]))
}

/// The nodes of a frame, without those that lead into frames inside.
fn members(wiring: &Wiring<'_>, frame: &LoopFrame, added: &[NodeId]) -> Vec<NodeId> {
    let nodes = frame.nodes.iter().chain(added).copied();
    nodes.filter(|&id| flow(&wiring.graph[id]) != Some(Flow::Enter)).collect()
}

/// The node that says whether a loop goes on.
fn condition(wiring: &Wiring<'_>, members: &[NodeId]) -> Result<Option<NodeId>> {
    let is_condition = |id: &&NodeId| flow(&wiring.graph[**id]) == Some(Flow::LoopCond);
    let mut found = members.iter().filter(is_condition);
    let (first, second) = (found.next(), found.next());
    match second {
        Some(&second) => Err(irregular(&wiring.graph[second], "a loop has one condition")),
        None => Ok(first.copied()),
    }
}

/// Removes the borders of a frame that has no condition: it runs once, as what is around it does.
fn open(wiring: &mut Wiring<'_>, frame: &LoopFrame, members: Vec<NodeId>) -> Result<Vec<NodeId>> {
    let mut moved = Vec::with_capacity(members.len());
    let mut passes = frame.entries.clone();
    for id in members {
        match flow(&wiring.graph[id]) {
            Some(Flow::Exit) => passes.push(id),
            Some(Flow::NextIteration) => {
                let what = "a loop without a condition would not end";
                return Err(irregular(&wiring.graph[id], what));
            }
            _ => moved.push(id),
        }
    }
    for id in passes {
        let data = wiring.graph[id].inputs()[0];
        wiring.redirect(id.into(), data);
        wiring.redirect_control(id, Some(data.node));
    }
    Ok(moved)
}

/// A variable of a loop.
struct Variable {
    merge: NodeId,
    enter: NodeId,
    next: NodeId,
}

/// The parts of a loop.
struct Loop<'a> {
    frame: &'a LoopFrame,
    targets: &'a FastSet<NodeId>,
    condition: NodeId,
    variables: Vec<Variable>,
    /// The entries of values that stay the same.
    invariants: Vec<NodeId>,
    /// For the switches by the condition, what they pass on.
    switches: FastMap<NodeId, Outlet>,
    exits: Vec<NodeId>,
    /// The nodes that compute something.
    plain: Vec<NodeId>,
    /// Those of them that run only if the loop goes on.
    body: FastSet<NodeId>,
}

impl<'a> Loop<'a> {
    fn read(
        wiring: &Wiring<'_>,
        frame: &'a LoopFrame,
        members: Vec<NodeId>,
        condition: NodeId,
        targets: &'a FastSet<NodeId>,
    ) -> Result<Loop<'a>> {
        let mut parts = Loop {
            frame,
            targets,
            condition,
            variables: Vec::new(),
            invariants: Vec::new(),
            switches: FastMap::default(),
            exits: Vec::new(),
            plain: Vec::new(),
            body: FastSet::default(),
        };
        for id in members {
            parts.sort_in(wiring, id)?;
        }
        let heads: FastSet<NodeId> = parts.variables.iter().map(|x| x.merge).collect();
        let is_invariant = |id: &NodeId| wiring.graph.consumers(*id).any(|c| !heads.contains(&c));
        parts.invariants = frame.entries.iter().copied().filter(is_invariant).collect();
        parts.find_body(wiring)?;
        Ok(parts)
    }

    fn sort_in(&mut self, wiring: &Wiring<'_>, id: NodeId) -> Result<()> {
        let node = &wiring.graph[id];
        let comes_from = |input: &Outlet, kind: Flow| flow(&wiring.graph[input.node]) == Some(kind);
        match flow(node) {
            Some(Flow::Switch) if node.inputs()[1].node == self.condition => {
                self.switches.insert(id, node.inputs()[0]);
            }
            Some(Flow::Merge)
                if node.inputs().iter().any(|input| comes_from(input, Flow::NextIteration)) =>
            {
                let enter = node.inputs().iter().find(|input| comes_from(input, Flow::Enter));
                let next = node.inputs().iter().find(|x| comes_from(x, Flow::NextIteration));
                let (Some(enter), Some(next), 2) = (enter, next, node.inputs().len()) else {
                    let what = "a loop variable comes from one Enter and one NextIteration";
                    return Err(irregular(node, what));
                };
                let (enter, next) = (enter.node, next.node);
                self.variables.push(Variable { merge: id, enter, next });
            }
            Some(Flow::Exit) => self.exits.push(id),
            Some(Flow::LoopCond | Flow::NextIteration | Flow::Enter) => {}
            Some(Flow::Switch | Flow::Merge) | None => self.plain.push(id),
        }
        Ok(())
    }

    /// The nodes that depend on a value that the condition lets through.
    fn find_body(&mut self, wiring: &Wiring<'_>) -> Result<()> {
        let order = outline::order(&wiring.graph, &self.plain, |id, sources| {
            self.sources(wiring, id, sources);
        })?;
        for id in order {
            let node = &wiring.graph[id];
            let switched = node.inputs().iter().filter(|x| self.switches.contains_key(&x.node));
            if switched.clone().any(|outlet| outlet.index == 0) {
                return Err(irregular(node, "it runs at the end of a loop, but inside"));
            }
            let mut sources = Vec::new();
            self.sources(wiring, id, &mut sources);
            if switched.count() > 0 || sources.iter().any(|source| self.body.contains(source)) {
                self.body.insert(id);
            }
        }
        Ok(())
    }

    /// The nodes before `id` in the same round.
    fn sources(&self, wiring: &Wiring<'_>, id: NodeId, sources: &mut Vec<NodeId>) {
        let node = &wiring.graph[id];
        for &input in node.inputs() {
            // What a switch of this loop lets through comes from before it.
            let input = self.switches.get(&input.node).copied().unwrap_or(input);
            sources.push(wiring.resolve(input).node);
        }
        sources.extend(node.controls().iter().filter_map(|&id| wiring.resolve_control(id)));
    }

    fn into_call(self, wiring: &mut Wiring<'_>) -> Result<NodeId> {
        let args: Vec<Outlet> = self
            .variables
            .iter()
            .map(|variable| variable.merge)
            .chain(self.invariants.iter().copied())
            .map(Outlet::from)
            .collect();
        let entries: Vec<NodeId> = self
            .variables
            .iter()
            .map(|variable| variable.enter)
            .chain(self.invariants.iter().copied())
            .collect();
        self.remove_flow(wiring);
        let condition = self.condition_function(wiring, &args)?;
        let body = self.body_function(wiring, &args)?;
        let mut types = Vec::with_capacity(args.len());
        let mut inputs = Vec::with_capacity(args.len());
        let mut controls = Vec::new();
        for &entry in &entries {
            let node = &wiring.graph[entry];
            types.push(wiring.ty(node.inputs()[0])?);
            inputs.push(node.inputs()[0]);
            controls.extend_from_slice(node.controls());
        }
        let dtypes: Vec<DType> = types.iter().map(|ty| ty.dtype).collect();
        let parallel = wiring.graph[entries[0]].attrs.int("parallel_iterations").unwrap_or(10);
        let attrs = Attrs::new()
            .with("T", dtypes.as_slice())
            .with("cond", condition)
            .with("body", body)
            .with("parallel_iterations", parallel);
        let op = super::record("While");
        let call = wiring.call(&self.frame.name, op, attrs, inputs.clone(), types)?;
        wiring.graph.connect(call, inputs, controls)?;
        self.redirect(wiring, call)?;
        Ok(call)
    }

    /// Lets the nodes inside refer to each other directly.
    fn remove_flow(&self, wiring: &mut Wiring<'_>) {
        for (&switch, &data) in &self.switches {
            wiring.redirect(Outlet::new(switch, 1), data);
        }
        let variables = self.variables.iter().flat_map(|x| [x.merge, x.next]);
        let gone = self.switches.keys().copied().chain([self.condition]).chain(variables);
        for id in gone.chain(self.frame.entries.iter().copied()) {
            wiring.redirect_control(id, None);
        }
    }

    /// Values of the loop for the nodes around it now come from the call.
    fn redirect(&self, wiring: &mut Wiring<'_>, call: NodeId) -> Result<()> {
        let merges = self.variables.iter().map(|variable| variable.merge);
        let values: FastMap<NodeId, usize> = merges
            .chain(self.invariants.iter().copied())
            .enumerate()
            .map(|(i, id)| (id, i))
            .collect();
        for &exit in &self.exits {
            let input = wiring.graph[exit].inputs()[0];
            let data = match self.switches.get(&input.node) {
                Some(&data) if input.index == 0 => wiring.resolve(data),
                None if self.frame.entries.contains(&input.node) => input,
                _ => return Err(irregular(&wiring.graph[exit], NO_VARIABLE)),
            };
            let Some(&index) = values.get(&data.node).filter(|_| data.index == 0) else {
                return Err(irregular(&wiring.graph[exit], NO_VARIABLE));
            };
            wiring.redirect(exit.into(), Outlet::new(call, index));
            wiring.redirect_control(exit, Some(call));
        }
        for &id in &self.plain {
            wiring.redirect_control(id, Some(call));
        }
        Ok(())
    }

    fn condition_function(&self, wiring: &Wiring<'_>, args: &[Outlet]) -> Result<NameAttrList> {
        let result = wiring.graph[self.condition].inputs()[0];
        if self.body.contains(&wiring.resolve(result).node) {
            let what = "the condition of a loop does not depend on whether it goes on";
            return Err(irregular(&wiring.graph[self.condition], what));
        }
        let outside_body = |id: &NodeId| !self.body.contains(id);
        let plain: Vec<NodeId> = self.plain.iter().copied().filter(outside_body).collect();
        let roots = self.running(wiring, &plain);
        let part = OutlinedRegion {
            name: format!("{}/{}/cond", wiring.name, self.frame.name),
            args: args.to_vec(),
            members: self.needed(wiring, [result].map(|x| wiring.resolve(x).node), &roots),
            results: vec![OutlinedResult::Value(result)],
            controls: roots,
        };
        let mut function = wiring.outline(part)?.function;
        for (_, result) in &mut function.results {
            *result = outline::scalar(&mut function.graph, *result, DType::Bool)?;
        }
        self.function(wiring, function)
    }

    fn body_function(&self, wiring: &Wiring<'_>, args: &[Outlet]) -> Result<NameAttrList> {
        let next = |variable: &Variable| wiring.graph[variable.next].inputs()[0];
        let results: Vec<Outlet> = self.variables.iter().map(next).collect();
        let results: Vec<Outlet> =
            results.into_iter().chain(args[self.variables.len()..].iter().copied()).collect();
        let plain: Vec<NodeId> =
            self.plain.iter().copied().filter(|id| self.body.contains(id)).collect();
        let mut roots = self.running(wiring, &plain);
        let controls = self.variables.iter().flat_map(|x| wiring.graph[x.next].controls());
        roots.extend(controls.filter_map(|&id| wiring.resolve_control(id)));
        let members = self.needed(wiring, results.iter().map(|&x| wiring.resolve(x).node), &roots);
        for &id in members.iter().filter(|id| !self.body.contains(id)) {
            if wiring.scope.has_effect(&wiring.graph[id]) {
                let what = "it has an effect, and both condition and body of a loop use it";
                return Err(irregular(&wiring.graph[id], what));
            }
        }
        let part = OutlinedRegion {
            name: format!("{}/{}/body", wiring.name, self.frame.name),
            args: args.to_vec(),
            members,
            results: results.into_iter().map(OutlinedResult::Value).collect(),
            controls: roots,
        };
        self.function(wiring, wiring.outline(part)?.function)
    }

    fn function(&self, wiring: &Wiring<'_>, function: FunctionDef) -> Result<NameAttrList> {
        let must_be_alive = vec![true; function.results.len()];
        let depth = self.frame.depth;
        let function = conditions::make_calls(function, &must_be_alive, wiring.scope, depth)?;
        let name: Arc<str> = wiring.scope.insert(function)?;
        Ok(NameAttrList::new(name))
    }

    /// Those of `nodes` that run whether or not anything needs them.
    fn running(&self, wiring: &Wiring<'_>, nodes: &[NodeId]) -> Vec<NodeId> {
        let runs =
            |id: &NodeId| self.targets.contains(id) || wiring.scope.has_effect(&wiring.graph[*id]);
        nodes.iter().copied().filter(runs).collect()
    }

    /// The nodes that compute something that others need, in the order they were added.
    fn needed(
        &self,
        wiring: &Wiring<'_>,
        roots: impl IntoIterator<Item = NodeId>,
        more: &[NodeId],
    ) -> Vec<NodeId> {
        let plain: FastSet<NodeId> = self.plain.iter().copied().collect();
        let mut stack: Vec<NodeId> = roots.into_iter().chain(more.iter().copied()).collect();
        let mut needed = FastSet::default();
        while let Some(id) = stack.pop() {
            if plain.contains(&id) && needed.insert(id) {
                self.sources(wiring, id, &mut stack);
            }
        }
        let mut needed: Vec<NodeId> = needed.into_iter().collect();
        needed.sort();
        needed
    }
}

const NO_VARIABLE: &str = "what leaves a loop is one of its variables, at the loop's end";
