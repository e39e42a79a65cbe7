//! Synchronous training in several processes, as TensorFlow's `MultiWorkerMirroredStrategy` has it.
//!
//! Every process runs the same program. Variables that it makes in the scope of the strategy begin with
//! the values of the first process; what replicas reduce travels by TensorFlow's cluster protocol, so that
//! some of the processes may be TensorFlow's.
//!
//! ```no_run
//! use ferroflow::{
//!     Tensor, Variable,
//!     distribute::{PerReplica, ReduceOp, replica_context},
//!     multi_worker::MultiWorkerMirroredStrategy,
//! };
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! // TF_CONFIG={"cluster": {"worker": ["a:2222", "b:2222"]}, "task": {"type": "worker", "index": 0}}
//! let strategy = MultiWorkerMirroredStrategy::from_env()?;
//! let w = strategy.scope(|| Variable::new(1.0f32))?;
//! let batch = strategy.split(&Tensor::from(&[1.0f32, 2.0, 3.0, 4.0][..]))?;
//! let loss = strategy.run(&batch, |x: Tensor| {
//!     let local = (x * w.read()?)?.mean(&[0])?;
//!     replica_context()?.all_reduce(ReduceOp::Mean, &local)
//! })?;
//! println!("{} replicas: {:?}", strategy.num_replicas_in_sync(), loss.values()[0]);
//! # Ok(())
//! # }
//! ```

#[cfg(unix)]
mod preemption;

use ferroflow_cluster::{ClusterConfig, ClusterWorker, JoinOptions};
use ferroflow_tracer::{self as tracer, distribute::Strategy};
use std::ops::Deref;

#[cfg(unix)]
pub use preemption::{PreemptionCheckpoint, PreemptionError};

/// A replica in each process of a cluster, with variables mirrored in all of them.
#[derive(Debug, Clone)]
pub struct MultiWorkerMirroredStrategy {
    strategy: Strategy,
    index: usize,
}

impl Deref for MultiWorkerMirroredStrategy {
    type Target = Strategy;

    fn deref(&self) -> &Strategy {
        &self.strategy
    }
}

impl MultiWorkerMirroredStrategy {
    /// The strategy of the cluster that the environment of this process says: by `TF_CONFIG`, Slurm, Open
    /// MPI, or `RANK` and `WORLD_SIZE` ([`ClusterConfig::from_env`]). Returns when all processes have come.
    ///
    /// # Errors
    ///
    /// As [`join`](Self::join); [`ferroflow_cluster::Error::Environment`] where the environment says no cluster.
    pub fn from_env() -> tracer::Result<MultiWorkerMirroredStrategy> {
        let config = ClusterConfig::from_env().map_err(ferroflow_runtime::Error::from)?;
        MultiWorkerMirroredStrategy::join(&config, &JoinOptions::default())
    }

    /// The strategy of a cluster, of which this process is one task.
    ///
    /// # Errors
    ///
    /// When the address of the task cannot be listened on, or the others do not come in time; the status
    /// codes are `Unavailable` and `DeadlineExceeded`.
    pub fn join(
        config: &ClusterConfig,
        options: &JoinOptions,
    ) -> tracer::Result<MultiWorkerMirroredStrategy> {
        let worker =
            ClusterWorker::join(config, options).map_err(ferroflow_runtime::Error::from)?;
        let (engine, index) = (worker.engine(), worker.index());
        Ok(MultiWorkerMirroredStrategy { strategy: Strategy::with_engine("CPU:0", engine)?, index })
    }

    /// The number of this process's task.
    pub fn task_index(&self) -> usize {
        self.index
    }

    /// Whether this process is the one that writes checkpoints and summaries.
    pub fn is_chief(&self) -> bool {
        self.index == 0
    }
}
