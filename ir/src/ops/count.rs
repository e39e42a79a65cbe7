//! Counting and binning.

use super::sets::*;
use crate::gradient::Gradient;
use crate::{dtype::DType, error::Result, infer::OpContext, op::*, shape::PartialShape};

const COUNTED: &[DType] = &[DType::I32, DType::I64, DType::F32, DType::F64];

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
];

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
