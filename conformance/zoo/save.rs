//! Models and checkpoints that are loaded, saved, and loaded again: nothing that a call observes
//! changes.

use super::{Case, run_model};
use crate::outcome::CaseOutcome;
use anyhow::{Context as _, Result, bail};
use ferroflow::{
    runtime::Context,
    saved_model::{self, LoadOptions, SaveOptions, SavedModel, load},
};
use serde_json::{Value, json};
use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};

/// Loads the model of a case, saves it to `to`, and makes the calls of the case on what was saved; or
/// has objects take over the checkpoint of a case and write it, or writes the program of a case as StableHLO.
pub(crate) fn save(folder: &Path, to: &Path) -> Result<Value> {
    let mut case = Case::open(folder)?;
    let outcome = CaseOutcome::of(std::panic::AssertUnwindSafe(|| match case.kind() {
        "saved_model" => save_again(&mut case, to),
        "artifact" => super::artifact::write(&case, to),
        "checkpoint" | "v1_checkpoint" => super::objects::save_again(&case, to),
        other => Ok(CaseOutcome::Unsupported(format!("cases of kind {other}"))),
    }));
    let name = folder.file_name().map(|name| name.to_string_lossy().into_owned());
    Ok(outcome.report(json!({ "case": name, "kind": "save" })))
}

fn save_again(case: &mut Case, to: &Path) -> Result<CaseOutcome> {
    let again = to.with_extension("again");
    let options = case.options();
    if let Err(error) = resave(case.model(), to, &options) {
        return Ok(match case.calls().first() {
            Some(first) if !first["expect"]["error"].is_null() => CaseOutcome::Passed,
            _ => CaseOutcome::of_error(error.code(), error.to_string()),
        });
    }
    resave(to, &again, &options)?;
    let same = same_files(to, &again);
    std::fs::remove_dir_all(&again)?;
    if let Err(error) = same {
        // A model whose initialiser draws random numbers is another one each time it is loaded.
        resave(case.model(), &again, &options)?;
        let is_random = same_files(to, &again).is_err();
        std::fs::remove_dir_all(&again)?;
        if !is_random {
            return Err(error);
        }
    }
    case.model = to.into();
    run_model(case)
}

fn resave(from: &Path, to: &Path, options: &LoadOptions) -> saved_model::Result<()> {
    let loaded = load(&Context::new(), from, options)?;
    let mut save = SaveOptions::default();
    if let Some(tags) = &options.tags {
        save.tags.clone_from(tags);
    }
    match loaded {
        SavedModel::Objects(model) => saved_model::save(&model.root(), to, &save).map(drop),
        SavedModel::Session(session) => saved_model::save_session(&session, to),
    }
}

/// Checks that two folders hold the same files.
fn same_files(a: &Path, b: &Path) -> Result<()> {
    let (first, second) = (files(a, a)?, files(b, b)?);
    let (names, others): (Vec<_>, Vec<_>) = (first.keys().collect(), second.keys().collect());
    if names != others {
        bail!("saving again gives the files {others:?} instead of {names:?}");
    }
    match first.iter().find(|(name, bytes)| second.get(*name) != Some(bytes)) {
        Some((name, _)) => bail!("saving again gives another {}", name.display()),
        None => Ok(()),
    }
}

fn files(root: &Path, folder: &Path) -> Result<BTreeMap<PathBuf, Vec<u8>>> {
    let mut found = BTreeMap::new();
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            found.extend(files(root, &path)?);
        } else {
            let name = path.strip_prefix(root).context("it lies in the folder")?.to_path_buf();
            found.insert(name, std::fs::read(&path)?);
        }
    }
    Ok(found)
}
