//! Which tensor of a checkpoint belongs to which object.
//!
//! Objects are matched by the names of the edges that lead to them from the root, not by number.

use crate::{
    bundle::Reader,
    error::Result,
    proto::{SavedObject, TrackableObjectGraph, trackable_object_graph::TrackableObject},
};
use prost::Message;
use std::collections::{HashMap, VecDeque};

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
    let mut twins: HashMap<usize, usize> = HashMap::new();
    let mut keys: HashMap<usize, HashMap<&str, &str>> = HashMap::new();
    let mut with_slots = Vec::new();
    let mut queue = VecDeque::from([(0, 0)]);
    loop {
        while let Some((id, twin)) = queue.pop_front() {
            let (Some(object), Some(node)) = (objects.get(id), stored.nodes.get(twin)) else {
                continue;
            };
            // Objects that the checkpoint has more than once are restored from the first.
            if twins.contains_key(&id) {
                continue;
            }
            twins.insert(id, twin);
            let own = keys.entry(id).or_default();
            for attribute in &node.attributes {
                own.entry(&attribute.name).or_insert(&attribute.checkpoint_key);
            }
            for child in &object.children {
                let twin = find(node, &child.local_name);
                queue.extend(usize::try_from(child.node_id).ok().zip(twin));
            }
            if !object.slot_variables.is_empty() {
                with_slots.push((object, node));
            }
        }
        // A slot variable is known by the variable it belongs to, which must be known itself.
        for (object, node) in with_slots.drain(..) {
            for slot in &object.slot_variables {
                let original = usize::try_from(slot.original_variable_node_id).ok();
                let twin = original.and_then(|original| twins.get(&original));
                let stored = node.slot_variables.iter().find(|stored| {
                    stored.slot_name == slot.slot_name
                        && twin.is_some_and(|&t| stored.original_variable_node_id as usize == t)
                });
                let id = usize::try_from(slot.slot_variable_node_id).ok();
                let twin = stored.and_then(|stored| stored.slot_variable_node_id.try_into().ok());
                queue.extend(id.zip(twin));
            }
        }
        if queue.is_empty() {
            return keys;
        }
    }
}

fn find(node: &TrackableObject, name: &str) -> Option<usize> {
    let child = node.children.iter().find(|child| child.local_name == name)?;
    usize::try_from(child.node_id).ok()
}
