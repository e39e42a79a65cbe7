//! The export of functions as StableHLO.
//!
//! A function is specialised for arguments of known shapes: calls are inlined, constants folded,
//! composite ops expanded. What remains are few kinds of nodes, each of which becomes operations of
//! StableHLO:
//!
//! - a scalar expression becomes an operation for each of its primitives (`scalar.rs`);
//! - a view becomes slices, a transposition and a broadcast (`view.rs`);
//! - a reduction becomes `reduce`, an alias `reshape`;
//! - a kernel becomes what computes the same (`kernel.rs`, `window.rs`);
//! - loops and branches become `while`, `if` and `case` (`control.rs`), tensor lists tensors (`list.rs`).
//!
//! The module is the same structure that the import reads. It is written as text of the dialect
//! `stablehlo` (`text.rs`), or as a portable artifact of its versioned form `vhlo` (`artifact.rs`),
//! which XLA, JAX and PJRT plug-ins read. State, strings, random numbers and shapes that data
//! decides have no form there: they are errors that name op and node.

mod artifact;
mod block;
mod control;
mod kernel;
mod list;
mod lower;
mod scalar;
mod slices;
mod text;
mod view;
mod window;

use super::module::{HloFunction, HloModule, Type};
use ferroflow_ir::{
    FunctionDef, FunctionLibrary, Limits, Result, ValueType, pass::specialize::Evaluate,
};

/// A function as StableHLO.
#[derive(Debug)]
pub struct StableHlo {
    module: HloModule,
}

impl StableHlo {
    /// The function `def`, for arguments of these types, whose shapes are known.
    ///
    /// # Errors
    ///
    /// [`Unsupported`](ferroflow_ir::Error::Unsupported) with op and node, for what StableHLO has
    /// no form of; whatever is wrong with the function.
    pub fn of(
        def: &FunctionDef,
        library: &FunctionLibrary,
        args: &[ValueType],
        evaluate: &dyn Evaluate,
        limits: &Limits,
    ) -> Result<StableHlo> {
        let (body, results, n_values) = lower::function(def, library, args, evaluate, limits)?;
        let results = results.into_iter().map(Type::Tensor).collect();
        let functions = [("main".into(), HloFunction { body, results })].into();
        Ok(StableHlo { module: HloModule { functions, n_values } })
    }

    /// The text of the dialect `stablehlo`, operations in MLIR's generic form.
    pub fn text(&self) -> String {
        text::module(&self.module)
    }

    /// The portable artifact: MLIR bytecode of the dialect `vhlo`, in its version 1.0.0.
    pub fn artifact(&self) -> Vec<u8> {
        artifact::module(&self.module)
    }
}
