//! Cases of a zoo: models, graphs and checkpoints with the answers TensorFlow returned.

mod artifact;
mod call;
mod checkpoint;
mod events;
mod gradient;
mod guard;
mod malformed;
mod objects;
mod save;
mod value;

use crate::outcome::CaseOutcome;
use anyhow::{Context as _, Result};
use ferroflow::{
    coverage,
    runtime::Context,
    saved_model::{LoadOptions, Session, load, load::read_saved_model, load_session},
};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};

pub(crate) use save::save;

/// A case: its description, its folder, and that of its model.
pub(crate) struct Case {
    folder: PathBuf,
    model: PathBuf,
    json: Value,
}

impl Case {
    fn open(folder: &Path) -> Result<Case> {
        let path = folder.join("case.json");
        let text = std::fs::read_to_string(&path)
            .with_context(|| format!("reading {}", path.display()))?;
        let json = serde_json::from_str(&text)?;
        Ok(Case { folder: folder.into(), model: folder.join("model"), json })
    }

    fn kind(&self) -> &str {
        self.json["kind"].as_str().unwrap_or("")
    }

    fn model(&self) -> &Path {
        &self.model
    }

    /// The path of the case's checkpoint, without suffix.
    fn prefix(&self) -> Result<PathBuf> {
        Ok(self.folder.join(self.json["prefix"].as_str().context("a prefix")?))
    }

    fn calls(&self) -> &[Value] {
        self.json["calls"].as_array().map_or(&[], Vec::as_slice)
    }

    fn options(&self) -> LoadOptions {
        let tags = self.json["tags"].as_array();
        tags.map_or_else(LoadOptions::default, |tags| {
            LoadOptions::tags(tags.iter().filter_map(Value::as_str))
        })
    }
}

/// Runs a case. The result tells what became of it and which ops of its model are not there.
pub(crate) fn run(folder: &Path) -> Result<Value> {
    let case = Case::open(folder)?;
    let outcome = CaseOutcome::of(std::panic::AssertUnwindSafe(|| match case.kind() {
        "saved_model" => run_model(&case),
        "graph_def" => run_graph(&case),
        "checkpoint" => checkpoint::run(&case),
        "v1_checkpoint" => checkpoint::run(&case),
        "artifact" => artifact::run(&case),
        "events" => events::run(&case),
        "malformed" => malformed::run(&case),
        other => Ok(CaseOutcome::Unsupported(format!("cases of kind {other}"))),
    }));
    let missing = match outcome {
        CaseOutcome::Unsupported(_) => missing_ops(&case),
        _ => Vec::new(),
    };
    let name = folder.file_name().map(|name| name.to_string_lossy().into_owned());
    let result = json!({ "case": name, "kind": case.kind(), "missing": missing });
    Ok(outcome.report(result))
}

fn run_model(case: &Case) -> Result<CaseOutcome> {
    let (context, folder) = (crate::device::context(), case.model());
    let loaded = match case.json["loader"].as_str() {
        Some("session") => {
            load_session(&context, folder, &case.options()).map(call::ModelUnderTest::of_session)
        }
        _ => load(&context, folder, &case.options()).map(call::ModelUnderTest::of),
    };
    match loaded {
        Ok(model) => call::run_all(case, &call::CallTarget::Model(&model)),
        Err(error) => Ok(match case.calls().first() {
            Some(first) if !first["expect"]["error"].is_null() => CaseOutcome::Passed,
            _ => CaseOutcome::of_error(error.code(), error.to_string()),
        }),
    }
}

fn run_graph(case: &Case) -> Result<CaseOutcome> {
    let session = Session::of_graph(&crate::device::context(), case.model().join("graph.pb"))?;
    call::run_all(case, &call::CallTarget::Graph(&session))
}

fn missing_ops(case: &Case) -> Vec<String> {
    let context = Context::new();
    let ops = match case.kind() {
        "graph_def" => coverage::ops_of_graph(&case.model().join("graph.pb")),
        _ => read_saved_model(case.model())
            .map(|file| coverage::ops_of_model(&file))
            .map_err(Into::into),
    };
    let ops = ops.unwrap_or_default();
    ops.into_keys().filter(|op| !coverage::is_supported(&context, op)).collect()
}
