//! Checkpoints: names, dtypes, shapes and values of all entries, object graph and state file.

use super::{Case, value};
use crate::{compare::Compare, outcome::CaseOutcome};
use anyhow::{Context as _, Result, bail};
use ferroflow::{
    ir::Limits,
    saved_model::{CheckpointState, bundle::Reader, proto::TrackableObjectGraph, restore},
};
use serde_json::{Value, json};

pub(crate) fn run(case: &Case) -> Result<CaseOutcome> {
    let prefix = case.prefix()?;
    let reader = Reader::open(&prefix, &Limits::default())?;
    let expected = case.json["entries"].as_object().context("entries")?;
    if case.json["only_names"].is_null() {
        let found: Vec<&str> = reader.entries().map(|(name, _)| name).collect();
        let mut names: Vec<&str> = expected.keys().map(String::as_str).collect();
        names.sort_unstable();
        if found != names {
            bail!("the entries are {found:?} instead of {names:?}");
        }
    }
    for (name, expected) in expected {
        let found = reader.read(name)?;
        let expected = value::tensor(expected, &case.folder)?;
        Compare::Exact.check(&found, &expected).with_context(|| name.clone())?;
    }
    if let Some(nodes) = case.json["object_graph"].as_array() {
        check_objects(&restore::object_graph(&reader)?, nodes)?;
    }
    check_state(case)?;
    Ok(CaseOutcome::Passed)
}

fn check_objects(found: &TrackableObjectGraph, expected: &[Value]) -> Result<()> {
    if found.nodes.len() != expected.len() {
        bail!("{} objects instead of {}", found.nodes.len(), expected.len());
    }
    for (id, (node, expected)) in found.nodes.iter().zip(expected).enumerate() {
        let children: serde_json::Map<String, Value> = node
            .children
            .iter()
            .map(|child| (child.local_name.clone(), json!(child.node_id)))
            .collect();
        let attributes = node.attributes.iter().map(|attribute| {
            json!({
                "name": attribute.name,
                "full_name": attribute.full_name,
                "checkpoint_key": attribute.checkpoint_key,
            })
        });
        let slots = node.slot_variables.iter().map(|slot| {
            json!({
                "original": slot.original_variable_node_id,
                "slot_name": slot.slot_name,
                "node": slot.slot_variable_node_id,
            })
        });
        let found = json!({
            "children": children,
            "attributes": attributes.collect::<Vec<_>>(),
            "slot_variables": slots.collect::<Vec<_>>(),
        });
        if found != *expected {
            bail!("object {id} is {found} instead of {expected}");
        }
    }
    Ok(())
}

fn check_state(case: &Case) -> Result<()> {
    let folder = case.prefix()?;
    let folder = folder.parent().context("a folder")?;
    let (latest, kept) = (case.json["latest"].as_str(), case.json["kept"].as_array());
    if latest.is_none() && kept.is_none() {
        return Ok(());
    }
    let state = CheckpointState::read(folder)?;
    let names = |path: &std::path::PathBuf| {
        path.file_name().map(|name| name.to_string_lossy().into_owned())
    };
    if let Some(latest) = latest
        && names(&state.model_checkpoint_path).as_deref() != Some(latest)
    {
        bail!(
            "the latest checkpoint is {} instead of {latest}",
            state.model_checkpoint_path.display()
        );
    }
    if let Some(kept) = kept {
        let found: Vec<Option<String>> =
            state.all_model_checkpoint_paths.iter().map(names).collect();
        let kept: Vec<Option<String>> =
            kept.iter().map(|name| name.as_str().map(str::to_string)).collect();
        if found != kept {
            bail!("the checkpoints are {found:?} instead of {kept:?}");
        }
    }
    Ok(())
}
