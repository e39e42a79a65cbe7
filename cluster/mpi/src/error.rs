//! Why a process cannot be a rank.

/// The result of a fallible operation of this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Fault of a process that is to be a rank of an MPI job. Collectives fail with
/// [`CollectiveError`](ferroflow_runtime::collective::CollectiveError).
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// MPI starts once in a process.
    #[error("MPI has been initialized in this process before")]
    Initialized,
    /// The thread that is to call MPI cannot be started.
    #[error("the thread that calls MPI: {0}")]
    Thread(#[from] std::io::Error),
    /// The thread that calls MPI has ended.
    #[error("the thread that calls MPI has ended")]
    Ended,
}
