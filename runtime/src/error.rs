//! The error type of this crate.

use crate::collective::CollectiveError;
use ferroflow_ir::{
    Code, DType, PartialShape, Shape,
    budget::Interruption,
    error::{SourceLocation, at},
};

/// The result of a fallible operation.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Failures of a program that runs.
#[derive(Debug, Clone, thiserror::Error)]
pub enum Error {
    /// The program itself is wrong, or its data does not fit it.
    #[error(transparent)]
    Ir(ferroflow_ir::Error),
    /// A device cannot do it.
    #[error(transparent)]
    Kernel(ferroflow_kernels::Error),
    /// An error in a named node of a function.
    #[error("{source} (node `{node}`, op {op}, function `{function}`{})", at(*.location))]
    AtNode {
        /// The node.
        node: String,
        /// Its op type.
        op: String,
        /// The function it was written in.
        function: String,
        /// Where the call was written, of nodes that were traced.
        location: Option<SourceLocation>,
        /// Cause there.
        source: Box<Error>,
    },
    /// An error of an op that was called eagerly.
    #[error("{source} (op {op}, at {location})")]
    AtCall {
        /// The op type.
        op: &'static str,
        /// Where the call was written.
        location: SourceLocation,
        /// Cause there.
        source: Box<Error>,
    },
    /// A variable, table or other state that its owner has dropped.
    #[error("{kind} `{name}` does not exist any more: its owner has dropped it")]
    Dropped {
        /// Kind of the state.
        kind: &'static str,
        /// Its name.
        name: String,
    },
    /// Something that is not the kind of state an op works on.
    #[error("`{name}` is {found}, not {expected}")]
    WrongResource {
        /// The name of the state.
        name: String,
        /// Kind of resource that the op works on.
        expected: &'static str,
        /// Kind of resource found.
        found: &'static str,
    },
    /// A variable without a value.
    #[error("variable `{name}` has no value yet")]
    Uninitialized {
        /// The variable.
        name: String,
    },
    /// A value that does not fit a variable.
    #[error(
        "variable `{name}` holds {dtype}{shape}, it cannot take a value of \
         {found_dtype}{found_shape}"
    )]
    VariableMismatch {
        /// The variable.
        name: String,
        /// Its dtype.
        dtype: DType,
        /// Its shape.
        shape: Box<PartialShape>,
        /// The value's dtype.
        found_dtype: DType,
        /// The value's shape.
        found_shape: Box<Shape>,
    },
    /// Arguments that do not fit a function.
    #[error("function `{function}`: {argument} must be {expected}, found {found}")]
    FunctionArgument {
        /// The function.
        function: String,
        /// Name of the argument, or of the fault of all of them.
        argument: String,
        /// Requirement.
        expected: String,
        /// Argument found instead.
        found: String,
    },
    /// No device has the name that is asked for.
    #[error(
        "there is no device {name}{}; there are {}",
        reason.as_ref().map(|reason| format!(" ({reason})")).unwrap_or_default(),
        known.join(", ")
    )]
    NoDevice {
        /// The name.
        name: String,
        /// The devices there are.
        known: Vec<String>,
        /// Why there is none of its kind, where there is none.
        reason: Option<String>,
    },
    /// Access to something outside that the program was not granted.
    #[error("{what} is not allowed: {reason}")]
    Denied {
        /// Name of the attempt.
        what: String,
        /// Why it is refused.
        reason: &'static str,
    },
    /// Members of a group have not computed something together.
    #[error(transparent)]
    Collective(#[from] CollectiveError),
    /// The budget of the call was over before its end.
    #[error("the call was ended: {}", describe(*.0))]
    Interrupted(Interruption),
    /// A panic of a kernel, of an op's body or of the compiler: a defect there. The call has ended,
    /// and the context is as usable as after any other error.
    #[error("a panic ended the call: {message}")]
    Panic {
        /// The message of the panic.
        message: String,
    },
    /// A failure reported with a status of its own, by an op or by a crate above.
    #[error("{message}")]
    Status {
        /// The status code.
        code: Code,
        /// Description of the failure.
        message: String,
    },
}

fn describe(interruption: Interruption) -> &'static str {
    match interruption {
        Interruption::Deadline => "its deadline has passed",
        Interruption::Cancelled => "it was cancelled",
        Interruption::LoopRounds => "its loops have gone as many rounds as they may",
    }
}

impl Error {
    /// An internal error: a program that has nothing where it needs something.
    #[cold]
    pub(crate) fn missing(what: &str) -> Error {
        let message = format!("the program has no {what} where it needs one");
        Error::Status { code: Code::Internal, message }
    }

    /// The status code TensorFlow would report.
    pub fn code(&self) -> Code {
        match self {
            Error::Ir(error) => error.code(),
            Error::Kernel(error) => error.code(),
            Error::Collective(error) => error.code(),
            Error::AtNode { source, .. } | Error::AtCall { source, .. } => source.code(),
            Error::Dropped { .. } => Code::NotFound,
            Error::WrongResource { .. }
            | Error::VariableMismatch { .. }
            | Error::FunctionArgument { .. }
            | Error::NoDevice { .. } => Code::InvalidArgument,
            Error::Uninitialized { .. } => Code::FailedPrecondition,
            Error::Denied { .. } => Code::PermissionDenied,
            Error::Panic { .. } => Code::Internal,
            Error::Interrupted(Interruption::Deadline) => Code::DeadlineExceeded,
            Error::Interrupted(Interruption::Cancelled) => Code::Cancelled,
            Error::Interrupted(Interruption::LoopRounds) => Code::ResourceExhausted,
            Error::Status { code, .. } => *code,
        }
    }

    /// Adds the location of the failure; the innermost location is kept.
    #[must_use]
    pub fn at_node(self, node: &str, op: &str, function: &str) -> Error {
        match self {
            Error::AtNode { .. } | Error::AtCall { .. } => self,
            source => Error::AtNode {
                node: node.into(),
                op: op.into(),
                function: function.into(),
                location: None,
                source: Box::new(source),
            },
        }
    }

    /// Adds where an eager call was written; the innermost location is kept.
    #[must_use]
    pub fn at_call(self, op: &'static str, location: SourceLocation) -> Error {
        match self {
            Error::AtNode { .. } | Error::AtCall { .. } => self,
            source => Error::AtCall { op, location, source: Box::new(source) },
        }
    }

    /// The cause, without the locations that were added to it.
    pub fn root(&self) -> &Error {
        match self {
            Error::AtNode { source, .. } | Error::AtCall { source, .. } => source.root(),
            error => error,
        }
    }

    /// Adds where the call that failed was written, unless that is known.
    #[must_use]
    pub fn written_at(mut self, place: Option<SourceLocation>) -> Error {
        if let Error::AtNode { location, .. } = &mut self {
            *location = location.or(place);
        }
        self
    }
}

impl From<ferroflow_ir::Error> for Error {
    /// The location of a failure stays the location of the failure.
    fn from(error: ferroflow_ir::Error) -> Error {
        match error {
            ferroflow_ir::Error::AtNode { node, op, function, location, source } => {
                Error::AtNode { node, op, function, location, source: Box::new(Error::Ir(*source)) }
            }
            other => Error::Ir(other),
        }
    }
}

impl From<Interruption> for Error {
    fn from(interruption: Interruption) -> Error {
        Error::Interrupted(interruption)
    }
}

impl From<ferroflow_kernels::Error> for Error {
    fn from(error: ferroflow_kernels::Error) -> Error {
        match error {
            ferroflow_kernels::Error::Ir(error) => error.into(),
            other => Error::Kernel(other),
        }
    }
}
