//! Random typed programs, and the comparison of all ways to run them.
//!
//! A [`program::FuzzProgram`] is a list of statements with nested blocks; it is printed and parsed as
//! text. The generator tries every statement eagerly on all inputs before it takes it. The reference
//! is the program run eagerly, op by op, with control flow in Rust; traced functions must return the
//! same with shapes known and unknown, with every pass of the compiler switched off, with other
//! numbers of threads and on every device.

pub(crate) mod check;
mod generate;
mod history;
mod observe;
mod parse;
mod print;
pub(crate) mod program;
pub(crate) mod rng;
pub(crate) mod shrink;
mod switches;
mod world;

pub(crate) use generate::{PROFILES, generate};
