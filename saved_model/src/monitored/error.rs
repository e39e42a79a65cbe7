//! Faults of monitored sessions, as data.

use ferroflow_ir::Code;
use std::time::Duration;

/// Fault of a monitored session, of its pieces or of its hooks.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum MonitoredError {
    /// A session runs although a hook or a step asked it to stop.
    #[error("the session runs no more: it was asked to stop")]
    RunAfterStop,
    /// A step asks the session to stop; [`run_until_stop`] takes it for the end of the loop.
    ///
    /// [`run_until_stop`]: super::MonitoredSession::run_until_stop
    #[error("the step asked the session to stop")]
    StopRequested,
    /// A tensor is fed twice in one run.
    #[error("tensor `{tensor}` is fed by {first} and by {second}")]
    FedTwice {
        /// The tensor.
        tensor: String,
        /// Source of the first value.
        first: String,
        /// Source of the second value.
        second: String,
    },
    /// A watched tensor is NaN.
    #[error("the model diverged: tensor `{tensor}` is NaN")]
    NanLoss {
        /// The tensor.
        tensor: String,
    },
    /// A hook counts steps in a graph without a counter.
    #[error(
        "{hook} needs the global step: the graph has no collection `global_step` and no node of this \
         name"
    )]
    NoGlobalStep {
        /// The hook.
        hook: &'static str,
    },
    /// The global step of a graph is no integer scalar.
    #[error("the global step `{tensor}` is an integer scalar, found {found}")]
    BadGlobalStep {
        /// The tensor.
        tensor: String,
        /// Value found.
        found: String,
    },
    /// A collection has several items where there can be one.
    #[error("collection `{key}` has {n} items: set the piece of the scaffold that is meant")]
    Ambiguous {
        /// The key of the collection.
        key: &'static str,
        /// The number of items.
        n: usize,
    },
    /// A collection has items of another kind than TensorFlow writes there.
    #[error("collection `{key}` has no {expected}")]
    BadCollection {
        /// The key of the collection.
        key: &'static str,
        /// Kind of items expected.
        expected: &'static str,
    },
    /// A model is not ready although its initialisers ran, or its checkpoint was restored.
    #[error("the model is not ready {after}: {missing}")]
    NotReady {
        /// Actions after which it should be.
        after: String,
        /// State that is missing.
        missing: String,
    },
    /// A model did not become ready while a worker, or a hook, waited for it.
    #[error("the model was not ready after {waited:?}: {missing}")]
    NeverReady {
        /// Time waited.
        waited: Duration,
        /// State that is missing.
        missing: String,
    },
    /// The system has no thread for a queue runner.
    #[error("no thread can be started to fill the queue `{queue}`: {reason}")]
    NoThread {
        /// The queue.
        queue: String,
        /// Message of the system.
        reason: String,
    },
    /// A listener refuses the checkpoint, a hook the run: an error of user code.
    #[error("{message}")]
    Hook {
        /// The status code.
        code: Code,
        /// Message of the hook.
        message: String,
    },
}

impl MonitoredError {
    /// The status code.
    pub fn code(&self) -> Code {
        match self {
            MonitoredError::RunAfterStop
            | MonitoredError::NotReady { .. }
            | MonitoredError::NoGlobalStep { .. } => Code::FailedPrecondition,
            MonitoredError::StopRequested => Code::Cancelled,
            MonitoredError::FedTwice { .. }
            | MonitoredError::NanLoss { .. }
            | MonitoredError::BadGlobalStep { .. }
            | MonitoredError::Ambiguous { .. }
            | MonitoredError::BadCollection { .. } => Code::InvalidArgument,
            MonitoredError::NoThread { .. } => Code::ResourceExhausted,
            MonitoredError::NeverReady { .. } => Code::DeadlineExceeded,
            MonitoredError::Hook { code, .. } => *code,
        }
    }
}
