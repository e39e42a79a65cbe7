//! The error type of this crate.

use ferroflow_ir::Code;

/// The result of a fallible operation on nests and functions.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// What can go wrong between Rust values and functions.
#[derive(Debug, Clone, thiserror::Error)]
pub enum Error {
    /// The program is wrong, or its data does not fit it.
    #[error(transparent)]
    Runtime(#[from] ferroflow_runtime::Error),
    /// A value that takes another number of tensors than there are.
    #[error("{ty} takes {}{expected} tensors, found {found}", if *.at_least { "at least " } else { "" })]
    Leaves {
        /// The Rust type of the value.
        ty: &'static str,
        /// The tensors it takes.
        expected: usize,
        /// Whether it could take more.
        at_least: bool,
        /// The tensors there are.
        found: usize,
    },
}

impl Error {
    /// The status code TensorFlow would report.
    pub fn code(&self) -> Code {
        match self {
            Error::Runtime(error) => error.code(),
            Error::Leaves { .. } => Code::InvalidArgument,
        }
    }
}

impl From<ferroflow_ir::Error> for Error {
    fn from(error: ferroflow_ir::Error) -> Error {
        Error::Runtime(error.into())
    }
}
