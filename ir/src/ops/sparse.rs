//! Sparse tensors: coordinates of elements, `[n, rank]`, the elements, `[n]`, and a shape, `[rank]`.

use super::sets::*;
use crate::gradient::{self, Gradient};
use crate::{
    dtype::DType,
    error::Result,
    infer::{OpContext, kept_axes, normalize_axis},
    op::*,
    shape::{Dim, PartialShape},
};

/// Two sparse tensors of one shape become one.
const MERGE: OpDef = OpDef {
    inputs: &[
        arg_of("a_indices", DType::I64),
        arg("a_values", "T"),
        arg_of("a_shape", DType::I64),
        arg_of("b_indices", DType::I64),
        arg("b_values", "T"),
        arg_of("b_shape", DType::I64),
    ],
    outputs: &[arg_of("output_indices", DType::I64), arg("output_values", "T")],
    attrs: &[ty("T", REALS)],
    infer: merge,
    lowering: Lowering::HostKernel(HostReason::Sparse),
    ..OpDef::PURE
};

/// The elements of a sparse tensor meet those of a dense one.
const WITH_DENSE: OpDef = OpDef {
    inputs: &[
        arg_of("sp_indices", DType::I64),
        arg("sp_values", "T"),
        arg_of("sp_shape", DType::I64),
        arg("dense", "T"),
    ],
    outputs: &[arg("output", "T")],
    attrs: &[ty("T", NUMBERS)],
    infer: same_values,
    lowering: Lowering::HostKernel(HostReason::Sparse),
    ..OpDef::PURE
};

/// A sparse tensor is reduced to a dense one.
const REDUCE: OpDef = OpDef {
    inputs: &[
        arg_of("input_indices", DType::I64),
        arg("input_values", "T"),
        arg_of("input_shape", DType::I64),
        arg_of("reduction_axes", DType::I32),
    ],
    outputs: &[arg("output", "T")],
    attrs: &[flag("keep_dims", false), ty("T", REALS)],
    infer: reduce,
    lowering: Lowering::HostKernel(HostReason::Sparse),
    ..OpDef::PURE
};

/// A sparse tensor is reduced to a sparse one.
const REDUCE_SPARSE: OpDef = OpDef {
    outputs: &[
        arg_of("output_indices", DType::I64),
        arg("output_values", "T"),
        arg_of("output_shape", DType::I64),
    ],
    infer: reduce_sparse,
    ..REDUCE
};

/// The features of examples in all combinations.
const CROSS_INPUTS: &[ArgDef] = &[
    args_of("indices", "N", DType::I64),
    args_list("values", "sparse_types"),
    args_of("shapes", "N", DType::I64),
    args_list("dense_inputs", "dense_types"),
];

const FEATURE: &[DType] = &[DType::I64, DType::String];

pub(super) static OPS: &[OpDef] = &[
    OpDef {
        name: "SerializeManySparse",
        summary: "Writes each row of a sparse tensor as three serialized tensors.",
        inputs: &[
            arg_of("sparse_indices", DType::I64),
            arg("sparse_values", "T"),
            arg_of("sparse_shape", DType::I64),
        ],
        outputs: &[arg("serialized_sparse", "out_type")],
        attrs: &[any_ty("T"), ty_or("out_type", &[DType::String, DType::Variant], DType::String)],
        infer: serialize_many,
        lowering: Lowering::HostKernel(HostReason::Sparse),
        ..OpDef::PURE
    },
    OpDef {
        name: "SerializeSparse",
        summary: "Writes a sparse tensor as three serialized tensors.",
        inputs: &[
            arg_of("sparse_indices", DType::I64),
            arg("sparse_values", "T"),
            arg_of("sparse_shape", DType::I64),
        ],
        outputs: &[arg("serialized_sparse", "out_type")],
        attrs: &[any_ty("T"), ty_or("out_type", &[DType::String, DType::Variant], DType::String)],
        infer: serialize,
        lowering: Lowering::HostKernel(HostReason::Sparse),
        ..OpDef::PURE
    },
    OpDef {
        name: "SparseAdd",
        summary: "Adds sparse tensors; sums below a threshold are left out.",
        inputs: &[
            arg_of("a_indices", DType::I64),
            arg("a_values", "T"),
            arg_of("a_shape", DType::I64),
            arg_of("b_indices", DType::I64),
            arg("b_values", "T"),
            arg_of("b_shape", DType::I64),
            arg("thresh", "Treal"),
        ],
        outputs: &[
            arg_of("sum_indices", DType::I64),
            arg("sum_values", "T"),
            arg_of("sum_shape", DType::I64),
        ],
        attrs: &[ty("T", NUMBERS), ty("Treal", REALS)],
        infer: add,
        gradient: Gradient::Rule(gradient::sparse::add),
        ..MERGE
    },
    OpDef {
        name: "SparseAddGrad",
        summary: "Gradient of `SparseAdd`.",
        inputs: &[
            arg("backprop_val_grad", "T"),
            arg_of("a_indices", DType::I64),
            arg_of("b_indices", DType::I64),
            arg_of("sum_indices", DType::I64),
        ],
        outputs: &[arg("a_val_grad", "T"), arg("b_val_grad", "T")],
        attrs: &[ty("T", NUMBERS)],
        infer: add_grad,
        lowering: Lowering::HostKernel(HostReason::Sparse),
        gradient: Gradient::Zero,
        ..OpDef::PURE
    },
    OpDef {
        name: "SparseConcat",
        summary: "Joins sparse tensors along an axis.",
        inputs: &[
            args_of("indices", "N", DType::I64),
            args("values", "N", "T"),
            args_of("shapes", "N", DType::I64),
        ],
        outputs: &[
            arg_of("output_indices", DType::I64),
            arg("output_values", "T"),
            arg_of("output_shape", DType::I64),
        ],
        attrs: &[int("concat_dim"), int("N").at_least(2), any_ty("T")],
        infer: concat,
        lowering: Lowering::HostKernel(HostReason::Sparse),
        gradient: Gradient::Zero,
        ..OpDef::PURE
    },
    OpDef {
        name: "SparseCross",
        summary: "Combines features of examples, joined as text or hashed.",
        inputs: CROSS_INPUTS,
        outputs: &[
            arg_of("output_indices", DType::I64),
            arg("output_values", "out_type"),
            arg_of("output_shape", DType::I64),
        ],
        attrs: &[
            int("N").at_least(0),
            required_flag("hashed_output"),
            int("num_buckets").at_least(0),
            int("hash_key"),
            types_in("sparse_types", FEATURE).at_least(0),
            types_in("dense_types", FEATURE).at_least(0),
            ty("out_type", FEATURE),
            ty("internal_type", FEATURE),
        ],
        infer: cross,
        lowering: Lowering::HostKernel(HostReason::Sparse),
        ..OpDef::PURE
    },
    OpDef {
        name: "SparseCrossHashed",
        summary: "Combines features of examples, hashed.",
        inputs: &[
            args_of("indices", "N", DType::I64),
            args_list("values", "sparse_types"),
            args_of("shapes", "N", DType::I64),
            args_list("dense_inputs", "dense_types"),
            arg_of("num_buckets", DType::I64),
            arg_of("strong_hash", DType::Bool),
            arg_of("salt", DType::I64),
        ],
        outputs: &[
            arg_of("output_indices", DType::I64),
            arg_of("output_values", DType::I64),
            arg_of("output_shape", DType::I64),
        ],
        attrs: &[
            int("N").at_least(0),
            types_in("sparse_types", FEATURE).at_least(0),
            types_in("dense_types", FEATURE).at_least(0),
        ],
        infer: cross,
        lowering: Lowering::HostKernel(HostReason::Sparse),
        ..OpDef::PURE
    },
    OpDef {
        name: "SparseCrossV2",
        summary: "Combines features of examples, joined as text.",
        inputs: &[
            args_of("indices", "N", DType::I64),
            args_list("values", "sparse_types"),
            args_of("shapes", "N", DType::I64),
            args_list("dense_inputs", "dense_types"),
            arg_of("sep", DType::String),
        ],
        outputs: &[
            arg_of("output_indices", DType::I64),
            arg_of("output_values", DType::String),
            arg_of("output_shape", DType::I64),
        ],
        attrs: &[
            int("N").at_least(0),
            types_in("sparse_types", FEATURE).at_least(0),
            types_in("dense_types", FEATURE).at_least(0),
        ],
        infer: cross,
        lowering: Lowering::HostKernel(HostReason::Sparse),
        ..OpDef::PURE
    },
    OpDef {
        name: "SparseDenseCwiseAdd",
        summary: "Adds the elements of a dense tensor to those of a sparse one.",
        gradient: Gradient::Rule(gradient::sparse::plus_dense),
        ..WITH_DENSE
    },
    OpDef {
        name: "SparseDenseCwiseDiv",
        summary: "Divides the elements of a sparse tensor by those of a dense one.",
        gradient: Gradient::Rule(gradient::sparse::by_dense),
        ..WITH_DENSE
    },
    OpDef {
        name: "SparseDenseCwiseMul",
        summary: "Multiplies the elements of a sparse tensor by those of a dense one.",
        gradient: Gradient::Rule(gradient::sparse::times_dense),
        ..WITH_DENSE
    },
    OpDef {
        name: "SparseFillEmptyRows",
        summary: "Puts a value into rows without elements.",
        inputs: &[
            arg_of("indices", DType::I64),
            arg("values", "T"),
            arg_of("dense_shape", DType::I64),
            arg("default_value", "T"),
        ],
        outputs: &[
            arg_of("output_indices", DType::I64),
            arg("output_values", "T"),
            arg_of("empty_row_indicator", DType::Bool),
            arg_of("reverse_index_map", DType::I64),
        ],
        attrs: &[any_ty("T")],
        infer: fill_empty_rows,
        lowering: Lowering::HostKernel(HostReason::Sparse),
        gradient: Gradient::Rule(gradient::sparse::fill_empty_rows),
        ..OpDef::PURE
    },
    OpDef {
        name: "SparseFillEmptyRowsGrad",
        summary: "Gradient of `SparseFillEmptyRows`.",
        inputs: &[arg_of("reverse_index_map", DType::I64), arg("grad_values", "T")],
        outputs: &[arg("d_values", "T"), arg("d_default_value", "T")],
        attrs: &[any_ty("T")],
        infer: fill_empty_rows_grad,
        lowering: Lowering::HostKernel(HostReason::Sparse),
        ..OpDef::PURE
    },
    OpDef {
        name: "SparseReduceMax",
        summary: "Takes the largest elements of a sparse tensor along axes; 0 where there are none.",
        ..REDUCE
    },
    OpDef {
        name: "SparseReduceMaxSparse",
        summary: "Takes the largest elements of a sparse tensor along axes, where there are any.",
        ..REDUCE_SPARSE
    },
    OpDef {
        name: "SparseReduceSum",
        summary: "Computes the sum of a sparse tensor along axes.",
        attrs: &[flag("keep_dims", false), ty("T", NUMBERS)],
        gradient: Gradient::Rule(gradient::sparse::reduce_sum),
        ..REDUCE
    },
    OpDef {
        name: "SparseReduceSumSparse",
        summary: "Computes the sum of a sparse tensor along axes, where there are elements.",
        attrs: &[flag("keep_dims", false), ty("T", NUMBERS)],
        ..REDUCE_SPARSE
    },
    OpDef {
        name: "SparseReorder",
        summary: "Brings the elements of a sparse tensor into row-major order.",
        inputs: &[
            arg_of("input_indices", DType::I64),
            arg("input_values", "T"),
            arg_of("input_shape", DType::I64),
        ],
        outputs: &[arg_of("output_indices", DType::I64), arg("output_values", "T")],
        attrs: &[any_ty("T")],
        infer: reorder,
        lowering: Lowering::HostKernel(HostReason::Sparse),
        gradient: Gradient::Rule(gradient::sparse::reorder),
        ..OpDef::PURE
    },
    OpDef {
        name: "SparseReshape",
        summary: "Gives a sparse tensor another shape; one size may be -1 and is computed.",
        inputs: &[
            arg_of("input_indices", DType::I64),
            arg_of("input_shape", DType::I64),
            arg_of("new_shape", DType::I64),
        ],
        outputs: &[arg_of("output_indices", DType::I64), arg_of("output_shape", DType::I64)],
        infer: reshape,
        lowering: Lowering::HostKernel(HostReason::Sparse),
        ..OpDef::PURE
    },
    OpDef {
        name: "SparseSlice",
        summary: "Takes a window of a sparse tensor.",
        inputs: &[
            arg_of("indices", DType::I64),
            arg("values", "T"),
            arg_of("shape", DType::I64),
            arg_of("start", DType::I64),
            arg_of("size", DType::I64),
        ],
        outputs: &[
            arg_of("output_indices", DType::I64),
            arg("output_values", "T"),
            arg_of("output_shape", DType::I64),
        ],
        attrs: &[any_ty("T")],
        infer: slice,
        lowering: Lowering::HostKernel(HostReason::Sparse),
        gradient: Gradient::Rule(gradient::sparse::slice),
        ..OpDef::PURE
    },
    OpDef {
        name: "SparseSliceGrad",
        summary: "Gradient of `SparseSlice`.",
        inputs: &[
            arg("backprop_val_grad", "T"),
            arg_of("input_indices", DType::I64),
            arg_of("input_start", DType::I64),
            arg_of("output_indices", DType::I64),
        ],
        outputs: &[arg("val_grad", "T")],
        attrs: &[ty("T", NUMBERS)],
        infer: slice_grad,
        lowering: Lowering::HostKernel(HostReason::Sparse),
        ..OpDef::PURE
    },
    OpDef {
        name: "SparseSoftmax",
        summary: "Computes softmax over the elements of each row of a sparse tensor.",
        inputs: &[
            arg_of("sp_indices", DType::I64),
            arg("sp_values", "T"),
            arg_of("sp_shape", DType::I64),
        ],
        outputs: &[arg("output", "T")],
        attrs: &[ty("T", IEEE_FLOATS)],
        infer: same_values,
        lowering: Lowering::HostKernel(HostReason::Sparse),
        gradient: Gradient::Rule(gradient::sparse::softmax),
        ..OpDef::PURE
    },
    OpDef {
        name: "SparseSparseMaximum",
        summary: "Takes the larger elements of sparse tensors; absent ones are 0.",
        ..MERGE
    },
    OpDef {
        name: "SparseSparseMinimum",
        summary: "Takes the smaller elements of sparse tensors; absent ones are 0.",
        attrs: &[ty("T", NUMBERS)],
        ..MERGE
    },
    OpDef {
        name: "SparseSplit",
        summary: "Takes a sparse tensor apart along an axis; the first parts may be one larger.",
        inputs: &[
            arg_of("split_dim", DType::I64),
            arg_of("indices", DType::I64),
            arg("values", "T"),
            arg_of("shape", DType::I64),
        ],
        outputs: &[
            args_of("output_indices", "num_split", DType::I64),
            args("output_values", "num_split", "T"),
            args_of("output_shape", "num_split", DType::I64),
        ],
        attrs: &[int("num_split").at_least(1), any_ty("T")],
        infer: split,
        lowering: Lowering::HostKernel(HostReason::Sparse),
        ..OpDef::PURE
    },
    OpDef {
        name: "SparseTensorDenseAdd",
        summary: "Adds a sparse tensor to a dense one.",
        inputs: &[
            arg("a_indices", "Tindices"),
            arg("a_values", "T"),
            arg("a_shape", "Tindices"),
            arg("b", "T"),
        ],
        outputs: &[arg("output", "T")],
        attrs: &[ty("T", NUMBERS), ty("Tindices", INDEX)],
        infer: dense_add,
        lowering: Lowering::HostKernel(HostReason::Sparse),
        gradient: Gradient::Rule(gradient::sparse::dense_add),
        ..OpDef::PURE
    },
    OpDef {
        name: "SparseTensorDenseMatMul",
        summary: "Multiplies a sparse matrix by a dense one.",
        inputs: &[
            arg("a_indices", "Tindices"),
            arg("a_values", "T"),
            arg_of("a_shape", DType::I64),
            arg("b", "T"),
        ],
        outputs: &[arg("product", "T")],
        attrs: &[
            any_ty("T"),
            ty_or("Tindices", INDEX, DType::I64),
            flag("adjoint_a", false),
            flag("adjoint_b", false),
        ],
        infer: matmul,
        lowering: Lowering::HostKernel(HostReason::NotWritten),
        gradient: Gradient::Rule(gradient::sparse::matmul),
        ..OpDef::PURE
    },
    OpDef {
        name: "SparseToDense",
        summary: "Puts elements into a tensor that is filled with a value.",
        inputs: &[
            arg("sparse_indices", "Tindices"),
            arg("output_shape", "Tindices").host(),
            arg("sparse_values", "T"),
            arg("default_value", "T"),
        ],
        outputs: &[arg("dense", "T")],
        attrs: &[flag("validate_indices", true), any_ty("T"), ty("Tindices", INDEX)],
        infer: to_dense,
        lowering: Lowering::Kernel,
        gradient: Gradient::Rule(gradient::sparse::to_dense),
        ..OpDef::PURE
    },
];

/// Number of elements and rank of a sparse tensor whose coordinates, elements and shape are the
/// inputs at these positions; they are checked against each other.
fn sparse(context: &OpContext<'_>, at: [usize; 3]) -> Result<(Dim, Dim)> {
    let [n, rank] = context.dims(at[0])?;
    let ([n_values], [own_rank]) = (context.dims(at[1])?, context.dims(at[2])?);
    let n = context.same("numbers of coordinates and elements", n, n_values)?;
    let rank = context.same("coordinates of an element and rank", rank, own_rank)?;
    Ok((n, rank))
}

/// Outputs `first..first + 3` are a sparse tensor of this rank.
fn set_sparse(context: &mut OpContext<'_>, first: usize, n: Dim, rank: Dim) {
    context.set(first, PartialShape::ranked([n, rank]));
    context.set(first + 1, PartialShape::vector(n));
    if first + 2 < context.n_outputs() {
        context.set(first + 2, PartialShape::vector(rank));
    }
}

fn serialize(context: &mut OpContext<'_>) -> Result<()> {
    sparse(context, [0, 1, 2])?;
    context.set(0, PartialShape::vector(Some(3)));
    Ok(())
}

fn serialize_many(context: &mut OpContext<'_>) -> Result<()> {
    sparse(context, [0, 1, 2])?;
    let n = context.ints(2)?.and_then(|dims| usize::try_from(*dims.first()?).ok());
    context.set(0, PartialShape::ranked([n, Some(3)]));
    Ok(())
}

fn merge(context: &mut OpContext<'_>) -> Result<()> {
    let ((_, a), (_, b)) = (sparse(context, [0, 1, 2])?, sparse(context, [3, 4, 5])?);
    let rank = context.same("ranks", a, b)?;
    set_sparse(context, 0, None, rank);
    Ok(())
}

fn add(context: &mut OpContext<'_>) -> Result<()> {
    context.check_rank(6, 0)?;
    let (real, threshold) = (context.dtype(1).real_type(), context.attrs.dtype("Treal")?);
    if real != threshold {
        return Err(context.wrong_attr("Treal", real.name(), threshold));
    }
    merge(context)
}

fn add_grad(context: &mut OpContext<'_>) -> Result<()> {
    context.check_rank(0, 1)?;
    let mut rank = None;
    for index in 1..4 {
        let [_, own] = context.dims(index)?;
        rank = context.same("ranks", rank, own)?;
    }
    context.set(0, PartialShape::vector(context.shape(1).dim(0)));
    context.set(1, PartialShape::vector(context.shape(2).dim(0)));
    Ok(())
}

fn slice_grad(context: &mut OpContext<'_>) -> Result<()> {
    context.check_rank(0, 1)?;
    let ([n, rank], [start], [_, own]) = (context.dims(1)?, context.dims(2)?, context.dims(3)?);
    let rank = context.same("ranks", rank, start)?;
    context.same("ranks", rank, own)?;
    context.set(0, PartialShape::vector(n));
    Ok(())
}

fn dense_add(context: &mut OpContext<'_>) -> Result<()> {
    let (_, rank) = sparse(context, [0, 1, 2])?;
    context.same("ranks", rank, context.shape(3).rank())?;
    context.set(0, context.shape(3).clone());
    Ok(())
}

fn concat(context: &mut OpContext<'_>) -> Result<()> {
    let n = context.n_inputs() / 3;
    let (mut total, mut rank) = (Some(0), None);
    for index in 0..n {
        let (own, own_rank) = sparse(context, [index, n + index, 2 * n + index])?;
        total = total.zip(own).map(|(total, own)| total + own);
        rank = context.same("ranks", rank, own_rank)?;
    }
    if let Some(rank) = rank {
        normalize_axis(context.attrs.int("concat_dim")?, rank)?;
    }
    set_sparse(context, 0, total, rank);
    Ok(())
}

fn cross(context: &mut OpContext<'_>) -> Result<()> {
    let n = context.attrs.size("N")?;
    if context.attrs.types("sparse_types")?.len() != n {
        return Err(context.wrong_attr("sparse_types", format!("{n} dtypes"), "others"));
    }
    for index in 0..n {
        sparse(context, [index, n + index, 2 * n + index])?;
    }
    let n_columns = 3 * n + context.attrs.types("dense_types")?.len();
    (3 * n..n_columns).try_for_each(|index| context.check_rank(index, 2))?;
    // What follows are scalars, and then the numbers of a salt.
    for index in n_columns..context.n_inputs() {
        context.check_rank(index, usize::from(index == n_columns + 2))?;
    }
    set_sparse(context, 0, None, Some(2));
    Ok(())
}

fn same_values(context: &mut OpContext<'_>) -> Result<()> {
    let (n, _) = sparse(context, [0, 1, 2])?;
    context.set(0, PartialShape::vector(n));
    Ok(())
}

fn fill_empty_rows(context: &mut OpContext<'_>) -> Result<()> {
    let (n, rank) = sparse(context, [0, 1, 2])?;
    context.check_rank(3, 0)?;
    if rank == Some(0) {
        return Err(context.wrong(2, "of one size or more", "none"));
    }
    let rows = context.ints(2)?.and_then(|dims| usize::try_from(*dims.first()?).ok());
    context.set(0, PartialShape::ranked([None, rank]));
    context.set(1, PartialShape::vector(None));
    context.set(2, PartialShape::vector(rows));
    context.set(3, PartialShape::vector(n));
    Ok(())
}

fn fill_empty_rows_grad(context: &mut OpContext<'_>) -> Result<()> {
    let ([n], [_]) = (context.dims(0)?, context.dims(1)?);
    context.set(0, PartialShape::vector(n));
    context.set(1, PartialShape::scalar());
    Ok(())
}

fn reduce(context: &mut OpContext<'_>) -> Result<()> {
    sparse(context, [0, 1, 2])?;
    if let (Some(dims), Some(axes)) = (context.ints(2)?, context.ints(3)?) {
        let kept = kept_axes(&axes, dims.len())?;
        let keep = context.attrs.bool("keep_dims")?;
        let sizes = dims.iter().zip(&kept).filter_map(|(&size, &kept)| match kept {
            true => Some(usize::try_from(size).ok()),
            false => keep.then_some(Some(1)),
        });
        let sizes: Vec<Dim> = sizes.collect();
        context.set(0, PartialShape::ranked(sizes));
    }
    Ok(())
}

fn reduce_sparse(context: &mut OpContext<'_>) -> Result<()> {
    let (_, rank) = sparse(context, [0, 1, 2])?;
    let rank = if context.attrs.bool("keep_dims")? { rank } else { None };
    set_sparse(context, 0, None, rank);
    Ok(())
}

fn reorder(context: &mut OpContext<'_>) -> Result<()> {
    let (n, rank) = sparse(context, [0, 1, 2])?;
    set_sparse(context, 0, n, rank);
    Ok(())
}

fn reshape(context: &mut OpContext<'_>) -> Result<()> {
    let [n, rank] = context.dims(0)?;
    let ([own_rank], [new_rank]) = (context.dims(1)?, context.dims(2)?);
    context.same("coordinates of an element and rank", rank, own_rank)?;
    context.set(0, PartialShape::ranked([n, new_rank]));
    context.set(1, PartialShape::vector(new_rank));
    Ok(())
}

fn slice(context: &mut OpContext<'_>) -> Result<()> {
    let (_, mut rank) = sparse(context, [0, 1, 2])?;
    for index in 3..5 {
        let [own] = context.dims(index)?;
        rank = context.same("ranks", rank, own)?;
    }
    set_sparse(context, 0, None, rank);
    Ok(())
}

fn split(context: &mut OpContext<'_>) -> Result<()> {
    let (_, rank) = sparse(context, [1, 2, 3])?;
    if context.shape(0).known().is_some_and(|shape| shape.num_elements() != 1) {
        return Err(context.wrong(0, "a scalar", context.shape(0)));
    }
    let n = context.n_outputs() / 3;
    for index in 0..n {
        context.set(index, PartialShape::ranked([None, rank]));
        context.set(n + index, PartialShape::vector(None));
        context.set(2 * n + index, PartialShape::vector(rank));
    }
    Ok(())
}

fn matmul(context: &mut OpContext<'_>) -> Result<()> {
    let (_, rank) = sparse(context, [0, 1, 2])?;
    context.same("rank of a matrix", rank, Some(2))?;
    let [mut inner, mut columns] = context.dims(3)?;
    if context.attrs.bool("adjoint_b")? {
        (inner, columns) = (columns, inner);
    }
    let mut rows = None;
    if let Some([a_rows, a_columns]) = context.ints(2)?.as_deref() {
        let size = |size: i64| usize::try_from(size).ok();
        let (first, second) = match context.attrs.bool("adjoint_a")? {
            false => (size(*a_rows), size(*a_columns)),
            true => (size(*a_columns), size(*a_rows)),
        };
        context.same("inner sizes", second, inner)?;
        rows = first;
    }
    context.set(0, PartialShape::ranked([rows, columns]));
    Ok(())
}

fn to_dense(context: &mut OpContext<'_>) -> Result<()> {
    let shape = context.shape_value(1)?;
    context.check_rank(3, 0)?;
    let indices = context.shape(0);
    let (n, rank) = match indices.dims() {
        None => (None, None),
        Some([]) => (Some(1), Some(1)),
        Some([n]) => (*n, Some(1)),
        Some([n, rank]) => (*n, *rank),
        Some(_) => return Err(context.wrong(0, "a scalar, a vector or a matrix", indices)),
    };
    context.same("coordinates of an element and rank", rank, shape.rank())?;
    match context.shape(2).dims() {
        None | Some([]) => {}
        Some([values]) => {
            context.same("numbers of coordinates and elements", n, *values)?;
        }
        Some(_) => return Err(context.wrong(2, "a scalar or a vector", context.shape(2))),
    }
    context.set(0, shape);
    Ok(())
}
