//! Description of a run.

use crate::query::QueryTarget;
use serde::{Deserialize, Serialize};
use std::{collections::BTreeMap, num::NonZeroUsize, path::PathBuf};

/// Rows of a part, if nothing else is said.
const ROWS_PER_PART: u64 = 1 << 20;
/// Memory of the query engine, if nothing else is said.
const MEMORY: usize = 1 << 30;

/// Compression of the Parquet that is written.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ParquetCompression {
    /// None.
    None,
    /// Snappy: fast.
    #[default]
    Snappy,
    /// Zstandard at its level 1: smaller.
    Zstd,
}

/// Files that come in, columns that are predicted from, and the file or folder that comes out.
///
/// ```
/// use ferroflow_batch::BatchJob;
/// let job = BatchJob {
///     columns: [("keras_tensor".to_string(), "features".to_string())].into(),
///     ..BatchJob::new(["in/*.parquet"], "out.parquet")
/// };
/// assert!(job.query.is_none());
/// ```
#[derive(Debug, Clone)]
pub struct BatchJob {
    /// Files, folders or globs of Parquet or of CSV with a first line of names; all of one schema.
    pub input: Vec<String>,
    /// A file whose name ends in `.parquet`, or a folder of parts.
    pub output: PathBuf,
    /// The column of each input of the signature; an input that is not here has the column of its
    /// name. Queries say their columns themselves.
    pub columns: BTreeMap<String, String>,
    /// Columns of the input to keep beside the outputs; all if `None`. Queries say it themselves.
    pub keep: Option<Vec<String>>,
    /// A query over the table `input` with the function `predict`, whose arguments are the inputs of
    /// the signature, sorted by name. Its rows are the output.
    pub query: Option<String>,
    /// Parts that are worked on at the same time; one per processor if `None`.
    pub threads: Option<NonZeroUsize>,
    /// Rows of a part at most, where the row groups of the input are not larger.
    pub rows_per_part: u64,
    /// Bytes that sorts, joins and groups of a query may take in memory; more go to temporary files.
    pub memory: usize,
    /// Compression of the output.
    pub compression: ParquetCompression,
    /// The scheduler whose executors work on the parts, such as `df://localhost:50050`; this process
    /// if `None`.
    #[cfg(feature = "ballista")]
    pub scheduler: Option<String>,
    /// Discards what another run left, and replaces an existing file.
    pub overwrite: bool,
}

impl BatchJob {
    /// Predictions from columns that have the names of the inputs, beside all columns.
    pub fn new<T: Into<String>>(
        input: impl IntoIterator<Item = T>,
        output: impl Into<PathBuf>,
    ) -> BatchJob {
        BatchJob {
            input: input.into_iter().map(Into::into).collect(),
            output: output.into(),
            columns: BTreeMap::new(),
            keep: None,
            query: None,
            threads: None,
            rows_per_part: ROWS_PER_PART,
            memory: MEMORY,
            compression: ParquetCompression::default(),
            #[cfg(feature = "ballista")]
            scheduler: None,
            overwrite: false,
        }
    }
}

impl BatchJob {
    /// Processes that work on the parts.
    pub(crate) fn target(&self) -> QueryTarget {
        #[cfg(feature = "ballista")]
        if let Some(scheduler) = &self.scheduler {
            return QueryTarget::Scheduler(scheduler.clone());
        }
        QueryTarget::Here
    }
}

/// Signs of life of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum BatchProgress {
    /// The run is planned: rows that will be read, if known, and rows of parts that are there
    /// already.
    Planned {
        /// Rows in all.
        rows: Option<u64>,
        /// Rows that an earlier process has read.
        done: u64,
    },
    /// So many more rows were read.
    Rows(u64),
    /// So many rows that were read are read again.
    Repeated(u64),
    /// Parts are joined to a file.
    Joining,
}

/// Result of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BatchSummary {
    /// Rows that the output has.
    pub rows: u64,
    /// Parts in all.
    pub parts: usize,
    /// Parts that an earlier process left.
    pub resumed: usize,
}
