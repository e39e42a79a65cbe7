//! Data for training: files as tensors, tensors as batches.
//!
//! [`Arrays`] hold examples in memory and give them in shuffled [batches](Arrays::batches), the
//! same ones for the same seed; [`read_idx`], [`read_csv`] and [`npy`](crate::npy) fill them.
//! [`record_batches`] goes through files of records, which need not fit into memory. A
//! [`DataPipeline`] maps, filters, shuffles, interleaves, caches and batches items of any kind, on
//! several threads where that is asked for. [`prefetch`] prepares what comes next on a thread while
//! the program computes; [`Progress`] shows how a training goes.
//!
//! ```
//! use ferroflow::{Tensor, data::{Arrays, BatchOptions, prefetch}};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let x = Tensor::from(vec![0.0f32, 1.0, 2.0, 3.0, 4.0]).host()?.clone();
//! let examples = Arrays::new([x])?;
//! let options = BatchOptions { size: 2, shuffle: Some(7), ..BatchOptions::default() };
//! let mut n = 0;
//! for epoch in 0..3 {
//!     for batch in prefetch(examples.batches(&options, epoch), 2) {
//!         n += batch?[0].host()?.len();
//!     }
//! }
//! assert_eq!(n, 15);
//! # Ok(())
//! # }
//! ```

mod arrays;
mod csv;
mod idx;
mod pipeline;
mod prefetch;
#[cfg(feature = "progress")]
mod progress;
mod random;
mod records;
#[cfg(feature = "tables")]
mod table;

use std::{io, path::PathBuf};

pub use arrays::{ArrayEpochs, Arrays, BatchOptions, Batches};
pub use csv::read_csv;
pub use idx::read_idx;
pub use pipeline::{DataPipeline, Example, ImageFolder, PipelineItems};
pub use prefetch::{Prefetch, prefetch};
#[cfg(feature = "progress")]
pub use progress::Progress;
pub use records::{RecordBatches, record_batches};
#[cfg(feature = "tables")]
pub use table::TableFiles;

/// The result of reading data.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Fault of data.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A file cannot be read.
    #[error("{}: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// Error of the system.
        source: io::Error,
    },
    /// A file is not what its format asks for.
    #[error("{}: {what}", path.display())]
    Format {
        /// The file.
        path: PathBuf,
        /// The rule that is broken, and where.
        what: String,
    },
    /// Arrays that do not have the same number of rows.
    #[error("array {index} has {found} rows, the first one {expected}")]
    Rows {
        /// The array.
        index: usize,
        /// The rows of the first one.
        expected: usize,
        /// Its rows.
        found: usize,
    },
    /// A damaged file of records.
    #[error(transparent)]
    Records(#[from] ferroflow_format::Error),
    /// Read data makes no tensor.
    #[error(transparent)]
    Tensor(#[from] ferroflow_ir::Error),
    /// Examples that do not fit into one batch.
    #[error("example {index} of the batch, tensor {tensor}: {found} beside {expected}")]
    Batch {
        /// The example, counted in its batch.
        index: usize,
        /// The tensor of the example.
        tensor: usize,
        /// Dtype and shape of the first example's.
        expected: String,
        /// Those of this one.
        found: String,
    },
    /// An error of a function that the program passed.
    #[error(transparent)]
    Function(Box<dyn std::error::Error + Send + Sync>),
}
