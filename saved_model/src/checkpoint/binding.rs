//! The correspondence of stored objects and those of the program, by the names of edges.
//!
//! Both graphs are walked together from their roots, the nearest objects first and edges in the
//! order in which the checkpoint has them.
//!
//! **Invariant:** a stored object is bound to one object at most: the first that its edges lead to.
//! Where a checkpoint has one object for two of the program, the second gets no value and counts as
//! not restored. An object may be bound to several stored ones; its values are those of the first
//! that has any for it.

use crate::proto::TrackableObjectGraph;
use ferroflow_runtime::trackable::{Identity, ObjectGraph};
use std::collections::{HashMap, HashSet, VecDeque};

/// A name of an object that stays the same while other objects appear: its identity, or else the
/// edges that lead to it from the nearest object that has one.
#[derive(Clone, Default, PartialEq, Eq, Hash, Debug)]
pub(super) struct StableName {
    identity: Option<Identity>,
    path: Vec<String>,
}

/// The names of all objects of a graph.
pub(super) fn owners(graph: &ObjectGraph) -> Vec<StableName> {
    let named = |identity: &Option<Identity>| StableName { identity: *identity, path: Vec::new() };
    let mut owners: Vec<StableName> =
        graph.nodes.iter().map(|node| named(&node.identity)).collect();
    // Nodes are in the order of their distance from the root, and what has no identity is reached
    // by one edge only.
    for id in 0..graph.nodes.len() {
        for (name, child) in &graph.nodes[id].children {
            if graph.nodes[*child].identity.is_none() && *child != 0 {
                let mut owner = owners[id].clone();
                owner.path.push(name.clone());
                owners[*child] = owner;
            }
        }
    }
    owners
}

/// The objects that stored ones are bound to.
#[derive(Clone, Default, Debug)]
pub(super) struct Bindings {
    owners: HashMap<usize, StableName>,
}

impl Bindings {
    /// Binds stored objects to those of a graph, `root` to the first. Gives all pairs of a node and a stored object, in
    /// the order of the walk.
    pub(super) fn extend(
        &mut self,
        graph: &ObjectGraph,
        owners: &[StableName],
        stored: &TrackableObjectGraph,
        root: usize,
    ) -> Vec<(usize, usize)> {
        let mut walk = Walk {
            graph,
            owners,
            stored,
            bindings: self,
            pairs: Vec::new(),
            visited: HashSet::new(),
            queue: VecDeque::new(),
        };
        walk.bind(0, root);
        loop {
            walk.follow_edges();
            walk.bind_slots();
            if walk.queue.is_empty() {
                return walk.pairs;
            }
        }
    }

    /// Forgets what was bound to objects that are no longer there, unless they took values.
    pub(super) fn retain(&mut self, is_wanted: impl Fn(&StableName) -> bool) {
        self.owners.retain(|_, owner| is_wanted(owner));
    }
}

struct Walk<'a> {
    graph: &'a ObjectGraph,
    owners: &'a [StableName],
    stored: &'a TrackableObjectGraph,
    bindings: &'a mut Bindings,
    pairs: Vec<(usize, usize)>,
    visited: HashSet<usize>,
    queue: VecDeque<(usize, usize)>,
}

impl Walk<'_> {
    /// Binds a stored object to a node, unless it is bound to another.
    fn bind(&mut self, node: usize, stored: usize) {
        if stored >= self.stored.nodes.len() {
            return;
        }
        let owner = &self.owners[node];
        let bound = self.bindings.owners.entry(stored).or_insert_with(|| owner.clone());
        if bound != owner {
            let keys = self.stored.nodes[stored].attributes.iter().map(|a| &*a.checkpoint_key);
            if let Some(key) = keys.into_iter().next() {
                tracing::warn!(
                    key,
                    "the checkpoint has one object where the program has two: only the first gets \
                     its values"
                );
            }
        } else if self.visited.insert(stored) {
            self.pairs.push((node, stored));
            self.queue.push_back((node, stored));
        }
    }

    fn follow_edges(&mut self) {
        let (graph, stored) = (self.graph, self.stored);
        while let Some((node, twin)) = self.queue.pop_front() {
            let children = &graph.nodes[node].children;
            let children: HashMap<&str, usize> =
                children.iter().map(|(name, child)| (name.as_str(), *child)).collect();
            for edge in &stored.nodes[twin].children {
                let child = children.get(edge.local_name.as_str());
                if let (Some(&child), Ok(twin)) = (child, usize::try_from(edge.node_id)) {
                    self.bind(child, twin);
                }
            }
        }
    }

    /// Binds variables that are kept for others, which are known by those.
    fn bind_slots(&mut self) {
        let (graph, stored) = (self.graph, self.stored);
        let bound: HashSet<(usize, usize)> = self.pairs.iter().copied().collect();
        for (node, twin) in self.pairs.clone() {
            for slot in &graph.nodes[node].slots {
                let found = stored.nodes[twin].slot_variables.iter().filter(|found| {
                    let original = usize::try_from(found.original_variable_node_id);
                    found.slot_name == slot.name
                        && original.is_ok_and(|twin| bound.contains(&(slot.original, twin)))
                });
                for found in found {
                    if let Ok(twin) = usize::try_from(found.slot_variable_node_id) {
                        self.bind(slot.slot, twin);
                    }
                }
            }
        }
    }
}
