//! Tests of batch inference against direct calls of the same models.
#![expect(clippy::unwrap_used, reason = "a test fails by it")]

#[cfg(feature = "ballista")]
mod distributed;
mod errors;
mod outputs;
mod predictions;
mod queries;
mod resuming;
mod support;
