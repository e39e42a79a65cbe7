//! Items that the macros of this crate name in the code they make; not for other use.

pub use crate::{
    args::{IntoArg, IntoArgs},
    changing,
    concrete_function::ConcreteFunction,
    custom,
    error::{Error, Result},
    function::{Function, FunctionOptions, PolymorphicFunction, RetracePolicy, function_with},
    function_spec::{ArgSpec, ParameterSpec, spec},
    methods::{Functions, HasFunctions, Method, no_such_method, trace_method},
    nest::Nest,
    slot::{FunctionSlot, Slots},
    structs,
    tensor::Tensor,
    value::{Aliases, NestedValue, TensorLeaves},
};
pub use ferroflow_ir::{DType, PartialShape, TraceType};
pub use ferroflow_runtime::trackable::{Description, Trackable};

/// Items of the code that control flow becomes.
pub mod flow {
    pub use crate::autograph::{
        DatasetIterate,
        carry::{Carry, ValueSlot, carry},
        cases::{is_one_of, subject},
        choice::{AutographCondition, Ends, If, if_},
        frame::{Next, RegionStack},
        iterate::{HostIterate, Iterate, Over},
        kind::{
            Host, broken, changes_captures, copy, fail, gate, grows, hides, host_gate, live,
            may_leave, never, returns_error, staged,
        },
        logic::{AssertCondition, Negate, left, right},
        operand::{AnyCompared, AnyOperand, Compared, NestedOperand, comparable},
        ranges::{Between, HostBetween},
        repeat::{AutographLoop, Repeats, While, enter_loop, while_},
        tied::{join, loop_of, tie, tied},
    };
}
