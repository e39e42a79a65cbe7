//! Graph to graph: each pass returns a graph that means the same and costs less.
//!
//! The order in which a runtime uses them: [`specialize`] (inline calls, infer types, fold
//! constants, expand formulas), [`hoist`], [`mod@dense_lists`], [`loop_variables`], [`stack_updates`], [`mod@depthwise`], [`strides`], [`cse`], [`prune`], [`mod@widen`], [`pad`], [`fuse`],
//! [`attention`], [`region`], [`mod@fuse_outputs`], [`mod@row_calls`], [`overlap`]. [`functionalize`] is for those who load graphs, [`carve`] and
//! [`infer_types`] are for whoever asks for a part of one.

pub mod attention;
mod call;
pub mod carve;
pub mod cse;
pub mod dense_lists;
pub mod depthwise;
mod elements;
pub mod execution;
mod first_round;
pub mod functionalize;
pub mod fuse;
pub mod fuse_outputs;
pub mod hoist;
pub mod infer_types;
pub mod loop_variables;
pub mod outline;
pub mod overlap;
pub mod pad;
pub mod placement;
pub mod prune;
mod rebuild;
pub mod region;
pub mod row_calls;
pub mod specialize;
pub mod spmd;
pub mod stack_updates;
pub mod strides;
#[cfg(test)]
mod test_bodies;
pub mod transpose;
pub mod verify;
pub mod widen;
