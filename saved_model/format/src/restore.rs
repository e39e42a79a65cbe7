//! Correspondence of the tensors of a checkpoint to objects.
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
    let graph = TrackableObjectGraph::decode(bytes).map_err(|source| crate::Error::Message {
        path: reader.prefix().into(),
        message: "TrackableObjectGraph",
        source,
    })?;
    check(&graph).map_err(|rule| crate::Error::Damaged {
        path: reader.prefix().into(),
        offset: 0,
        what: rule.into(),
    })?;
    Ok(graph)
}

/// Checks that objects refer to objects that are there, and list each slot once.
fn check(graph: &TrackableObjectGraph) -> Result<(), String> {
    let is_there = |id: i32| usize::try_from(id).is_ok_and(|id| id < graph.nodes.len());
    for (id, node) in graph.nodes.iter().enumerate() {
        if let Some(child) = node.children.iter().find(|child| !is_there(child.node_id)) {
            let (name, number) = (&child.local_name, child.node_id);
            return Err(format!("object {id}: `{name}` refers to object {number}"));
        }
        let mut slots = HashSet::new();
        for slot in &node.slot_variables {
            let (original, name) = (slot.original_variable_node_id, &slot.slot_name);
            let ids = [original, slot.slot_variable_node_id];
            if let Some(number) = ids.into_iter().find(|&id| !is_there(id)) {
                return Err(format!("object {id}: slot `{name}` refers to object {number}"));
            }
            if !slots.insert((original, name)) {
                return Err(format!(
                    "object {id}: slot `{name}` of object {original} is listed twice"
                ));
            }
        }
    }
    Ok(())
}

/// For each saved object, the checkpoint keys of its attributes, by attribute name.
pub fn checkpoint_keys<'a>(
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::proto::trackable_object_graph::trackable_object::{
        ObjectReference, SlotVariableReference,
    };

    #[test]
    fn graphs_of_checkpoints_refer_to_objects_that_are_there() {
        let rule = |child: i32, slots: &[(i32, i32)]| {
            let children = vec![ObjectReference { node_id: child, local_name: "a".into() }];
            let slot = |&(original, slot): &(i32, i32)| SlotVariableReference {
                original_variable_node_id: original,
                slot_name: "m".into(),
                slot_variable_node_id: slot,
            };
            let slot_variables = slots.iter().map(slot).collect();
            let node = TrackableObject { children, slot_variables, ..Default::default() };
            check(&TrackableObjectGraph { nodes: vec![node, TrackableObject::default()] })
        };
        assert_eq!(rule(1, &[(0, 1), (1, 1)]), Ok(()));
        assert_eq!(rule(2, &[]).unwrap_err(), "object 0: `a` refers to object 2");
        assert_eq!(rule(-1, &[]).unwrap_err(), "object 0: `a` refers to object -1");
        assert_eq!(rule(1, &[(0, 7)]).unwrap_err(), "object 0: slot `m` refers to object 7");
        assert_eq!(rule(1, &[(-3, 1)]).unwrap_err(), "object 0: slot `m` refers to object -3");
        let twice = "object 0: slot `m` of object 0 is listed twice";
        assert_eq!(rule(1, &[(0, 1), (0, 1)]).unwrap_err(), twice);
    }
}
