//! Input of a run: files of Parquet or CSV, their schema and their row groups.

use crate::error::{Error, Result};
use datafusion::{
    arrow::{
        csv::reader::Format as CsvFormat,
        datatypes::{Schema, SchemaRef},
    },
    parquet::{
        arrow::arrow_reader::{ArrowReaderMetadata, ArrowReaderOptions},
        file::metadata::RowGroupMetaData,
    },
};
use serde::{Deserialize, Serialize};
use std::{
    fs::{self, File},
    path::{Path, PathBuf},
    sync::Arc,
    time::UNIX_EPOCH,
};

/// Rows of a CSV file that its types are told by.
const CSV_ROWS: usize = 1000;

/// The format of all files of an input.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum InputFormat {
    Parquet,
    /// With names of columns in the first line.
    Csv,
}

/// A file, as it was when a run began.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct TableFile {
    pub(crate) path: PathBuf,
    pub(crate) bytes: u64,
    /// Nanoseconds since 1970.
    pub(crate) modified: u64,
    /// The row groups; none for CSV.
    pub(crate) row_groups: Vec<RowGroup>,
}

/// A row group of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct RowGroup {
    pub(crate) rows: u64,
    /// Bytes before its first page, by which scans tell row groups.
    pub(crate) start: u64,
}

/// Files of one schema, sorted by name within each pattern.
#[derive(Debug, Clone)]
pub(crate) struct InputFiles {
    pub(crate) format: InputFormat,
    pub(crate) schema: SchemaRef,
    pub(crate) files: Vec<TableFile>,
}

impl InputFiles {
    /// The files that patterns match: files, folders or globs.
    ///
    /// # Errors
    ///
    /// When a pattern matches nothing, a file cannot be read, or schemas differ.
    pub(crate) fn open(patterns: &[String]) -> Result<InputFiles> {
        let mut paths = Vec::new();
        for pattern in patterns {
            paths.extend(matches(pattern)?);
        }
        let none = || Error::NoInput { pattern: patterns.join(" ") };
        let first = paths.first().ok_or_else(none)?.clone();
        let format = format_of(&first)?;
        let mut files = Vec::new();
        let mut schema: Option<SchemaRef> = None;
        for path in paths {
            if format_of(&path)? != format {
                return Err(Error::Format { path });
            }
            let (file, found) = TableFile::open(path, format)?;
            match &schema {
                Some(schema) => check_schema(schema, &found, &first, &file.path)?,
                None => schema = Some(found),
            }
            files.push(file);
        }
        let schema = schema.ok_or_else(none)?;
        Ok(InputFiles { format, schema, files })
    }
}

impl TableFile {
    fn open(path: PathBuf, format: InputFormat) -> Result<(TableFile, SchemaRef)> {
        let file = File::open(&path).map_err(Error::io(&path))?;
        let metadata = file.metadata().map_err(Error::io(&path))?;
        let modified = metadata.modified().map_err(Error::io(&path))?;
        let modified = modified.duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos();
        let (schema, row_groups) = match format {
            InputFormat::Parquet => footer(&file, &path)?,
            InputFormat::Csv => (csv_schema(file, &path)?, Vec::new()),
        };
        let modified = u64::try_from(modified).unwrap_or(u64::MAX);
        Ok((TableFile { path, bytes: metadata.len(), modified, row_groups }, schema))
    }

    /// The number of rows, if it is known before they are read.
    pub(crate) fn n_rows(&self) -> Option<u64> {
        (!self.row_groups.is_empty()).then(|| self.row_groups.iter().map(|group| group.rows).sum())
    }
}

/// The schema and the row groups.
fn footer(file: &File, path: &Path) -> Result<(SchemaRef, Vec<RowGroup>)> {
    let metadata = ArrowReaderMetadata::load(file, ArrowReaderOptions::new());
    let metadata = metadata.map_err(Error::parquet(path))?;
    let none = || Error::NoColumns { path: path.into() };
    let row_group = |group: &RowGroupMetaData| {
        let first = group.columns().first().ok_or_else(none)?;
        let start = first.dictionary_page_offset().unwrap_or(first.data_page_offset());
        Ok(RowGroup { rows: group.num_rows() as u64, start: start as u64 })
    };
    let row_groups = metadata.metadata().row_groups().iter().map(row_group);
    let schema = Arc::new(Schema::new(metadata.schema().fields().clone()));
    Ok((schema, row_groups.collect::<Result<_>>()?))
}

fn csv_schema(file: File, path: &Path) -> Result<SchemaRef> {
    let format = CsvFormat::default().with_header(true);
    let (schema, _) = format
        .infer_schema(file, Some(CSV_ROWS))
        .map_err(|error| Error::from(error).in_file(path))?;
    Ok(Arc::new(schema))
}

/// The absolute paths of the files that a pattern matches, sorted.
fn matches(pattern: &str) -> Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    if Path::new(pattern).exists() {
        collect(Path::new(pattern), true, &mut files)?;
    } else {
        let malformed = |source| Error::Pattern { pattern: pattern.into(), source };
        for path in glob::glob(pattern).map_err(malformed)? {
            let path = path.map_err(|error| {
                let path = error.path().to_path_buf();
                Error::Io { path, source: error.into() }
            })?;
            collect(&path, true, &mut files)?;
        }
    }
    if files.is_empty() {
        return Err(Error::NoInput { pattern: pattern.into() });
    }
    files.sort();
    Ok(files)
}

/// A file, or the files in a folder: all that are asked for by name, in a folder those of a known
/// format that are not hidden.
fn collect(path: &Path, asked: bool, files: &mut Vec<PathBuf>) -> Result<()> {
    let name = path.file_name().map(|name| name.to_string_lossy().into_owned());
    let hidden = name.is_some_and(|name| name.starts_with(['.', '_']));
    if !asked && hidden {
        return Ok(());
    }
    if path.is_dir() {
        let entries = fs::read_dir(path).map_err(Error::io(path))?;
        for entry in entries {
            collect(&entry.map_err(Error::io(path))?.path(), false, files)?;
        }
    } else if asked || format_of(path).is_ok() {
        files.push(std::path::absolute(path).map_err(Error::io(path))?);
    }
    Ok(())
}

fn format_of(path: &Path) -> Result<InputFormat> {
    match path.extension().and_then(|extension| extension.to_str()) {
        Some("parquet") => Ok(InputFormat::Parquet),
        Some("csv") => Ok(InputFormat::Csv),
        _ => Err(Error::Format { path: path.into() }),
    }
}

fn check_schema(schema: &Schema, found: &Schema, first: &Path, path: &Path) -> Result<()> {
    let describe = |schema: &Schema, index: usize| match schema.fields().get(index) {
        Some(field) => format!("`{}` of type {}", field.name(), field.data_type()),
        None => "absent".into(),
    };
    let differs = |&index: &usize| describe(schema, index) != describe(found, index);
    let n_columns = schema.fields().len().max(found.fields().len());
    let Some(index) = (0..n_columns).find(differs) else { return Ok(()) };
    Err(Error::Schema {
        path: path.into(),
        first: first.into(),
        column: index,
        expected: describe(schema, index),
        found: describe(found, index),
    })
}
