//! Ops that debuggers and instrumentation leave in graphs: each passes its input on.

use super::sets::*;
use crate::gradient::Gradient;
use crate::{
    dtype::DType,
    emit::call,
    error::{Error, Result},
    infer::{self, OpContext},
    op::*,
    shape::PartialShape,
};

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
        name: "CustomAggregator",
        summary: "Passes a tensor on, with its ends and a histogram for the calibration of ranges.",
        inputs: &[arg_of("input", DType::F32)],
        outputs: &[
            arg_of("output", DType::F32),
            arg_of("min", DType::F32),
            arg_of("max", DType::F32),
            arg_of("histogram", DType::I64),
        ],
        attrs: &[
            string("id"),
            int_or("calibration_method", 0),
            int_or("num_bins", 0),
            float_or("min_percentile", 0.0),
            float_or("max_percentile", 0.0),
        ],
        infer: |context| {
            let bins = context.attrs.int("num_bins")?;
            let n = usize::try_from(bins)
                .map_err(|_| context.wrong_attr("num_bins", "not negative", bins))?;
            infer::scalar(context)?;
            context.set(0, context.shape(0).clone());
            context.set(3, PartialShape::vector(Some(n)));
            Ok(())
        },
        lowering: Lowering::HostKernel(HostReason::ShapesAndChecks),
        outside: Some(OutsideAccess::RunsCode),
        ..OpDef::PURE
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
        name: "DebugNumericSummary",
        summary: "Counts elements by kind and tells their ends, mean and variance, dtype and shape.",
        inputs: &[arg("input", "T")],
        outputs: &[arg_of("output", DType::F64)],
        attrs: &[
            any_ty("T"),
            string_or("device_name", ""),
            string_or("tensor_name", ""),
            strings("debug_urls").or(AttrDefault::Strings(&[])),
            float_or("lower_bound", f32::NEG_INFINITY),
            float_or("upper_bound", f32::INFINITY),
            flag("mute_if_healthy", false),
            flag("gated_grpc", false),
        ],
        infer: |context| {
            let size = context.shape(0).rank().map(|rank| rank + 14);
            context.set(0, PartialShape::vector(size));
            Ok(())
        },
        lowering: Lowering::HostKernel(HostReason::ShapesAndChecks),
        gradient: Gradient::Zero,
        ..OpDef::PURE
    },
    OpDef {
        name: "DebugNumericSummaryV2",
        summary: "Tells of a tensor what `tensor_debug_mode` asks for: infinities, counts, a shape.",
        inputs: &[arg("input", "T")],
        outputs: &[arg("output", "output_dtype")],
        attrs: &[
            ty_or("output_dtype", &[DType::F32, DType::F64], DType::F32),
            any_ty("T"),
            int_or("tensor_debug_mode", -1),
            int_or("tensor_id", -1),
        ],
        infer: health,
        lowering: Lowering::HostKernel(HostReason::ShapesAndChecks),
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

/// The numbers that a mode tells, and whether the number of the tensor is told exactly.
fn health(context: &mut OpContext<'_>) -> Result<()> {
    let n = match context.attrs.int("tensor_debug_mode")? {
        2 => 2,
        3 => 5,
        4 => 11,
        5 => 10,
        8 => 3,
        mode => {
            let what = format!("tensor_debug_mode {mode}").into();
            return Err(Error::Unsupported { op: context.op.name.into(), what });
        }
    };
    let (id, bits) = match context.attrs.dtype("output_dtype")? {
        DType::F32 => (context.attrs.int("tensor_id")?, 24),
        _ => (context.attrs.int("tensor_id")?, 53),
    };
    if id > 1 << bits {
        return Err(context.wrong_attr("tensor_id", format!("at most 2^{bits}"), id));
    }
    context.set(0, PartialShape::vector(Some(n)));
    Ok(())
}
