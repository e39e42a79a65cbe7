//! TensorFlow 2's functions, native in Rust.
#![forbid(unsafe_code)]

pub use ferroflow_ir as ir;
pub use ferroflow_kernels as kernels;
pub use ferroflow_runtime as runtime;
pub use ferroflow_saved_model as saved_model;
pub use ferroflow_tracer as tracer;

pub use ferroflow_saved_model::{Checkpoint, CheckpointManager, ManagerOptions, latest_checkpoint};
pub use ferroflow_tracer::{
    ConcreteFunction, Function, FunctionOptions, Functions, HasFunctions, Nest, Tensor, TraceType,
    Trackable, Variable, control_dependencies, device, function, function_with, init_scope,
    literal, ops, print, run_functions_eagerly, spec,
};

pub mod coverage;
pub mod graph_def;
pub mod npy;
mod saving;
pub mod session;
pub mod summary;

pub use saving::{loaded_function, save};

/// The program in the README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
