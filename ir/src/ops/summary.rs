//! Summaries: messages about the course of a training.

use super::sets::*;
use crate::{dtype::DType, infer, op::*};

pub(super) static OPS: &[OpDef] = &[
    OpDef {
        name: "HistogramSummary",
        summary: "Makes a summary with the distribution of values.",
        inputs: &[arg_of("tag", DType::String), arg("values", "T")],
        outputs: &[arg_of("summary", DType::String)],
        attrs: &[ty_or("T", REALS, DType::F32)],
        infer: infer::scalar,
        lowering: Lowering::Runtime,
        ..OpDef::PURE
    },
    OpDef {
        name: "MergeSummary",
        summary: "Makes one summary of several.",
        inputs: &[args_of("inputs", "N", DType::String)],
        outputs: &[arg_of("summary", DType::String)],
        attrs: &[int("N").at_least(1)],
        infer: infer::scalar,
        lowering: Lowering::Runtime,
        ..OpDef::PURE
    },
    OpDef {
        name: "ScalarSummary",
        summary: "Makes a summary with scalars.",
        inputs: &[arg_of("tags", DType::String), arg("values", "T")],
        outputs: &[arg_of("summary", DType::String)],
        attrs: &[ty("T", REALS)],
        infer: |context| {
            context.merged(0, 1)?;
            infer::scalar(context)
        },
        lowering: Lowering::Runtime,
        ..OpDef::PURE
    },
];
