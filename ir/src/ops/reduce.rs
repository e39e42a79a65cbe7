//! Reductions and running results along axes.

use super::sets::*;
use crate::gradient::{self, Gradient};
use crate::{
    dtype::DType,
    error::Result,
    infer::{self, OpContext, normalize_axis},
    op::*,
    shape::{Dim, PartialShape},
};
use smallvec::SmallVec;

/// A reduction: the axes are an input, and may be negative to count from the end.
const REDUCTION: OpDef = OpDef {
    inputs: &[arg("input", "T"), arg("reduction_indices", "Tidx").host()],
    outputs: &[arg("output", "T")],
    attrs: &[flag("keep_dims", false), ty("T", NUMBERS), ty_or("Tidx", INDEX, DType::I32)],
    infer: infer::reduction,
    ..OpDef::PURE
};

/// The types with an order.
const ORDERED: &[DType] = &[
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
];

/// The types with an order, and bool.
const ORDERED_AND_BOOL: &[DType] = &[
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
    DType::Bool,
];

/// The running results of an operation along an axis.
const SCAN: OpDef = OpDef {
    inputs: &[arg("x", "T"), arg("axis", "Tidx").host()],
    outputs: &[arg("out", "T")],
    attrs: &[
        flag("exclusive", false),
        flag("reverse", false),
        ty("T", NUMBERS),
        ty_or("Tidx", INDEX, DType::I32),
    ],
    infer: scan,
    lowering: Lowering::Kernel,
    ..OpDef::PURE
};

/// The position of an extreme element along an axis.
const ARG_EXTREME: OpDef = OpDef {
    inputs: &[arg("input", "T"), arg("dimension", "Tidx").host()],
    outputs: &[arg("output", "output_type")],
    attrs: &[
        ty("T", ORDERED_AND_BOOL),
        ty_or("Tidx", INDEX, DType::I32),
        ty_or("output_type", INDEX, DType::I64),
    ],
    infer: arg_extreme,
    lowering: Lowering::Kernel,
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
        name: "ArgMax",
        summary: "Gives the position of the largest element along an axis; the first of equal ones.",
        attrs: &[
            ty("T", ORDERED_AND_BOOL),
            ty_or("Tidx", &[DType::I16, DType::I32, DType::I64], DType::I32),
            ty_or("output_type", &[DType::I16, DType::U16, DType::I32, DType::I64], DType::I64),
        ],
        sharding: Some(ShardingRule::ArgExtreme),
        ..ARG_EXTREME
    },
    OpDef {
        name: "ArgMin",
        summary: "Gives the position of the smallest element along an axis; the first of equal ones.",
        sharding: Some(ShardingRule::ArgExtreme),
        ..ARG_EXTREME
    },
    OpDef {
        name: "Cumprod",
        summary: "Computes running products along an axis.",
        gradient: Gradient::Rule(gradient::reduce::running_product),
        sharding: Some(ShardingRule::Scan),
        ..SCAN
    },
    OpDef {
        name: "Cumsum",
        summary: "Computes running sums along an axis.",
        gradient: Gradient::Rule(gradient::reduce::running_sum),
        sharding: Some(ShardingRule::Scan),
        ..SCAN
    },
    OpDef {
        name: "CumulativeLogsumexp",
        summary: "Computes running `log(Σ exp(x))` along an axis, without overflow.",
        attrs: &[
            flag("exclusive", false),
            flag("reverse", false),
            ty("T", FLOATS),
            ty_or("Tidx", INDEX, DType::I32),
        ],
        gradient: Gradient::Rule(gradient::reduce::running_log_sum_exp),
        ..SCAN
    },
    OpDef {
        name: "EuclideanNorm",
        summary: "Computes the square root of the sum of squared magnitudes along axes.",
        lowering: Lowering::Reduce(ReduceKind::EuclideanNorm),
        gradient: Gradient::Rule(gradient::reduce::euclidean_norm),
        ..REDUCTION
    },
    OpDef {
        name: "Max",
        summary: "Takes the largest element along axes; NaN if any is.",
        attrs: &[flag("keep_dims", false), ty("T", ORDERED), ty_or("Tidx", INDEX, DType::I32)],
        lowering: Lowering::Reduce(ReduceKind::Max),
        gradient: Gradient::Rule(gradient::reduce::extreme),
        ..REDUCTION
    },
    OpDef {
        name: "Mean",
        summary: "Computes the mean along axes.",
        lowering: Lowering::Reduce(ReduceKind::Mean),
        gradient: Gradient::Rule(gradient::reduce::mean),
        ..REDUCTION
    },
    OpDef {
        name: "Min",
        summary: "Takes the smallest element along axes; NaN if any is.",
        attrs: &[flag("keep_dims", false), ty("T", ORDERED), ty_or("Tidx", INDEX, DType::I32)],
        lowering: Lowering::Reduce(ReduceKind::Min),
        gradient: Gradient::Rule(gradient::reduce::extreme),
        ..REDUCTION
    },
    OpDef {
        name: "Prod",
        summary: "Computes the product along axes.",
        lowering: Lowering::Reduce(ReduceKind::Prod),
        gradient: Gradient::Rule(gradient::reduce::product),
        ..REDUCTION
    },
    OpDef {
        name: "Sum",
        summary: "Computes the sum along axes.",
        lowering: Lowering::Reduce(ReduceKind::Sum),
        gradient: Gradient::Rule(gradient::reduce::sum),
        ..REDUCTION
    },
];

fn arg_extreme(context: &mut OpContext<'_>) -> Result<()> {
    context.check_rank_at_least(0, 1)?;
    let (Some(axis), Some(dims)) = (context.int(1)?, context.shape(0).dims()) else {
        return Ok(());
    };
    let axis = normalize_axis(axis, dims.len())?;
    if dims[axis] == Some(0) {
        return Err(context.wrong(0, "not empty along the axis", context.shape(0)));
    }
    let mut rest: SmallVec<[Dim; 6]> = dims.into();
    rest.remove(axis);
    context.set(0, PartialShape::Ranked(rest));
    Ok(())
}

fn scan(context: &mut OpContext<'_>) -> Result<()> {
    if let (Some(axis), Some(rank)) = (context.int(1)?, context.shape(0).rank()) {
        normalize_axis(axis, rank)?;
    }
    infer::unchanged(context)
}
