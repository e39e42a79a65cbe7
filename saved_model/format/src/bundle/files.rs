//! Files that a checkpoint is made of.

use super::writer::index_path;
use crate::{
    error::{Error, Result},
    output_file::folder_of,
};
use ferroflow_ir::files;
use std::path::{Path, PathBuf};

/// The files of the checkpoint with this path that exist, the index first.
///
/// # Errors
///
/// [`Error::Io`] when its folder cannot be read.
pub fn files_of(prefix: &Path) -> Result<Vec<PathBuf>> {
    let folder = folder_of(prefix);
    let failed = |source| Error::Io { path: folder.into(), source };
    let index = index_path(prefix);
    let mut found: Vec<PathBuf> =
        Some(index.clone()).filter(|path| files::exists(path)).into_iter().collect();
    let name = prefix.file_name().map(|name| name.to_string_lossy().into_owned());
    let beginning = format!("{}.data-", name.unwrap_or_default());
    for name in files::names_in(folder).map_err(failed)? {
        let shard = name.to_str().and_then(|name| name.strip_prefix(&beginning));
        if shard.is_some_and(is_shard) {
            found.push(folder.join(name));
        }
    }
    found.sort_by_key(|path| (*path != index, path.clone()));
    Ok(found)
}

/// Whether a name ends as those of data files do: `00001-of-00003`.
pub(super) fn is_shard(end: &str) -> bool {
    let number = |text: &str| text.len() >= 5 && text.bytes().all(|byte| byte.is_ascii_digit());
    end.split_once("-of-").is_some_and(|(shard, of)| number(shard) && number(of))
}
