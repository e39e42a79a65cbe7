//! The public face of the tracer.

#![expect(clippy::unwrap_used, reason = "what fails here fails a test")]

mod control_flow;
mod gradients;
mod macros;
mod mesh;

mod operators;
