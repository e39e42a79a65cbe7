//! Manifest of a run: what it computes, cut into parts, so that another process can go on with it.
//!
//! **Invariant:** a part's file has its final name only when all of its rows are on the disk: it is
//! written under another name, synchronized, and renamed.

use crate::{
    error::{Error, Result},
    input::{InputFiles, InputFormat, RowGroup, TableFile},
};
use serde::{Deserialize, Serialize};
use std::{
    collections::BTreeMap,
    fs::{self, File},
    io::Write,
    ops::Range,
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
    pub(crate) model: Option<String>,
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
    /// Bytes of the file where the part's row groups start; the whole file, if `None`.
    pub(crate) bytes: Option<Range<u64>>,
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
    inputs: Vec<TableFile>,
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
                ("the model of fingerprint", settings.model.clone().unwrap_or_default()),
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

fn describe(file: &TableFile) -> String {
    format!("{} ({} bytes, of time {})", file.path.display(), file.bytes, file.modified)
}

/// Parts of at most `rows` rows each, where row groups are not larger than that.
pub(crate) fn parts(input: &InputFiles, rows: u64) -> Vec<Part> {
    let of_file = |(index, file): (usize, &TableFile)| match is_ordered(&file.row_groups) {
        true => row_group_parts(index, &file.row_groups, rows),
        false => vec![whole_file(index, file)],
    };
    let files = input.files.iter().enumerate();
    match input.format {
        InputFormat::Parquet => files.flat_map(of_file).collect(),
        InputFormat::Csv => files.map(|(index, file)| whole_file(index, file)).collect(),
    }
}

/// The part of all rows.
pub(crate) fn whole(input: &InputFiles) -> Part {
    let rows = input.files.iter().map(TableFile::n_rows).sum();
    Part { file: None, bytes: None, first_row: 0, rows }
}

fn whole_file(index: usize, file: &TableFile) -> Part {
    Part { file: Some(index), bytes: None, first_row: 0, rows: file.n_rows() }
}

/// Whether the order of row groups is that of their bytes, so that ranges tell them apart.
fn is_ordered(row_groups: &[RowGroup]) -> bool {
    row_groups.is_sorted_by(|first, second| first.start < second.start)
}

fn row_group_parts(file: usize, row_groups: &[RowGroup], most: u64) -> Vec<Part> {
    let mut parts: Vec<Part> = Vec::new();
    let mut first_row = 0;
    for (index, group) in row_groups.iter().enumerate() {
        let end = row_groups.get(index + 1).map_or(i64::MAX as u64, |next| next.start);
        match parts.last_mut() {
            Some(Part { rows: Some(rows), bytes: Some(bytes), .. })
                if rows.saturating_add(group.rows) <= most =>
            {
                *rows += group.rows;
                bytes.end = end;
            }
            _ => parts.push(Part {
                file: Some(file),
                bytes: Some(group.start..end),
                first_row,
                rows: Some(group.rows),
            }),
        }
        first_row += group.rows;
    }
    parts
}

/// The name that a file has until it is complete.
pub(crate) fn temporary(path: &Path) -> PathBuf {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    path.with_file_name(format!("_{name}.partial"))
}

/// Renames a file to its final name, once its bytes are on the disk.
pub(crate) fn publish(file: &File, temporary: &Path, path: &Path) -> Result<()> {
    file.sync_all().map_err(Error::io(temporary))?;
    fs::rename(temporary, path).map_err(Error::io(path))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(rows: &[u64], most: u64, expected: &[(u64, u64, u64)]) {
        let group = |(index, &rows): (usize, &u64)| RowGroup { rows, start: 4 + index as u64 };
        let row_groups: Vec<RowGroup> = rows.iter().enumerate().map(group).collect();
        assert!(is_ordered(&row_groups));
        let parts = row_group_parts(0, &row_groups, most);
        let found = parts
            .iter()
            .map(|part| (part.bytes.as_ref().unwrap().start, part.first_row, part.rows.unwrap()));
        assert_eq!(found.collect::<Vec<_>>(), expected);
        let ends = parts.iter().map(|part| part.bytes.as_ref().unwrap().end);
        let starts = parts.iter().skip(1).map(|part| part.bytes.as_ref().unwrap().start);
        assert!(ends.eq(starts.chain((!parts.is_empty()).then_some(i64::MAX as u64))));
    }

    #[test]
    fn row_groups_are_joined_until_a_part_is_full() {
        check(&[5, 5, 5], 10, &[(4, 0, 10), (6, 10, 5)]);
        check(&[50, 1, 1], 10, &[(4, 0, 50), (5, 50, 2)]);
        check(&[3], 10, &[(4, 0, 3)]);
        check(&[], 10, &[]);
    }

    #[test]
    fn row_groups_out_of_order_are_not_told_apart() {
        let at = |start| RowGroup { rows: 1, start };
        assert!(!is_ordered(&[at(9), at(4)]));
        assert!(!is_ordered(&[at(4), at(4)]));
    }
}
