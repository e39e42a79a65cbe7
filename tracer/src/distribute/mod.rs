//! Strategies: one program in several replicas, with the names of TensorFlow's `tf.distribute`.
//!
//! - `strategy.rs`: [`Strategy`] and what makes one: [`MirroredStrategy`], [`OneDeviceStrategy`].
//! - `replica.rs`: what code in a replica sees of the others: [`ReplicaContext`].
//! - `per_replica.rs`: a value for each replica: [`PerReplica`].
//! - `data.rs`: global batches, and each replica's part of them.
//! - `bucket.rs`: gradients that travel together.
//! - `mesh.rs`: functions on whole tensors, split over a mesh of devices: [`MeshStrategy`], with the words of
//!   TensorFlow's DTensor. `distributed_tensor.rs`: values in pieces; `mesh_function.rs`: the programs.
//!
//! Variables that are made in the scope of a strategy have a value for each replica
//! ([`ferroflow_runtime::mirrored`]), those of loaded models too: which value a call means is decided by
//! the thread that runs it, so that any function, traced or loaded, runs in replicas as it is.
//!
//! ```
//! use ferroflow_runtime::{Context, ContextOptions};
//! use ferroflow_tracer::{
//!     GradientTape, Tensor, Variable, VariableOptions, context,
//!     distribute::{MirroredStrategy, PerReplica, ReduceOp, VariableAggregation},
//! };
//! # fn main() -> ferroflow_tracer::Result<()> {
//! let options = ContextOptions { logical_cpus: std::num::NonZeroUsize::new(2), ..Default::default() };
//! let _guard = context::enter(&Context::with_options(options));
//! let strategy = MirroredStrategy::new(["CPU:0", "CPU:1"])?;
//! let summed = VariableOptions { aggregation: VariableAggregation::Sum, ..VariableOptions::default() };
//! let w = strategy.scope(|| Variable::with_options(1.0f32, summed))?;
//! let losses = strategy.run(&PerReplica::new([2.0f32, 4.0]), |x| {
//!     let tape = GradientTape::new();
//!     let loss = (w.read()? * x)?;
//!     let gradient = tape.gradient(&loss, &w)?.expect("the loss depends on it");
//!     w.assign_sub(&(gradient * 0.5)?)?;
//!     Ok(loss)
//! })?;
//! assert_eq!(strategy.reduce(ReduceOp::Mean, &losses)?.to_scalar::<f32>()?, 3.0);
//! assert_eq!(w.read()?.to_scalar::<f32>()?, 1.0 - 0.5 * (2.0 + 4.0));
//! # Ok(())
//! # }
//! ```

mod assign;
mod bucket;
mod data;
mod distributed_tensor;
mod mesh;
mod mesh_function;
mod per_replica;
mod replica;
mod strategy;

pub use data::{Batch, Distributed};
pub use distributed_tensor::DistributedTensor;
pub use ferroflow_ir::{
    layout::{Layout, Mesh, UNSHARDED},
    pass::spmd::{CollectiveKind, InsertedCollective, LayoutReport, NodeLayout},
};
pub use ferroflow_runtime::mirrored::{Annotations, VariableAggregation, VariableSynchronization};
pub use mesh::MeshStrategy;
pub use mesh_function::MeshFunction;
pub use per_replica::PerReplica;
pub use replica::{ReduceOp, ReplicaContext, replica_context, sum_gradients};
pub use strategy::{MirroredStrategy, OneDeviceStrategy, Strategy};
