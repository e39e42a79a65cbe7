//! From Rust code to functions: tensors, tracing, the trace cache, captures, the order of effects.
//!
//! ```
//! use ferroflow_tracer::{Tensor, Variable, function};
//! # fn main() -> ferroflow_tracer::Result<()> {
//! let w = Variable::new([[2.0f32, 0.0], [0.0, 2.0]])?;
//! let f = {
//!     let w = w.clone();
//!     function(move |x: Tensor| x.matmul(&w)?.relu())
//! };
//! let y = f(Tensor::from([[1.0f32, -1.0]]))?;
//! assert_eq!(y.to_vec::<f32>()?, [2.0, 0.0]);
//! # Ok(())
//! # }
//! ```
//!
//! - [`Tensor`] is eager, or symbolic while a function is traced; [`ops`] has what can be done with
//!   tensors, [`Variable`] holds one that changes.
//! - [`function`](function()) makes a [`Function`] of Rust code: it is traced once for each type of
//!   arguments ([`ferroflow_ir::trace_type`]); [`function`](mod@function) tells how a call goes.
//! - [`ConcreteFunction`] is one trace: a graph, what it captures, its signature.
//! - [`v1`] traces code with the semantics of TensorFlow 1.
//! - [`debugging`] prints and checks while functions run; [`run_functions_eagerly`] does without
//!   traces.
//!
//! # Invariants
//!
//! - Inside a trace every call of an op is staged, even of eager tensors.
//! - Functions know of the state they use and do not keep it alive.
//! - A trace that fails leaves no mark on its function.
//! - All but traces under construction is `Send + Sync`; threads that call first at once share one
//!   trace.
//!
//! # What is absent on purpose
//!
//! File formats are the crate beside this one; what runs is the runtime below.

#![forbid(unsafe_code)]

pub mod args;
mod capture;
mod carve;
pub mod concrete_function;
pub mod context;
mod control_order;
mod convert;
pub mod custom;
pub mod debugging;
pub mod error;
mod func_graph;
pub mod function;
mod function_cache;
pub mod function_spec;
mod lift;
pub mod nest;
pub mod ops;
mod retracing;
pub mod tensor;
pub mod v1;
pub mod value;
pub mod variable;

pub use args::{Args, Body, IntoArg, IntoArgs};
pub use capture::Capture;
pub use concrete_function::{AtomicFunction, ConcreteFunction};
pub use context::{control_dependencies, device, init_scope, run_functions_eagerly, with_context};
pub use error::{Error, Result};
pub use func_graph::Outputs;
pub use function::{
    Function, FunctionOptions, PolymorphicFunction, RetracePolicy, function, function_with, literal,
};
pub use function_spec::{ArgSpec, ParameterSpec, spec};
pub use nest::Nest;
pub use tensor::Tensor;
pub use value::Value;
pub use variable::{Variable, VariableOptions};
