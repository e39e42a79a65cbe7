//! What the macros of this crate name in the code they make; not for other use.

pub use crate::{
    args::{IntoArg, IntoArgs},
    concrete_function::ConcreteFunction,
    custom,
    error::{Error, Result},
    function::{Function, FunctionOptions, PolymorphicFunction, RetracePolicy, function_with},
    function_spec::{ArgSpec, ParameterSpec, spec},
    methods::{Functions, HasFunctions, Method},
    nest::Nest,
    slot::Slot,
    structs,
    tensor::Tensor,
    value::{Aliases, Leaves, Value},
};
pub use ferroflow_ir::{DType, PartialShape, TraceType};
pub use ferroflow_runtime::trackable::{Description, Trackable};
