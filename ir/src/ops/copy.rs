//! Copies between devices, as nodes of placed graphs.

use crate::{infer, op::*};

/// The op of a copy.
pub const COPY: &str = "_Copy";

pub(super) static OPS: &[OpDef] = &[OpDef {
    // The result is in the memory of the node's device.
    name: COPY,
    summary: "Copies a tensor to the memory of a device, or from there to the host.",
    inputs: &[arg("x", "T")],
    outputs: &[arg("y", "T")],
    attrs: &[any_ty("T")],
    infer: infer::each_unchanged,
    lowering: Lowering::Alias(AliasKind::Identity),
    ..OpDef::PURE
}];

/// Whether an op is the copy of a placed graph.
pub fn is_copy(op: &OpDef) -> bool {
    op.name == COPY
}
