//! Batch inference: SavedModels over tables, as a function of SQL and over files of Parquet.
//!
//! ```
//! use datafusion::prelude::{ParquetReadOptions, SessionContext};
//! use ferroflow_batch::{BatchJob, BatchPredictor, PredictorOptions, predict_udf, run};
//! use std::sync::Arc;
//! # #[tokio::main]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let model = concat!(env!("CARGO_MANIFEST_DIR"), "/../tests/zoo/k3_mlp/model");
//! # let folder = tempfile::tempdir()?;
//! # let (input, output) = (folder.path().join("in.parquet"), folder.path().join("out.parquet"));
//! # let (input, output) = (input.to_str().ok_or("UTF-8")?, output.to_str().ok_or("UTF-8")?);
//! let predictor = Arc::new(BatchPredictor::load(model, &PredictorOptions::default())?);
//! let session = SessionContext::new();
//! session.register_udf(predict_udf("predict", predictor, &["keras_tensor"])?);
//! let rows = "SELECT arrow_cast(make_array(n, 1, 2, 3, 4, 5, 6, 7), 'List(Float32)') AS keras_tensor \
//!             FROM (VALUES (1), (2)) t(n)";
//! let query = format!("COPY ({rows}) TO '{input}' STORED AS PARQUET");
//! session.sql(&query).await?.collect().await?;
//!
//! let job = BatchJob::new([input], output);
//! let summary = run(model, &PredictorOptions::default(), job, Arc::new(|_| {})).await?;
//! assert_eq!(summary.rows, 2);
//!
//! session.register_parquet("found", output, ParquetReadOptions::default()).await?;
//! let same = "SELECT count(*) FROM found WHERE predict(keras_tensor) = output_0";
//! session.sql(same).await?.show().await?;
//! # Ok(())
//! # }
//! ```
//!
//! - [`BatchPredictor`] is a signature of a loaded model that is called on columns.
//! - [`predict_udf`] makes it a scalar function of DataFusion.
//! - [`run()`] is a job over files, described by a [`BatchJob`]; the program `ferroflow-batch` is its
//!   command line.
//!
//! # Invariants
//!
//! - **Values are never converted silently.** A column of another dtype than the input's, a null, or
//!   lists of different lengths end in an [`Error`] with the column, and the row where there is one.
//! - **Numbers are copied once, as one block**, from a column into its tensor; results keep the memory
//!   of their tensors. Strings with offsets are shared with the tensor.
//! - **Memory is bounded** by batches, row groups and the memory of the query engine, not by rows.
//! - **A part that has its name is complete.** What a killed run leaves is used by the next one, if it
//!   is of the same model, inputs and settings, and refused otherwise.
//!
//! # What is absent on purpose
//!
//! Rows that are left over are not padded: a model that takes exactly so many rows at once gets them
//! or an error. Files are those of the local disk.

#[cfg(feature = "ballista")]
pub mod distributed;
pub mod error;
mod fingerprint;
mod from_tensor;
mod input;
mod job;
mod manifest;
mod options;
mod output;
mod predictor;
mod query;
mod run;
mod scan;
mod to_tensor;
mod udf;

pub use datafusion;
pub use error::{Error, Result};
pub use job::{BatchJob, BatchProgress, BatchSummary, ParquetCompression};
pub use options::{PredictorOptions, StringColumns};
pub use predictor::BatchPredictor;
pub use run::{ProgressListener, run};
pub use udf::predict_udf;

/// The chapter of the book.
#[cfg(doctest)]
#[doc = include_str!("../../docs/book/src/batch.md")]
mod book {}
