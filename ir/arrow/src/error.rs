//! The error type of this crate.

use arrow_schema::{ArrowError, DataType};

/// The result of making a tensor of a column.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Reason for which a column is no tensor.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A value that is missing. Tensors have none for it.
    #[error("row {row}: a value is missing (null)")]
    Null {
        /// The row.
        row: u64,
    },
    /// Lists of different lengths.
    #[error("row {row}: a list of {found} elements, where {expected} are expected")]
    ListLength {
        /// The row.
        row: u64,
        /// The length of the first list.
        expected: usize,
        /// The length of this list.
        found: usize,
    },
    /// A type that tensors do not have, such as dates, decimals and structures.
    #[error("values of {found} are no elements of tensors")]
    Type {
        /// The type of the column.
        found: DataType,
    },
    /// A column that contradicts itself.
    #[error(transparent)]
    Arrow(#[from] ArrowError),
    /// A tensor that is too large.
    #[error(transparent)]
    Tensor(#[from] ferroflow_ir::Error),
}
