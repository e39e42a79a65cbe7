//! Counting and binning.

use super::sets::*;
use crate::gradient::Gradient;
use crate::{dtype::DType, error::Result, infer::OpContext, op::*, shape::PartialShape};

const COUNTED: &[DType] = &[DType::I32, DType::I64, DType::F32, DType::F64];

/// Counts as a sparse tensor.
const COUNTS: OpDef = OpDef {
    outputs: &[
        arg_of("output_indices", DType::I64),
        arg("output_values", "output_type"),
        arg_of("output_dense_shape", DType::I64),
    ],
    attrs: &[
        ty("T", INDEX),
        int_or("minlength", -1).at_least(-1),
        int_or("maxlength", -1).at_least(-1),
        required_flag("binary_output"),
        ty("output_type", COUNTED),
    ],
    lowering: Lowering::HostKernel(HostReason::Sparse),
    gradient: Gradient::Zero,
    ..OpDef::PURE
};

pub(super) static OPS: &[OpDef] = &[
    OpDef {
        name: "Bincount",
        summary: "Counts how often each integer below `size` occurs, or sums its weights.",
        inputs: &[
            arg_of("arr", DType::I32),
            arg_of("size", DType::I32).host(),
            arg("weights", "T"),
        ],
        outputs: &[arg("bins", "T")],
        attrs: &[ty("T", COUNTED)],
        infer: bincount,
        lowering: Lowering::Kernel,
        gradient: Gradient::Zero,
        ..OpDef::PURE
    },
    OpDef {
        name: "Bucketize",
        summary: "Tells how many of the sorted boundaries are not above each element.",
        inputs: &[arg("input", "T")],
        outputs: &[arg_of("output", DType::I32)],
        attrs: &[ty("T", COUNTED), floats("boundaries")],
        infer: bucketize,
        lowering: Lowering::Kernel,
        ..OpDef::PURE
    },
    OpDef {
        name: "DenseBincount",
        summary: "Counts like `Bincount`, for a vector or each row of a matrix.",
        inputs: &[arg("input", "Tidx"), arg("size", "Tidx").host(), arg("weights", "T")],
        outputs: &[arg("output", "T")],
        attrs: &[ty("Tidx", INDEX), ty("T", COUNTED), flag("binary_output", false)],
        infer: dense_bincount,
        lowering: Lowering::Kernel,
        gradient: Gradient::Zero,
        ..OpDef::PURE
    },
    OpDef {
        name: "DenseCountSparseOutput",
        summary: "Counts how often each integer occurs in a vector or in each row of a matrix.",
        inputs: &[arg("values", "T"), arg("weights", "output_type")],
        infer: |context| {
            let (values, weights) = (context.shape(0), context.shape(1));
            if values.rank().is_some_and(|rank| rank != 1 && rank != 2) {
                return Err(context.wrong(0, "of rank 1 or 2", values));
            }
            let is_empty = weights.known().is_none_or(|shape| shape.num_elements() == 0);
            if !is_empty && !weights.is_compatible_with(values) {
                return Err(context.wrong(1, format!("empty or of shape {values}"), weights));
            }
            counts(context, values.rank());
            Ok(())
        },
        ..COUNTS
    },
    OpDef {
        name: "HistogramFixedWidth",
        summary: "Counts the values in `nbins` intervals of equal width; those outside the range go to the first and the last.",
        inputs: &[arg("values", "T"), arg("value_range", "T"), arg_of("nbins", DType::I32).host()],
        outputs: &[arg("out", "dtype")],
        attrs: &[ty("T", COUNTED), ty_or("dtype", INDEX, DType::I32)],
        infer: histogram,
        lowering: Lowering::Kernel,
        gradient: Gradient::Zero,
        ..OpDef::PURE
    },
    OpDef {
        name: "RaggedCountSparseOutput",
        summary: "Counts how often each integer occurs in each row of a ragged tensor.",
        inputs: &[arg_of("splits", DType::I64), arg("values", "T"), arg("weights", "output_type")],
        infer: |context| {
            (0..2).try_for_each(|index| context.check_rank(index, 1))?;
            counts(context, Some(2));
            Ok(())
        },
        ..COUNTS
    },
    OpDef {
        name: "SparseBincount",
        summary: "Counts like `Bincount`, for a sparse vector or each row of a sparse matrix.",
        inputs: &[
            arg_of("indices", DType::I64),
            arg("values", "Tidx"),
            arg_of("dense_shape", DType::I64),
            arg("size", "Tidx"),
            arg("weights", "T"),
        ],
        outputs: &[arg("output", "T")],
        attrs: &[ty("Tidx", INDEX), ty("T", COUNTED), flag("binary_output", false)],
        infer: |context| {
            let rank = sparse_rank(context)?;
            context.check_rank(3, 0)?;
            context.set(0, rank.map_or(PartialShape::Unknown, PartialShape::of_rank));
            Ok(())
        },
        lowering: Lowering::HostKernel(HostReason::Sparse),
        gradient: Gradient::Zero,
        ..OpDef::PURE
    },
    OpDef {
        name: "SparseCountSparseOutput",
        summary: "Counts how often each integer occurs in a sparse vector or in each row of a sparse matrix.",
        inputs: &[
            arg_of("indices", DType::I64),
            arg("values", "T"),
            arg_of("dense_shape", DType::I64),
            arg("weights", "output_type"),
        ],
        infer: |context| {
            let rank = sparse_rank(context)?;
            counts(context, rank);
            Ok(())
        },
        ..COUNTS
    },
];

/// The rank of a sparse vector or matrix, whose elements are numbers.
fn sparse_rank(context: &OpContext<'_>) -> Result<Option<usize>> {
    let ([n, rank], [values]) = (context.dims::<2>(0)?, context.dims::<1>(1)?);
    context.same("the number of elements", n, values)?;
    let [dims] = context.dims::<1>(2)?;
    let rank = context.same("the rank", rank, dims)?;
    match rank {
        Some(rank) if rank != 1 && rank != 2 => {
            Err(context.wrong(0, "coordinates of rank 1 or 2", context.shape(0)))
        }
        rank => Ok(rank),
    }
}

/// Sets the shapes of counts as a sparse tensor of this rank.
fn counts(context: &mut OpContext<'_>, rank: Option<usize>) {
    context.set(0, PartialShape::ranked([None, rank]));
    context.set(1, PartialShape::vector(None));
    context.set(2, PartialShape::vector(rank));
}

/// The number of bins in scalar input `index`, at least `least`.
fn bins(context: &OpContext<'_>, index: usize, least: i64) -> Result<Option<usize>> {
    match context.int(index)? {
        None => Ok(None),
        Some(size) => match usize::try_from(size) {
            Ok(bins) if size >= least => Ok(Some(bins)),
            _ => Err(context.wrong(index, format!("{least} or more"), size)),
        },
    }
}

fn bincount(context: &mut OpContext<'_>) -> Result<()> {
    let size = bins(context, 1, 0)?;
    let count = |index: usize| context.shape(index).known().map(|shape| shape.num_elements());
    if let (Some(n), Some(n_weights)) = (count(0), count(2))
        && n_weights != 0
        && n_weights != n
    {
        return Err(context.wrong(2, format!("empty or of {n} elements"), context.shape(2)));
    }
    context.set(0, PartialShape::vector(size));
    Ok(())
}

fn bucketize(context: &mut OpContext<'_>) -> Result<()> {
    let boundaries = context.attrs.floats("boundaries")?;
    if !boundaries.is_sorted() {
        return Err(context.wrong_attr("boundaries", "sorted", format!("{boundaries:?}")));
    }
    context.set(0, context.shape(0).clone());
    Ok(())
}

fn dense_bincount(context: &mut OpContext<'_>) -> Result<()> {
    let (input, weights) = (context.shape(0), context.shape(2));
    if input.rank().is_some_and(|rank| rank > 2) {
        return Err(context.wrong(0, "of rank 2 or less", input));
    }
    let size = bins(context, 1, 0)?;
    let is_empty = weights.known().is_none_or(|shape| shape.num_elements() == 0);
    if !is_empty && !weights.is_compatible_with(input) {
        return Err(context.wrong(2, format!("empty or of shape {input}"), weights));
    }
    match input.rank() {
        Some(2) => context.set(0, PartialShape::ranked([input.dim(0), size])),
        Some(_) => context.set(0, PartialShape::vector(size)),
        None => {}
    }
    Ok(())
}

fn histogram(context: &mut OpContext<'_>) -> Result<()> {
    let [ends] = context.dims::<1>(1)?;
    if ends.is_some_and(|ends| ends != 2) {
        return Err(context.wrong(1, "a vector of 2 elements", context.shape(1)));
    }
    let bins = bins(context, 2, 1)?;
    context.set(0, PartialShape::vector(bins));
    Ok(())
}
