//! Functions as objects: what saving needs to know of them.

use crate::{concrete_function::CapturedInput, error::Result, resource::ResourceHandle};
use ferroflow_ir::{
    FunctionDef, FunctionLibrary, FunctionType, HostTensor, TraceType, function_type::ParameterKind,
};
use std::sync::Arc;

/// A function that can be saved.
pub trait ExportedFunction: Send + Sync {
    /// The name it has in Rust.
    fn name(&self) -> &str;

    /// Its parameters.
    fn parameters(&self) -> Vec<ExportedParameter>;

    /// Signature of its arguments, where that is the same for all traces.
    fn input_signature(&self) -> Option<Vec<TraceType>>;

    /// Its traces. One that has an input signature and no trace yet is traced for that.
    ///
    /// # Errors
    ///
    /// Whatever fails while it is traced.
    fn traces(&self) -> Result<Vec<ExportedTrace>>;

    /// Initial values of the variables that it made in its first call.
    ///
    /// # Errors
    ///
    /// When one of them cannot be told outside this program.
    fn initializers(&self) -> Result<Vec<ExportedInitializer>> {
        Ok(Vec::new())
    }
}

/// Initial value of a variable that a function makes.
#[derive(Clone, Debug)]
pub struct ExportedInitializer {
    /// The variable.
    pub variable: ResourceHandle,
    /// Trace that returns the value, from the arguments of the function's first call.
    pub trace: ExportedTrace,
}

/// A parameter of a function.
#[derive(Clone, Debug)]
pub struct ExportedParameter {
    /// The name.
    pub name: Arc<str>,
    /// Ways in which arguments may be passed for it.
    pub kind: ParameterKind,
    /// Value when no argument is passed.
    pub default: Option<ExportedDefault>,
}

/// Value of a parameter when no argument is passed.
#[derive(Clone, Debug)]
pub enum ExportedDefault {
    /// A value that its type tells.
    Host(TraceType),
    /// A tensor.
    Tensor(HostTensor),
}

/// A function as it was traced for arguments of one type.
#[derive(Clone, Debug)]
pub struct ExportedTrace {
    /// The graph; its last arguments are the captures.
    pub def: Arc<FunctionDef>,
    /// The functions it calls.
    pub library: Arc<FunctionLibrary>,
    /// Captured values.
    pub captures: Vec<CapturedInput>,
    /// Its parameters and its result.
    pub function_type: FunctionType,
}
