//! Checkpoints that are taken over by objects of Rust, and written by these.

use super::Case;
use crate::outcome::CaseOutcome;
use anyhow::{Context as _, Result, bail};
use ferroflow::{
    Checkpoint,
    ir::Limits,
    runtime::{
        ResourceVariable,
        trackable::{Description, Identity, Trackable},
    },
    saved_model::{
        bundle::{Entry, Reader},
        proto::TrackableObjectGraph,
        restore,
    },
};
use std::{
    path::Path,
    sync::{Arc, OnceLock},
};

const VALUE: &str = "VARIABLE_VALUE";

/// An object of any kind.
#[derive(Default)]
struct Node {
    variable: Option<ResourceVariable>,
    content: OnceLock<Content>,
}

#[derive(Default)]
struct Content {
    children: Vec<(String, Arc<Node>)>,
    slots: Vec<(String, ResourceVariable, ResourceVariable)>,
}

impl Trackable for Node {
    fn describe(&self, object: &mut Description<'_>) {
        if let Some(variable) = &self.variable {
            variable.describe(object);
        }
        if let Some(content) = self.content.get() {
            for (name, child) in &content.children {
                object.shared_child(name, child.clone());
            }
            for (name, original, slot) in &content.slots {
                object.slot(name, original, slot);
            }
        }
    }

    fn identity(&self) -> Option<Identity> {
        let own = || Identity::of_address(std::ptr::from_ref(self) as usize);
        Some(self.variable.as_ref().and_then(Trackable::identity).unwrap_or_else(own))
    }
}

/// Has objects take over the checkpoint of a case, and write it to `to` under the same name.
pub(super) fn save_again(case: &Case, to: &Path) -> Result<CaseOutcome> {
    let prefix = case.prefix()?;
    let reader = Reader::open(&prefix, &Limits::default())?;
    let to = to.join(prefix.file_name().context("a checkpoint has a name")?);
    match reader.entry(restore::OBJECT_GRAPH_KEY) {
        Some(_) => {
            let root = objects(&reader)?;
            let checkpoint = Checkpoint::of(&*root);
            checkpoint.read(&prefix)?.assert_consumed()?;
            checkpoint.write(&to)?;
        }
        None => {
            let variables: Vec<ResourceVariable> =
                reader.entries().map(|(name, entry)| variable(name, entry)).collect();
            let checkpoint = Checkpoint::new().with("variables", &variables);
            checkpoint.read(&prefix)?.assert_consumed()?;
            checkpoint.write_named(&to)?;
        }
    }
    let written = Reader::open(&to, &Limits::default())?;
    for (name, _) in reader.entries().filter(|(name, _)| *name != restore::OBJECT_GRAPH_KEY) {
        if written.read(name)? != reader.read(name)? {
            bail!("`{name}` has another value in the checkpoint that was written");
        }
    }
    Ok(CaseOutcome::Passed)
}

fn variable(name: &str, entry: &Entry) -> ResourceVariable {
    ResourceVariable::uninitialized(name, entry.dtype, (&entry.shape).into(), true)
}

/// The objects that a checkpoint was made of, without their values.
fn objects(reader: &Reader) -> Result<Arc<Node>> {
    let stored: TrackableObjectGraph = restore::object_graph(reader)?;
    let mut nodes = Vec::new();
    for node in &stored.nodes {
        let attribute = node.attributes.iter().find(|attribute| attribute.name == VALUE);
        let made = attribute.map(|attribute| {
            let entry = reader.entry(&attribute.checkpoint_key).context("the value of a variable");
            Ok::<_, anyhow::Error>(variable(&attribute.full_name, entry?))
        });
        nodes.push(Arc::new(Node { variable: made.transpose()?, content: OnceLock::new() }));
    }
    let at = |id: i32| nodes.get(id as usize).context("an object of the graph");
    let held = |id: i32| at(id)?.variable.clone().context("a variable");
    for (node, stored) in nodes.iter().zip(&stored.nodes) {
        let mut content = Content::default();
        for child in &stored.children {
            content.children.push((child.local_name.clone(), at(child.node_id)?.clone()));
        }
        for slot in &stored.slot_variables {
            let original = held(slot.original_variable_node_id)?;
            let kept = held(slot.slot_variable_node_id)?;
            content.slots.push((slot.slot_name.clone(), original, kept));
        }
        node.content.get_or_init(|| content);
    }
    nodes.into_iter().next().context("a root object")
}
