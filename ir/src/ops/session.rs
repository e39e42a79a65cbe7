//! Ops on what a session keeps between runs, and on the run itself.

use crate::{dtype::DType, infer, op::*};

/// Keeps a value under a handle.
const KEEP: OpDef = OpDef {
    inputs: &[arg("value", "T")],
    attrs: &[any_ty("T")],
    infer: infer::scalar,
    lowering: Lowering::Runtime,
    ..OpDef::STATEFUL
};

pub(super) static OPS: &[OpDef] = &[
    OpDef {
        name: "Abort",
        summary: "Ends the run with an error, where TensorFlow ends the process.",
        attrs: &[string_or("error_msg", ""), flag("exit_without_error", false)],
        lowering: Lowering::Runtime,
        ..OpDef::STATEFUL
    },
    OpDef {
        name: "DeleteSessionTensor",
        summary: "Forgets a value that was kept under a handle.",
        inputs: &[arg_of("handle", DType::String)],
        infer: |context| context.check_rank(0, 0),
        lowering: Lowering::Runtime,
        ..OpDef::STATEFUL
    },
    OpDef {
        name: "GetSessionHandle",
        summary: "Keeps a value, and gives the handle of it as text.",
        outputs: &[arg_of("handle", DType::String)],
        ..KEEP
    },
    OpDef {
        name: "GetSessionHandleV2",
        summary: "Keeps a value, and gives the handle of it as a resource whose name is the text.",
        outputs: &[arg_of("handle", DType::Resource)],
        ..KEEP
    },
    OpDef {
        name: "GetSessionTensor",
        summary: "Gives the value that was kept under a handle.",
        inputs: &[arg_of("handle", DType::String)],
        outputs: &[arg("value", "dtype")],
        attrs: &[any_ty("dtype")],
        infer: |context| context.check_rank(0, 0),
        lowering: Lowering::Runtime,
        ..OpDef::STATEFUL
    },
    OpDef {
        name: "SyncDevice",
        summary: "Waits for a device: the ops before it have run here anyway.",
        lowering: Lowering::Runtime,
        ..OpDef::STATEFUL
    },
];
