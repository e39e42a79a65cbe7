//! The error type of this crate and the status codes every crate shares.

use crate::{DType, PartialShape, Shape};
use std::{borrow::Cow, fmt};

/// The result of a fallible operation on programs.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// A line of source.
pub type SourceLocation = &'static std::panic::Location<'static>;

/// The canonical status code that TensorFlow would report for an error.
///
/// Callers that translate errors for another system (an RPC status, an exit code) use this
/// instead of the text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Code {
    /// The caller passed something that is wrong whatever the state of the system.
    InvalidArgument,
    /// A named thing does not exist.
    NotFound,
    /// A thing that was to be created is there already.
    AlreadyExists,
    /// The caller may not do this, whatever the arguments.
    PermissionDenied,
    /// A limit (memory, nodes, depth) was reached.
    ResourceExhausted,
    /// The state of the system forbids it, for instance a variable without a value.
    FailedPrecondition,
    /// Reading or seeking past the end.
    OutOfRange,
    /// This build cannot do it.
    Unimplemented,
    /// A broken invariant: a defect, or a program that contradicts itself.
    Internal,
    /// The device or service is gone for the moment.
    Unavailable,
    /// Stored bytes are damaged.
    DataLoss,
    /// Something else that goes on at the same time is in the way.
    Aborted,
    /// The operation was released, for instance because a queue was closed.
    Cancelled,
    /// Its deadline has passed.
    DeadlineExceeded,
}

impl Code {
    /// The number of the code in TensorFlow's messages and in gRPC (`google/rpc/code.proto`).
    ///
    /// ```
    /// use ferroflow_ir::Code;
    /// assert_eq!(Code::OutOfRange.number(), 11);
    /// ```
    pub fn number(self) -> i32 {
        match self {
            Code::Cancelled => 1,
            Code::InvalidArgument => 3,
            Code::DeadlineExceeded => 4,
            Code::NotFound => 5,
            Code::AlreadyExists => 6,
            Code::PermissionDenied => 7,
            Code::ResourceExhausted => 8,
            Code::FailedPrecondition => 9,
            Code::Aborted => 10,
            Code::OutOfRange => 11,
            Code::Unimplemented => 12,
            Code::Internal => 13,
            Code::Unavailable => 14,
            Code::DataLoss => 15,
        }
    }

    /// TensorFlow's name of the Python exception for this code, such as `InvalidArgumentError`.
    pub fn class_name(self) -> &'static str {
        match self {
            Code::InvalidArgument => "InvalidArgumentError",
            Code::NotFound => "NotFoundError",
            Code::AlreadyExists => "AlreadyExistsError",
            Code::PermissionDenied => "PermissionDeniedError",
            Code::ResourceExhausted => "ResourceExhaustedError",
            Code::FailedPrecondition => "FailedPreconditionError",
            Code::OutOfRange => "OutOfRangeError",
            Code::Unimplemented => "UnimplementedError",
            Code::Internal => "InternalError",
            Code::Unavailable => "UnavailableError",
            Code::DataLoss => "DataLossError",
            Code::Aborted => "AbortedError",
            Code::Cancelled => "CancelledError",
            Code::DeadlineExceeded => "DeadlineExceededError",
        }
    }
}

/// Fault of a program, an op call or a tensor.
#[derive(Debug, Clone, thiserror::Error)]
pub enum Error {
    /// An argument of an op call does not fit the op.
    #[error("{op}: {argument} must be {expected}, found {found}")]
    Argument {
        /// The op type.
        op: Cow<'static, str>,
        /// The input or attribute.
        argument: Cow<'static, str>,
        /// Requirement of the op.
        expected: Cow<'static, str>,
        /// The argument found instead.
        found: String,
    },
    /// Two shapes that do not broadcast against each other.
    #[error("incompatible shapes: {lhs} vs. {rhs}")]
    Broadcast {
        /// The left shape.
        lhs: Box<PartialShape>,
        /// The right shape.
        rhs: Box<PartialShape>,
    },
    /// An index outside its range.
    #[error("{what} {index} is outside [{low}, {high})")]
    Index {
        /// Thing that the index selects from.
        what: Cow<'static, str>,
        /// The index.
        index: i64,
        /// The smallest valid index.
        low: i64,
        /// End of the valid indices.
        high: i64,
    },
    /// A size that no tensor may have: negative, or too large to count.
    #[error("{what} {size} is not a valid tensor size")]
    Size {
        /// Name of the size.
        what: Cow<'static, str>,
        /// The offending size, as text since it may not fit any integer.
        size: String,
    },
    /// Element data whose length does not fit the dtype and the shape.
    #[error("{found} elements cannot fill a {dtype} tensor of shape {shape}")]
    ElementCount {
        /// The tensor's dtype.
        dtype: DType,
        /// The tensor's shape.
        shape: Shape,
        /// The number of elements passed.
        found: usize,
    },
    /// A dtype other than the one asked for.
    #[error("expected dtype {expected}, found {found}")]
    DType {
        /// The dtype asked for.
        expected: DType,
        /// The dtype found.
        found: DType,
    },
    /// An integer divided by zero.
    #[error("integer division by zero")]
    DivisionByZero,
    /// An integer raised to a negative power.
    #[error("integers to negative integer powers are not allowed")]
    NegativePower,
    /// An op, a dtype or an option that is not implemented here.
    #[error("{op} is not supported: {what}")]
    Unsupported {
        /// The op type.
        op: Cow<'static, str>,
        /// Name of the missing part.
        what: Cow<'static, str>,
    },
    /// A named thing that does not exist.
    #[error("{kind} `{name}` does not exist")]
    NotFound {
        /// Kind of the thing.
        kind: &'static str,
        /// Its name.
        name: String,
    },
    /// A name that is taken.
    #[error("{kind} `{name}` exists already")]
    Duplicate {
        /// Kind of the thing.
        kind: &'static str,
        /// Its name.
        name: String,
    },
    /// A graph that breaks a rule of [the specification](crate).
    #[error("malformed graph at `{node}`: {rule}")]
    Malformed {
        /// The offending node.
        node: String,
        /// The rule that is broken.
        rule: Cow<'static, str>,
    },
    /// A graph that a pass of the compiler made and that breaks an invariant: a defect of the pass,
    /// or of the shape function of an op.
    #[error("`{node}` is wrong after {pass}: {problem}")]
    Pass {
        /// The pass.
        pass: &'static str,
        /// The offending node.
        node: String,
        /// The invariant that is broken.
        problem: String,
    },
    /// A layout that a tensor cannot have on a mesh of devices.
    #[error("{what} cannot have layout {layout}: {problem}")]
    Layout {
        /// The tensor.
        what: Cow<'static, str>,
        /// The layout.
        layout: String,
        /// The reason.
        problem: String,
    },
    /// A limit that protects against hostile or runaway programs.
    #[error("{what} needs {needed}, the limit is {limit}")]
    Limit {
        /// Name of the quantity that would be too large.
        what: Cow<'static, str>,
        /// Amount needed.
        needed: String,
        /// Largest amount allowed.
        limit: u64,
    },
    /// An error in a named node of a graph or function.
    #[error("{source} (node `{node}`, op {op}{}{})", in_function(.function), at(*.location))]
    AtNode {
        /// The node.
        node: String,
        /// Its op type.
        op: String,
        /// The function around it; empty for a main graph.
        function: String,
        /// Where the call was written, of nodes that were traced.
        location: Option<SourceLocation>,
        /// Cause there.
        source: Box<Error>,
    },
    /// A failure with a status of its own, such as a failed assertion or a user's op.
    #[error("{op}: {detail}")]
    Status {
        /// The status code.
        code: Code,
        /// The op type.
        op: Cow<'static, str>,
        /// Report of the op.
        detail: String,
    },
}

fn in_function(function: &str) -> String {
    if function.is_empty() { String::new() } else { format!(", function `{function}`") }
}

/// Words of messages for the line of source that a node was traced from: after a comma, or not at
/// all.
pub fn at(location: Option<SourceLocation>) -> String {
    location.map_or_else(String::new, |location| format!(", at {location}"))
}

impl Error {
    /// An argument error of `op`.
    pub fn argument(
        op: impl Into<Cow<'static, str>>,
        argument: impl Into<Cow<'static, str>>,
        expected: impl Into<Cow<'static, str>>,
        found: impl fmt::Display,
    ) -> Error {
        Error::Argument {
            op: op.into(),
            argument: argument.into(),
            expected: expected.into(),
            found: found.to_string(),
        }
    }

    /// The error that two shapes do not broadcast against each other.
    pub fn broadcast(lhs: impl Into<PartialShape>, rhs: impl Into<PartialShape>) -> Error {
        Error::Broadcast { lhs: Box::new(lhs.into()), rhs: Box::new(rhs.into()) }
    }

    /// The status code TensorFlow would report.
    pub fn code(&self) -> Code {
        match self {
            Error::Argument { .. }
            | Error::Broadcast { .. }
            | Error::Index { .. }
            | Error::Size { .. }
            | Error::ElementCount { .. }
            | Error::DType { .. }
            | Error::DivisionByZero
            | Error::NegativePower
            | Error::Layout { .. }
            | Error::Malformed { .. } => Code::InvalidArgument,
            Error::Pass { .. } => Code::Internal,
            Error::Unsupported { .. } => Code::Unimplemented,
            Error::NotFound { .. } => Code::NotFound,
            Error::Duplicate { .. } => Code::AlreadyExists,
            Error::Limit { .. } => Code::ResourceExhausted,
            Error::AtNode { source, .. } => source.code(),
            Error::Status { code, .. } => *code,
        }
    }

    /// Adds the location of the failure; the innermost location is kept.
    #[must_use]
    pub fn at_node(self, node: &str, op: &str, function: &str) -> Error {
        match self {
            Error::AtNode { .. } => self,
            source => Error::AtNode {
                node: node.into(),
                op: op.into(),
                function: function.into(),
                location: None,
                source: Box::new(source),
            },
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

    /// The error without the location it happened at.
    pub fn root(&self) -> &Error {
        match self {
            Error::AtNode { source, .. } => source.root(),
            other => other,
        }
    }
}
