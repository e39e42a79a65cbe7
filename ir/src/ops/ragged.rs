//! Ragged tensors: rows of any length, as elements and where each row begins and ends.

use super::sets::*;
use crate::gradient::{self, Gradient};
use crate::{
    dtype::DType,
    error::Result,
    infer::OpContext,
    op::*,
    shape::{Dim, PartialShape},
};

/// The types of features.
const FEATURE: &[DType] = &[DType::I64, DType::String];

pub(super) static OPS: &[OpDef] = &[
    OpDef {
        name: "RaggedBincount",
        summary: "Counts integers like `Bincount`, for each row of a ragged tensor.",
        inputs: &[
            arg_of("splits", DType::I64),
            arg("values", "Tidx"),
            arg("size", "Tidx").host(),
            arg("weights", "T"),
        ],
        outputs: &[arg("output", "T")],
        attrs: &[
            ty("Tidx", INDEX),
            ty("T", &[DType::I32, DType::I64, DType::F32, DType::F64]),
            flag("binary_output", false),
        ],
        infer: bincount,
        lowering: Lowering::HostKernel(HostReason::Sparse),
        ..OpDef::PURE
    },
    OpDef {
        name: "RaggedCross",
        summary: "Combines features of examples, joined as text or hashed.",
        inputs: &[
            args_list("ragged_values", "ragged_values_types"),
            args_list("ragged_row_splits", "ragged_splits_types"),
            args_of("sparse_indices", "Nsparse", DType::I64),
            args_list("sparse_values", "sparse_values_types"),
            args_of("sparse_shape", "Nsparse", DType::I64),
            args_list("dense_inputs", "dense_types"),
        ],
        outputs: &[
            arg("output_values", "out_values_type"),
            arg("output_row_splits", "out_row_splits_type"),
        ],
        attrs: &[
            int("Nsparse").at_least(0),
            string("input_order"),
            required_flag("hashed_output"),
            int("num_buckets").at_least(0),
            int("hash_key"),
            types_in("ragged_values_types", FEATURE).at_least(0),
            types_in("ragged_splits_types", INDEX).at_least(0),
            types_in("sparse_values_types", FEATURE).at_least(0),
            types_in("dense_types", FEATURE).at_least(0),
            ty("out_values_type", FEATURE),
            ty("out_row_splits_type", INDEX),
        ],
        same_length: &[
            &["ragged_values_types", "ragged_splits_types"],
            &["Nsparse", "sparse_values_types"],
        ],
        infer: |context| {
            context.set_all(&PartialShape::vector(None));
            Ok(())
        },
        lowering: Lowering::HostKernel(HostReason::Sparse),
        ..OpDef::PURE
    },
    OpDef {
        name: "RaggedFillEmptyRows",
        summary: "Puts a value into rows without elements.",
        inputs: &[
            arg_of("value_rowids", DType::I64),
            arg("values", "T"),
            arg_of("nrows", DType::I64),
            arg("default_value", "T"),
        ],
        outputs: &[
            arg_of("output_value_rowids", DType::I64),
            arg("output_values", "T"),
            arg_of("empty_row_indicator", DType::Bool),
            arg_of("reverse_index_map", DType::I64),
        ],
        attrs: &[any_ty("T")],
        infer: fill_empty_rows,
        lowering: Lowering::HostKernel(HostReason::Sparse),
        gradient: Gradient::Rule(gradient::sparse::ragged_fill_empty_rows),
        ..OpDef::PURE
    },
    OpDef {
        name: "RaggedFillEmptyRowsGrad",
        summary: "Gradient of `RaggedFillEmptyRows`.",
        inputs: &[arg_of("reverse_index_map", DType::I64), arg("grad_values", "T")],
        outputs: &[arg("d_values", "T"), arg("d_default_value", "T")],
        attrs: &[any_ty("T")],
        infer: fill_empty_rows_grad,
        lowering: Lowering::HostKernel(HostReason::Sparse),
        ..OpDef::PURE
    },
    OpDef {
        name: "RaggedGather",
        summary: "Takes the rows of a ragged tensor that the indices name.",
        inputs: &[
            args("params_nested_splits", "PARAMS_RAGGED_RANK", "Tsplits"),
            arg("params_dense_values", "Tvalues"),
            arg("indices", "Tindices"),
        ],
        outputs: &[
            args("output_nested_splits", "OUTPUT_RAGGED_RANK", "Tsplits"),
            arg("output_dense_values", "Tvalues"),
        ],
        attrs: &[
            any_ty("Tvalues"),
            ty("Tindices", INDEX),
            ty_or("Tsplits", INDEX, DType::I64),
            int("PARAMS_RAGGED_RANK").at_least(1),
            int("OUTPUT_RAGGED_RANK").at_least(0),
        ],
        infer: gather,
        lowering: Lowering::HostKernel(HostReason::Sparse),
        gradient: Gradient::Rule(gradient::sparse::ragged_gather),
        ..OpDef::PURE
    },
    OpDef {
        name: "RaggedRange",
        summary: "Makes rows of evenly spaced numbers.",
        inputs: &[arg("starts", "T"), arg("limits", "T"), arg("deltas", "T")],
        outputs: &[arg("rt_nested_splits", "Tsplits"), arg("rt_dense_values", "T")],
        attrs: &[
            ty_or("T", &[DType::BF16, DType::F32, DType::F64, DType::I32, DType::I64], DType::I32),
            ty_or("Tsplits", INDEX, DType::I64),
        ],
        infer: range,
        lowering: Lowering::HostKernel(HostReason::Sparse),
        ..OpDef::PURE
    },
    OpDef {
        name: "RaggedTensorToSparse",
        summary: "Makes a sparse tensor of a ragged one.",
        inputs: &[args("rt_nested_splits", "RAGGED_RANK", "Tsplits"), arg("rt_dense_values", "T")],
        outputs: &[
            arg_of("sparse_indices", DType::I64),
            arg("sparse_values", "T"),
            arg_of("sparse_dense_shape", DType::I64),
        ],
        attrs: &[int("RAGGED_RANK").at_least(1), any_ty("T"), ty_or("Tsplits", INDEX, DType::I64)],
        infer: to_sparse,
        lowering: Lowering::HostKernel(HostReason::Sparse),
        gradient: Gradient::Rule(gradient::sparse::ragged_to_sparse),
        ..OpDef::PURE
    },
    OpDef {
        name: "RaggedTensorToTensor",
        summary: "Makes a dense tensor of a ragged one: rows are cut off or filled up.",
        inputs: &[
            arg("shape", "Tshape").host(),
            arg("values", "T"),
            arg("default_value", "T"),
            args("row_partition_tensors", "num_row_partition_tensors", "Tindex"),
        ],
        outputs: &[arg("result", "T")],
        attrs: &[
            any_ty("T"),
            ty("Tindex", INDEX),
            ty("Tshape", INDEX),
            int("num_row_partition_tensors").at_least(1),
            strings("row_partition_types"),
        ],
        infer: to_tensor,
        lowering: Lowering::HostKernel(HostReason::Sparse),
        gradient: Gradient::Rule(gradient::sparse::ragged_to_tensor),
        ..OpDef::PURE
    },
];

/// Checks that all but the last `others` inputs are the vectors that say where rows begin and end.
fn check_splits(context: &OpContext<'_>, others: usize) -> Result<usize> {
    let n = context.n_inputs() - others;
    for index in 0..n {
        context.check_rank(index, 1)?;
        check_not_empty(context, index)?;
    }
    Ok(n)
}

fn check_not_empty(context: &OpContext<'_>, index: usize) -> Result<()> {
    match context.shape(index).dim(0) {
        Some(0) => Err(context.wrong(index, "not empty", context.shape(index))),
        _ => Ok(()),
    }
}

/// The number of rows between the splits in input `index`.
fn n_rows(context: &OpContext<'_>, index: usize) -> Dim {
    context.shape(index).dim(0).and_then(|n| n.checked_sub(1))
}

fn bincount(context: &mut OpContext<'_>) -> Result<()> {
    context.check_rank(0, 1)?;
    check_not_empty(context, 0)?;
    let size = match context.int(2)? {
        None => None,
        Some(size) => {
            Some(usize::try_from(size).map_err(|_| context.wrong(2, "not negative", size))?)
        }
    };
    let (values, weights) = (context.shape(1), context.shape(3));
    let is_empty = weights.known().is_none_or(|shape| shape.num_elements() == 0);
    if !is_empty && !weights.is_compatible_with(values) {
        return Err(context.wrong(3, format!("empty or of shape {values}"), weights));
    }
    context.set(0, PartialShape::ranked([n_rows(context, 0), size]));
    Ok(())
}

fn fill_empty_rows(context: &mut OpContext<'_>) -> Result<()> {
    let ([n], [n_values]) = (context.dims(0)?, context.dims(1)?);
    let n = context.same("numbers of rows and values", n, n_values)?;
    let rows = context.int(2)?.and_then(|rows| usize::try_from(rows).ok());
    context.check_rank(3, 0)?;
    context.set_all(&PartialShape::vector(None));
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

fn gather(context: &mut OpContext<'_>) -> Result<()> {
    let n = check_splits(context, 2)?;
    context.check_rank_at_least(n, 1)?;
    context.check_rank_at_least(n + 1, 1)?;
    let n_out = context.n_outputs() - 1;
    context.set_all(&PartialShape::vector(None));
    if let Some(dims) = context.shape(n + 1).dims() {
        if n_out + 1 != n + dims.len() {
            let found = format!("{n_out}");
            let expected = format!("{}, by the ranks of indices and values", n + dims.len());
            return Err(context.wrong_attr("OUTPUT_RAGGED_RANK", expected, found));
        }
        let mut rows = Some(1usize);
        for (index, dim) in dims.iter().enumerate() {
            rows = rows.zip(*dim).and_then(|(rows, dim)| rows.checked_mul(dim));
            if index < n_out {
                context.set(index, PartialShape::vector(rows.and_then(|rows| rows.checked_add(1))));
            }
        }
    }
    match context.shape(n).dims() {
        Some([_, inner @ ..]) => {
            let dims = std::iter::once(None).chain(inner.iter().copied());
            context.set(n_out, PartialShape::ranked(dims));
        }
        Some([]) | None => context.set(n_out, PartialShape::Unknown),
    }
    Ok(())
}

fn range(context: &mut OpContext<'_>) -> Result<()> {
    let mut rows = None;
    let mut all_scalars = true;
    for index in 0..3 {
        let shape = context.shape(index);
        match shape.dims() {
            Some([]) => {}
            Some([n]) => {
                rows = context.same("numbers of rows", rows, *n)?;
                all_scalars = false;
            }
            Some(_) => return Err(context.wrong(index, "a scalar or a vector", shape)),
            None => all_scalars = false,
        }
    }
    let rows = if all_scalars { Some(1) } else { rows };
    context.set(0, PartialShape::vector(rows.map(|rows: usize| rows + 1)));
    context.set(1, PartialShape::vector(None));
    Ok(())
}

fn to_sparse(context: &mut OpContext<'_>) -> Result<()> {
    let n = check_splits(context, 1)?;
    context.check_rank_at_least(n, 1)?;
    let values = context.shape(n);
    let n_values = values.known().map(|shape| shape.num_elements());
    let rank = values.rank().map(|rank| rank + n);
    context.set(0, PartialShape::ranked([n_values, rank]));
    context.set(1, PartialShape::vector(n_values));
    context.set(2, PartialShape::vector(rank));
    Ok(())
}

/// The sizes asked for, in which those of the values fill gaps.
fn to_tensor(context: &mut OpContext<'_>) -> Result<()> {
    let kinds = context.attrs.strings("row_partition_types")?;
    let n = context.n_inputs() - 3;
    let is_kind = |kind: &bytes::Bytes| matches!(&kind[..], b"VALUE_ROWIDS" | b"ROW_SPLITS");
    let ragged_rank = match kinds {
        [first, others @ ..]
            if kinds.len() == n && first == "FIRST_DIM_SIZE" && others.iter().all(is_kind) =>
        {
            n - 1
        }
        [first, ..] if kinds.len() == n && first == "ROW_SPLITS" && kinds.iter().all(is_kind) => n,
        _ => {
            let expected = "the kinds of the partitions, splits or a size first";
            let found = format!("{kinds:?}");
            return Err(context.wrong_attr("row_partition_types", expected, found));
        }
    };
    context.check_rank_at_least(1, 1)?;
    let Some([_, inner @ ..]) = context.shape(1).dims() else { return Ok(()) };
    check_default(context, inner)?;
    let asked = match context.shape(0).rank() {
        Some(0) => match context.int(0)? {
            None | Some(-1) => PartialShape::of_rank(1 + ragged_rank + inner.len()),
            Some(other) => return Err(context.wrong(0, "a vector, or -1", other)),
        },
        _ => context.shape_value(0)?,
    };
    let Some(asked) = asked.dims() else { return Ok(()) };
    if asked.len() != 1 + ragged_rank + inner.len() {
        let expected = format!("of {} sizes", 1 + ragged_rank + inner.len());
        return Err(context.wrong(0, expected, asked.len()));
    }
    let (outer, own) = asked.split_at(1 + ragged_rank);
    let mut dims = outer.to_vec();
    for (&own, &value) in own.iter().zip(inner) {
        dims.push(context.same("inner sizes", own, value)?);
    }
    context.set(0, PartialShape::ranked(dims));
    Ok(())
}

/// Checks that the default value broadcasts to a row of the values.
fn check_default(context: &OpContext<'_>, inner: &[Dim]) -> Result<()> {
    let Some(dims) = context.shape(2).dims() else { return Ok(()) };
    let fits = |(dim, inner): (&Dim, &Dim)| match (dim, inner) {
        (Some(dim), Some(inner)) => *dim == 1 || dim == inner,
        _ => true,
    };
    if dims.len() > inner.len() || !dims.iter().rev().zip(inner.iter().rev()).all(fits) {
        let inner = PartialShape::ranked(inner.iter().copied());
        return Err(context.wrong(2, format!("like elements of shape {inner}"), context.shape(2)));
    }
    Ok(())
}
