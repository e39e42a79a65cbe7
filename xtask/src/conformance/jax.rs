//! Judgement of XLA, by JAX, about programs that are written here as StableHLO: those of the artifacts of a zoo.

use super::{
    Outcome,
    judge::{description, empty_folder, judge, python, save_zoo, sorted, venv},
};
use crate::worker::WorkerProgram;
use anyhow::Result;
use std::path::Path;

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
    let python = python(PYTHON, || venv(root, "jax-venv", &[&[JAX]]))?;
    let folder = empty_folder(root, "jax-programs")?;
    let (jobs, mut outcomes) = save_zoo(program, zoo, &folder.join("zoo"), wanted, &is_artifact)?;
    let script = root.join("conformance").join("jax").join("judge.py");
    outcomes.extend(judge(&python, &script, &folder, &jobs)?);
    Ok(sorted(outcomes))
}

fn is_artifact(folder: &Path) -> bool {
    description(folder)["kind"] == "artifact"
}
