//! Matrix products.

use super::einsum;
use crate::gradient::{self, Gradient};
use crate::{
    dtype::DType,
    error::Result,
    infer::OpContext,
    op::*,
    shape::{Dim, PartialShape},
    work,
};

/// The types of `BatchMatMulV3`.
const MIXED: &[DType] = &[
    DType::BF16,
    DType::F16,
    DType::F32,
    DType::F64,
    DType::U8,
    DType::I8,
    DType::I16,
    DType::I32,
    DType::I64,
    DType::C64,
    DType::C128,
];

/// The types of `_WideningMatMul`.
const BYTES: &[DType] = &[DType::I8, DType::U8];

pub(super) static OPS: &[OpDef] = &[
    OpDef {
        name: "BatchMatMul",
        summary: "Multiplies matrices pairwise, each perhaps conjugated and transposed.",
        inputs: &[arg("x", "T"), arg("y", "T")],
        outputs: &[arg("output", "T")],
        attrs: &[
            ty(
                "T",
                &[
                    DType::BF16,
                    DType::F16,
                    DType::F32,
                    DType::F64,
                    DType::I32,
                    DType::I64,
                    DType::C64,
                    DType::C128,
                ],
            ),
            flag("adj_x", false),
            flag("adj_y", false),
            flag("grad_x", false),
            flag("grad_y", false),
        ],
        infer: batch_matmul,
        lowering: Lowering::Kernel,
        gradient: Gradient::Broadcast(gradient::matmul::batch_matmul),
        matmul: Some(["adj_x", "adj_y"]),
        multiply_adds: Some(work::matmul),
        sharding: Some(ShardingRule::BatchMatMul),
        ..OpDef::PURE
    },
    OpDef {
        name: "BatchMatMulV2",
        summary: "Multiplies matrices pairwise; the dimensions before the last two broadcast.",
        inputs: &[arg("x", "T"), arg("y", "T")],
        outputs: &[arg("output", "T")],
        attrs: &[
            ty(
                "T",
                &[
                    DType::BF16,
                    DType::F16,
                    DType::F32,
                    DType::F64,
                    DType::I16,
                    DType::I32,
                    DType::I64,
                    DType::U8,
                    DType::U16,
                    DType::U32,
                    DType::U64,
                    DType::C64,
                    DType::C128,
                ],
            ),
            flag("adj_x", false),
            flag("adj_y", false),
            flag("grad_x", false),
            flag("grad_y", false),
        ],
        infer: batch_matmul_v2,
        lowering: Lowering::Kernel,
        gradient: Gradient::Broadcast(gradient::matmul::batch_matmul),
        matmul: Some(["adj_x", "adj_y"]),
        multiply_adds: Some(work::matmul),
        sharding: Some(ShardingRule::BatchMatMul),
        ..OpDef::PURE
    },
    OpDef {
        name: "BatchMatMulV3",
        summary: "Multiplies matrices pairwise, with a result of another type than the operands.",
        inputs: &[arg("x", "Ta"), arg("y", "Tb")],
        outputs: &[arg("output", "Tout")],
        attrs: &[
            ty("Ta", MIXED),
            ty("Tb", MIXED),
            ty(
                "Tout",
                &[
                    DType::BF16,
                    DType::F16,
                    DType::F32,
                    DType::F64,
                    DType::I16,
                    DType::I32,
                    DType::I64,
                    DType::C64,
                    DType::C128,
                ],
            ),
            flag("adj_x", false),
            flag("adj_y", false),
            flag("grad_x", false),
            flag("grad_y", false),
        ],
        infer: batch_matmul_v2,
        lowering: Lowering::Composite(|c| {
            let to = c.dtype_attr("Tout");
            let (x, y) = (c.x(0).cast(to), c.x(1).cast(to));
            vec![x.batch_matmul(y, c.flag("adj_x"), c.flag("adj_y"))]
        }),
        gradient: Gradient::Broadcast(gradient::matmul::batch_matmul),
        ..OpDef::PURE
    },
    OpDef {
        name: "_WideningMatMul",
        summary: "Multiplies matrices of bytes pairwise, with sums of 32 bits.",
        inputs: &[arg("x", "Ta"), arg("y", "Tb")],
        outputs: &[arg("output", "Tout")],
        attrs: &[
            ty("Ta", BYTES),
            ty("Tb", BYTES),
            ty("Tout", &[DType::I32]).or(AttrDefault::Type(DType::I32)),
            flag("adj_x", false),
            flag("adj_y", false),
        ],
        infer: batch_matmul_v2,
        lowering: Lowering::HostKernel(HostReason::NotWritten),
        multiply_adds: Some(work::matmul),
        ..OpDef::PURE
    },
    OpDef {
        name: "Einsum",
        summary: "Computes the sum of products that an equation of labelled axes describes.",
        inputs: &[args("inputs", "N", "T")],
        outputs: &[arg("output", "T")],
        attrs: &[string("equation"), int("N").at_least(1), any_ty("T")],
        infer: einsum::infer,
        lowering: Lowering::Composite(einsum::rule),
        gradient: Gradient::Rule(gradient::einsum::einsum),
        multiply_adds: Some(einsum::multiply_adds),
        ..OpDef::PURE
    },
    OpDef {
        name: "MatMul",
        summary: "Multiplies matrix `a` by matrix `b`, each perhaps transposed.",
        inputs: &[arg("a", "T"), arg("b", "T")],
        outputs: &[arg("product", "T")],
        attrs: &[
            flag("transpose_a", false),
            flag("transpose_b", false),
            ty(
                "T",
                &[
                    DType::BF16,
                    DType::F16,
                    DType::F32,
                    DType::F64,
                    DType::I32,
                    DType::I64,
                    DType::U8,
                    DType::U16,
                    DType::U32,
                    DType::U64,
                    DType::C64,
                    DType::C128,
                ],
            ),
            flag("grad_a", false),
            flag("grad_b", false),
        ],
        infer: matmul,
        lowering: Lowering::Kernel,
        gradient: Gradient::Rule(gradient::matmul::matmul),
        matmul: Some(["transpose_a", "transpose_b"]),
        multiply_adds: Some(work::matmul),
        sharding: Some(ShardingRule::MatMul),
        ..OpDef::PURE
    },
];

/// The rows and columns of the matrices in input `index`.
fn matrix(context: &OpContext<'_>, index: usize, transposed: &str) -> Result<(Dim, Dim)> {
    let shape = context.shape(index);
    let (rows, cols) = (shape.dim(-2), shape.dim(-1));
    Ok(if context.attrs.bool(transposed)? { (cols, rows) } else { (rows, cols) })
}

pub(super) fn matmul(context: &mut OpContext<'_>) -> Result<()> {
    context.check_rank(0, 2)?;
    context.check_rank(1, 2)?;
    let (m, inner_a) = matrix(context, 0, "transpose_a")?;
    let (inner_b, n) = matrix(context, 1, "transpose_b")?;
    context.same("columns of `a` and rows of `b`", inner_a, inner_b)?;
    context.set(0, PartialShape::ranked([m, n]));
    Ok(())
}

/// The dimensions before the last two, where the rank is known.
fn batch(context: &OpContext<'_>, index: usize) -> PartialShape {
    match context.shape(index).dims() {
        Some(dims) => PartialShape::ranked(dims[..dims.len() - 2].iter().copied()),
        None => PartialShape::Unknown,
    }
}

fn batch_matmul_v2(context: &mut OpContext<'_>) -> Result<()> {
    context.check_rank_at_least(0, 2)?;
    context.check_rank_at_least(1, 2)?;
    let (m, inner_x) = matrix(context, 0, "adj_x")?;
    let (inner_y, n) = matrix(context, 1, "adj_y")?;
    context.same("columns of `x` and rows of `y`", inner_x, inner_y)?;
    let shape = match batch(context, 0).broadcast(&batch(context, 1))? {
        PartialShape::Ranked(mut dims) => {
            dims.extend([m, n]);
            PartialShape::Ranked(dims)
        }
        PartialShape::Unknown => PartialShape::Unknown,
    };
    context.set(0, shape);
    Ok(())
}

/// Without broadcasting: the matrices come in equal numbers.
fn batch_matmul(context: &mut OpContext<'_>) -> Result<()> {
    batch_matmul_v2(context)?;
    let (x, y) = (batch(context, 0), batch(context, 1));
    match x.merge(&y) {
        Some(_) => Ok(()),
        None => Err(context.wrong(1, format!("as many matrices as in {x}"), y)),
    }
}
