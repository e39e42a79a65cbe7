//! Settings of predictors, and where they come from.

use serde::{Deserialize, Serialize};
use std::{num::NonZeroUsize, path::PathBuf};

/// Columns that outputs of dtype string become.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum StringColumns {
    /// UTF-8; other bytes are an error.
    #[default]
    Text,
    /// Bytes as they are.
    Binary,
}

/// Settings of a [`BatchPredictor`].
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct PredictorOptions {
    /// The signature; `serving_default`, or the only one, if `None`.
    pub signature: Option<String>,
    /// The tags of the MetaGraph; may be left out where there is one only.
    pub tags: Option<Vec<String>>,
    /// The most rows of one call of the model; 8192, or as many as have 32 MiB of inputs, if
    /// `None`.
    pub batch_size: Option<NonZeroUsize>,
    /// Columns that outputs of dtype string become.
    pub strings: StringColumns,
    /// Threads that share the work of one op; one per processor if `None`.
    pub threads: Option<NonZeroUsize>,
}

/// The folder and the settings of a predictor.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(crate) struct ModelOrigin {
    pub(crate) folder: PathBuf,
    pub(crate) options: PredictorOptions,
    /// Fingerprint of the model's files.
    pub(crate) fingerprint: String,
}
