//! Fingerprint of a model's files.

use crate::error::{Error, Result};
use ferroflow_runtime::fingerprint64;
use std::{
    fs,
    path::{Path, PathBuf},
};

/// A fingerprint that differs between models with other graphs, variables or assets.
///
/// The values of variables are told apart by their checksums, which are in the index of the
/// checkpoint.
pub(crate) fn fingerprint(folder: &Path) -> Result<String> {
    let mut files = Vec::new();
    collect(folder, &mut files)?;
    files.sort();
    let mut all = String::new();
    for path in files {
        let name = path.strip_prefix(folder).unwrap_or(&path).to_string_lossy().into_owned();
        if name.starts_with("variables") && name.contains(".data-") {
            continue;
        }
        let bytes = fs::read(&path).map_err(Error::io(&path))?;
        all.push_str(&format!("{name} {:016x}\n", fingerprint64(&bytes)));
    }
    Ok(format!("{:016x}", fingerprint64(all.as_bytes())))
}

fn collect(folder: &Path, files: &mut Vec<PathBuf>) -> Result<()> {
    for entry in fs::read_dir(folder).map_err(Error::io(folder))? {
        let path = entry.map_err(Error::io(folder))?.path();
        if path.is_dir() {
            collect(&path, files)?;
        } else {
            files.push(path);
        }
    }
    Ok(())
}
