//! The writes of variables that come before each node.
//!
//! A node comes after a write of the same round of a loop, or of any round before it. Both are kept: the
//! second is what nodes after a loop see, and in a body it would hide what the first tells.

use super::{OPS, changes_nothing, returns_reference, takes_reference};
use ferroflow_ir::{
    Error, Graph, NodeDef, NodeId, Result,
    hash::{FastMap, FastSet},
};

/// Numbers of writes, as bits.
type Bits = Vec<u64>;

/// Most bits that a graph may need: 256 megabytes.
const MOST_BITS: u64 = 1 << 31;

/// Loops in each other that are told apart.
const DEEPEST: usize = 64;

/// The writes of a graph, and the variables behind its references.
#[derive(Default)]
pub(super) struct OrderedWrites {
    /// The variable that the reference of a node refers to.
    variables: FastMap<NodeId, NodeId>,
    /// The numbers of the writes of each variable.
    written: FastMap<NodeId, Bits>,
    in_round: FastMap<NodeId, Bits>,
    in_any_round: FastMap<NodeId, Bits>,
}

impl OrderedWrites {
    /// The writes before each node, itself included. In `order`, nodes come after what they read, but for what
    /// comes from the round before.
    ///
    /// # Errors
    ///
    /// [`Error::Limit`] for more writes before more nodes than can be told apart.
    pub(super) fn of(graph: &Graph, order: &[NodeId]) -> Result<OrderedWrites> {
        let mut writes = OrderedWrites::default();
        let mut numbers = FastMap::default();
        for &id in order {
            let node = &graph[id];
            let variable = referred(node).and_then(|source| writes.variable(source));
            if let Some(variable) = variable.filter(|_| is_write(graph, node)) {
                set(writes.written.entry(variable).or_default(), numbers.len());
                numbers.insert(id, numbers.len());
            }
            if returns_reference(node) {
                writes.variables.insert(id, variable.unwrap_or(id));
            }
        }
        let bits = numbers.len() as u64 * order.len() as u64;
        if bits > MOST_BITS {
            let what = "writes of reference variables, times nodes".into();
            return Err(Error::Limit { what, needed: bits.to_string(), limit: MOST_BITS });
        }
        if numbers.is_empty() {
            return Ok(writes);
        }
        spread(graph, order, &numbers, &mut writes.in_round);
        if graph.iter().any(|(_, node)| node.op.name().ends_with("NextIteration")) {
            writes.in_any_round.clone_from(&writes.in_round);
            for _ in 0..DEEPEST {
                if !spread(graph, order, &numbers, &mut writes.in_any_round) {
                    break;
                }
            }
        }
        Ok(writes)
    }

    /// The variable that the reference of a node refers to.
    pub(super) fn variable(&self, reference: NodeId) -> Option<NodeId> {
        self.variables.get(&reference).copied()
    }

    /// The variables that are written.
    pub(super) fn variables(&self) -> FastSet<NodeId> {
        self.written.keys().copied().collect()
    }

    /// Whether a variable is written before one node, but not before another.
    pub(super) fn are_between(&self, variable: NodeId, first: NodeId, then: NodeId) -> bool {
        let Some(own) = self.written.get(&variable) else { return false };
        [&self.in_round, &self.in_any_round].into_iter().any(|before| {
            let bits = |id: NodeId| before.get(&id).map_or(&[][..], Vec::as_slice);
            let first = bits(first).iter().copied().chain(std::iter::repeat(0));
            let words = bits(then).iter().zip(own).zip(first);
            words.into_iter().any(|((then, own), first)| then & own & !first != 0)
        })
    }
}

/// Sets a bit.
fn set(bits: &mut Bits, number: usize) {
    bits.resize(bits.len().max(number / 64 + 1), 0);
    bits[number / 64] |= 1 << (number % 64);
}

/// The node whose reference a node takes.
fn referred(node: &NodeDef) -> Option<NodeId> {
    let inputs = node.inputs().iter().zip(takes_reference(node));
    inputs.into_iter().find(|(_, is_reference)| *is_reference).map(|(input, _)| input.node)
}

fn is_write(graph: &Graph, node: &NodeDef) -> bool {
    OPS.iter().any(|(on_references, _)| *on_references == node.op.name())
        && !changes_nothing(graph, node)
}

/// Passes each node the writes before its inputs and controls as far as they are known; whether that changed
/// any.
fn spread(
    graph: &Graph,
    order: &[NodeId],
    numbers: &FastMap<NodeId, usize>,
    before: &mut FastMap<NodeId, Bits>,
) -> bool {
    let mut has_changed = false;
    for &id in order {
        let node = &graph[id];
        let mut bits: Bits = Vec::new();
        let inputs = node.inputs().iter().map(|input| input.node);
        for source in inputs.chain(node.controls().iter().copied()) {
            let Some(known) = before.get(&source) else { continue };
            bits.resize(bits.len().max(known.len()), 0);
            bits.iter_mut().zip(known).for_each(|(bits, more)| *bits |= more);
        }
        if let Some(number) = numbers.get(&id) {
            set(&mut bits, *number);
        }
        if !bits.is_empty() && before.get(&id) != Some(&bits) {
            before.insert(id, bits);
            has_changed = true;
        }
    }
    has_changed
}
