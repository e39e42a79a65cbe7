//! Control flow of Rust as that of graphs: what [`#[function]`](macro@crate::function) makes of `if`,
//! `while`, `for`, `loop`, `break`, `continue`, `return`, `&&`, `||`, `!` and `assert!`.
//!
//! The type of a condition decides at compile time: a `bool` has Rust's meaning, with all that Rust
//! allows; a [`Tensor`](crate::Tensor) makes the construct part of the graph, if one is being made. A
//! tensor with a value decides at once.
//!
//! # How it works
//!
//! The body stays where it is written, once. A branch or loop is traced by *replaying it in place*:
//!
//! - An `if` stands in a hidden loop. Where its condition is a tensor without a value, the first round
//!   traces the first branch into a part of the graph of its own, the second round, with all variables
//!   reset, the second; then both are joined to one `If`, and the variables take its results. In any
//!   other case there is one round, which is Rust's `if`.
//! - The condition of a `while` is evaluated once to see what it is; if it is a tensor without a value,
//!   that is taken back, the variables become parameters, and condition and body are traced once each.
//! - What only graphs need stands behind [`kind::gate`], which for a `bool` gives a type without
//!   values: for the compiler such code is never reached, so that moves, borrows and variables without
//!   a value are judged as in Rust.
//!
//! The variables that a construct changes are those that are assigned to in it and declared outside.
//! They must be [`carry::Carry`]: made of tensors. Values of Rust are the same in all branches, which
//! the types ensure.
//!
//! A variable without a value before a choice is carried after it: both branches give it one, before
//! any jump that depends on a tensor.
//!
//! A jump out of a traced branch ends the branch with a code; `flow` tells how codes are joined, and
//! how what follows a jump is guarded.
//!
//! These functions are public for the macro. By hand there is [`control_flow`](crate::control_flow).

pub mod carry;
pub mod cases;
pub mod choice;
mod dataset;
mod flow;
pub mod frame;
pub mod iterate;
pub mod kind;
pub mod logic;
pub mod operand;
pub mod ranges;
pub mod repeat;
mod steps;
pub mod tied;

pub use carry::Carry;
pub use dataset::{DatasetElements, DatasetFor, DatasetIterate, DatasetLoop, GraphDataset};
pub use ranges::{RangeOf, range};
