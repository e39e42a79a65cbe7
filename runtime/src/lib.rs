//! Programs on devices, with state: eager calls, functions, variables.
//!
//! ```
//! use ferroflow_ir::{DType, HostTensor, PartialShape, ValueType, build::GraphBuilder};
//! use ferroflow_runtime::{CallableFunction, Context, EagerTensor};
//! # fn main() -> ferroflow_runtime::Result<()> {
//! let mut builder = GraphBuilder::new();
//! let x = builder.arg("x", ValueType::new(DType::F32, PartialShape::of_rank(1)))?;
//! let y = builder.call("Square", "y", &[x])?[0];
//! let square = builder.finish_function("square", &[("y", y)]);
//!
//! let context = Context::new();
//! let square = CallableFunction::new(&context, square)?;
//! let x = HostTensor::vector(&[1.0f32, 2.0, 3.0])?;
//! let y = square.call(&[x.into()])?;
//! assert_eq!(y[0].host()?.as_slice::<f32>()?, [1.0, 4.0, 9.0]);
//! # Ok(())
//! # }
//! ```
//!
//! # The life of a call
//!
//! A [`CallableFunction`] is compiled once for each set of argument shapes: its graph is
//! specialised ([`ferroflow_ir::pass::specialize`]), calls that repeat each other are merged, dead
//! ones dropped, elementwise chains fused; then [`plan`] lays the rest out as a linear program over
//! one arena. Running it takes a frame from a pool and walks the list.
//!
//! # Invariants
//!
//! - State lives as long as the Rust value that owns it: functions only know of what they capture.
//! - Everything here is `Send + Sync`; any number of threads may run one function.
//! - Effects happen in the order of the graph.

#![forbid(unsafe_code)]

mod accumulator;
mod assign_devices;
mod barrier;
mod batching;
mod budget;
mod call_cache;
mod call_key;
mod candidates;
pub mod collective;
mod compile;
mod compile_options;
mod component_values;
mod concrete_function;
pub mod context;
mod device_run;
mod devices;
mod eager_tensor;
pub mod error;
pub mod execute;
mod execute_op;
mod executor;
mod generator;
mod glob;
#[cfg(all(test, shuttle))]
mod interleavings;
mod kernel_call;
mod last_call;
mod lock;
pub mod mirrored;
pub mod ops;
mod optimize;
mod origin;
mod owned_cache;
mod panics;
mod placed_calls;
pub mod placement;
pub mod plan;
mod profile;
mod queue;
mod registered_kernels;
pub mod resource;
mod rows;
mod run;
mod runtime_call;
mod scope;
mod single_op;
pub mod sparse;
mod specializations;
mod staging;
mod staging_map;
mod sync;
mod table;
mod tensor_array;
pub mod trackable;
pub mod variable;
mod variant;

pub use call_cache::CallCache;
pub use compile_options::CompileOptions;
pub use concrete_function::{CallableFunction, CapturedInput};
pub use context::{Context, ContextOptions, FileAccess};
pub use eager_tensor::{EagerTensor, Results};
pub use error::{Error, Result};
pub use execute::execute;
pub use ferroflow_ir as ir;
pub use ferroflow_ir::{
    budget::{CallOptions, Cancellation, Interruption},
    files,
};
pub use ferroflow_kernels as kernels;
pub use ferroflow_kernels::{Device, Precision, fingerprint64, instructions::InstructionLevel};
pub use placement::Placement;
pub use plan::estimate::MemoryEstimate;
pub use profile::{OpStats, RunMetadata, RunOptions, TraceLevel};
pub use resource::{Resource, ResourceHandle, ResourceManager};
pub use scope::Scope;
pub use trackable::{Asset, ObjectGraph, Trackable};
pub use variable::{ResourceVariable, VariableState};
