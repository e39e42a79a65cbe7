//! The order of effects: automatic control dependencies.
//!
//! Calls on one resource keep the order of the program, and calls with effects of their own keep
//! theirs; nothing else is ordered. Reads of a resource run in any order between two writes. What
//! has effects runs even if nobody uses its results. These are the rules of
//! `tensorflow/python/framework/auto_control_deps.py`.

use ferroflow_ir::{DType, Effect, NodeId, Outlet, ValueType, hash::FastMap};
use smallvec::SmallVec;

/// Who must run before the next call.
#[derive(Clone, Default, Debug)]
pub(crate) struct ControlOrder {
    resources: FastMap<Outlet, Uses>,
    /// Handles that passed through other nodes, and what they are handles of.
    aliases: FastMap<Outlet, Outlet>,
    last_stateful: Option<NodeId>,
    must_run: Vec<NodeId>,
}

#[derive(Clone, Default, Debug)]
struct Uses {
    last_write: Option<NodeId>,
    reads: SmallVec<[NodeId; 4]>,
}

impl ControlOrder {
    /// The nodes that must run before a call with this effect.
    pub(crate) fn before(
        &self,
        effect: Effect,
        inputs: &[Outlet],
        types: &[ValueType],
    ) -> SmallVec<[NodeId; 2]> {
        let mut nodes = SmallVec::new();
        for resource in self.resources(inputs, types) {
            let Some(uses) = self.resources.get(&resource) else { continue };
            match effect {
                Effect::Pure | Effect::OfCallee => {}
                Effect::Reads => nodes.extend(uses.last_write),
                Effect::Writes | Effect::Stateful if uses.reads.is_empty() => {
                    nodes.extend(uses.last_write);
                }
                Effect::Writes | Effect::Stateful => nodes.extend(uses.reads.iter().copied()),
            }
        }
        if effect == Effect::Stateful {
            nodes.extend(self.last_stateful);
        }
        nodes.sort();
        nodes.dedup();
        nodes
    }

    /// Notes that a call was added.
    pub(crate) fn ran(
        &mut self,
        node: NodeId,
        effect: Effect,
        inputs: &[Outlet],
        types: &[ValueType],
        outputs: &[ValueType],
    ) {
        let resources = self.resources(inputs, types);
        for &resource in &resources {
            match effect {
                Effect::Pure | Effect::OfCallee => {}
                Effect::Reads => self.resources.entry(resource).or_default().reads.push(node),
                Effect::Writes | Effect::Stateful => {
                    let uses = Uses { last_write: Some(node), reads: SmallVec::new() };
                    self.resources.insert(resource, uses);
                }
            }
        }
        if effect == Effect::Stateful {
            self.last_stateful = Some(node);
        }
        if matches!(effect, Effect::Writes | Effect::Stateful) {
            self.must_run.push(node);
        }
        // A pure op of one handle gives the same handle.
        if let (Effect::Pure, [resource]) = (effect, &resources[..]) {
            let handles =
                outputs.iter().enumerate().filter(|(_, output)| output.dtype == DType::Resource);
            for (index, _) in handles {
                self.aliases.insert(Outlet::new(node, index), *resource);
            }
        }
    }

    /// The resources among the inputs, each once.
    fn resources(&self, inputs: &[Outlet], types: &[ValueType]) -> SmallVec<[Outlet; 2]> {
        let mut resources: SmallVec<[Outlet; 2]> = SmallVec::new();
        for (input, _) in inputs.iter().zip(types).filter(|(_, ty)| ty.dtype == DType::Resource) {
            let resource = self.origin(*input);
            if !resources.contains(&resource) {
                resources.push(resource);
            }
        }
        resources
    }

    /// The handle that this one is another name of; itself if of none.
    pub(crate) fn origin(&self, handle: Outlet) -> Outlet {
        self.aliases.get(&handle).copied().unwrap_or(handle)
    }

    /// Makes a node run even if no node uses its results.
    pub(crate) fn require(&mut self, node: NodeId) {
        self.must_run.push(node);
    }

    /// The nodes that run even if no node uses their results.
    pub(crate) fn into_must_run(self) -> Vec<NodeId> {
        self.must_run
    }
}
