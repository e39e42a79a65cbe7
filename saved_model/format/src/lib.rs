//! TensorFlow's file formats: checkpoints, messages, graphs and functions, records and events.
//!
//! ```
//! use ferroflow_format::{Result, bundle::Reader};
//! use ferroflow_ir::Limits;
//!
//! # fn main() -> Result<()> {
//! # let prefix = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/golden/ckpt_slices/model/m");
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
//! - [`bundle`] reads and writes checkpoints: tensors by name, whole or in slices.
//!   [`checkpoint_state`] has the file that lists the checkpoints of a folder, [`restore`] the objects
//!   that the tensors of a checkpoint belong to.
//! - [`proto`] holds the messages, generated from the declarations in `protos/`;
//!   [`saved_model_file`] reads the one of a SavedModel, [`read_message`] any other.
//! - [`convert`] makes programs of messages, and messages of programs: graphs, functions, tensors,
//!   structured values.
//! - [`stablehlo`] imports programs of JAX and other frameworks that graphs hold.
//! - [`events`] reads and writes event files, [`record_file`] files of records.
//! - [`forest_files`] reads the files of decision forests.
//!
//! # Features
//!
//! `text`: messages as text. Without it, reading or writing a `.pbtxt` file is
//! [`Error::Unsupported`].
//!
//! # Invariants
//!
//! - **No file is trusted.** Whatever its bytes, reading a file gives a result or an [`Error`]; it
//!   does not panic, recurse without bound, or allocate more than a small multiple of the file's
//!   length or what [`Limits`](ferroflow_ir::Limits) allow. Checksums are verified before elements
//!   are handed out.
//! - **A converted program is well formed.** A converted graph has unique names, complete and checked
//!   attributes, inputs that exist and have the dtypes their ops take, and no cycles but the loops
//!   of 1.x graphs.
//! - **Reading needs no kernel.** Of the crates of this project, this one depends on `ferroflow-ir`
//!   alone. An op that has no kernel, or no record, is converted all the same.
//! - **Readers are shared.** Any number of threads may read from one [`bundle::Reader`].
//!
//! # What is absent on purpose
//!
//! Files are never mapped into memory (`docs/decisions/0001-positional-reads.md` says why). Data
//! of big-endian machines is refused. Fields that the declarations do not have are dropped when a
//! message is decoded: keep the bytes of what is to be written back unchanged. Objects, variables and
//! calls are in `ferroflow-saved-model`.

#![forbid(unsafe_code)]

#[cfg(target_endian = "big")]
compile_error!("elements are little-endian on disk and are not converted");

pub mod bundle;
pub mod checkpoint_state;
pub mod checksum;
pub mod convert;
pub mod error;
pub mod events;
pub mod file;
pub mod forest_files;
pub mod output_file;
pub mod proto;
pub mod record_file;
pub mod restore;
mod room;
pub mod saved_model_file;
pub mod stablehlo;
pub mod structured_value;
#[cfg_attr(not(feature = "text"), path = "no_text_format.rs")]
pub mod text_format;

pub use checkpoint_state::{CheckpointState, latest_checkpoint};
pub use error::{Error, Result};
pub use ferroflow_ir as ir;
pub use file::{read_message, write_message};
pub use structured_value::StructuredValue;
