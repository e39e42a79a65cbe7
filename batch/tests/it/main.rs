//! Tests of batch inference against direct calls of the same models.

mod errors;
mod outputs;
mod predictions;
mod queries;
mod resuming;
mod support;
