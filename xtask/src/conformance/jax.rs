//! Judgement of XLA, by JAX, about programs that are written here as StableHLO: those of the artifacts of a zoo.

use super::{
    Outcome,
    judge::{judge, save_zoo, sorted, target, venv},
};
use crate::worker::WorkerProgram;
use anyhow::Result;
use serde_json::Value;
use std::{
    env, fs,
    path::{Path, PathBuf},
};

/// The version that judges.
const JAX: &str = "jax[cpu]==0.10.2";

/// Names a Python that has JAX already.
const PYTHON: &str = "FERROFLOW_JAX_PYTHON";

pub(super) fn run(
    root: &Path,
    program: &WorkerProgram,
    zoo: &Path,
    wanted: &dyn Fn(&str) -> bool,
) -> Result<Vec<Outcome>> {
    let python = match env::var_os(PYTHON) {
        Some(python) => PathBuf::from(python),
        None => venv(root, "jax-venv", &[&[JAX]])?,
    };
    let folder = target(root).join("jax-programs");
    if folder.exists() {
        fs::remove_dir_all(&folder)?;
    }
    fs::create_dir_all(&folder)?;
    let (jobs, mut outcomes) = save_zoo(program, zoo, &folder.join("zoo"), wanted, &is_artifact)?;
    let script = root.join("conformance").join("jax").join("judge.py");
    outcomes.extend(judge(&python, &script, &folder, &jobs)?);
    Ok(sorted(outcomes))
}

fn is_artifact(folder: &Path) -> bool {
    let text = fs::read_to_string(folder.join("case.json")).unwrap_or_default();
    let case: Value = serde_json::from_str(&text).unwrap_or_default();
    case["kind"] == "artifact"
}
