//! Sets, as the elements of the last dimension.

use crate::{
    dtype::DType,
    error::Result,
    infer::OpContext,
    op::*,
    shape::{Dim, PartialShape},
};

const MEMBER: &[DType] =
    &[DType::I8, DType::I16, DType::I32, DType::I64, DType::U8, DType::U16, DType::String];

/// Two tensors of sets are combined.
const OPERATION: OpDef = OpDef {
    outputs: &[
        arg_of("result_indices", DType::I64),
        arg("result_values", "T"),
        arg_of("result_shape", DType::I64),
    ],
    attrs: &[string("set_operation"), flag("validate_indices", true), ty("T", MEMBER)],
    infer: operation,
    lowering: Lowering::HostKernel(HostReason::Sparse),
    ..OpDef::PURE
};

pub(super) static OPS: &[OpDef] = &[
    OpDef {
        name: "DenseToDenseSetOperation",
        summary: "Computes difference, intersection or union of the sets in two tensors.",
        inputs: &[arg("set1", "T"), arg("set2", "T")],
        ..OPERATION
    },
    OpDef {
        name: "DenseToSparseSetOperation",
        summary: "Computes difference, intersection or union of sets in a tensor and a sparse one.",
        inputs: &[
            arg("set1", "T"),
            arg_of("set2_indices", DType::I64),
            arg("set2_values", "T"),
            arg_of("set2_shape", DType::I64),
        ],
        ..OPERATION
    },
    OpDef {
        name: "SetSize",
        summary: "Counts the distinct elements of each set in a sparse tensor.",
        inputs: &[
            arg_of("set_indices", DType::I64),
            arg("set_values", "T"),
            arg_of("set_shape", DType::I64),
        ],
        outputs: &[arg_of("size", DType::I32)],
        attrs: &[flag("validate_indices", true), ty("T", MEMBER)],
        infer: size,
        lowering: Lowering::HostKernel(HostReason::Sparse),
        ..OpDef::PURE
    },
    OpDef {
        name: "SparseToSparseSetOperation",
        summary: "Computes difference, intersection or union of the sets in two sparse tensors.",
        inputs: &[
            arg_of("set1_indices", DType::I64),
            arg("set1_values", "T"),
            arg_of("set1_shape", DType::I64),
            arg_of("set2_indices", DType::I64),
            arg("set2_values", "T"),
            arg_of("set2_shape", DType::I64),
        ],
        ..OPERATION
    },
];

/// The ranks of the operands, each of which is one dense input or three of a sparse tensor.
fn ranks(context: &OpContext<'_>) -> Result<(Dim, Dim)> {
    let ranks = match context.n_inputs() {
        2 => (dense_rank(context, 0)?, dense_rank(context, 1)?),
        4 => (dense_rank(context, 0)?, sparse_rank(context, 1)?),
        _ => (sparse_rank(context, 0)?, sparse_rank(context, 3)?),
    };
    Ok(ranks)
}

fn dense_rank(context: &OpContext<'_>, index: usize) -> Result<Dim> {
    context.check_rank_at_least(index, 2)?;
    Ok(context.shape(index).rank())
}

fn sparse_rank(context: &OpContext<'_>, first: usize) -> Result<Dim> {
    let [n, rank] = context.dims(first)?;
    let ([n_values], [own_rank]) = (context.dims(first + 1)?, context.dims(first + 2)?);
    context.same("numbers of coordinates and elements", n, n_values)?;
    let rank = context.same("coordinates of an element and rank", rank, own_rank)?;
    match rank {
        Some(rank) if rank < 2 => Err(context.wrong(first + 2, "of rank 2 or more", rank)),
        rank => Ok(rank),
    }
}

fn operation(context: &mut OpContext<'_>) -> Result<()> {
    let name = context.attrs.string("set_operation")?;
    if !["a-b", "b-a", "intersection", "union"].contains(&name.to_ascii_lowercase().as_str()) {
        return Err(context.wrong_attr("set_operation", "a-b, b-a, intersection or union", name));
    }
    let (first, second) = ranks(context)?;
    let rank = context.same("ranks", first, second)?;
    context.set(0, PartialShape::ranked([None, rank]));
    context.set(1, PartialShape::vector(None));
    context.set(2, PartialShape::vector(rank));
    Ok(())
}

fn size(context: &mut OpContext<'_>) -> Result<()> {
    let rank = sparse_rank(context, 0)?;
    let dims = match context.ints(2)? {
        Some(dims) => PartialShape::from_i64(&dims[..dims.len() - 1])?,
        None => rank.map_or(PartialShape::Unknown, |rank| PartialShape::of_rank(rank - 1)),
    };
    context.set(0, dims);
    Ok(())
}
