//! The files of a model being saved.

use crate::{
    error::{Error, Result},
    output_file::copy_file,
};
use ferroflow_ir::free_name::free_name;
use ferroflow_runtime::{files, trackable::Asset};
use std::{
    collections::{HashMap, HashSet},
    path::Path,
};

/// Folders of a model that no part of the program knows: what a server warms up with, and where in
/// the source nodes come from.
const EXTRA: [&str; 2] = ["assets.extra", "debug"];

/// The names that files get below `assets/`: their own, or numbered where two have the same. A file
/// that is there several times is copied once.
pub(super) fn names<'a>(assets: impl Iterator<Item = &'a Asset>) -> Vec<String> {
    let mut by_path: HashMap<&Path, String> = HashMap::new();
    let (mut names, mut taken) = (Vec::new(), HashSet::new());
    for asset in assets {
        let name = by_path.get(asset.path()).cloned().unwrap_or_else(|| {
            let own = asset.path().file_name().map(|name| name.to_string_lossy().into_owned());
            let own = own.unwrap_or_else(|| "asset".into());
            free_name(&own, |name| taken.contains(name))
        });
        taken.insert(name.clone());
        by_path.insert(asset.path(), name.clone());
        names.push(name);
    }
    names
}

/// Copies the files into the model's folder.
///
/// # Errors
///
/// [`Error::Io`] when one cannot be read or written.
pub(super) fn copy<'a>(
    assets: impl Iterator<Item = &'a Asset>,
    names: &[String],
    folder: &Path,
) -> Result<()> {
    let mut done: Vec<&str> = Vec::new();
    for (asset, name) in assets.zip(names) {
        if done.contains(&name.as_str()) {
            continue;
        }
        done.push(name);
        copy_file(asset.path(), &folder.join("assets").join(name))?;
    }
    Ok(())
}

/// Copies what loaders leave alone from one model's folder to another's.
///
/// # Errors
///
/// As [`copy`].
pub(super) fn copy_extra(from: &Path, to: &Path) -> Result<()> {
    let mut waiting: Vec<_> = EXTRA.iter().map(|name| (from.join(name), to.join(name))).collect();
    while let Some((source, target)) = waiting.pop() {
        let failed = |error| Error::Io { path: source.clone(), source: error };
        // Links may lead out of the model's folder.
        if source.is_symlink() {
            continue;
        }
        if files::is_file(&source) {
            copy_file(&source, &target)?;
        } else if files::is_folder(&source) {
            for name in files::names_in(&source).map_err(failed)? {
                waiting.push((source.join(&name), target.join(&name)));
            }
        }
    }
    Ok(())
}
