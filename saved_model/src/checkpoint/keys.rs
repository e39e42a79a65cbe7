//! Under which names the values of objects are stored.
//!
//! A key is the path to an object, edge by edge, and what of it is stored:
//! `layer/kernel/.ATTRIBUTES/VARIABLE_VALUE`. Of several paths the first of the shortest counts.

use crate::{
    proto::{
        TrackableObjectGraph,
        trackable_object_graph::{
            TrackableObject,
            trackable_object::{ObjectReference, SerializedTensor, SlotVariableReference},
        },
    },
    restore::VARIABLE_VALUE,
};
use ferroflow_ir::HostTensor;
use ferroflow_runtime::{
    ResourceVariable,
    trackable::{ObjectGraph, ObjectKind, ObjectNode, Saveable},
};
use std::sync::Arc;

/// Separator between a path and the name of an attribute.
const ATTRIBUTES: &str = ".ATTRIBUTES";

/// Separator between a variable and the object that keeps another for it.
const OPTIMIZER_SLOT: &str = ".OPTIMIZER_SLOT";

/// The objects of a checkpoint, and what is stored of them.
pub(crate) struct Keyed {
    /// The objects as the checkpoint describes them.
    pub(crate) message: TrackableObjectGraph,
    /// Stored values, each with the node it belongs to in the graph and its key.
    pub(crate) values: Vec<Keep>,
}

/// Something to store under a key.
pub(crate) struct Keep {
    /// The node in the graph.
    pub(crate) node: usize,
    pub(crate) key: String,
    pub(crate) value: Stored,
}

/// Something that checkpoints store.
#[derive(Clone)]
pub(crate) enum Stored {
    Variable(ResourceVariable),
    Saveable(Arc<dyn Saveable>),
}

impl Stored {
    /// The names and values of the tensors of it.
    pub(crate) fn tensors(&self, key: &str) -> crate::Result<Vec<(String, HostTensor)>> {
        Ok(match self {
            Stored::Variable(variable) => vec![(key.into(), variable.read()?)],
            Stored::Saveable(saveable) => {
                let tensors = saveable.tensors()?.into_iter();
                tensors.map(|(suffix, tensor)| (format!("{key}{suffix}"), tensor)).collect()
            }
        })
    }
}

/// Stored values of an object, with the names of the attributes.
pub(crate) fn attributes(node: &ObjectNode) -> Vec<(String, Stored)> {
    let mut attributes = Vec::new();
    if let ObjectKind::Variable(variable) = &node.kind {
        attributes.push((VARIABLE_VALUE.into(), Stored::Variable(variable.clone())));
    }
    for saveable in &node.saveables {
        attributes.push((saveable.name().into(), Stored::Saveable(saveable.clone())));
    }
    attributes
}

/// Whether checkpoints know of an object: functions and constants are part of programs only.
fn is_stored(node: &ObjectNode) -> bool {
    match &node.kind {
        // Signatures are functions by name.
        ObjectKind::Typed(ty) => ty.identifier != "signature_map",
        ObjectKind::Plain
        | ObjectKind::Variable(_)
        | ObjectKind::Asset(_)
        | ObjectKind::Resource(_) => true,
        ObjectKind::Function(_)
        | ObjectKind::ConcreteFunction(_)
        | ObjectKind::Constant(_)
        | ObjectKind::Foreign => false,
    }
}

/// The objects of a graph that checkpoints know of, and the keys of their values.
pub(crate) fn keyed(graph: &ObjectGraph) -> Keyed {
    let kept: Vec<usize> =
        (0..graph.nodes.len()).filter(|&id| is_stored(&graph.nodes[id])).collect();
    let mut number = vec![None; graph.nodes.len()];
    kept.iter().enumerate().for_each(|(new, &old)| number[old] = Some(new as i32));
    let paths = paths(graph);
    let mut values = Vec::new();
    let mut nodes = Vec::with_capacity(kept.len());
    for &id in &kept {
        let node = &graph.nodes[id];
        let children = node.children.iter().filter_map(|(name, child)| {
            Some(ObjectReference { node_id: number[*child]?, local_name: name.clone() })
        });
        let slots = node.slots.iter().filter_map(|slot| {
            Some(SlotVariableReference {
                original_variable_node_id: number[slot.original]?,
                slot_name: slot.name.clone(),
                slot_variable_node_id: number[slot.slot]?,
            })
        });
        let mut stored = TrackableObject {
            children: children.collect(),
            slot_variables: slots.collect(),
            ..TrackableObject::default()
        };
        for (name, value) in attributes(node) {
            let path = paths[id].as_str();
            let separator = if path.is_empty() { "" } else { "/" };
            let key = format!("{path}{separator}{ATTRIBUTES}/{name}");
            let full_name = match &value {
                Stored::Variable(variable) => variable.name().to_string(),
                Stored::Saveable(_) => String::new(),
            };
            stored.attributes.push(SerializedTensor {
                name,
                full_name,
                checkpoint_key: key.clone(),
            });
            values.push(Keep { node: id, key, value });
        }
        nodes.push(stored);
    }
    note_values(&mut nodes);
    Keyed { message: TrackableObjectGraph { nodes }, values }
}

/// Notes on each object whether it has values or leads to some.
fn note_values(nodes: &mut [TrackableObject]) {
    let mut consumers: Vec<Vec<usize>> = vec![Vec::new(); nodes.len()];
    for (id, node) in nodes.iter().enumerate() {
        let slots = node.slot_variables.iter().map(|slot| slot.slot_variable_node_id);
        let children = node.children.iter().map(|child| child.node_id);
        children.chain(slots).for_each(|child| consumers[child as usize].push(id));
    }
    let mut with_values = vec![false; nodes.len()];
    let mut waiting: Vec<usize> =
        (0..nodes.len()).filter(|&id| !nodes[id].attributes.is_empty()).collect();
    while let Some(id) = waiting.pop() {
        if !std::mem::replace(&mut with_values[id], true) {
            waiting.extend(&consumers[id]);
        }
    }
    for (node, has_values) in nodes.iter_mut().zip(with_values) {
        node.has_checkpoint_values = Some(has_values);
    }
}

/// The path to each object, as keys have it.
fn paths(graph: &ObjectGraph) -> Vec<String> {
    let join = |path: Vec<&str>| path.into_iter().map(escaped).collect::<Vec<_>>().join("/");
    let found: Vec<Option<String>> = graph.paths().into_iter().map(|path| path.map(join)).collect();
    let mut paths: Vec<String> =
        found.iter().map(|path| path.clone().unwrap_or_default()).collect();
    for (owner, node) in graph.nodes.iter().enumerate() {
        for slot in node.slots.iter().filter(|slot| found[slot.slot].is_none()) {
            let (original, owner) = (&paths[slot.original], &paths[owner]);
            let name = escaped(&slot.name);
            paths[slot.slot] = format!("{original}/{OPTIMIZER_SLOT}/{owner}/{name}");
        }
    }
    paths
}

/// An edge as keys have it.
fn escaped(edge: &str) -> String {
    edge.replace('.', "..").replace('/', ".S")
}

#[cfg(test)]
mod tests {
    use super::*;
    use ferroflow_runtime::trackable::{Description, Trackable};
    use std::collections::BTreeMap;

    fn variable(name: &str) -> ResourceVariable {
        ResourceVariable::new(name, HostTensor::scalar(1.0f32))
    }

    fn keys(root: &dyn Trackable) -> Vec<String> {
        let keyed = keyed(&ObjectGraph::of(root).unwrap());
        keyed.values.into_iter().map(|value| value.key).collect()
    }

    // spec: b57
    #[test]
    fn names_of_edges_are_escaped() {
        let named = ["a/b/c", "c/", "d/.S"].map(|name| (name.to_string(), variable("v")));
        let expected =
            ["a.Sb.Sc", "c.S", "d.S..S"].map(|path| format!("{path}/.ATTRIBUTES/VARIABLE_VALUE"));
        assert_eq!(keys(&BTreeMap::from(named)), expected);
    }

    struct Momentum(ResourceVariable, ResourceVariable);

    impl Trackable for Momentum {
        fn describe(&self, object: &mut Description<'_>) {
            object.slot("m", &self.0, &self.1);
        }
    }

    #[test]
    fn slots_are_stored_below_their_variables() {
        let v = variable("v");
        let objects = (v.clone(), (Momentum(v, variable("m")), 1.0f32));
        let expected =
            ["0/.ATTRIBUTES/VARIABLE_VALUE", "0/.OPTIMIZER_SLOT/1/0/m/.ATTRIBUTES/VARIABLE_VALUE"];
        assert_eq!(keys(&objects), expected);
        let nodes = keyed(&ObjectGraph::of(&objects).unwrap()).message.nodes;
        assert!(nodes.iter().all(|node| node.has_checkpoint_values == Some(true)));
        assert_eq!(keys(&variable("root")), [".ATTRIBUTES/VARIABLE_VALUE"]);
    }
}
