//! Reductions along axes.

use super::sets::*;
use crate::{dtype::DType, infer, op::*};

/// A reduction: the axes are an input, and may be negative to count from the end.
const REDUCTION: OpDef = OpDef {
    inputs: &[arg("input", "T"), arg("reduction_indices", "Tidx").host()],
    outputs: &[arg("output", "T")],
    attrs: &[flag("keep_dims", false), ty("T", NUMBERS), ty_or("Tidx", INDEX, DType::I32)],
    infer: infer::reduction,
    ..OpDef::PURE
};

pub(super) static OPS: &[OpDef] = &[
    OpDef {
        name: "All",
        summary: "Tells whether all elements along axes are true.",
        inputs: &[arg_of("input", DType::Bool), arg("reduction_indices", "Tidx").host()],
        outputs: &[arg_of("output", DType::Bool)],
        attrs: &[flag("keep_dims", false), ty_or("Tidx", INDEX, DType::I32)],
        lowering: Lowering::Reduce(ReduceKind::All),
        ..REDUCTION
    },
    OpDef {
        name: "Any",
        summary: "Tells whether any element along axes is true.",
        inputs: &[arg_of("input", DType::Bool), arg("reduction_indices", "Tidx").host()],
        outputs: &[arg_of("output", DType::Bool)],
        attrs: &[flag("keep_dims", false), ty_or("Tidx", INDEX, DType::I32)],
        lowering: Lowering::Reduce(ReduceKind::Any),
        ..REDUCTION
    },
    OpDef {
        name: "EuclideanNorm",
        summary: "Computes the square root of the sum of squared magnitudes along axes.",
        lowering: Lowering::Reduce(ReduceKind::EuclideanNorm),
        ..REDUCTION
    },
    OpDef {
        name: "Max",
        summary: "Takes the largest element along axes; NaN if any is.",
        attrs: &[
            flag("keep_dims", false),
            ty(
                "T",
                &[
                    DType::F32,
                    DType::F64,
                    DType::I32,
                    DType::U8,
                    DType::I16,
                    DType::I8,
                    DType::I64,
                    DType::BF16,
                    DType::U16,
                    DType::F16,
                    DType::U32,
                    DType::U64,
                    DType::QI8,
                    DType::QU8,
                    DType::QI32,
                    DType::QI16,
                    DType::QU16,
                ],
            ),
            ty_or("Tidx", INDEX, DType::I32),
        ],
        lowering: Lowering::Reduce(ReduceKind::Max),
        ..REDUCTION
    },
    OpDef {
        name: "Mean",
        summary: "Computes the mean along axes.",
        lowering: Lowering::Reduce(ReduceKind::Mean),
        ..REDUCTION
    },
    OpDef {
        name: "Min",
        summary: "Takes the smallest element along axes; NaN if any is.",
        attrs: &[
            flag("keep_dims", false),
            ty(
                "T",
                &[
                    DType::F32,
                    DType::F64,
                    DType::I32,
                    DType::U8,
                    DType::I16,
                    DType::I8,
                    DType::I64,
                    DType::BF16,
                    DType::U16,
                    DType::F16,
                    DType::U32,
                    DType::U64,
                    DType::QI8,
                    DType::QU8,
                    DType::QI32,
                    DType::QI16,
                    DType::QU16,
                ],
            ),
            ty_or("Tidx", INDEX, DType::I32),
        ],
        lowering: Lowering::Reduce(ReduceKind::Min),
        ..REDUCTION
    },
    OpDef {
        name: "Prod",
        summary: "Computes the product along axes.",
        lowering: Lowering::Reduce(ReduceKind::Prod),
        ..REDUCTION
    },
    OpDef {
        name: "Sum",
        summary: "Computes the sum along axes.",
        lowering: Lowering::Reduce(ReduceKind::Sum),
        ..REDUCTION
    },
];
