//! Bounds of indices that loops count.

use crate::{
    graph::{Graph, NodeId, Outlet},
    ops::names,
    pass::{execution::constant, specialize::Specialized},
};

/// Whether an index in the body of loop `id` is at least 0 and below `n_items` in every round: it is a constant,
/// or a variable that begins so, and is counted up or down for as long as the condition bounds it.
pub(super) fn is_below(body: &Specialized, id: NodeId, index: Outlet, n_items: usize) -> bool {
    let Ok(n_items) = i64::try_from(n_items) else { return false };
    let Some([condition, rounds]) = body.nested.get(&id).map(Vec::as_slice) else { return false };
    if let Some(index) = number(&rounds.graph, index) {
        return (0..n_items).contains(&index);
    }
    let Some(counter) = Counter::find(body, id, rounds, index) else { return false };
    let bounds = Bounds { body, id, condition, variable: counter.variable };
    let Some(&test) = condition.results.first() else { return false };
    match counter.step > 0 {
        // The number that ends the loop does not wrap around either.
        true => {
            counter.first >= 0
                && n_items + counter.step <= i64::from(i32::MAX)
                && bounds.hold(test, Bound::Below(n_items))
        }
        false => counter.first < n_items && bounds.hold(test, Bound::AtLeast(0)),
    }
}

#[derive(Clone, Copy)]
enum Bound {
    Below(i64),
    AtLeast(i64),
}

/// A variable to which each round adds a number.
struct Counter {
    variable: usize,
    first: i64,
    step: i64,
}

impl Counter {
    fn find(
        body: &Specialized,
        id: NodeId,
        rounds: &Specialized,
        index: Outlet,
    ) -> Option<Counter> {
        let graph = &rounds.graph;
        let index = passed(graph, index);
        let variable = rounds.args.iter().position(|&arg| arg == index)?;
        let first = number(&body.graph, *body.graph[id].inputs().get(variable)?)?;
        let node = &graph[passed(graph, *rounds.results.get(variable)?).node];
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
}

/// The bounds of a variable wherever the condition of its loop is true.
struct Bounds<'a> {
    body: &'a Specialized,
    id: NodeId,
    condition: &'a Specialized,
    variable: usize,
}

impl Bounds<'_> {
    /// Whether `bound` holds wherever `test` is true.
    fn hold(&self, test: Outlet, bound: Bound) -> bool {
        let graph = &self.condition.graph;
        let mut tests = vec![test];
        while let Some(test) = tests.pop() {
            let node = &graph[passed(graph, test).node];
            let &[a, b] = node.inputs() else { continue };
            if node.op.name() == names::LOGICAL_AND {
                tests.extend([a, b]);
                continue;
            }
            let is_first = self.is_variable(a);
            let limit = match is_first {
                true => self.limit(b),
                false if self.is_variable(b) => self.limit(a),
                false => None,
            };
            let Some(limit) = limit else { continue };
            let bounds = match (node.op.name(), is_first, bound) {
                (names::LESS, true, Bound::Below(end))
                | (names::GREATER, false, Bound::Below(end)) => limit <= end,
                (names::LESS_EQUAL, true, Bound::Below(end))
                | (names::GREATER_EQUAL, false, Bound::Below(end)) => limit < end,
                (names::GREATER, true, Bound::AtLeast(least))
                | (names::LESS, false, Bound::AtLeast(least)) => limit >= least - 1,
                (names::GREATER_EQUAL, true, Bound::AtLeast(least))
                | (names::LESS_EQUAL, false, Bound::AtLeast(least)) => limit >= least,
                _ => false,
            };
            if bounds {
                return true;
            }
        }
        false
    }

    fn is_variable(&self, outlet: Outlet) -> bool {
        let outlet = passed(&self.condition.graph, outlet);
        self.condition.args.get(self.variable) == Some(&outlet)
    }

    /// A number in the condition that is the same in all rounds.
    fn limit(&self, outlet: Outlet) -> Option<i64> {
        let outlet = passed(&self.condition.graph, outlet);
        if let Some(number) = number(&self.condition.graph, outlet) {
            return Some(number);
        }
        let rounds = self.body.nested.get(&self.id)?.get(1)?;
        let variable = self.condition.args.iter().position(|&arg| arg == outlet)?;
        let is_fixed = rounds.results.get(variable) == rounds.args.get(variable);
        let input = *self.body.graph[self.id].inputs().get(variable)?;
        if is_fixed { number(&self.body.graph, input) } else { None }
    }
}

/// The value that nodes pass on.
fn passed(graph: &Graph, mut outlet: Outlet) -> Outlet {
    while graph[outlet.node].op.name() == names::IDENTITY
        && let Some(&input) = graph[outlet.node].inputs().first()
    {
        outlet = input;
    }
    outlet
}

/// A constant number.
fn number(graph: &Graph, outlet: Outlet) -> Option<i64> {
    let value = constant(graph, passed(graph, outlet))?;
    let is_scalar = value.shape().rank() == 0;
    value.to_i64s().ok().filter(|_| is_scalar)?.first().copied()
}
