//! Tests of batch inference against direct calls of the same models.

#[cfg(feature = "ballista")]
mod distributed;
mod errors;
mod outputs;
mod predictions;
mod queries;
mod resuming;
mod support;
