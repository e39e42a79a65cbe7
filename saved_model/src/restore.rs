//! Which tensor of a checkpoint belongs to which object.
//!
//! Objects are matched by the names of the edges that lead to them from the root, not by number.

use crate::{
    bundle::Reader,
    error::Result,
    proto::{SavedObject, TrackableObjectGraph, trackable_object_graph::TrackableObject},
};
use prost::Message;
use std::collections::{HashMap, HashSet, VecDeque};

/// The key of the object graph in a checkpoint.
pub const OBJECT_GRAPH_KEY: &str = "_CHECKPOINTABLE_OBJECT_GRAPH";

/// The attribute under which a variable's value is stored.
pub const VARIABLE_VALUE: &str = "VARIABLE_VALUE";

/// The object graph of a checkpoint.
///
/// # Errors
///
/// When the checkpoint has none, or it is damaged.
pub fn object_graph(reader: &Reader) -> Result<TrackableObjectGraph> {
    let tensor = reader.read(OBJECT_GRAPH_KEY)?;
    let bytes = tensor.strings()?.first().cloned().unwrap_or_default();
    TrackableObjectGraph::decode(bytes).map_err(|source| crate::Error::Message {
        path: reader.prefix().into(),
        message: "TrackableObjectGraph",
        source,
    })
}

/// For each saved object, the checkpoint keys of its attributes, by attribute name.
pub(crate) fn checkpoint_keys<'a>(
    objects: &[SavedObject],
    stored: &'a TrackableObjectGraph,
) -> HashMap<usize, HashMap<&'a str, &'a str>> {
    let mut keys: HashMap<usize, HashMap<&str, &str>> = HashMap::new();
    let mut seen: HashSet<(usize, usize)> = HashSet::new();
    let mut queue = VecDeque::from([(0, 0)]);
    while let Some((object, twin)) = queue.pop_front() {
        let (Some(saved), Some(node)) = (objects.get(object), stored.nodes.get(twin)) else {
            continue;
        };
        if !seen.insert((object, twin)) {
            continue;
        }
        let own = keys.entry(object).or_default();
        for attribute in &node.attributes {
            own.entry(&attribute.name).or_insert(&attribute.checkpoint_key);
        }
        for child in &saved.children {
            if let (Ok(id), Some(twin)) =
                (usize::try_from(child.node_id), find(node, &child.local_name))
            {
                queue.push_back((id, twin));
            }
        }
    }
    keys
}

fn find(node: &TrackableObject, name: &str) -> Option<usize> {
    let child = node.children.iter().find(|child| child.local_name == name)?;
    usize::try_from(child.node_id).ok()
}
