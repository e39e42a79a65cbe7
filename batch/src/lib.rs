//! Batch inference: SavedModels over tables.

pub mod error;
mod from_tensor;
mod predictor;
mod to_tensor;
mod udf;

pub use datafusion;
pub use error::{Error, Result};
pub use predictor::{BatchPredictor, PredictorOptions, StringColumns};
pub use udf::predict_udf;
