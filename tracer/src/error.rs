//! The error type of this crate.

use ferroflow_ir::{Code, error::SourceLocation};
use std::sync::Arc;

/// The result of a fallible operation on tensors and functions.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Errors between Rust code and functions.
#[derive(Debug, Clone, thiserror::Error)]
pub enum Error {
    /// The program is wrong, or its data does not fit it.
    #[error(transparent)]
    Runtime(ferroflow_runtime::Error),
    /// Arguments that do not fit the parameters of a function.
    #[error(
        "Binding inputs to function `{function}` failed due to `{problem}`. Received args: \
         ({args}) and kwargs: {{{kwargs}}} for signature: {signature}.{}",
        fallback(.flat)
    )]
    Binding {
        /// The function.
        function: Box<str>,
        /// Description of the problem.
        problem: Box<str>,
        /// The positional arguments.
        args: Box<str>,
        /// The named arguments.
        kwargs: Box<str>,
        /// Signature of the function.
        signature: Box<str>,
        /// Why they do not fit as a flat list of tensors either, where that was tried.
        flat: Option<Box<str>>,
    },
    /// A tensor of another type than a traced function was traced for.
    #[error(
        "cannot compute {function} as input #{index}(zero-based) was expected to be a {expected} \
         tensor but is a {found} tensor"
    )]
    FlatArgument {
        /// The function.
        function: String,
        /// The position among the tensors.
        index: usize,
        /// The dtype or spec it takes.
        expected: String,
        /// Value found instead.
        found: String,
    },
    /// A tensor of a trace that is used outside it.
    #[error(
        "{tensor} is out of scope and cannot be used here: it was defined in the trace of function \
         `{defined_in}`{}, but is used {used_in}. Return it from the function instead",
        ferroflow_ir::error::at(*.location)
    )]
    OutOfScope {
        /// The tensor.
        tensor: String,
        /// The function in whose trace it was made.
        defined_in: String,
        /// Where it was made.
        location: Option<SourceLocation>,
        /// Where it is used.
        used_in: String,
    },
    /// A tensor without a value, where one is needed.
    #[error(
        "{tensor} has no value: it is symbolic while function `{function}` is traced, and {what} \
         works on eager tensors only"
    )]
    Symbolic {
        /// The tensor.
        tensor: String,
        /// The function that is traced.
        function: String,
        /// Name of the request.
        what: &'static str,
    },
    /// A variable that a function creates, but not on its first call.
    #[error(
        "function `{function}` creates variable `{variable}`{} in a call that is not its first: a \
         function may create variables only once, when it is first called. Create the variable \
         outside, keep it in a field or cell that is filled once, or pass it as an argument",
        ferroflow_ir::error::at(*.location)
    )]
    VariableCreation {
        /// The function.
        function: String,
        /// The variable.
        variable: String,
        /// Where it is created.
        location: Option<SourceLocation>,
    },
    /// A variable whose first value cannot be computed outside the function that creates it.
    #[error("the first value of variable `{variable}`, created in function `{function}`, {reason}")]
    Initializer {
        /// The function.
        function: String,
        /// The variable.
        variable: String,
        /// Why it cannot be computed.
        reason: &'static str,
    },
    /// A variable or other state that a function uses and whose owner has dropped it.
    #[error(
        "function `{function}` uses {kind} `{name}`, which does not exist any more: its owner has \
         dropped it, and functions do not keep state alive"
    )]
    Dropped {
        /// The function.
        function: String,
        /// Kind of the state.
        kind: &'static str,
        /// Its name.
        name: String,
    },
    /// A result that functions cannot return.
    #[error(
        "function `{function}` must return tensors, nothing, or structures of them; found return \
         value {found}"
    )]
    Output {
        /// The function.
        function: String,
        /// Value that it returned.
        found: String,
    },
    /// A method changes a part of its object that graphs do not change.
    #[error(
        "method `{method}` changes `{part}` from {before} to {after}: that would happen once, while \
         tracing, and not when the graph runs; make it a `Tensor` or the value of a `Variable`, or \
         change it where the method is called"
    )]
    ChangedObject {
        /// The method.
        method: String,
        /// The field, by its path.
        part: String,
        /// Description of it before the method.
        before: String,
        /// Description of it after the method.
        after: String,
    },
    /// Something that only code with the semantics of TensorFlow 1 has.
    #[error("{what} exist only in code that `v1::wrap_function` traces")]
    NoGraph {
        /// Name of the request.
        what: &'static str,
    },
    /// A function that calls itself.
    #[error(
        "function `{function}` calls itself with arguments of the same types while it is traced: \
         the trace would never end. Graphs have no recursion; use a loop, or let a number of Rust \
         decrease, for each value of which there is a trace"
    )]
    Recursive {
        /// The function.
        function: String,
    },
    /// A function that calls itself for other and other host values.
    #[error(
        "function `{function}` calls itself more than {limit} times inside itself while it is \
         traced: its host values do not come to an end; use a loop"
    )]
    TooDeep {
        /// The function.
        function: String,
        /// Largest number of times.
        limit: usize,
    },
    /// Branches of a conditional that return values of different structures or dtypes.
    #[error(
        "all branches of `{construct}` must give values of the same structure and dtypes: {what} \
         is {first} in one branch and {second} in another"
    )]
    Branches {
        /// Construct that chooses between the branches.
        construct: &'static str,
        /// Name of the part of the values that differs.
        what: String,
        /// Description of it in one branch.
        first: String,
        /// Description of it in another.
        second: String,
    },
    /// A variable of a loop that an iteration changes in a way it may not.
    #[error(
        "{variable} enters the loop `{construct}` as {before}, but is {after} after one iteration: \
         {rule}"
    )]
    LoopVariable {
        /// Construct that loops.
        construct: &'static str,
        /// The variable.
        variable: String,
        /// Description of it before an iteration.
        before: String,
        /// Description of it after an iteration.
        after: String,
        /// Rule for variables of loops.
        rule: &'static str,
    },
    /// A value that a branch or loop whose condition is a tensor must return, but does not.
    #[error("{what} under a condition that is a tensor, {why}")]
    ControlFlow {
        /// Action of the code.
        what: String,
        /// Why that cannot be part of a graph.
        why: &'static str,
    },
    /// A value of another kind than was asked for.
    #[error("expected {expected}, found {found}")]
    Conversion {
        /// Value asked for.
        expected: String,
        /// Value found.
        found: String,
    },
    /// Too many traces of one function.
    #[error("function `{function}` has {traces} traces, the most its policy allows: {cause}")]
    TooManyTraces {
        /// The function.
        function: String,
        /// The traces it has.
        traces: usize,
        /// Cause of the last trace.
        cause: String,
    },
    /// A tape that is asked for a second gradient.
    #[error(
        "a tape gives gradients once, unless it is persistent: make it by \
         GradientTape::persistent()"
    )]
    TapeUsed,
    /// A tensor that has no gradient.
    #[error("{what} must be of a floating-point or complex dtype, found {tensor}")]
    NotDifferentiable {
        /// Purpose of the value.
        what: &'static str,
        /// Its dtype and shape.
        tensor: String,
    },
    /// A step without gradients.
    #[error("there are no gradients to apply: the loss depends on none of the variables")]
    NoGradients,
    /// A call that a replica of a strategy cannot make, or only a replica can.
    #[error("{what}: {reason}")]
    Replica {
        /// Action that was tried.
        what: String,
        /// Why it cannot be.
        reason: &'static str,
    },
    /// Values for replicas that are not as many as the replicas.
    #[error("a strategy of {replicas} replicas was given {found} values")]
    PerReplica {
        /// The replicas of the strategy in this process.
        replicas: usize,
        /// The values.
        found: usize,
    },
    /// An error of the user's own code.
    #[error("{0}")]
    Host(Arc<dyn std::error::Error + Send + Sync>),
}

fn fallback(flat: &Option<Box<str>>) -> String {
    flat.as_ref().map_or_else(String::new, |flat| {
        format!(" Fallback to flat signature also failed due to: {flat}")
    })
}

impl Error {
    /// An error of the user's own code, to be passed on by `?`. An error of this crate stays what
    /// it is.
    ///
    /// ```
    /// use ferroflow_tracer::Error;
    /// assert_eq!(Error::host("no such file").to_string(), "no such file");
    /// let recursive = Error::Recursive { function: "f".into() };
    /// assert!(matches!(Error::host(recursive), Error::Recursive { .. }));
    /// ```
    pub fn host(error: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Error {
        match error.into().downcast::<Error>() {
            Ok(own) => *own,
            Err(other) => Error::Host(other.into()),
        }
    }

    /// The error as one of the runtime: itself, or what it says.
    pub fn into_runtime(self) -> ferroflow_runtime::Error {
        match self {
            Error::Runtime(error) => error,
            other => {
                let (code, message) = (other.code(), other.to_string());
                ferroflow_runtime::Error::Status { code, message }
            }
        }
    }

    /// Adds where an eager call was written.
    pub(crate) fn at_call(self, op: &'static str, location: SourceLocation) -> Error {
        match self {
            Error::Runtime(error) => Error::Runtime(error.at_call(op, location)),
            other => other,
        }
    }

    /// The status code TensorFlow would report.
    pub fn code(&self) -> Code {
        match self {
            Error::Runtime(error) => error.code(),
            Error::Binding { .. }
            | Error::FlatArgument { .. }
            | Error::OutOfScope { .. }
            | Error::Symbolic { .. }
            | Error::VariableCreation { .. }
            | Error::Initializer { .. }
            | Error::Output { .. }
            | Error::ChangedObject { .. }
            | Error::Recursive { .. }
            | Error::TooDeep { .. }
            | Error::Branches { .. }
            | Error::LoopVariable { .. }
            | Error::ControlFlow { .. }
            | Error::Conversion { .. }
            | Error::NotDifferentiable { .. }
            | Error::PerReplica { .. }
            | Error::NoGradients => Code::InvalidArgument,
            Error::Dropped { .. }
            | Error::NoGraph { .. }
            | Error::TapeUsed
            | Error::Replica { .. } => Code::FailedPrecondition,
            Error::TooManyTraces { .. } => Code::ResourceExhausted,
            Error::Host(_) => Code::Aborted,
        }
    }
}

impl From<ferroflow_runtime::Error> for Error {
    fn from(error: ferroflow_runtime::Error) -> Error {
        Error::Runtime(error)
    }
}

impl From<ferroflow_ir::Error> for Error {
    fn from(error: ferroflow_ir::Error) -> Error {
        Error::Runtime(error.into())
    }
}
