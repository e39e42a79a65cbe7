//! Ops that debuggers and instrumentation leave in graphs: each passes its input on.

use super::sets::*;
use crate::gradient::Gradient;
use crate::{dtype::DType, emit::call, infer, op::*, shape::PartialShape};

/// Passes a tensor on; what it would report to a debugger is left out.
const PASSING: OpDef = OpDef {
    inputs: &[arg("input", "T")],
    outputs: &[arg("output", "T")],
    infer: infer::each_unchanged,
    lowering: Lowering::Alias(AliasKind::Identity),
    gradient: Gradient::Same,
    ..OpDef::PURE
};

pub(super) static OPS: &[OpDef] = &[
    OpDef {
        name: "Copy",
        summary: "Passes a tensor on to a debugger.",
        attrs: &[
            any_ty("T"),
            string_or("tensor_name", ""),
            strings("debug_ops_spec").or(AttrDefault::Strings(&[])),
        ],
        ..PASSING
    },
    OpDef {
        name: "CopyHost",
        summary: "Passes a tensor in the memory of the host on to a debugger.",
        attrs: &[
            any_ty("T"),
            string_or("tensor_name", ""),
            strings("debug_ops_spec").or(AttrDefault::Strings(&[])),
        ],
        ..PASSING
    },
    OpDef {
        name: "DebugGradientIdentity",
        summary: "Passes a tensor on whose gradient a debugger looks at.",
        attrs: &[any_ty("T")],
        ..PASSING
    },
    OpDef {
        name: "DebugIdentity",
        summary: "Passes a tensor on that a debugger looks at.",
        attrs: &[
            any_ty("T"),
            string_or("device_name", ""),
            string_or("tensor_name", ""),
            strings("debug_urls").or(AttrDefault::Strings(&[])),
            flag("gated_grpc", false),
        ],
        ..PASSING
    },
    OpDef {
        name: "DebugIdentityV2",
        summary: "Passes a tensor on that a debugger looks at.",
        attrs: &[
            any_ty("T"),
            string_or("tfdbg_context_id", ""),
            string_or("op_name", ""),
            int_or("output_slot", -1),
            int_or("tensor_debug_mode", -1),
            strings("debug_urls").or(AttrDefault::Strings(&[])),
            int_or("circular_buffer_size", 1000),
            string_or("tfdbg_run_id", ""),
        ],
        ..PASSING
    },
    OpDef {
        name: "DebugIdentityV3",
        summary: "Passes a tensor on that a debugger looks at.",
        attrs: &[
            any_ty("T"),
            string_or("device_name", ""),
            string_or("tensor_name", ""),
            string_or("io_of_node", ""),
            flag("is_input", false),
            int_or("io_index", -1),
            strings("debug_urls").or(AttrDefault::Strings(&[])),
            flag("gated_grpc", false),
        ],
        ..PASSING
    },
    OpDef {
        name: "DebugNanCount",
        summary: "Counts the elements that are not a number.",
        inputs: &[arg("input", "T")],
        outputs: &[arg_of("output", DType::I64)],
        attrs: &[
            any_ty("T"),
            string_or("device_name", ""),
            string_or("tensor_name", ""),
            strings("debug_urls").or(AttrDefault::Strings(&[])),
            flag("gated_grpc", false),
        ],
        infer: |context| {
            context.set(0, PartialShape::vector(Some(1)));
            Ok(())
        },
        lowering: Lowering::Composite(|c| {
            let x = c.x(0);
            let count = match FLOATS.contains(&x.dtype()) {
                true => call("IsNan", [x]).cast(DType::I64).reshape(&[-1]).sum(&[0], true),
                false => c.vector(&[0i64]),
            };
            vec![count]
        }),
        gradient: Gradient::Zero,
        ..OpDef::PURE
    },
    OpDef {
        name: "DeepCopy",
        summary: "Passes a tensor on.",
        inputs: &[arg("x", "T")],
        outputs: &[arg("y", "T")],
        attrs: &[any_ty("T")],
        ..PASSING
    },
    OpDef {
        name: "HostConst",
        summary: "Gives a constant in the memory of the host.",
        outputs: &[arg("output", "dtype")],
        attrs: &[tensor("value"), any_ty("dtype")],
        infer: |context| {
            let shape: PartialShape = context.attrs.tensor("value")?.shape().into();
            context.set(0, shape);
            Ok(())
        },
        lowering: Lowering::Composite(|c| vec![c.constant(c.attrs.tensor("value").cloned())]),
        ..OpDef::PURE
    },
];
