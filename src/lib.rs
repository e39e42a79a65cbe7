//! TensorFlow 2's functions, native in Rust.
#![forbid(unsafe_code)]

#[cfg(feature = "cluster")]
pub use ferroflow_cluster as cluster;
pub use ferroflow_format as format;
pub use ferroflow_ir as ir;
pub use ferroflow_kernels as kernels;
pub use ferroflow_nn as nn;
pub use ferroflow_runtime as runtime;
pub use ferroflow_saved_model as saved_model;
pub use ferroflow_tracer as tracer;

pub use ferroflow_nn::Module;
pub use ferroflow_saved_model::{Checkpoint, CheckpointManager, ManagerOptions, latest_checkpoint};
pub use ferroflow_tracer::{
    ConcreteFunction, Function, FunctionOptions, Functions, GradientTape, HasFunctions,
    IndexedSlices, Nest, Tensor, TensorArray, TensorArrayOptions, TraceType, Trackable,
    TrackableResource, Variable, WhileOptions, autograph, case, cond, control_dependencies, device,
    distribute, foldl, foldr, function, function_with, init_scope, literal, lookup, map_fn, ops,
    print, range, run_functions_eagerly, scan, spec, switch_case, while_loop, while_loop_with,
};

pub mod coverage;
pub mod data;
pub mod graph_def;
#[cfg(feature = "keras-files")]
pub mod keras_file;
mod loaded;
#[cfg(feature = "cluster")]
pub mod multi_worker;
pub mod npy;
pub mod python_literal;
pub mod safetensors;
mod saving;
pub mod session;
pub mod summary;
pub mod train;

pub use loaded::{LoadedModel, load, load_with};
pub use saving::{loaded_function, save};

/// The program in the README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

/// The chapters of the book.
#[cfg(doctest)]
mod book {
    #[doc = include_str!("../docs/book/src/call_from_a_service.md")]
    struct CallFromAService;
    #[doc = include_str!("../docs/book/src/custom_operations.md")]
    struct CustomOperations;
    #[doc = include_str!("../docs/book/src/devices.md")]
    struct Devices;
    #[doc = include_str!("../docs/book/src/from_python.md")]
    struct FromPython;
    #[doc = include_str!("../docs/book/src/graphs_and_checkpoints.md")]
    struct GraphsAndCheckpoints;
    #[doc = include_str!("../docs/book/src/limits.md")]
    struct Limits;
    #[doc = include_str!("../docs/book/src/run_a_model.md")]
    struct RunAModel;
    #[cfg(feature = "cluster")]
    #[doc = include_str!("../docs/book/src/several_processes.md")]
    struct SeveralProcesses;
    #[doc = include_str!("../docs/book/src/train_checkpoint_export.md")]
    struct TrainCheckpointExport;
    #[doc = include_str!("../docs/book/src/write_functions.md")]
    struct WriteFunctions;
}
