//! Choices as calls of `If`.

use super::{
    Flow, Scope, flow, irregular,
    liveness::{Liveness, MergeValue, SIDES, SwitchSide},
    outline::{self, OutlinedRegion, OutlinedResult, Wiring},
};
use crate::{
    attr::{Attrs, NameAttrList},
    dtype::DType,
    error::Result,
    function::FunctionDef,
    graph::{NodeId, Outlet},
    hash::{FastMap, FastSet},
    host_tensor::HostTensor,
    spec::ValueType,
};
use std::{
    collections::{BTreeMap, HashMap, HashSet},
    sync::Arc,
};

/// Makes the choices in a function without loops into calls. Where `must_be_alive` says so, a
/// result that is dead is an error of the run; elsewhere anything may stand in its place.
pub(super) fn make_calls(
    function: FunctionDef,
    must_be_alive: &[bool],
    scope: Scope<'_>,
    depth: usize,
) -> Result<FunctionDef> {
    let mut branches = NewBranches { scope, waiting: Vec::new(), names: HashSet::new() };
    let function = make_outer_calls(function, must_be_alive, scope, depth, &mut branches)?;
    // Not by recursion: branches may nest deeper than the stack of a thread.
    while let Some(NewBranch { function, must_be_alive, depth }) = branches.waiting.pop() {
        let branch = make_outer_calls(function, &must_be_alive, scope, depth, &mut branches)?;
        scope.library.insert(branch)?;
    }
    Ok(function)
}

/// A branch whose own choices are still to be made into calls.
struct NewBranch {
    function: FunctionDef,
    must_be_alive: Vec<bool>,
    depth: usize,
}

/// The branches that wait, and the names they will have.
struct NewBranches<'a> {
    scope: Scope<'a>,
    waiting: Vec<NewBranch>,
    names: HashSet<Arc<str>>,
}

impl NewBranches<'_> {
    /// Adds a branch and names it, so that it can be called.
    fn add(&mut self, mut branch: NewBranch) -> NameAttrList {
        let name = self.scope.free_name(&branch.function.name, &self.names);
        self.names.insert(name.clone());
        branch.function.name = name.clone();
        self.waiting.push(branch);
        NameAttrList::new(name)
    }
}

/// Makes the outermost choices into calls, of functions that are added to `branches`.
fn make_outer_calls(
    function: FunctionDef,
    must_be_alive: &[bool],
    scope: Scope<'_>,
    depth: usize,
    branches: &mut NewBranches<'_>,
) -> Result<FunctionDef> {
    let chooses = |flow: Option<Flow>| matches!(flow, Some(Flow::Switch | Flow::Merge));
    if !function.graph.iter().any(|(_, node)| chooses(flow(node))) {
        return Ok(function);
    }
    scope.check_depth(depth)?;
    let order = function.graph.topological_order()?;
    let live = Liveness::of(&function.graph, &order, scope)?;
    let FunctionDef { name, graph, args, results, control_results, attrs } = function;
    let mut choices = Choices {
        wiring: Wiring::new(graph, name.clone(), scope),
        live,
        depth,
        stages: FastMap::default(),
        homes: FastMap::default(),
        by_key: HashMap::new(),
        wanted: BTreeMap::new(),
        outer: Vec::new(),
        replaced: HashMap::new(),
    };
    choices.assign_branches(&order)?;
    let targets = control_results.iter().copied().collect();
    choices.want_effects(&order, &targets);
    for (index, (_, outlet)) in results.iter().enumerate() {
        choices.want_result(index, *outlet, must_be_alive[index])?;
    }
    let mut plans = Vec::new();
    while let Some((key, wanted)) = choices.wanted.pop_last() {
        plans.push(choices.plan(key, wanted)?);
    }
    for plan in plans.into_iter().rev() {
        choices.call(plan, &targets, branches)?;
    }
    choices.outer.sort();
    let value = |(index, (_, outlet)): (usize, &(String, Outlet))| {
        OutlinedResult::Value(choices.replaced.get(&index).copied().unwrap_or(*outlet))
    };
    let part = OutlinedRegion {
        name: name.to_string(),
        args: Vec::new(),
        members: std::mem::take(&mut choices.outer),
        results: results.iter().enumerate().map(value).collect(),
        controls: control_results,
    };
    let outline = choices.wiring.outline(part)?;
    let args = args.iter().map(|arg| outline.moved[arg]).collect();
    let names = results.into_iter().map(|(name, _)| name);
    let results = names.zip(outline.function.results).map(|(name, (_, outlet))| (name, outlet));
    Ok(FunctionDef { args, results: results.collect(), attrs, ..outline.function })
}

/// Key of a call to be made: the predicates of a stage. Values flow from calls to those of later
/// stages only.
type Key = (usize, Outlet);

/// Where a node is alive.
#[derive(Clone, Copy)]
struct BranchSide {
    key: Key,
    side: usize,
}

/// Values of a call that others want.
#[derive(Default)]
struct Wanted {
    /// The merges whose inputs are its sides.
    merges: Vec<NodeId>,
    /// For each side, nodes that run though nothing needs them.
    runs: [Vec<NodeId>; SIDES],
    exports: Vec<Export>,
    /// Values exported to any user.
    shared: FastSet<Outlet>,
}

/// A value of one side that is used outside.
#[derive(Clone, Copy)]
struct Export {
    side: usize,
    outlet: Outlet,
    /// Whether asking for it is an error when it is dead.
    must_be_alive: bool,
    /// Index of the function's result, if it is exported for that.
    result: Option<usize>,
}

/// A call with the nodes of its branches.
struct Plan {
    key: Key,
    wanted: Wanted,
    members: [FastSet<NodeId>; SIDES],
}

/// A function whose choices are being made into calls.
struct Choices<'a> {
    wiring: Wiring<'a>,
    live: Liveness,
    depth: usize,
    /// Number of choices, one after the other, that a node comes after.
    stages: FastMap<NodeId, usize>,
    homes: FastMap<NodeId, BranchSide>,
    /// The nodes of each call to be.
    by_key: HashMap<Key, Vec<NodeId>>,
    wanted: BTreeMap<Key, Wanted>,
    /// The nodes that are always alive.
    outer: Vec<NodeId>,
    /// The outlets that stand for results.
    replaced: HashMap<usize, Outlet>,
}

impl Choices<'_> {
    /// Finds where each node is alive.
    fn assign_branches(&mut self, order: &[NodeId]) -> Result<()> {
        for &id in order {
            if !self.live.can_live(id) {
                self.wiring.redirect_control(id, None);
                continue;
            }
            let root = self.live.root(id);
            let stage = self.stage(id, root.map(|choice| choice.chooser));
            self.stages.insert(id, stage);
            match (flow(&self.wiring.graph[id]), self.live.join_of(id).cloned(), root) {
                (_, Some(MergeValue::Only(index)), _) => self.pass_on(id, index)?,
                (_, Some(MergeValue::Choice { chooser, .. }), None) => {
                    let key = (self.stage(id, Some(chooser)), chooser);
                    self.stages.insert(id, key.0 + 1);
                    self.wanted(key).merges.push(id);
                }
                (_, _, Some(SwitchSide { chooser, side })) => {
                    let key = (stage, chooser);
                    self.homes.insert(id, BranchSide { key, side });
                    self.by_key.entry(key).or_default().push(id);
                    self.wiring.redirect_control(id, None);
                }
                (Some(Flow::Switch), None, None) => {
                    let data = self.wiring.graph[id].inputs()[0];
                    for index in 0..SIDES {
                        self.wiring.redirect(Outlet::new(id, index), data);
                    }
                    self.wiring.redirect_control(id, Some(data.node));
                }
                (_, None, None) => self.outer.push(id),
            }
        }
        Ok(())
    }

    /// After how many choices a node comes that is alive under the choice of `predicate`.
    fn stage(&self, id: NodeId, chooser: Option<Outlet>) -> usize {
        let node = &self.wiring.graph[id];
        let inputs = node.inputs().iter().map(|input| input.node);
        let sources = inputs.chain(node.controls().iter().copied());
        let after = |source: NodeId| {
            let stage = *self.stages.get(&source)?;
            let leaves =
                self.live.root(source).is_some_and(|choice| Some(choice.chooser) != chooser);
            Some(stage + usize::from(leaves))
        };
        sources.filter_map(after).max().unwrap_or(0)
    }

    /// A merge that can only return one of its inputs returns that.
    fn pass_on(&mut self, id: NodeId, index: usize) -> Result<()> {
        let data = self.wiring.graph[id].inputs()[index];
        self.wiring.redirect(id.into(), data);
        self.wiring.redirect_control(id, Some(data.node));
        let name = self.wiring.graph.unique_name(&self.wiring.graph[id].name.clone());
        let index = outline::constant(name, HostTensor::scalar(index as i32));
        let index = self.wiring.graph.add(index)?;
        self.outer.push(index);
        self.wiring.redirect(Outlet::new(id, 1), index.into());
        Ok(())
    }

    fn wanted(&mut self, key: Key) -> &mut Wanted {
        self.wanted.entry(key).or_default()
    }

    fn want_effects(&mut self, order: &[NodeId], targets: &FastSet<NodeId>) {
        for id in order {
            let Some(&BranchSide { key, side }) = self.homes.get(id) else { continue };
            let node = &self.wiring.graph[*id];
            if targets.contains(id) || self.wiring.scope.has_effect(node) {
                self.wanted(key).runs[side].push(*id);
            }
        }
    }

    fn want_result(&mut self, index: usize, outlet: Outlet, must_be_alive: bool) -> Result<()> {
        let node = &self.wiring.graph[outlet.node];
        if self.live.outlet(&self.wiring.graph, outlet).is_none() {
            return Err(irregular(node, "it is never alive, whatever is chosen"));
        }
        let Some(choice) = self.live.outlet_root(&self.wiring.graph, outlet) else { return Ok(()) };
        let value = self.wiring.resolve(outlet);
        let own_side = match self.homes.get(&value.node) {
            Some(&home) => home,
            None if must_be_alive => {
                BranchSide { key: (self.stages[&outlet.node], choice.chooser), side: choice.side }
            }
            None => return Ok(()),
        };
        let result = Some(index);
        let export = Export { side: own_side.side, outlet: value, must_be_alive, result };
        self.wanted(own_side.key).exports.push(export);
        Ok(())
    }

    /// The nodes that the branches of a call need. What they take from earlier calls becomes
    /// wanted of those.
    fn plan(&mut self, key: Key, wanted: Wanted) -> Result<Plan> {
        let mut members = [FastSet::default(), FastSet::default()];
        for (side, runs) in wanted.runs.iter().enumerate() {
            let merged = wanted.merges.iter().map(|&merge| self.merged(merge, side));
            let exported =
                wanted.exports.iter().filter(|export| export.side == side).map(|e| e.outlet);
            let values: Vec<Outlet> = merged.chain(exported).collect();
            let mut branch = Branch { key, side, members: FastSet::default(), stack: runs.clone() };
            for value in values {
                self.need(&mut branch, value)?;
            }
            while let Some(id) = branch.stack.pop() {
                if !branch.members.insert(id) {
                    continue;
                }
                let node = &self.wiring.graph[id];
                let controls = node.controls().to_vec();
                for input in node.inputs().to_vec() {
                    if self.live.can_live(input.node) {
                        self.need(&mut branch, self.wiring.resolve(input))?;
                    }
                }
                for control in controls {
                    if self.is_here(&branch, control) {
                        branch.stack.push(control);
                    }
                }
            }
            members[side] = branch.members;
        }
        Ok(Plan { key, wanted, members })
    }

    /// Value of `merge` when its choice takes `side`.
    fn merged(&self, merge: NodeId, side: usize) -> Outlet {
        let index = match self.live.join_of(merge) {
            Some(MergeValue::Choice { by_side, .. }) => by_side[side],
            Some(MergeValue::Only(index)) => *index,
            None => 0,
        };
        self.wiring.resolve(self.wiring.graph[merge].inputs()[index])
    }

    /// Whether a node runs in this branch: its own, or one of the same choice at an earlier stage
    /// that may as well run twice.
    fn is_here(&self, branch: &Branch, id: NodeId) -> bool {
        self.homes.get(&id).is_some_and(|home| {
            let same_side = home.key.1 == branch.key.1 && home.side == branch.side;
            let is_pure = || self.wiring.scope.is_pure(&self.wiring.graph[id]);
            same_side && (home.key == branch.key || home.key < branch.key && is_pure())
        })
    }

    fn need(&mut self, branch: &mut Branch, value: Outlet) -> Result<()> {
        let Some(&home) = self.homes.get(&value.node) else { return Ok(()) };
        if self.is_here(branch, value.node) {
            branch.stack.push(value.node);
            return Ok(());
        }
        if home.key >= branch.key {
            let node = &self.wiring.graph[value.node];
            return Err(irregular(node, "its value is used by a choice that comes before it"));
        }
        let wanted = self.wanted(home.key);
        if wanted.shared.insert(value) {
            let (must_be_alive, result) = (false, None);
            wanted.exports.push(Export { side: home.side, outlet: value, must_be_alive, result });
        }
        Ok(())
    }

    /// Adds a call.
    fn call(
        &mut self,
        plan: Plan,
        targets: &FastSet<NodeId>,
        new: &mut NewBranches<'_>,
    ) -> Result<()> {
        let Plan { key, wanted, members } = plan;
        let captures = self.captures(&wanted, &members);
        let types = self.result_types(&wanted)?;
        let mut controls = FastSet::default();
        members.iter().for_each(|members| self.outer_controls(members, &mut controls));
        let branch =
            |side: usize| self.branch(side, &wanted, &members[side], &captures, &types, targets);
        let [if_false, if_true] = [branch(0)?, branch(1)?].map(|branch| new.add(branch));
        for &merge in &wanted.merges {
            let merge = &self.wiring.graph[merge];
            controls
                .extend(merge.controls().iter().filter_map(|&c| self.wiring.resolve_control(c)));
        }
        let inputs = captures.iter().map(|&capture| self.wiring.ty(capture).map(|ty| ty.dtype));
        let input_dtypes: Vec<DType> = inputs.collect::<Result<_>>()?;
        let dtypes: Vec<DType> = types.iter().map(|ty| ty.dtype).collect();
        let outside = self.wiring.resolve_outside(key.1);
        let dtype = self.wiring.ty(outside)?.dtype;
        let predicate = outline::scalar(&mut self.wiring.graph, outside, dtype)?;
        if predicate != outside {
            self.outer.push(predicate.node);
        }
        let attrs = Attrs::new()
            .with("Tcond", dtype)
            .with("Tin", input_dtypes.as_slice())
            .with("Tout", dtypes.as_slice())
            .with("then_branch", if_true)
            .with("else_branch", if_false);
        let namesake = wanted.merges.first().copied().unwrap_or(key.1.node);
        let name = self.wiring.graph[namesake].name.clone();
        let inputs: Vec<Outlet> = [predicate].into_iter().chain(captures).collect();
        let record = super::record("If");
        let call = self.wiring.call(&name, record, attrs, inputs.clone(), types)?;
        self.wiring.graph.connect(call, inputs, controls.into_iter().filter(|&id| id != call))?;
        self.outer.push(call);
        self.redirect(call, &wanted);
        for &id in self.by_key.get(&key).into_iter().flatten() {
            self.wiring.redirect_control(id, Some(call));
        }
        Ok(())
    }

    /// Values from outside that the branches use.
    fn captures(&self, wanted: &Wanted, members: &[FastSet<NodeId>]) -> Vec<Outlet> {
        let mut captures = Vec::new();
        let mut seen = FastSet::default();
        for (side, members) in members.iter().enumerate() {
            let mut sorted: Vec<NodeId> = members.iter().copied().collect();
            sorted.sort();
            let inputs = sorted.iter().flat_map(|&id| self.wiring.graph[id].inputs()).copied();
            let merged = wanted.merges.iter().map(|&merge| self.merged(merge, side));
            let exported = wanted.exports.iter().filter(|x| x.side == side).map(|x| x.outlet);
            for outlet in inputs.chain(merged).chain(exported) {
                let inside = members.contains(&self.wiring.resolve(outlet).node);
                let outside = self.wiring.resolve_outside(outlet);
                if !inside && self.live.can_live(outlet.node) && seen.insert(outside) {
                    captures.push(outside);
                }
            }
        }
        captures
    }

    /// The nodes outside that run before these.
    fn outer_controls(&self, members: &FastSet<NodeId>, controls: &mut FastSet<NodeId>) {
        for &id in members {
            let before = self.wiring.graph[id].controls().iter();
            let before = before.filter(|id| !members.contains(id));
            let before = before.filter_map(|&id| self.wiring.resolve_control(id));
            controls.extend(before.filter(|id| !members.contains(id)));
        }
    }

    /// Merges return their value and its index, exports their value.
    fn result_types(&self, wanted: &Wanted) -> Result<Vec<ValueType>> {
        let mut types = Vec::new();
        for &merge in &wanted.merges {
            let value = self.wiring.ty(merge.into())?;
            types.extend([value, self.wiring.ty(Outlet::new(merge, 1))?]);
        }
        for export in &wanted.exports {
            types.push(self.wiring.ty(export.outlet)?);
        }
        Ok(types)
    }

    fn branch(
        &self,
        side: usize,
        wanted: &Wanted,
        members: &FastSet<NodeId>,
        captures: &[Outlet],
        types: &[ValueType],
        targets: &FastSet<NodeId>,
    ) -> Result<NewBranch> {
        let mut results = Vec::with_capacity(types.len());
        let mut must_be_alive = Vec::with_capacity(types.len());
        for &merge in &wanted.merges {
            let index = match self.live.join_of(merge) {
                Some(MergeValue::Choice { by_side, .. }) => by_side[side],
                _ => 0,
            };
            let index = HostTensor::scalar(index as i32);
            results.extend([
                OutlinedResult::Value(self.merged(merge, side)),
                OutlinedResult::Constant(index),
            ]);
            must_be_alive.extend([true, true]);
        }
        for (export, ty) in wanted.exports.iter().zip(&types[results.len()..]) {
            let node = &self.wiring.graph[export.outlet.node];
            results.push(match (export.side == side, export.must_be_alive) {
                (true, _) => OutlinedResult::Value(export.outlet),
                (false, false) => OutlinedResult::Dead(ty.dtype),
                (false, true) => {
                    let text = format!("the value of {} is dead, as it was not chosen", node.name);
                    OutlinedResult::Fails(ty.dtype, text)
                }
            });
            must_be_alive.push(export.must_be_alive);
        }
        let mut sorted: Vec<NodeId> = members.iter().copied().collect();
        sorted.sort();
        let part = OutlinedRegion {
            name: format!("{}/branch_{side}", self.wiring.name),
            args: captures.to_vec(),
            controls: sorted.iter().copied().filter(|id| targets.contains(id)).collect(),
            members: sorted,
            results,
        };
        let function = self.wiring.outline(part)?.function;
        Ok(NewBranch { function, must_be_alive, depth: self.depth + 1 })
    }

    /// Values from inside now come from the call.
    fn redirect(&mut self, call: NodeId, wanted: &Wanted) {
        let mut index = 0;
        for &merge in &wanted.merges {
            for output in 0..2 {
                self.wiring.redirect(Outlet::new(merge, output), Outlet::new(call, index));
                index += 1;
            }
            self.wiring.redirect_control(merge, Some(call));
        }
        for export in &wanted.exports {
            match export.result {
                Some(result) => {
                    self.replaced.insert(result, Outlet::new(call, index));
                }
                None => self.wiring.export(export.outlet, Outlet::new(call, index)),
            }
            index += 1;
        }
    }
}

/// A branch in the making.
struct Branch {
    key: Key,
    side: usize,
    members: FastSet<NodeId>,
    /// Nodes it needs that were not looked at yet.
    stack: Vec<NodeId>,
}
