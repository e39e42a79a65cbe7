//! The error type of this crate.

use ferroflow_ir::Code;

/// The result of a fallible operation.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Why a process is not part of a cluster.
#[derive(Debug, Clone, thiserror::Error)]
pub enum Error {
    /// The environment does not say which cluster, or says it wrongly.
    #[error("{variable}: {problem}")]
    Environment {
        /// The variable of the environment.
        variable: &'static str,
        /// The problem.
        problem: String,
    },
    /// A port that cannot be listened on.
    #[error("cannot listen on {address}: {reason}")]
    Listen {
        /// The address.
        address: String,
        /// Why.
        reason: String,
    },
    /// A task that did not answer, or refused.
    #[error("{task} ({address}) did not answer {call}: {reason}")]
    Task {
        /// The task.
        task: String,
        /// The address it should have.
        address: String,
        /// The method that was called.
        call: &'static str,
        /// The reason of the failure.
        reason: String,
        /// The status code.
        code: Code,
    },
    /// A part of this process that could not be started.
    #[error("cannot start {what}: {reason}")]
    Start {
        /// The part.
        what: &'static str,
        /// Why.
        reason: String,
    },
}

impl Error {
    /// The status code TensorFlow would report.
    pub fn code(&self) -> Code {
        match self {
            Error::Environment { .. } => Code::InvalidArgument,
            Error::Listen { .. } | Error::Start { .. } => Code::Unavailable,
            Error::Task { code, .. } => *code,
        }
    }
}

impl From<Error> for ferroflow_runtime::Error {
    fn from(error: Error) -> ferroflow_runtime::Error {
        let (code, message) = (error.code(), error.to_string());
        ferroflow_runtime::Error::Status { code, message }
    }
}
