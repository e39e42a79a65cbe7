//! Model and optimizer of a training.

use crate::{Layer, optimizers::Optimizer};
use ferroflow_tracer::{Result, Variable};
use std::{fmt, sync::Arc};

/// The objects of a training, as callbacks see them.
#[derive(Clone)]
pub struct Training {
    pub(super) network: Arc<dyn Layer>,
    pub(super) optimizer: Optimizer,
    pub(super) epoch: Variable,
    pub(super) batch: Variable,
}

impl Training {
    /// The network.
    pub fn network(&self) -> &Arc<dyn Layer> {
        &self.network
    }

    /// The optimizer.
    pub fn optimizer(&self) -> &Optimizer {
        &self.optimizer
    }

    /// The number of epochs that are finished, an `int64`.
    pub fn epoch(&self) -> &Variable {
        &self.epoch
    }

    /// The number of batches that are finished of the present epoch, an `int64`: not 0 before an epoch
    /// that is resumed.
    pub fn batch(&self) -> &Variable {
        &self.batch
    }

    /// The value of [`batch`](Training::batch).
    pub(super) fn n_batches_done(&self) -> Result<usize> {
        let n = self.batch.read()?.to_scalar::<i64>()?;
        Ok(usize::try_from(n).unwrap_or_default())
    }
}

impl fmt::Debug for Training {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Training").field("epoch", &self.epoch).finish_non_exhaustive()
    }
}
