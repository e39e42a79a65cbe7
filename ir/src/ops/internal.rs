//! Ops that never leave the process, and the sources of graphs.

use crate::op::*;

pub(super) static OPS: &[OpDef] = &[OpDef {
    name: "_Arg",
    summary: "An argument of the function around it.",
    outputs: &[arg("output", "T")],
    attrs: &[any_ty("T"), int("index").at_least(0)],
    lowering: Lowering::Runtime,
    ..OpDef::PURE
}];
