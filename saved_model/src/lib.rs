//! TensorFlow's files: SavedModels, checkpoints and the messages in them.

#![forbid(unsafe_code)]

pub mod proto;
