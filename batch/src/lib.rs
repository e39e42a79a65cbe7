//! Batch inference: SavedModels over tables.

pub mod error;
mod fingerprint;
mod from_tensor;
mod input;
mod job;
mod manifest;
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
pub use predictor::{BatchPredictor, PredictorOptions, StringColumns};
pub use run::{ProgressListener, run};
pub use udf::predict_udf;
