//! SavedModels and checkpoints as objects: variables, functions and signatures.
//!
//! ```
//! use ferroflow_ir::Limits;
//! use ferroflow_saved_model::{Result, bundle::Reader};
//!
//! # fn main() -> Result<()> {
//! # let prefix = concat!(env!("CARGO_MANIFEST_DIR"), "/../tests/golden/ckpt_slices/model/m");
//! let reader = Reader::open(prefix, &Limits::default())?;
//! for (name, entry) in reader.entries() {
//!     println!("{name}: {} {}", entry.dtype, entry.shape);
//! }
//! let numbers = reader.read("numbers")?;
//! assert_eq!(numbers.as_slice::<f32>()?[..3], [0.0, 1.0, 2.0]);
//! # Ok(())
//! # }
//! ```
//!
//! - [`load()`] gives a [`SavedModel`]: a [`Model`] of objects, functions and signatures, or a
//!   [`Session`] over a graph of TensorFlow 1.
//! - [`proto`] holds the messages, generated from the declarations in `protos/`.
//! - [`bundle`] reads and writes checkpoints: tensors by name, whole or in slices.
//! - [`convert`] makes programs of messages, and messages of programs: graphs, functions, tensors,
//!   structured values.
//! - [`save()`] writes objects as SavedModels that TensorFlow loads like its own.
//! - [`monitored`] runs the training loop of a 1.x graph, with hooks and recovery.
//! - [`simple_save()`] writes a session, its graph and its variables, as a SavedModel.
//! - [`events`] reads and writes event files, [`record_file`] files of records.
//! - [`checkpoint`] saves and restores the values of objects, and keeps the newest checkpoints of a
//!   folder.
//!
//! # Invariants
//!
//! - **No file is trusted.** Whatever its bytes, reading a file gives a result or an [`Error`]; it
//!   does not panic, recurse without bound, or allocate more than a small multiple of the file's
//!   length or what [`Limits`](ferroflow_ir::Limits) allow. Checksums are verified before elements
//!   are handed out.
//! - **What is converted is well formed.** A converted graph has unique names, complete and checked
//!   attributes, inputs that exist and have the dtypes their ops take, and no cycles but the loops
//!   of 1.x graphs.
//! - **Loading needs no kernel.** An op nobody can run, or nobody knows, is loaded all the same.
//! - **Readers are shared.** Any number of threads may read from one [`bundle::Reader`].
//!
//! # What is absent on purpose
//!
//! Files are never mapped into memory (`docs/decisions/0001-positional-reads.md` says why). Data
//! of big-endian machines is refused. Fields that the declarations do not have are dropped when a
//! message is decoded: keep the bytes of what is to be written back unchanged.

#![forbid(unsafe_code)]

pub mod checkpoint;
mod construct;
mod custom_gradient;
mod defaults;
pub mod error;
pub mod events;
mod forest;
pub mod freeze;
pub mod function;
pub mod graph;
mod host_ops;
mod json_example;
pub mod load;
mod loaded;
pub mod model;
pub mod monitored;
mod parameters;
mod partial;
mod proto_ops;
mod readers;
pub mod revive;
pub mod save;
mod saver;
pub mod session;
mod session_objects;
mod simple_save;
mod sound_summary;
mod sparse_ops;
mod summary_ops;
pub mod value;

use ferroflow_format::{file, text_format};

pub use checkpoint::{
    Checkpoint, CheckpointManager, CheckpointState, ManagerOptions, RestoreStatus,
    latest_checkpoint,
};
pub use error::{Error, Result};
pub use ferroflow_format as format;
pub use ferroflow_format::{
    bundle, convert, output_file, proto, read_message, record_file, restore, stablehlo,
    structured_value, write_message,
};
pub use ferroflow_ir as ir;
pub use ferroflow_runtime as runtime;
pub use freeze::{FrozenFunction, FrozenGraph, freeze, freeze_function};
pub use function::{RestoredFunction, Signature};
pub use graph::LoadedGraph;
pub use host_ops::add_ops;
pub use load::{LoadOptions, load, load_session};
pub use model::{Model, Object, SavedModel};
pub use revive::Revive;
pub use save::{SaveOptions, SaveReport, Untraced, VariablePolicy, save, save_session};
pub use session::Session;
pub use session_objects::SessionObjects;
pub use simple_save::{SimpleModel, simple_load, simple_save};
pub use structured_value::StructuredValue;
pub use value::{CompositeTensor, PythonValue, TensorLeaf};
