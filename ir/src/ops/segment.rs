//! Rows that belong together: a number for each row says to which segment it belongs.

use super::sets::*;
use crate::gradient::{self, Gradient};
use crate::{
    dtype::DType,
    error::Result,
    infer::OpContext,
    op::*,
    shape::{Dim, PartialShape},
    xla::total,
};

/// Rows of segments in order.
const SEGMENT: OpDef = OpDef {
    inputs: &[arg("data", "T"), arg("segment_ids", "Tindices")],
    outputs: &[arg("output", "T")],
    attrs: &[ty("T", NUMBERS), ty("Tindices", INDEX)],
    infer: segment,
    lowering: Lowering::HostKernel(HostReason::DataDependentSizes),
    ..OpDef::PURE
};

/// Rows of segments in any order; negative ones belong to none.
const UNSORTED: OpDef = OpDef {
    inputs: &[
        arg("data", "T"),
        arg("segment_ids", "Tindices"),
        arg("num_segments", "Tnumsegments").host(),
    ],
    outputs: &[arg("output", "T")],
    attrs: &[ty("T", REALS), ty("Tindices", INDEX), ty_or("Tnumsegments", INDEX, DType::I32)],
    infer: unsorted_segment,
    lowering: Lowering::Kernel,
    ..OpDef::PURE
};

/// Some rows of `data`, as segments in order.
const SPARSE: OpDef = OpDef {
    inputs: &[arg("data", "T"), arg("indices", "Tidx"), arg("segment_ids", "Tsegmentids")],
    outputs: &[arg("output", "T")],
    attrs: &[
        ty("T", FLOATS),
        ty_or("Tidx", INDEX, DType::I32),
        ty_or("Tsegmentids", INDEX, DType::I32),
        flag("sparse_gradient", false),
    ],
    infer: sparse_segment,
    lowering: Lowering::Kernel,
    ..OpDef::PURE
};

/// Some rows of `data`, as segments in order, of which there are `num_segments`.
const SPARSE_COUNTED: OpDef = OpDef {
    inputs: &[
        arg("data", "T"),
        arg("indices", "Tidx"),
        arg("segment_ids", "Tsegmentids"),
        arg("num_segments", "Tnumsegments").host(),
    ],
    attrs: &[
        ty("T", FLOATS),
        ty_or("Tidx", INDEX, DType::I32),
        ty_or("Tnumsegments", INDEX, DType::I32),
        ty_or("Tsegmentids", INDEX, DType::I32),
        flag("sparse_gradient", false),
    ],
    ..SPARSE
};

/// The gradient of a sparse segment op by all rows of its data.
const SPARSE_GRAD: OpDef = OpDef {
    inputs: &[
        arg("grad", "T"),
        arg("indices", "Tidx"),
        arg("segment_ids", "Tsegmentids"),
        arg_of("output_dim0", DType::I32).host(),
    ],
    outputs: &[arg("output", "T")],
    attrs: &[
        ty("T", FLOATS),
        ty_or("Tidx", INDEX, DType::I32),
        ty_or("Tsegmentids", INDEX, DType::I32),
    ],
    infer: sparse_segment_grad,
    lowering: Lowering::Kernel,
    ..OpDef::PURE
};

/// The gradient of a sparse segment op by those rows of its data that were used.
const SPARSE_GRAD_V2: OpDef = OpDef {
    inputs: &[
        arg("grad", "T"),
        arg("indices", "Tidx"),
        arg("segment_ids", "Tsegmentids"),
        arg_of("dense_output_dim0", DType::I32),
    ],
    outputs: &[arg("output", "T"), arg("sorted_unique_indices", "Tidx")],
    infer: sparse_segment_grad_v2,
    lowering: Lowering::HostKernel(HostReason::DataDependentSizes),
    ..SPARSE_GRAD
};

pub(super) static OPS: &[OpDef] = &[
    OpDef {
        name: "SegmentMax",
        summary: "Takes the largest elements of each segment; 0 where it is empty.",
        attrs: &[ty("T", REALS), ty("Tindices", INDEX)],
        gradient: Gradient::Rule(gradient::segment::extreme),
        ..SEGMENT
    },
    OpDef {
        name: "SegmentMaxV2",
        summary: "Computes the largest element of each segment, of which there is a known number.",
        lowering: Lowering::Composite(|c| c.renamed("UnsortedSegmentMax")),
        ..UNSORTED
    },
    OpDef {
        name: "SegmentMean",
        summary: "Computes the mean of each segment; 0 where it is empty.",
        gradient: Gradient::Rule(gradient::segment::mean),
        ..SEGMENT
    },
    OpDef {
        name: "SegmentMin",
        summary: "Takes the smallest elements of each segment; 0 where it is empty.",
        attrs: &[ty("T", REALS), ty("Tindices", INDEX)],
        gradient: Gradient::Rule(gradient::segment::extreme),
        ..SEGMENT
    },
    OpDef {
        name: "SegmentMinV2",
        summary: "Computes the smallest element of each segment, of which there is a known number.",
        lowering: Lowering::Composite(|c| c.renamed("UnsortedSegmentMin")),
        ..UNSORTED
    },
    OpDef {
        name: "SegmentProd",
        summary: "Computes the product of each segment; 1 where it is empty.",
        gradient: Gradient::Rule(gradient::segment::product),
        ..SEGMENT
    },
    OpDef {
        name: "SegmentProdV2",
        summary: "Computes the product of each segment, of which there is a known number.",
        attrs: &[ty("T", NUMBERS), ty("Tindices", INDEX), ty_or("Tnumsegments", INDEX, DType::I32)],
        lowering: Lowering::Composite(|c| c.renamed("UnsortedSegmentProd")),
        ..UNSORTED
    },
    OpDef {
        name: "SegmentSum",
        summary: "Computes the sum of each segment; 0 where it is empty.",
        gradient: Gradient::Rule(gradient::segment::sum),
        ..SEGMENT
    },
    OpDef {
        name: "SegmentSumV2",
        summary: "Computes the sum of each segment, of which there is a known number.",
        attrs: &[ty("T", NUMBERS), ty("Tindices", INDEX), ty_or("Tnumsegments", INDEX, DType::I32)],
        lowering: Lowering::Composite(|c| c.renamed("UnsortedSegmentSum")),
        ..UNSORTED
    },
    OpDef {
        name: "SparseSegmentMean",
        summary: "Computes the mean of chosen rows for each segment.",
        gradient: Gradient::Rule(gradient::segment::sparse_mean),
        lowering: Lowering::HostKernel(HostReason::DataDependentSizes),
        ..SPARSE
    },
    OpDef {
        name: "SparseSegmentMeanGrad",
        summary: "Gradient of `SparseSegmentMean`.",
        ..SPARSE_GRAD
    },
    OpDef {
        name: "SparseSegmentMeanGradV2",
        summary: "Gradient of `SparseSegmentMean`, for the rows that were chosen.",
        ..SPARSE_GRAD_V2
    },
    OpDef {
        name: "SparseSegmentMeanWithNumSegments",
        summary: "Computes the mean of chosen rows for each of so many segments.",
        gradient: Gradient::Rule(gradient::segment::sparse_mean),
        ..SPARSE_COUNTED
    },
    OpDef {
        name: "SparseSegmentSqrtN",
        summary: "Computes the sum of chosen rows for each segment over the root of their number.",
        gradient: Gradient::Rule(gradient::segment::sparse_sqrt_n),
        lowering: Lowering::HostKernel(HostReason::DataDependentSizes),
        ..SPARSE
    },
    OpDef {
        name: "SparseSegmentSqrtNGrad",
        summary: "Gradient of `SparseSegmentSqrtN`.",
        ..SPARSE_GRAD
    },
    OpDef {
        name: "SparseSegmentSqrtNGradV2",
        summary: "Gradient of `SparseSegmentSqrtN`, for the rows that were chosen.",
        ..SPARSE_GRAD_V2
    },
    OpDef {
        name: "SparseSegmentSqrtNWithNumSegments",
        summary: "Computes the sum of chosen rows over the root of their number, for each segment.",
        gradient: Gradient::Rule(gradient::segment::sparse_sqrt_n),
        ..SPARSE_COUNTED
    },
    OpDef {
        name: "SparseSegmentSum",
        summary: "Computes the sum of chosen rows for each segment.",
        attrs: &[
            ty("T", REALS),
            ty_or("Tidx", INDEX, DType::I32),
            ty_or("Tsegmentids", INDEX, DType::I32),
            flag("sparse_gradient", false),
        ],
        gradient: Gradient::Rule(gradient::segment::sparse_sum),
        lowering: Lowering::HostKernel(HostReason::DataDependentSizes),
        ..SPARSE
    },
    OpDef {
        name: "SparseSegmentSumGrad",
        summary: "Gradient of `SparseSegmentSum`.",
        ..SPARSE_GRAD
    },
    OpDef {
        name: "SparseSegmentSumGradV2",
        summary: "Gradient of `SparseSegmentSum`, for the rows that were chosen.",
        ..SPARSE_GRAD_V2
    },
    OpDef {
        name: "SparseSegmentSumWithNumSegments",
        summary: "Computes the sum of chosen rows for each of so many segments.",
        attrs: &[
            ty("T", REALS),
            ty_or("Tidx", INDEX, DType::I32),
            ty_or("Tnumsegments", INDEX, DType::I32),
            ty_or("Tsegmentids", INDEX, DType::I32),
            flag("sparse_gradient", false),
        ],
        gradient: Gradient::Rule(gradient::segment::sparse_sum),
        ..SPARSE_COUNTED
    },
    OpDef {
        name: "UnsortedSegmentJoin",
        summary: "Joins the strings of each segment.",
        inputs: &[
            arg_of("inputs", DType::String),
            arg("segment_ids", "Tindices"),
            arg("num_segments", "Tnumsegments").host(),
        ],
        outputs: &[arg_of("output", DType::String)],
        attrs: &[
            string_or("separator", ""),
            ty("Tindices", INDEX),
            ty_or("Tnumsegments", INDEX, DType::I32),
        ],
        lowering: Lowering::HostKernel(HostReason::Text),
        ..UNSORTED
    },
    OpDef {
        name: "UnsortedSegmentMax",
        summary: "Takes the largest elements of each segment; the lowest value where it is empty.",
        gradient: Gradient::Rule(gradient::segment::unsorted_extreme),
        compiled: XlaFormula::Of(total::segments),
        ..UNSORTED
    },
    OpDef {
        name: "UnsortedSegmentMin",
        summary: "Takes the smallest elements of each segment; the highest value where it is empty.",
        gradient: Gradient::Rule(gradient::segment::unsorted_extreme),
        compiled: XlaFormula::Of(total::segments),
        ..UNSORTED
    },
    OpDef {
        name: "UnsortedSegmentProd",
        summary: "Computes the product of each segment; 1 where it is empty.",
        attrs: &[ty("T", NUMBERS), ty("Tindices", INDEX), ty_or("Tnumsegments", INDEX, DType::I32)],
        gradient: Gradient::Rule(gradient::segment::unsorted_product),
        compiled: XlaFormula::Of(total::segments),
        ..UNSORTED
    },
    OpDef {
        name: "UnsortedSegmentSum",
        summary: "Computes the sum of each segment; 0 where it is empty.",
        attrs: &[
            ty("T", NUMBERS),
            ty("Tindices", &[DType::I16, DType::I32, DType::I64]),
            ty_or("Tnumsegments", INDEX, DType::I32),
        ],
        gradient: Gradient::Rule(gradient::segment::unsorted_sum),
        compiled: XlaFormula::Of(total::segments),
        sharding: Some(ShardingRule::SegmentSum),
        ..UNSORTED
    },
];

fn segment(context: &mut OpContext<'_>) -> Result<()> {
    context.check_rank_at_least(0, 1)?;
    let [n] = context.dims(1)?;
    context.same("numbers of rows and segment ids", context.shape(0).dim(0), n)?;
    set_rows(context, None);
    Ok(())
}

/// The result has this number of rows like those of input 0.
fn set_rows(context: &mut OpContext<'_>, n: Dim) {
    if let Some([_, row @ ..]) = context.shape(0).dims() {
        context.set(0, PartialShape::ranked([n].into_iter().chain(row.iter().copied())));
    }
}

/// A number of rows in input `index`.
fn rows(context: &OpContext<'_>, index: usize) -> Result<Dim> {
    match context.int(index)?.map(usize::try_from) {
        Some(Err(_)) => Err(context.wrong(index, "not negative", "a negative number")),
        rows => Ok(rows.and_then(std::result::Result::ok)),
    }
}

fn unsorted_segment(context: &mut OpContext<'_>) -> Result<()> {
    let n = rows(context, 2)?;
    let (Some(data), Some(ids)) = (context.shape(0).dims(), context.shape(1).dims()) else {
        return Ok(());
    };
    let Some(row) = data.get(ids.len()..) else {
        let expected = format!("of rank {} or more", ids.len());
        return Err(context.wrong(0, expected, context.shape(0)));
    };
    for (&data, &ids) in data.iter().zip(ids) {
        context.same("sizes of data and segment ids", data, ids)?;
    }
    context.set(0, PartialShape::ranked([n].into_iter().chain(row.iter().copied())));
    Ok(())
}

fn sparse_segment(context: &mut OpContext<'_>) -> Result<()> {
    check_choice(context)?;
    let n = if context.n_inputs() > 3 { rows(context, 3)? } else { None };
    set_rows(context, n);
    Ok(())
}

/// Checks the form of chosen rows, and of the segments they belong to.
fn check_choice(context: &OpContext<'_>) -> Result<()> {
    context.check_rank_at_least(0, 1)?;
    let ([indices], [ids]) = (context.dims(1)?, context.dims(2)?);
    context.same("numbers of indices and segment ids", indices, ids)?;
    Ok(())
}

fn sparse_segment_grad(context: &mut OpContext<'_>) -> Result<()> {
    check_choice(context)?;
    let n = rows(context, 3)?;
    set_rows(context, n);
    Ok(())
}

fn sparse_segment_grad_v2(context: &mut OpContext<'_>) -> Result<()> {
    check_choice(context)?;
    context.check_rank(3, 0)?;
    set_rows(context, None);
    context.set(1, PartialShape::vector(None));
    Ok(())
}
