//! The error type of this crate.

use crate::monitored::MonitoredError;
use ferroflow_format::{Error as FormatError, error::io_code};
use ferroflow_ir::Code;
use std::{io, path::PathBuf};

/// The result of a fallible operation on models.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Fault of a model, or of how it is used.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The system cannot open, read or write a file.
    #[error("{}: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// Error of the system.
        source: io::Error,
    },
    /// Something is wrong with one tensor of a checkpoint.
    #[error("tensor `{key}`: {source}")]
    Tensor {
        /// The tensor's name.
        key: String,
        /// Cause.
        source: Box<Error>,
    },
    /// A SavedModel has no MetaGraph with the tags asked for, or several to choose from.
    #[error("{}: {}; there are {available:?}", folder.display(), match asked {
        Some(asked) => format!("no MetaGraph has the tags {asked:?}"),
        None => "tags must be given to choose a MetaGraph".into(),
    })]
    NoMetaGraph {
        /// The folder of the SavedModel.
        folder: PathBuf,
        /// The tags asked for.
        asked: Option<Vec<String>>,
        /// The tags of each MetaGraph.
        available: Vec<Vec<String>>,
    },
    /// An asset that the MetaGraph does not list.
    #[error("asset {index} does not exist: the MetaGraph has {n_assets}")]
    NoAsset {
        /// The asset.
        index: i32,
        /// The number of assets.
        n_assets: usize,
    },
    /// The name of an asset leads out of the model's folder.
    #[error("asset `{}` is not a file in the model's folder", path.display())]
    AssetPath {
        /// The name.
        path: PathBuf,
    },
    /// A model has no signature of this name.
    #[error("there is no signature `{name}`; there are {available:?}")]
    NoSignature {
        /// The name.
        name: String,
        /// The names of all signatures.
        available: Vec<String>,
    },
    /// An op of a namespace that may not be saved.
    #[error(
        "op {op} is not saved: of ops with a namespace, those of [{}] may be, and `{namespace}` is not \
         among them",
        allowed.join(", ")
    )]
    OpNamespace {
        /// The op.
        op: String,
        /// Its namespace.
        namespace: String,
        /// The namespaces that may be saved.
        allowed: Vec<String>,
    },
    /// An input that a signature does not take.
    #[error("signature `{signature}`: {input} must be {expected}, found {found}")]
    SignatureInput {
        /// The signature.
        signature: String,
        /// Name of the input, or of the fault of all of them.
        input: String,
        /// Requirement.
        expected: String,
        /// Value found.
        found: String,
    },
    /// Variables that a model has and its checkpoint does not.
    #[error("{}: the checkpoint has no values for the variables {names:?}", prefix.display())]
    NotRestored {
        /// The checkpoint's path without suffixes.
        prefix: PathBuf,
        /// The variables.
        names: Vec<String>,
    },
    /// Values of a checkpoint that no object has taken over.
    #[error("{}: no object takes over the values {keys:?} of the checkpoint", prefix.display())]
    NotConsumed {
        /// The checkpoint's path without suffixes.
        prefix: PathBuf,
        /// The keys of the values.
        keys: Vec<String>,
    },
    /// An object of another type than is asked for.
    #[error("the object was saved as `{found}`, not as `{expected}`")]
    OtherType {
        /// The type asked for.
        expected: &'static str,
        /// The type it was saved as.
        found: String,
    },
    /// A new object cannot be made, as a function would use state of the old one.
    #[error(
        "the object cannot be constructed anew: function `{function}` uses state that the object does \
         not lead to"
    )]
    NotConstructible {
        /// The function.
        function: String,
    },
    /// A function uses state that the saved object does not lead to.
    #[error(
        "function `{function}` uses {kind} `{name}`, which the saved object does not lead to: make it \
         a field of the object, or of one of its fields"
    )]
    Untracked {
        /// The function.
        function: String,
        /// Kind of the state.
        kind: &'static str,
        /// Its name.
        name: String,
    },
    /// A function uses a value that lives in a program only.
    #[error(
        "function `{function}` uses a value that lives in this program only, such as a data set, and \
         that files do not hold: make what it needs an argument, or load it with a model"
    )]
    HostValue {
        /// The function.
        function: String,
    },
    /// A function that was never traced, where that is not allowed.
    #[error(
        "function `{function}` has no trace to save: call it, give it an input signature, or ask for \
         the trace of some types"
    )]
    Untraced {
        /// The function.
        function: String,
    },
    /// Two parameters of a function have the same name in Python, where TensorFlow loads it.
    #[error(
        "function `{function}` cannot be saved: its parameters `{first}` and `{second}` are both \
         `{python}` in TensorFlow; give one of them another name (`with_parameters`)"
    )]
    ParameterNames {
        /// The function.
        function: String,
        /// A parameter.
        first: String,
        /// The other one.
        second: String,
        /// The name that TensorFlow makes of both.
        python: String,
    },
    /// A function that cannot be a signature.
    #[error("function `{function}` cannot be the signature `{signature}`: {rule}")]
    NotASignature {
        /// The name of the signature.
        signature: String,
        /// The function.
        function: String,
        /// Rule that is broken.
        rule: String,
    },
    /// An object has something else instead of its signatures.
    #[error(
        "the name `signatures` is kept for the signatures of loaded objects, found {found} of this \
         name: give it another name, and give signatures when saving"
    )]
    SignaturesTaken {
        /// State found.
        found: String,
    },
    /// A session of a graph alone is to be saved as a model.
    #[error(
        "the session was not loaded from a SavedModel, so there are no signatures to save: \
         `simple_save` makes one"
    )]
    NotASavedModel,
    /// A function tries to save while it is traced.
    #[error("models are saved by eager code, not by functions while they are traced")]
    WhileTracing,
    /// An object of a model contradicts the others.
    #[error("object {id}: {rule}")]
    Object {
        /// The object's number.
        id: usize,
        /// Rule that is broken.
        rule: String,
    },
    /// A path from object to object leads nowhere.
    #[error("`{path}` leads nowhere: there is no `{name}`; there are {available:?}")]
    NoObject {
        /// The path.
        path: String,
        /// The name that is not there.
        name: String,
        /// The names that are there.
        available: Vec<String>,
    },
    /// Something is called that cannot be.
    #[error("{found} cannot be called")]
    NotAFunction {
        /// Kind found.
        found: &'static str,
    },
    /// Something is read that has no value.
    #[error("{found} has no value")]
    NotATensor {
        /// Kind found.
        found: &'static str,
    },
    /// Arguments that do not go with a function's parameters.
    #[error("wrong arguments: {rule}")]
    Arguments {
        /// The rule that is broken.
        rule: String,
    },
    /// Arguments for which a function was not traced.
    #[error(
        "the function was not traced for the arguments {arguments}; it was for {}",
        if available.is_empty() { "none".into() } else { available.join(" or ") }
    )]
    NoTrace {
        /// The arguments.
        arguments: String,
        /// The arguments of each trace.
        available: Vec<String>,
    },
    /// A function failed.
    #[error(transparent)]
    Runtime(Box<ferroflow_runtime::Error>),
    /// A file is damaged or in a form that is not supported, or a checkpoint lacks what is asked of
    /// it.
    #[error(transparent)]
    Format(Box<FormatError>),
    /// Something is wrong with a program, a tensor or a limit.
    #[error(transparent)]
    Program(Box<ferroflow_ir::Error>),
    /// Something is wrong with a monitored session.
    #[error(transparent)]
    Monitored(Box<MonitoredError>),
}

impl Error {
    /// The status code TensorFlow would report.
    pub fn code(&self) -> Code {
        match self {
            Error::Io { source, .. } => io_code(source.kind()),
            Error::Tensor { source, .. } => source.code(),
            Error::NoAsset { .. }
            | Error::SignatureInput { .. }
            | Error::OpNamespace { .. }
            | Error::Object { .. }
            | Error::NotAFunction { .. }
            | Error::NotATensor { .. }
            | Error::Arguments { .. }
            | Error::OtherType { .. }
            | Error::NotConstructible { .. }
            | Error::Untracked { .. }
            | Error::HostValue { .. }
            | Error::NotASignature { .. }
            | Error::ParameterNames { .. }
            | Error::SignaturesTaken { .. }
            | Error::NoTrace { .. } => Code::InvalidArgument,
            Error::NoMetaGraph { .. }
            | Error::NoSignature { .. }
            | Error::NotRestored { .. }
            | Error::NotConsumed { .. }
            | Error::NoObject { .. } => Code::NotFound,
            Error::Untraced { .. } | Error::WhileTracing | Error::NotASavedModel => {
                Code::FailedPrecondition
            }
            Error::AssetPath { .. } => Code::PermissionDenied,
            Error::Format(source) => source.code(),
            Error::Program(source) => source.code(),
            Error::Runtime(source) => source.code(),
            Error::Monitored(source) => source.code(),
        }
    }

    /// Adds which tensor the error is about.
    #[must_use]
    pub(crate) fn at_tensor(self, key: &str) -> Error {
        Error::Tensor { key: key.into(), source: Box::new(self) }
    }

    /// The error as one of the runtime: itself, or what it says.
    pub(crate) fn into_runtime(self) -> ferroflow_runtime::Error {
        match self {
            Error::Runtime(error) => *error,
            other => {
                let (code, message) = (other.code(), other.to_string());
                ferroflow_runtime::Error::Status { code, message }
            }
        }
    }
}

impl From<FormatError> for Error {
    fn from(source: FormatError) -> Error {
        match source {
            FormatError::Io { path, source } => Error::Io { path, source },
            FormatError::Tensor { key, source } => Error::from(*source).at_tensor(&key),
            FormatError::Program(error) => Error::Program(error),
            other => Error::Format(Box::new(other)),
        }
    }
}

impl From<ferroflow_ir::Error> for Error {
    fn from(source: ferroflow_ir::Error) -> Error {
        Error::Program(Box::new(source))
    }
}

impl From<MonitoredError> for Error {
    fn from(source: MonitoredError) -> Error {
        Error::Monitored(Box::new(source))
    }
}

impl From<ferroflow_runtime::Error> for Error {
    fn from(source: ferroflow_runtime::Error) -> Error {
        Error::Runtime(Box::new(source))
    }
}

impl From<ferroflow_runtime::kernels::Error> for Error {
    fn from(source: ferroflow_runtime::kernels::Error) -> Error {
        ferroflow_runtime::Error::from(source).into()
    }
}
