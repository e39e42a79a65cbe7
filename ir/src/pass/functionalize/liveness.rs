//! Under which choices nodes are alive.

use super::{Flow, Scope, flow, irregular};
use crate::{
    error::Result,
    graph::{Graph, NodeDef, NodeId, Outlet},
    hash::{FastMap, FastSet},
    op::{AliasKind, Lowering},
};
use std::sync::Arc;

/// A choice between two sides: the value of `predicate` sends values to side `side`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) struct SwitchSide {
    pub(super) chooser: Outlet,
    pub(super) side: usize,
}

/// The choices that must all be made for a node to be alive, sorted; none for one that always is.
type Conditions = Arc<[SwitchSide]>;

/// Value of a `Merge`.
#[derive(Clone, Debug)]
pub(super) enum MergeValue {
    /// The only input that can be alive.
    Only(usize),
    /// For each side of a choice, one input.
    Choice { chooser: Outlet, by_side: [usize; SIDES] },
}

/// Meaning of an outlet that is a choice: another one, or the opposite of it.
#[derive(Clone, Copy)]
struct Alias {
    chooser: Outlet,
    is_opposite: bool,
}

/// Under which choices the nodes of a graph without loops are alive.
pub(super) struct Liveness {
    /// The conditions of each node that can be alive at all.
    conditions: FastMap<NodeId, Conditions>,
    /// Outlets that choose as others do.
    aliases: FastMap<Outlet, Alias>,
    joins: FastMap<NodeId, MergeValue>,
    /// Choices that are alive whichever side is taken.
    outer: FastSet<Outlet>,
    roots: FastMap<NodeId, SwitchSide>,
}

impl Liveness {
    /// Finds it for the nodes in `order`.
    pub(super) fn of(graph: &Graph, order: &[NodeId], scope: Scope<'_>) -> Result<Liveness> {
        let mut live = Liveness {
            conditions: FastMap::with_capacity_and_hasher(order.len(), Default::default()),
            aliases: FastMap::default(),
            joins: FastMap::default(),
            outer: FastSet::default(),
            roots: FastMap::default(),
        };
        let always: Conditions = Arc::new([]);
        for &id in order {
            let node = &graph[id];
            let found = match flow(node) {
                Some(Flow::Merge) => live.join(graph, id)?,
                _ => live.all(graph, node, &always),
            };
            let Some(found) = found else { continue };
            scope
                .check_depth(found.len())
                .map_err(|e| e.at_node(&node.name, node.op.name(), ""))?;
            if let Some(root) = live.outermost(&found) {
                live.roots.insert(id, root);
            }
            live.conditions.insert(id, found);
            live.note(graph, id);
        }
        Ok(live)
    }

    /// Whether the node can be alive at all.
    pub(super) fn can_live(&self, id: NodeId) -> bool {
        self.conditions.contains_key(&id)
    }

    /// Value of a `Merge`, if it joins a choice.
    pub(super) fn join_of(&self, id: NodeId) -> Option<&MergeValue> {
        self.joins.get(&id)
    }

    /// The outermost choice under which a node is alive.
    pub(super) fn root(&self, id: NodeId) -> Option<SwitchSide> {
        self.roots.get(&id).copied()
    }

    /// The outermost choice under which an outlet is alive.
    pub(super) fn outlet_root(&self, graph: &Graph, outlet: Outlet) -> Option<SwitchSide> {
        self.outermost(&self.outlet(graph, outlet)?)
    }

    fn outermost(&self, conditions: &Conditions) -> Option<SwitchSide> {
        let mut choices = conditions.iter();
        choices.find(|choice| self.outer.contains(&choice.chooser)).or(conditions.first()).copied()
    }

    /// The choices under which an outlet is alive; none if it never is.
    pub(super) fn outlet(&self, graph: &Graph, outlet: Outlet) -> Option<Conditions> {
        let conditions = self.conditions.get(&outlet.node)?;
        match switch(&graph[outlet.node]) {
            Some(chooser) => {
                let alias = self.alias(chooser);
                let side = outlet.index as usize;
                let side = if alias.is_opposite { SIDES.checked_sub(1 + side)? } else { side };
                let choice = SwitchSide { chooser: alias.chooser, side };
                both(conditions, &[choice]).filter(|_| side < SIDES)
            }
            None => Some(conditions.clone()),
        }
    }

    fn alias(&self, chooser: Outlet) -> Alias {
        let itself = Alias { chooser, is_opposite: false };
        self.aliases.get(&chooser).copied().unwrap_or(itself)
    }

    /// A node is alive when all that it needs is.
    fn all(&self, graph: &Graph, node: &NodeDef, always: &Conditions) -> Option<Conditions> {
        let mut found = always.clone();
        for &input in node.inputs() {
            found = both_shared(&found, &self.outlet(graph, input)?)?;
        }
        for control in node.controls() {
            found = both_shared(&found, self.conditions.get(control)?)?;
        }
        Some(found)
    }

    /// A `Merge` is alive when one of its inputs is.
    fn join(&mut self, graph: &Graph, id: NodeId) -> Result<Option<Conditions>> {
        let node = &graph[id];
        let inputs = node.inputs().iter().map(|&input| self.outlet(graph, input)).enumerate();
        let alive: Vec<(usize, Conditions)> =
            inputs.filter_map(|(index, found)| Some((index, found?))).collect();
        let (join, rest) = match alive.as_slice() {
            [] => return Ok(None),
            [(index, only)] => (MergeValue::Only(*index), only.clone()),
            several => self.choice(several).ok_or_else(|| {
                irregular(node, "it merges values that are not the sides of one choice")
            })?,
        };
        self.joins.insert(id, join);
        Ok(Some(rest))
    }

    /// The choice of which these are the sides, and what else they have in common.
    fn choice(&self, inputs: &[(usize, Conditions)]) -> Option<(MergeValue, Conditions)> {
        let [(_, first), (_, second)] = inputs else { return None };
        let differs = |choice: &&SwitchSide| second.binary_search(choice).is_err();
        let predicate = first.iter().find(differs)?.chooser;
        let rest = without(first, predicate);
        let mut by_side = [None; SIDES];
        for (index, conditions) in inputs {
            let side = conditions.iter().find(|choice| choice.chooser == predicate)?.side;
            by_side[side] = Some(*index);
        }
        let by_side = [by_side[0]?, by_side[1]?];
        let fits = without(second, predicate) == rest;
        fits.then(|| (MergeValue::Choice { chooser: predicate, by_side }, rest.into()))
    }

    /// Notes what a node chooses by, and what it is to those who choose by it.
    fn note(&mut self, graph: &Graph, id: NodeId) {
        let node = &graph[id];
        if let Some(chooser) = switch(node).map(|chooser| self.alias(chooser).chooser)
            && self.outlet(graph, chooser).is_some_and(|found| found.is_empty())
        {
            self.outer.insert(chooser);
        }
        let alias = self.passed_on(node).or_else(|| self.compared(graph, node));
        if let Some(alias) = alias
            && self.outlet(graph, alias.0).as_deref() == self.conditions.get(&id).map(|c| &**c)
        {
            self.aliases.insert(id.into(), alias.1);
        }
    }

    /// The input of a node that only passes it on, and what it is.
    fn passed_on(&self, node: &NodeDef) -> Option<(Outlet, Alias)> {
        let passes = node
            .op
            .def()
            .is_some_and(|op| matches!(op.lowering, Lowering::Alias(AliasKind::Identity)));
        match node.inputs() {
            [input] if passes => Some((*input, self.alias(*input))),
            _ => None,
        }
    }

    /// Side that was taken, of a node that asks for it: TensorFlow's gradients of `Merge` compare
    /// the index of the input that was alive.
    fn compared(&self, graph: &Graph, node: &NodeDef) -> Option<(Outlet, Alias)> {
        let [taken, number] = node.inputs() else { return None };
        let MergeValue::Choice { chooser, by_side } = self.joins.get(&taken.node)? else {
            return None;
        };
        let number = graph[number.node].attrs.tensor("value").ok()?.as_scalar::<i32>().ok()?;
        let asked = by_side.iter().position(|&index| usize::try_from(number) == Ok(index))?;
        let asks = node.op.name() == "Equal" && taken.index == 1;
        let alias = Alias { chooser: *chooser, is_opposite: asked == 0 };
        asks.then_some((*chooser, alias))
    }
}

/// The sides of a choice: what a false value chooses, and what a true one does.
pub(super) const SIDES: usize = 2;

/// Predicate of a node.
fn switch(node: &NodeDef) -> Option<Outlet> {
    let is_switch = flow(node) == Some(Flow::Switch);
    is_switch.then(|| node.inputs()[1])
}

fn without(conditions: &Conditions, chooser: Outlet) -> Vec<SwitchSide> {
    conditions.iter().copied().filter(|choice| choice.chooser != chooser).collect()
}

fn both_shared(one: &Conditions, other: &Conditions) -> Option<Conditions> {
    if one.is_empty() || Arc::ptr_eq(one, other) {
        return Some(other.clone());
    }
    both(one, other)
}

/// All choices of both; none when they contradict each other.
fn both(one: &Conditions, other: &[SwitchSide]) -> Option<Conditions> {
    if other.iter().all(|choice| one.binary_search(choice).is_ok()) {
        return Some(one.clone());
    }
    let mut all: Vec<SwitchSide> = one.iter().chain(other).copied().collect();
    all.sort();
    all.dedup();
    let contradicts = all.windows(2).any(|pair| pair[0].chooser == pair[1].chooser);
    (!contradicts).then(|| all.into())
}
