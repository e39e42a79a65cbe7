//! Bounds of indices that loops count.

use crate::{
    graph::{Graph, NodeId, Outlet},
    hash::FastMap,
    ops::names,
    pass::{execution::constant, specialize::Specialized},
};

/// The parts of a condition, and the nodes that pass a value on, that are looked at.
const MOST_LOOKED_AT: usize = 16;

/// The variables of a loop that count.
pub(super) struct Counters<'a> {
    outer: &'a Graph,
    /// The initial values.
    inputs: &'a [Outlet],
    condition: &'a Specialized,
    rounds: &'a Specialized,
    /// The variables that arguments of the condition and of the body are.
    tested: FastMap<Outlet, usize>,
    changed: FastMap<Outlet, usize>,
}

/// A variable to which each round adds a number.
pub(super) struct Counter {
    pub(super) variable: usize,
    pub(super) first: i64,
    pub(super) step: i64,
}

#[derive(Clone, Copy)]
pub(super) enum CounterBound {
    Below(i64),
    AtLeast(i64),
}

impl<'a> Counters<'a> {
    pub(super) fn of(
        body: &'a Specialized,
        id: NodeId,
        condition: &'a Specialized,
        rounds: &'a Specialized,
    ) -> Counters<'a> {
        let numbered = |args: &[Outlet]| {
            args.iter().enumerate().map(|(variable, &arg)| (arg, variable)).collect()
        };
        Counters {
            outer: &body.graph,
            inputs: body.graph[id].inputs(),
            tested: numbered(&condition.args),
            changed: numbered(&rounds.args),
            condition,
            rounds,
        }
    }

    /// A constant number of the body.
    pub(super) fn number(&self, outlet: Outlet) -> Option<i64> {
        number(&self.rounds.graph, outlet)
    }

    /// The counter that a value in the body is.
    pub(super) fn find(&self, index: Outlet) -> Option<Counter> {
        let graph = &self.rounds.graph;
        let index = passed(graph, index);
        let variable = *self.changed.get(&index)?;
        let first = number(self.outer, self.inputs[variable])?;
        let node = &graph[passed(graph, self.rounds.results[variable]).node];
        let &[a, b] = node.inputs() else { return None };
        let (is_a, is_b) = (passed(graph, a) == index, passed(graph, b) == index);
        let step = match node.op.name() {
            names::ADD_V2 | "Add" if is_a => number(graph, b)?,
            names::ADD_V2 | "Add" if is_b => number(graph, a)?,
            names::SUB if is_a => number(graph, b)?.checked_neg()?,
            _ => return None,
        };
        (step != 0).then_some(Counter { variable, first, step })
    }

    /// Whether a variable has a bound wherever the condition is true.
    pub(super) fn is_bounded(&self, variable: usize, bound: CounterBound) -> bool {
        let graph = &self.condition.graph;
        let is_variable = |outlet| self.tested.get(&passed(graph, outlet)) == Some(&variable);
        let mut tests: Vec<Outlet> = self.condition.results.first().copied().into_iter().collect();
        for _ in 0..MOST_LOOKED_AT {
            let Some(test) = tests.pop() else { return false };
            let node = &graph[passed(graph, test).node];
            let &[a, b] = node.inputs() else { continue };
            if node.op.name() == names::LOGICAL_AND {
                tests.extend([a, b]);
                continue;
            }
            let is_first = is_variable(a);
            let limit = match is_first {
                true => self.limit(b),
                false if is_variable(b) => self.limit(a),
                false => None,
            };
            let Some(limit) = limit else { continue };
            let holds = match (node.op.name(), is_first, bound) {
                (names::LESS, true, CounterBound::Below(end))
                | (names::GREATER, false, CounterBound::Below(end)) => limit <= end,
                (names::LESS_EQUAL, true, CounterBound::Below(end))
                | (names::GREATER_EQUAL, false, CounterBound::Below(end)) => limit < end,
                (names::GREATER, true, CounterBound::AtLeast(least))
                | (names::LESS, false, CounterBound::AtLeast(least)) => limit >= least - 1,
                (names::GREATER_EQUAL, true, CounterBound::AtLeast(least))
                | (names::LESS_EQUAL, false, CounterBound::AtLeast(least)) => limit >= least,
                _ => false,
            };
            if holds {
                return true;
            }
        }
        false
    }

    /// A number in the condition that is the same in all rounds.
    fn limit(&self, outlet: Outlet) -> Option<i64> {
        let outlet = passed(&self.condition.graph, outlet);
        if let Some(number) = number(&self.condition.graph, outlet) {
            return Some(number);
        }
        let variable = *self.tested.get(&outlet)?;
        let is_fixed = self.rounds.results[variable] == self.rounds.args[variable];
        if is_fixed { number(self.outer, self.inputs[variable]) } else { None }
    }
}

/// The value that nodes pass on.
fn passed(graph: &Graph, mut outlet: Outlet) -> Outlet {
    for _ in 0..MOST_LOOKED_AT {
        let node = &graph[outlet.node];
        match node.inputs().first() {
            Some(&input) if node.op.name() == names::IDENTITY => outlet = input,
            _ => break,
        }
    }
    outlet
}

/// A constant number.
fn number(graph: &Graph, outlet: Outlet) -> Option<i64> {
    let value = constant(graph, passed(graph, outlet))?;
    let is_scalar = value.shape().rank() == 0;
    value.to_i64s().ok().filter(|_| is_scalar)?.first().copied()
}
