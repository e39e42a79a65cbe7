//! Reading the files TensorFlow wrote, whole and damaged.

#![expect(clippy::unwrap_used, reason = "a panic is how a test fails")]

mod cases;
mod checkpoints;
mod fuzz;
mod graphs;
mod memory;
mod round_trip;
