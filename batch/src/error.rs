//! The error type of this crate.

use datafusion::{
    arrow::{datatypes::DataType, error::ArrowError},
    common::DataFusionError,
    parquet::errors::ParquetError,
};
use ferroflow_ir::{DType, PartialShape, Shape};
use std::{error::Error as StdError, io, ops::Range, path::PathBuf};

/// The result of a fallible operation of batch inference.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Fault of a table, of a model, or of how they are put together.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A model cannot be loaded.
    #[error("model {}: {source}", folder.display())]
    Model {
        /// The folder of the SavedModel.
        folder: PathBuf,
        /// Cause.
        source: Box<ferroflow_saved_model::Error>,
    },
    /// The call of a signature failed.
    #[error("signature `{signature}`, called with {} rows: {source}", rows.len())]
    Call {
        /// The signature.
        signature: String,
        /// Rows of the batch that the call was for.
        rows: Range<usize>,
        /// Cause.
        source: Box<ferroflow_saved_model::Error>,
    },
    /// A name that is no input of the signature.
    #[error("signature `{signature}` has no input `{input}`; it has {available:?}")]
    NoSuchInput {
        /// The signature.
        signature: String,
        /// The name.
        input: String,
        /// Names of the inputs.
        available: Vec<String>,
    },
    /// An input of the signature that no column is for.
    #[error("signature `{signature}`: no column is for its input `{input}`")]
    MissingInput {
        /// The signature.
        signature: String,
        /// The input.
        input: String,
    },
    /// An input that cannot have a value for each row.
    #[error(
        "signature `{signature}`: its input `{input}` is {spec}, which has no dimension for rows"
    )]
    InputWithoutRows {
        /// The signature.
        signature: String,
        /// The input.
        input: String,
        /// Its spec, as text.
        spec: String,
    },
    /// A column that a table does not have.
    #[error("there is no column `{column}` for the input `{input}`; there are {available:?}")]
    NoColumn {
        /// The column.
        column: String,
        /// The input of the signature that it is for.
        input: String,
        /// Names of the columns.
        available: Vec<String>,
    },
    /// A column to be kept that a table does not have.
    #[error("there is no column `{column}` to keep; there are {available:?}")]
    NoKeptColumn {
        /// The column.
        column: String,
        /// Names of the columns.
        available: Vec<String>,
    },
    /// A column whose type is not that of the input. Values are never converted silently.
    #[error(
        "column `{column}` is {found}, but the input `{input}` takes {expected}: convert it in a query, \
         by CAST(… AS …) or arrow_cast(…, '…')"
    )]
    ColumnType {
        /// The column.
        column: String,
        /// The input of the signature.
        input: String,
        /// The dtype of the input.
        expected: DType,
        /// The type of the column.
        found: DataType,
    },
    /// Rows whose shape is not that of the input.
    #[error("column `{column}` has rows of shape {found}, but the input `{input}` is {expected}")]
    ColumnShape {
        /// The column.
        column: String,
        /// The input of the signature.
        input: String,
        /// The shape of the input, rows included.
        expected: Box<PartialShape>,
        /// The shape of a row.
        found: Box<Shape>,
    },
    /// Lists of different lengths, which make no tensor.
    #[error(
        "column `{column}`, row {row}: a list of {found} elements, where {expected} are expected"
    )]
    ListLength {
        /// The column.
        column: String,
        /// The row, as in [`Null`](Error::Null).
        row: u64,
        /// The length of the first list.
        expected: usize,
        /// The length of this list.
        found: usize,
    },
    /// A column of which no tensor can be made.
    #[error("column `{column}`: {source}")]
    Tensor {
        /// The column.
        column: String,
        /// Cause.
        source: Box<ferroflow_ir::Error>,
    },
    /// A null, which no tensor can have.
    #[error(
        "column `{column}`, row {row}: null; exclude such rows by a query, or give them a value by COALESCE"
    )]
    Null {
        /// The column.
        column: String,
        /// The row, from 0: of those in its file, or of those that a query passes to the model
        /// from the file; of the batch, where a function is called in a session of one's own.
        row: u64,
    },
    /// An output whose elements no column can have.
    #[error(
        "signature `{signature}`: its output `{output}` is {found}, for which there is no type of columns"
    )]
    OutputType {
        /// The signature.
        signature: String,
        /// The output.
        output: String,
        /// Dtype and shape of the output, as far as they are known.
        found: String,
    },
    /// An output that does not have a value for each row.
    #[error("output `{output}` is {found} for {rows} rows")]
    OutputRows {
        /// The output.
        output: String,
        /// The number of rows that went in.
        rows: usize,
        /// Dtype and shape that came out.
        found: String,
    },
    /// An output of dtype string that is not UTF-8 where text is asked for.
    #[error("output `{output}`, row {row}: not UTF-8; take strings as binary columns")]
    NotText {
        /// The output.
        output: String,
        /// The row of the batch.
        row: usize,
    },
    /// Rows left over for a model that takes a fixed number of rows at once.
    #[error(
        "input `{input}` takes {takes} rows at once, and {rows} rows are left at the end of a batch"
    )]
    FixedBatch {
        /// The input.
        input: String,
        /// The number of rows that it takes.
        takes: usize,
        /// The number of rows left.
        rows: usize,
    },
    /// An output that has the name of a column that is kept.
    #[error("output `{output}` has the name of a column: keep others, or name it in a query")]
    OutputName {
        /// The output.
        output: String,
    },
    /// A pattern that no file matches.
    #[error("{pattern}: no files of Parquet or CSV")]
    NoInput {
        /// The pattern.
        pattern: String,
    },
    /// A pattern that is malformed.
    #[error("{pattern}: {source}")]
    Pattern {
        /// The pattern.
        pattern: String,
        /// Cause.
        source: glob::PatternError,
    },
    /// A file whose format cannot be told by its name.
    #[error("{}: neither .parquet nor .csv", path.display())]
    Format {
        /// The file.
        path: PathBuf,
    },
    /// A file without columns.
    #[error("{}: no columns", path.display())]
    NoColumns {
        /// The file.
        path: PathBuf,
    },
    /// Files of one input whose schemas differ.
    #[error("{}: column {column} is {found}, but {expected} in {}", path.display(), first.display())]
    Schema {
        /// The file.
        path: PathBuf,
        /// The first file of the input.
        first: PathBuf,
        /// The column, counted from 0.
        column: usize,
        /// Its name and type in the first file.
        expected: String,
        /// Its name and type in this file.
        found: String,
    },
    /// The system cannot open, read or write a file.
    #[error("{}: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// Error of the system.
        source: io::Error,
    },
    /// A file of Parquet cannot be read or written.
    #[error("{}: {source}", path.display())]
    Parquet {
        /// The file.
        path: PathBuf,
        /// Cause.
        source: ParquetError,
    },
    /// Something is wrong with rows of a file.
    #[error("{}: {source}", path.display())]
    InFile {
        /// The file.
        path: PathBuf,
        /// Cause.
        source: Box<Error>,
    },
    /// Parts of an earlier run that are not of this one.
    #[error(
        "{}: another run wrote here, with {what} {found}, not {expected}; `--overwrite` discards it",
        folder.display()
    )]
    OtherRun {
        /// The folder of the parts.
        folder: PathBuf,
        /// Setting that differs.
        what: &'static str,
        /// Its value here.
        expected: String,
        /// Its value there.
        found: String,
    },
    /// A manifest that is not one.
    #[error("{}: not a manifest of a run: {source}", path.display())]
    Manifest {
        /// The file.
        path: PathBuf,
        /// Cause.
        source: serde_json::Error,
    },
    /// Another process writes the same output.
    #[error("{}: another process writes here", folder.display())]
    Busy {
        /// The folder of the parts.
        folder: PathBuf,
    },
    /// An output that exists: a file, which `--overwrite` replaces, or a folder with files that no
    /// run has written, which stays as it is.
    #[error("{}: exists already{}", path.display(), match path.is_dir() {
        true => " and holds files of others",
        false => "; `--overwrite` replaces it",
    })]
    Exists {
        /// The file or folder.
        path: PathBuf,
    },
    /// A model whose files are not those that another process has read.
    #[cfg(feature = "ballista")]
    #[error("model {}: of fingerprint {found}, not {expected}", folder.display())]
    OtherModel {
        /// The folder of the SavedModel.
        folder: PathBuf,
        /// The fingerprint that the other process has found.
        expected: String,
        /// The fingerprint here.
        found: String,
    },
    /// A model that was not loaded from a folder, which other processes cannot load.
    #[cfg(feature = "ballista")]
    #[error("the model was not loaded from a folder: other processes cannot load it")]
    ModelInMemory,
    /// A process of the cluster cannot be run.
    #[cfg(feature = "ballista")]
    #[error("{what}: {source}")]
    Process {
        /// Role of the process.
        what: &'static str,
        /// Cause.
        source: Box<ballista_core::error::BallistaError>,
    },
    /// An output that is a file of the input.
    #[error("{}: it is read, and cannot be written at the same time", path.display())]
    OutputIsInput {
        /// The file.
        path: PathBuf,
    },
    /// The query engine failed.
    #[error("{0}")]
    Engine(Box<DataFusionError>),
}

impl Error {
    /// An error of a file.
    pub(crate) fn in_file(self, path: &std::path::Path) -> Error {
        Error::InFile { path: path.into(), source: Box::new(self) }
    }

    pub(crate) fn io(path: &std::path::Path) -> impl FnOnce(io::Error) -> Error {
        let path = path.into();
        |source| Error::Io { path, source }
    }

    pub(crate) fn parquet(path: &std::path::Path) -> impl FnOnce(ParquetError) -> Error {
        let path = path.into();
        |source| Error::Parquet { path, source }
    }
}

impl From<Error> for DataFusionError {
    fn from(error: Error) -> DataFusionError {
        DataFusionError::External(Box::new(error))
    }
}

impl From<DataFusionError> for Error {
    /// The error of this crate that a query ended in, if it did; otherwise the engine's.
    fn from(error: DataFusionError) -> Error {
        match error {
            DataFusionError::External(inner) => match inner.downcast::<Error>() {
                Ok(own) => *own,
                Err(other) => Error::Engine(Box::new(DataFusionError::External(other))),
            },
            DataFusionError::Context(_, inner) if is_own(&inner) => Error::from(*inner),
            DataFusionError::Diagnostic(_, inner) if is_own(&inner) => Error::from(*inner),
            DataFusionError::ArrowError(inner, trace) => match *inner {
                ArrowError::ExternalError(inner) => Error::from(DataFusionError::External(inner)),
                inner => {
                    Error::Engine(Box::new(DataFusionError::ArrowError(Box::new(inner), trace)))
                }
            },
            error => Error::Engine(Box::new(error)),
        }
    }
}

/// Whether an error of the engine was caused by one of this crate.
fn is_own(error: &DataFusionError) -> bool {
    let mut cause: Option<&(dyn StdError + 'static)> = Some(error);
    while let Some(error) = cause {
        if error.is::<Error>() {
            return true;
        }
        cause = error.source();
    }
    false
}

impl From<ArrowError> for Error {
    fn from(error: ArrowError) -> Error {
        Error::from(DataFusionError::from(error))
    }
}
