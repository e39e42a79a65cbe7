//! TensorFlow's files: SavedModels, checkpoints and the messages in them.

#![forbid(unsafe_code)]

pub mod bundle;
pub mod checkpoint_state;
pub mod convert;
pub mod error;
mod file;
pub mod proto;

pub use checkpoint_state::CheckpointState;
pub use error::{Error, Result};
pub use file::read_message;
