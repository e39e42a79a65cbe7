//! Locks of critical sections.

use crate::{dtype::DType, infer, op::*};

pub(super) static OPS: &[OpDef] = &[
    OpDef {
        name: "ConsumeMutexLock",
        summary: "Lets go of a mutex.",
        inputs: &[arg_of("mutex_lock", DType::Variant)],
        lowering: Lowering::Runtime,
        ..OpDef::STATEFUL
    },
    OpDef {
        name: "MutexLock",
        summary: "Takes a mutex, once no other holder has it.",
        inputs: &[arg_of("mutex", DType::Resource)],
        outputs: &[arg_of("mutex_lock", DType::Variant)],
        infer: infer::scalar,
        lowering: Lowering::Runtime,
        ..OpDef::STATEFUL
    },
    OpDef {
        name: "MutexV2",
        summary: "Makes a mutex, or finds it by name.",
        outputs: &[arg_of("resource", DType::Resource)],
        attrs: &[string_or("container", ""), string_or("shared_name", "")],
        infer: infer::scalar,
        lowering: Lowering::Runtime,
        ..OpDef::STATEFUL
    },
];
