//! The files of a model being saved.

use crate::error::{Error, Result};
use ferroflow_runtime::trackable::Asset;
use std::{
    collections::HashMap,
    fs,
    path::{Path, PathBuf},
};

/// The names that files get below `assets/`: their own, or numbered where two have the same. A file
/// that is there several times is copied once.
pub(super) fn names<'a>(assets: impl Iterator<Item = &'a Asset>) -> Vec<String> {
    let mut by_path: HashMap<&Path, String> = HashMap::new();
    let mut names: Vec<String> = Vec::new();
    for asset in assets {
        let name = by_path.get(asset.path()).cloned().unwrap_or_else(|| {
            let own = asset.path().file_name().map(|name| name.to_string_lossy().into_owned());
            let own = own.unwrap_or_else(|| "asset".into());
            let numbered = (1..).map(|number| format!("{own}_{number}"));
            let mut all = std::iter::once(own.clone()).chain(numbered);
            let free = all.find(|name| !names.contains(name));
            free.expect("there are more numbers than files")
        });
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
        let target = folder.join("assets").join(name);
        let failed = |path: &Path| {
            let path = PathBuf::from(path);
            move |source| Error::Io { path, source }
        };
        let same = fs::canonicalize(&target).ok().zip(fs::canonicalize(asset.path()).ok());
        if same.is_some_and(|(target, source)| target == source) {
            continue;
        }
        fs::create_dir_all(folder.join("assets")).map_err(failed(&target))?;
        let temporary =
            folder.join("assets").join(format!("{name}.tempstate{}", std::process::id()));
        fs::copy(asset.path(), &temporary).map_err(failed(asset.path()))?;
        fs::rename(&temporary, &target).map_err(failed(&target))?;
    }
    Ok(())
}
