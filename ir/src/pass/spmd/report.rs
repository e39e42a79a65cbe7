//! Reports: the layouts of the nodes of a partitioned function, and the collectives between them.

use std::fmt;

/// Kinds of collectives that the pass inserts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum CollectiveKind {
    /// Terms of a value become the whole value, on every device.
    AllReduce,
    /// Terms of a value become the whole value, a piece on each device.
    ReduceScatter,
    /// Pieces of a value become the whole value, on every device.
    AllGather,
    /// The value of the first device goes to all.
    Broadcast,
}

/// A collective that the pass inserted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InsertedCollective {
    /// Its kind.
    pub kind: CollectiveKind,
    /// The node whose result it is about.
    pub value: String,
    /// The node for which it was inserted; empty for a result of the function.
    pub user: String,
    /// The names of the mesh dimensions along which devices take part.
    pub mesh_dims: Vec<String>,
    /// The size, in bytes, of what a device brings.
    pub bytes: usize,
}

/// Layouts of the results of a node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodeLayout {
    /// The node.
    pub node: String,
    /// Its op.
    pub op: String,
    /// The layout of each result, as text.
    pub layouts: Vec<String>,
    /// Whether split operands were made whole because the op has no rule for them.
    pub gathered: bool,
}

/// Report on a partitioned function: the layout of every node, and every collective that was inserted.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LayoutReport {
    /// The nodes, in the order in which they run.
    pub nodes: Vec<NodeLayout>,
    /// The collectives, in the order in which they run.
    pub collectives: Vec<InsertedCollective>,
}

impl LayoutReport {
    /// The number of collectives of a kind.
    pub fn count(&self, kind: CollectiveKind) -> usize {
        self.collectives.iter().filter(|collective| collective.kind == kind).count()
    }

    /// The bytes that a device brings to all collectives of a run.
    pub fn bytes(&self) -> usize {
        self.collectives.iter().map(|collective| collective.bytes).sum()
    }

    /// The nodes whose operands were made whole because their ops have no rule for split ones.
    pub fn gathered(&self) -> impl Iterator<Item = &NodeLayout> {
        self.nodes.iter().filter(|node| node.gathered)
    }
}

impl fmt::Display for LayoutReport {
    /// A line for each node, and one for each collective.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for NodeLayout { node, op, layouts, gathered } in &self.nodes {
            let note = if *gathered { "; no rule, operands gathered" } else { "" };
            writeln!(f, "{node} ({op}): {}{note}", layouts.join(", "))?;
        }
        for InsertedCollective { kind, value, user, mesh_dims, bytes } in &self.collectives {
            let user = if user.is_empty() { "a result" } else { user };
            let dims = mesh_dims.join(", ");
            writeln!(f, "{kind:?} of {value} for {user} over {dims}: {bytes} bytes")?;
        }
        Ok(())
    }
}
