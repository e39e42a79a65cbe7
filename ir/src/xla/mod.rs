//! The primitives of XLA as formulas over ordinary ops.
//!
//! Ops of graphs (`XlaDotV2`, `XlaGather`, …) and imported StableHLO mean the same primitives;
//! both come here. A formula takes tensors of known rank. Sizes need not be known: they are
//! [`Size`]s, numbers where a shape tells them and otherwise values that a graph computes, so that
//! a function for every batch size is imported and differentiated once. What depends on the
//! elements of a shape itself, such as a reduction by any function, is a composite op
//! (`XlaVariadicReduceV2`), which is expanded when shapes are known.
//!
//! The meaning of each primitive is that of StableHLO's specification (`docs/spec.md` of
//! openxla/stablehlo); where it leaves a choice, that of XLA on a CPU.

pub mod bits;
pub mod carrier;
pub mod complex;
pub mod conv;
pub mod convert;
pub mod dot;
pub(crate) mod draw;
pub mod gather;
mod numbers;
pub mod pad;
pub mod reduce;
pub mod region;
pub mod rng;
pub mod scatter;
pub mod select;
pub mod size;
pub mod slice;
pub mod sort;
pub(crate) mod total;
pub mod window;

pub(crate) use numbers::MessageNumbers;
pub use size::Size;
