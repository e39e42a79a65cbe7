//! Judgement of TensorFlow about models that are saved here: each model of a zoo, loaded and saved
//! again, and those that the worker writes itself.

use super::{
    Counts, Outcome, Status,
    judge::{
        self, JudgedModel, PATIENCE, description, empty_folder, judge, save_zoo, sorted, venv,
    },
};
use crate::worker::{Reply, Worker, WorkerProgram};
use anyhow::Result;
use serde_json::json;
use std::{
    path::{Path, PathBuf},
    process::Command,
};

/// The versions that judge: of TensorFlow, and of the ops that tensorflow_text adds to it. That asks for
/// a TensorFlow of another name, and does without.
const TENSORFLOW: &str = "tensorflow-cpu==2.21.0";
const TENSORFLOW_TEXT: &str = "tensorflow-text==2.21.1";

/// Names a Python that has TensorFlow already.
const PYTHON: &str = "FERROFLOW_TENSORFLOW_PYTHON";

pub(super) fn run(
    root: &Path,
    program: &WorkerProgram,
    zoo: &Path,
    wanted: &dyn Fn(&str) -> bool,
) -> Result<Vec<Outcome>> {
    let python = python(root)?;
    let folder = empty_folder(root, "tensorflow-models")?;
    let is_judged = |case: &Path| is_judged(&python, case);
    let (mut jobs, mut outcomes) = save_zoo(program, zoo, &folder.join("zoo"), wanted, &is_judged)?;
    let written = write_models(program, &folder)?;
    for outcome in written {
        let name = outcome.text("case").to_string();
        if !wanted(&name) {
            continue;
        }
        match outcome.status() {
            Status::Passed => jobs.push(JudgedModel {
                case: folder.join("cases").join(&name),
                model: folder.join("models").join(&name),
            }),
            Status::Failed | Status::Unsupported => outcomes.push(outcome),
        }
    }
    let script = root.join("conformance").join("tensorflow").join("judge.py");
    outcomes.extend(judge(&python, &script, &folder, &jobs)?);
    Ok(sorted(outcomes))
}

/// `tensorflow: P passed, F failed, of N`.
pub(super) fn line(counts: Counts) -> String {
    let Counts { passed, failed, unsupported } = counts;
    let failed = failed + unsupported;
    format!("tensorflow: {passed} passed, {failed} failed, of {}", passed + failed)
}

/// A Python that has TensorFlow: the one that is named, or one made here.
pub(crate) fn python(root: &Path) -> Result<PathBuf> {
    let packages: [&[&str]; 2] = [&[TENSORFLOW], &["--no-deps", TENSORFLOW_TEXT]];
    judge::python(PYTHON, || venv(root, "tensorflow-venv", &packages))
}

/// Whether a case is about a model or a checkpoint, and Python has the library whose ops it needs.
fn is_judged(python: &Path, folder: &Path) -> bool {
    let case = description(folder);
    if !matches!(case["kind"].as_str(), Some("saved_model" | "checkpoint" | "v1_checkpoint")) {
        return false;
    }
    let Some(library) = case["library"].as_str() else { return true };
    let program =
        "import importlib.util, sys; sys.exit(importlib.util.find_spec(sys.argv[1]) is None)";
    let found = Command::new(python).args(["-c", program, library]).status();
    let has_library = found.is_ok_and(|status| status.success());
    if !has_library {
        println!("not judged   {}: Python has no {library}", folder.display());
    }
    has_library
}

/// Has a worker write its own models.
fn write_models(program: &WorkerProgram, folder: &Path) -> Result<Vec<Outcome>> {
    let (cases, models) = (folder.join("cases"), folder.join("models"));
    let mut worker = Worker::new(program);
    worker.send(&json!({ "kind": "models", "path": cases, "to": models }))?;
    let mut outcomes = Vec::new();
    loop {
        match worker.next(PATIENCE)? {
            Reply::Lost(why) => {
                outcomes.push(Outcome::failed(json!({ "case": "models written in Rust" }), &why));
                return Ok(outcomes);
            }
            Reply::Line(line) if line.get("done").is_some() => return Ok(outcomes),
            Reply::Line(json) => outcomes.push(Outcome { json }),
        }
    }
}
