//! Choices, loops and arrays of tensors, by hand.
//!
//! Outside traces these functions run the Rust code they are given as any code. In a trace they make
//! functions of it, which the graph calls: `If` and `Case` one of several, `While` one again and
//! again. What such code uses from outside becomes an input of the call, and the call has the
//! effects of what it calls.
//!
//! In [`#[function]`](macro@crate::function) Rust's own `if`, `while` and `for` do the same.

mod cond;
mod map;
pub(crate) mod stage;
pub(crate) mod structure;
mod tensor_array;
pub(crate) mod while_loop;

pub use cond::{case, cond, switch_case};
pub use map::{foldl, foldr, map_fn, scan};
pub use tensor_array::{TensorArray, TensorArrayOptions};
pub use while_loop::{WhileOptions, while_loop, while_loop_with};
