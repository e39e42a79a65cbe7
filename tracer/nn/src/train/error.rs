//! Errors of trainings.

use std::error::Error;

/// A training that ended before its time.
#[derive(Debug, thiserror::Error)]
pub enum TrainError {
    /// The network, the loss, a metric or the optimizer refused a batch.
    #[error("batch {batch} of epoch {epoch}: {source}")]
    Step {
        /// The epoch, from 0 on.
        epoch: u64,
        /// The batch of the epoch, from 0 on.
        batch: usize,
        /// The reason.
        source: Box<ferroflow_tracer::Error>,
    },
    /// The examples ended in an error.
    #[error("examples of epoch {epoch}, after {batch} batches: {source}")]
    Examples {
        /// The epoch.
        epoch: u64,
        /// The batches that came before.
        batch: usize,
        /// The error of the examples.
        source: Box<dyn Error + Send + Sync>,
    },
    /// A batch that is not inputs and targets, and perhaps weights.
    #[error(
        "batch {batch} of epoch {epoch} has {found} tensors; inputs, targets and optional weights \
         are expected"
    )]
    Batch {
        /// The epoch.
        epoch: u64,
        /// The batch.
        batch: usize,
        /// The number of tensors.
        found: usize,
    },
    /// A callback failed.
    #[error("callback after epoch {epoch}: {source}")]
    Callback {
        /// The epoch.
        epoch: u64,
        /// The error of the callback.
        source: Box<dyn Error + Send + Sync>,
    },
    /// A figure is monitored that no metric has.
    #[error("no figure `{name}` is logged; there are {known}")]
    Monitor {
        /// The name.
        name: String,
        /// The names there are.
        known: String,
    },
    /// State of the trainer cannot be read or written.
    #[error(transparent)]
    State(Box<ferroflow_tracer::Error>),
}

impl From<ferroflow_tracer::Error> for TrainError {
    fn from(error: ferroflow_tracer::Error) -> TrainError {
        TrainError::State(Box::new(error))
    }
}
