//! Manifest of a run: what it computes, cut into parts, so that another process can go on with it.
//!
//! **Invariant:** a part's file has its final name only when all of its rows are on the disk: it is
//! written under another name, synchronized, and renamed.

use crate::{
    error::{Error, Result},
    input::{InputFile, InputFiles, InputFormat},
};
use serde::{Deserialize, Serialize};
use std::{
    collections::BTreeMap,
    fs::{self, File},
    io::Write,
    path::{Path, PathBuf},
};

/// Name of the manifest's file. Readers of folders pass over names that begin with `_`.
pub(crate) const MANIFEST: &str = "_ferroflow.json";
/// The version of the manifest's format.
const VERSION: u32 = 1;

/// Settings that decide which rows come out, besides the input.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Settings {
    /// Fingerprint of the model's files.
    pub(crate) model: String,
    pub(crate) signature: String,
    /// The columns of inputs.
    pub(crate) columns: BTreeMap<String, String>,
    pub(crate) keep: Option<Vec<String>>,
    pub(crate) query: Option<String>,
    /// Whether strings become columns of bytes.
    pub(crate) binary: bool,
}

/// Rows that become one file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Part {
    /// Index of the file; all files, where a query needs all rows at once.
    pub(crate) file: Option<usize>,
    pub(crate) first_row_group: usize,
    pub(crate) n_row_groups: usize,
    /// The number of the part's first row in its file.
    pub(crate) first_row: u64,
    /// Rows that are read, if known.
    pub(crate) rows: Option<u64>,
}

/// A run: its input, its settings and its parts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Manifest {
    version: u32,
    pub(crate) settings: Settings,
    inputs: Vec<InputFile>,
    pub(crate) parts: Vec<Part>,
    pub(crate) complete: bool,
}

impl Manifest {
    /// A run that has not begun.
    pub(crate) fn new(settings: Settings, input: &InputFiles, parts: Vec<Part>) -> Manifest {
        let inputs = input.files.clone();
        Manifest { version: VERSION, settings, inputs, parts, complete: false }
    }

    /// The manifest in a folder, if there is one.
    pub(crate) fn read(folder: &Path) -> Result<Option<Manifest>> {
        let path = folder.join(MANIFEST);
        match fs::read(&path) {
            Ok(bytes) => {
                let manifest = serde_json::from_slice(&bytes);
                manifest.map(Some).map_err(|source| Error::Manifest { path, source })
            }
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
            Err(source) => Err(Error::Io { path, source }),
        }
    }

    pub(crate) fn write(&self, folder: &Path) -> Result<()> {
        let path = folder.join(MANIFEST);
        let text = serde_json::to_vec_pretty(self)
            .map_err(|source| Error::Manifest { path: path.clone(), source })?;
        let temporary = temporary(&path);
        let mut file = File::create(&temporary).map_err(Error::io(&temporary))?;
        file.write_all(&text).map_err(Error::io(&temporary))?;
        publish(&file, &temporary, &path)
    }

    /// Checks that this manifest, found in a folder, is of the run that `other` is of. Parts may be
    /// cut differently.
    pub(crate) fn check_same(&self, other: &Manifest, folder: &Path) -> Result<()> {
        let text = |manifest: &Manifest| {
            let settings = &manifest.settings;
            let inputs: Vec<String> = manifest.inputs.iter().map(describe).collect();
            [
                ("version", manifest.version.to_string()),
                ("the model of fingerprint", settings.model.clone()),
                ("signature", settings.signature.clone()),
                ("columns", format!("{:?}", settings.columns)),
                ("kept columns", format!("{:?}", settings.keep)),
                ("query", format!("{:?}", settings.query)),
                ("binary strings", settings.binary.to_string()),
                ("inputs", inputs.join(", ")),
            ]
        };
        for ((what, found), (_, expected)) in text(self).into_iter().zip(text(other)) {
            if found != expected {
                return Err(Error::OtherRun { folder: folder.into(), what, expected, found });
            }
        }
        Ok(())
    }
}

fn describe(file: &InputFile) -> String {
    format!("{} ({} bytes, of time {})", file.path.display(), file.bytes, file.modified)
}

/// Parts of at most `rows` rows each, where row groups are not larger than that.
pub(crate) fn parts(input: &InputFiles, rows: u64) -> Vec<Part> {
    let of_file = |(index, file): (usize, &InputFile)| match input.format {
        InputFormat::Parquet => row_group_parts(index, &file.row_groups, rows),
        InputFormat::Csv => vec![Part {
            file: Some(index),
            first_row_group: 0,
            n_row_groups: 0,
            first_row: 0,
            rows: None,
        }],
    };
    input.files.iter().enumerate().flat_map(of_file).collect()
}

/// The part of all rows.
pub(crate) fn whole(input: &InputFiles) -> Part {
    let rows = input.files.iter().map(InputFile::n_rows).sum();
    Part { file: None, first_row_group: 0, n_row_groups: 0, first_row: 0, rows }
}

fn row_group_parts(file: usize, row_groups: &[u64], most: u64) -> Vec<Part> {
    let mut parts: Vec<Part> = Vec::new();
    let mut first_row = 0;
    for (index, &n_rows) in row_groups.iter().enumerate() {
        match parts.last_mut() {
            Some(Part { rows: Some(rows), n_row_groups, .. })
                if rows.saturating_add(n_rows) <= most =>
            {
                *rows += n_rows;
                *n_row_groups += 1;
            }
            _ => parts.push(Part {
                file: Some(file),
                first_row_group: index,
                n_row_groups: 1,
                first_row,
                rows: Some(n_rows),
            }),
        }
        first_row += n_rows;
    }
    parts
}

/// The name that a file has until it is complete.
pub(crate) fn temporary(path: &Path) -> PathBuf {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    path.with_file_name(format!("_{name}.partial"))
}

/// Gives a file its final name, once its bytes are on the disk.
pub(crate) fn publish(file: &File, temporary: &Path, path: &Path) -> Result<()> {
    file.sync_all().map_err(Error::io(temporary))?;
    fs::rename(temporary, path).map_err(Error::io(path))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(row_groups: &[u64], most: u64, expected: &[(usize, usize, u64, u64)]) {
        let parts = row_group_parts(0, row_groups, most);
        let found = parts.iter().map(|part| {
            (part.first_row_group, part.n_row_groups, part.first_row, part.rows.unwrap())
        });
        assert_eq!(found.collect::<Vec<_>>(), expected);
    }

    #[test]
    fn row_groups_are_joined_until_a_part_is_full() {
        check(&[5, 5, 5], 10, &[(0, 2, 0, 10), (2, 1, 10, 5)]);
        check(&[50, 1, 1], 10, &[(0, 1, 0, 50), (1, 2, 50, 2)]);
        check(&[3], 10, &[(0, 1, 0, 3)]);
        check(&[], 10, &[]);
    }
}
