//! The messages of TensorFlow's files, generated from `protos/*.proto`; [`yggdrasil`] has those of decision
//! forests.
//!
//! Field names and numbers are those of the format. Enum fields are plain integers, so that a
//! number from a newer release survives; fields from a newer release do not.

#![allow(
    missing_docs,
    clippy::large_enum_variant,
    clippy::doc_lazy_continuation,
    reason = "generated from declarations that name what they hold"
)]

mod tensorflow;
pub mod yggdrasil;

pub use tensorflow::*;

/// Encoding and decoding.
pub use prost::Message;
