//! Accumulators: sums of gradients that wait until there are enough of them.

use super::sets::*;
use crate::{dtype::DType, infer, op::*};

/// Works on an accumulator.
const WORK: OpDef = OpDef { lowering: Lowering::Runtime, ..OpDef::WRITES };

pub(super) static OPS: &[OpDef] = &[
    OpDef {
        name: "ResourceAccumulatorApplyGradient",
        summary: "Adds a gradient to an accumulator, unless it is of an earlier step.",
        inputs: &[
            arg_of("handle", DType::Resource),
            arg_of("local_step", DType::I64),
            arg("gradient", "dtype"),
        ],
        attrs: &[ty("dtype", NUMBERS)],
        ..WORK
    },
    OpDef {
        name: "ResourceAccumulatorNumAccumulated",
        summary: "Gives the number of gradients in an accumulator.",
        inputs: &[arg_of("handle", DType::Resource)],
        outputs: &[arg_of("num_accumulated", DType::I32)],
        infer: infer::scalar,
        lowering: Lowering::Runtime,
        ..OpDef::READS
    },
    OpDef {
        name: "ResourceAccumulatorSetGlobalStep",
        summary: "Sets the step from which on gradients count.",
        inputs: &[arg_of("handle", DType::Resource), arg_of("new_global_step", DType::I64)],
        ..WORK
    },
    OpDef {
        name: "ResourceAccumulatorTakeGradient",
        summary: "Takes the mean or the sum of the gradients, once there are so many.",
        inputs: &[arg_of("handle", DType::Resource), arg_of("num_required", DType::I32)],
        outputs: &[arg("average", "dtype")],
        attrs: &[ty("dtype", NUMBERS)],
        ..WORK
    },
    OpDef {
        name: "ResourceConditionalAccumulator",
        summary: "Makes an accumulator of gradients, or finds it by name.",
        outputs: &[arg_of("handle", DType::Resource)],
        attrs: &[
            ty("dtype", NUMBERS),
            shape("shape"),
            string_or("container", ""),
            string_or("shared_name", ""),
            one_of("reduction_type", &["MEAN", "SUM"]).or(AttrDefault::String("MEAN")),
        ],
        infer: infer::scalar,
        lowering: Lowering::Runtime,
        ..OpDef::STATEFUL
    },
];
