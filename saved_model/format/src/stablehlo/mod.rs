//! StableHLO: programs of JAX and other frameworks inside the op `XlaCallModule`.
//!
//! The attribute `module` of the op holds a *portable artifact*: MLIR bytecode of the dialect
//! `vhlo`, the versioned form of StableHLO. The reader turns it into functions of regions, strictly
//! and within bounds that follow from its length. The import then writes them as functions
//! of [`ferroflow_ir`], over ordinary ops: there is no second runtime, and gradients, fusion and
//! devices are those of every other function.
//!
//! The import happens once for each call and library, when the call is first specialised,
//! differentiated or asked for its effects ([`FunctionLibrary::module`]); the node itself stays
//! as it is, so that a model is saved with the program that it was loaded with. Sizes that the
//! program leaves open are computed from the arguments by ops (`Shape` and arithmetic), which
//! specialisation turns into constants: shapes are refined there, and once for each set of
//! argument shapes.
//!
//! - A region of a `while`, `case` or `if` becomes a function that takes what it uses of the values
//!   around it as further arguments.
//! - A region of a reduction, scatter or sort is applied to whole tensors: it consists of
//!   elementwise operations. Those that ops have a name for (a sum, a maximum) become these ops.
//! - Tokens, which order effects, are `false`: the order of effects is that of the nodes.
//! - The other direction, functions as StableHLO, is [`export`].
//! - What has no meaning on one CPU (send, receive, collectives of several replicas) and
//!   custom calls that are not known are errors that name the operation.

mod artifact;
mod constant;
mod cursor;
mod entries;
pub mod export;
mod import;
mod module;
mod signatures;

use ferroflow_ir::{Attrs, FunctionDef, FunctionLibrary, Limits, Result};
use std::sync::Arc;

pub(crate) use import::import;

/// Makes programs inside `XlaCallModule` known to all libraries.
pub fn register() {
    ferroflow_ir::modules::set_importer(import);
}

/// Reads the bytes of a portable artifact and imports its function `main`, for `platforms` as
/// `XlaCallModule` has them.
///
/// # Errors
///
/// What is wrong with the artifact.
pub fn import_artifact(
    bytes: &[u8],
    platforms: &[&str],
    library: &FunctionLibrary,
) -> Result<Arc<FunctionDef>> {
    let platforms: Vec<bytes::Bytes> =
        platforms.iter().map(|name| bytes::Bytes::copy_from_slice(name.as_bytes())).collect();
    let attrs = Attrs::new()
        .with("module", ferroflow_ir::AttrValue::String(bytes::Bytes::copy_from_slice(bytes)))
        .with("platforms", ferroflow_ir::AttrValue::Strings(platforms))
        .with("version", 10i64);
    import::import_within(&attrs, library, &Limits::default())
}
