//! Operations on tensors.
//!
//! Every op that has a record has a function here, generated from it; [`operand`] has what may be
//! given in place of tensors, [`math`] the methods that are used most,
//! `operators` the operators of Rust.

pub(crate) mod call;
mod generated;
mod lists;
pub mod math;
pub mod operand;
mod operators;
pub(crate) mod variable;

pub(crate) use call::{NamedOp, call, named, none, one};
pub use call::{Outputs, raw, raw_at};
pub use generated::*;
pub use operand::IntoOperand;
pub(crate) use operand::numbers;
