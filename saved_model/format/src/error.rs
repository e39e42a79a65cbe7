//! The error type of this crate.

use ferroflow_ir::{Code, Shape};
use std::{borrow::Cow, io, path::PathBuf};

/// The result of a fallible operation on files.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Fault of a file or of its content.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The system cannot open or read a file.
    #[error("{}: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// Error of the system.
        source: io::Error,
    },
    /// A file that is too short for what it says it holds.
    #[error("{}: {needed} bytes are needed, the file has {found}", path.display())]
    Truncated {
        /// The file.
        path: PathBuf,
        /// The length the content asks for, in bytes.
        needed: u64,
        /// The length of the file, in bytes.
        found: u64,
    },
    /// Bytes that break the file format.
    #[error("{}: damaged at byte {offset}: {what}", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// Where in the file the damaged part begins, in bytes.
        offset: u64,
        /// The rule that is broken.
        what: Cow<'static, str>,
    },
    /// Bytes that do not return the checksum stored with them.
    #[error(
        "{}: bytes {offset} to {} have checksum {found:#010x}, {expected:#010x} is stored",
        path.display(),
        offset + len
    )]
    Checksum {
        /// The file.
        path: PathBuf,
        /// Where the bytes begin.
        offset: u64,
        /// Their number.
        len: u64,
        /// The masked checksum that is stored.
        expected: u32,
        /// The masked checksum of the bytes.
        found: u32,
    },
    /// Bytes that are not the message they should be.
    #[error("{}: not a valid {message}: {source}", path.display())]
    Message {
        /// The file.
        path: PathBuf,
        /// The message type.
        message: &'static str,
        /// Fault of the encoding.
        source: prost::DecodeError,
    },
    /// Text that is not the message it should be.
    #[error("{}: not a valid {message}: {what}", path.display())]
    TextMessage {
        /// The file.
        path: PathBuf,
        /// The message type.
        message: &'static str,
        /// Fault of the text.
        what: Box<str>,
    },
    /// A line of a text file that does not parse.
    #[error("{}:{line}: expected {expected}, found `{found}`", path.display())]
    Text {
        /// The file.
        path: PathBuf,
        /// The line, counted from 1.
        line: usize,
        /// Values that may stand there.
        expected: &'static str,
        /// Value found.
        found: String,
    },
    /// No file of a checkpoint exists.
    #[error("{}: there is no checkpoint of this name", prefix.display())]
    NoCheckpoint {
        /// The checkpoint's path without suffixes.
        prefix: PathBuf,
    },
    /// A checkpoint has no tensor of this name.
    #[error("{}: the checkpoint has no tensor `{key}`", prefix.display())]
    NoTensor {
        /// The checkpoint's path without suffixes.
        prefix: PathBuf,
        /// The name.
        key: String,
    },
    /// A slice that does not fit the tensor it is taken from.
    #[error("slice `{slice}` of a tensor of shape {shape}: {rule}")]
    Slice {
        /// The slice, as text.
        slice: String,
        /// The shape of the tensor.
        shape: Shape,
        /// The rule that is broken.
        rule: &'static str,
    },
    /// Something is wrong with one tensor of a checkpoint.
    #[error("tensor `{key}`: {source}")]
    Tensor {
        /// The tensor's name.
        key: String,
        /// Cause.
        source: Box<Error>,
    },
    /// A name that is not UTF-8, which the file that lists checkpoints cannot hold.
    #[error("{}: a checkpoint that is listed needs a name in UTF-8", path.display())]
    NameNotUtf8 {
        /// The path of the checkpoint.
        path: PathBuf,
    },
    /// A variant of the format that is not implemented.
    #[error("{}: not supported: {what}", path.display())]
    Unsupported {
        /// The file.
        path: PathBuf,
        /// Name of the request.
        what: Cow<'static, str>,
    },
    /// Something is wrong with a program, a tensor or a limit.
    #[error(transparent)]
    Program(Box<ferroflow_ir::Error>),
}

impl Error {
    /// The status code TensorFlow would report.
    pub fn code(&self) -> Code {
        match self {
            Error::Io { source, .. } => io_code(source.kind()),
            Error::Truncated { .. } => Code::OutOfRange,
            Error::Damaged { .. } | Error::Checksum { .. } | Error::Message { .. } => {
                Code::DataLoss
            }
            Error::Text { .. }
            | Error::TextMessage { .. }
            | Error::Slice { .. }
            | Error::NameNotUtf8 { .. } => Code::InvalidArgument,
            Error::NoCheckpoint { .. } | Error::NoTensor { .. } => Code::NotFound,
            Error::Tensor { source, .. } => source.code(),
            Error::Unsupported { .. } => Code::Unimplemented,
            Error::Program(source) => source.code(),
        }
    }

    /// Adds which tensor the error is about.
    #[must_use]
    pub(crate) fn at_tensor(self, key: &str) -> Error {
        Error::Tensor { key: key.into(), source: Box::new(self) }
    }
}

impl From<ferroflow_ir::Error> for Error {
    fn from(source: ferroflow_ir::Error) -> Error {
        Error::Program(Box::new(source))
    }
}

/// The status code TensorFlow would report for an error of the system.
pub fn io_code(kind: io::ErrorKind) -> Code {
    match kind {
        io::ErrorKind::NotFound => Code::NotFound,
        io::ErrorKind::PermissionDenied => Code::PermissionDenied,
        io::ErrorKind::UnexpectedEof => Code::OutOfRange,
        io::ErrorKind::OutOfMemory => Code::ResourceExhausted,
        _ => Code::Unavailable,
    }
}
