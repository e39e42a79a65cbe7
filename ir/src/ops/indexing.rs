//! Reading and writing rows and elements by index.

use super::sets::*;
use crate::gradient::{self, Gradient};
use crate::{
    dtype::DType,
    error::{Error, Result},
    infer::{self, OpContext, normalize_axis},
    op::*,
    shape::{Dim, PartialShape, counted},
    xla::total,
};
use smallvec::SmallVec;

/// Changes the parts of a tensor that indices name.
const TENSOR_SCATTER: OpDef = OpDef {
    inputs: &[arg("tensor", "T"), arg("indices", "Tindices"), arg("updates", "T")],
    outputs: &[arg("output", "T")],
    attrs: &[any_ty("T"), ty("Tindices", INDEX), string_or("bad_indices_policy", "")],
    infer: tensor_scatter,
    lowering: Lowering::Kernel,
    compiled: XlaFormula::Of(total::scatter),
    ..OpDef::PURE
};

/// Joins tensors by interleaving their rows.
const STITCH: OpDef = OpDef {
    inputs: &[args_of("indices", "N", DType::I32), args("data", "N", "T")],
    outputs: &[arg("merged", "T")],
    attrs: &[int("N").at_least(1), any_ty("T")],
    infer: dynamic_stitch,
    lowering: Lowering::HostKernel(HostReason::DataDependentSizes),
    ..OpDef::PURE
};

const WIDE_INDEX: &[DType] = &[DType::I16, DType::I32, DType::I64];

/// The types TensorFlow calls number types, and bool.
const NUMBERS_AND_BOOL: &[DType] = &[
    DType::F32,
    DType::F64,
    DType::I32,
    DType::U8,
    DType::I16,
    DType::I8,
    DType::C64,
    DType::I64,
    DType::QI8,
    DType::QU8,
    DType::QI32,
    DType::BF16,
    DType::QI16,
    DType::QU16,
    DType::U16,
    DType::C128,
    DType::F16,
    DType::U32,
    DType::U64,
    DType::Bool,
];

pub(super) static OPS: &[OpDef] = &[
    OpDef {
        name: "DynamicPartition",
        summary: "Sorts rows into as many tensors, by a number for each row.",
        inputs: &[arg("data", "T"), arg_of("partitions", DType::I32)],
        outputs: &[args("outputs", "num_partitions", "T")],
        attrs: &[int("num_partitions").at_least(1), any_ty("T")],
        infer: dynamic_partition,
        lowering: Lowering::HostKernel(HostReason::DataDependentSizes),
        gradient: Gradient::Rule(gradient::indexing::dynamic_partition),
        ..OpDef::PURE
    },
    OpDef {
        name: "DynamicStitch",
        summary: "Interleaves rows of tensors by a position for each; later ones win.",
        gradient: Gradient::Rule(gradient::indexing::dynamic_stitch),
        ..STITCH
    },
    OpDef {
        name: "Gather",
        summary: "Takes the rows that indices name.",
        inputs: &[arg("params", "Tparams"), arg("indices", "Tindices")],
        outputs: &[arg("output", "Tparams")],
        attrs: &[flag("validate_indices", true), any_ty("Tparams"), ty("Tindices", INDEX)],
        infer: gather,
        lowering: Lowering::Kernel,
        gradient: Gradient::Rule(gradient::indexing::gather),
        compiled: XlaFormula::Of(total::gather),
        ..OpDef::PURE
    },
    OpDef {
        name: "GatherNd",
        summary: "Takes the elements or slices that vectors of indices name.",
        inputs: &[arg("params", "Tparams"), arg("indices", "Tindices")],
        outputs: &[arg("output", "Tparams")],
        attrs: &[
            any_ty("Tparams"),
            ty("Tindices", WIDE_INDEX),
            string_or("bad_indices_policy", ""),
        ],
        infer: gather_nd,
        lowering: Lowering::Kernel,
        gradient: Gradient::Rule(gradient::indexing::gather_nd),
        compiled: XlaFormula::Of(total::gather_nd),
        ..OpDef::PURE
    },
    OpDef {
        name: "GatherV2",
        summary: "Takes the slices along an axis that indices name, within each batch.",
        inputs: &[
            arg("params", "Tparams"),
            arg("indices", "Tindices"),
            arg("axis", "Taxis").host(),
        ],
        outputs: &[arg("output", "Tparams")],
        attrs: &[
            int_or("batch_dims", 0),
            any_ty("Tparams"),
            ty("Tindices", WIDE_INDEX),
            ty("Taxis", INDEX),
        ],
        infer: gather_v2,
        lowering: Lowering::Kernel,
        gradient: Gradient::Rule(gradient::indexing::gather_v2),
        compiled: XlaFormula::Of(total::gather),
        sharding: Some(ShardingRule::Gather),
        ..OpDef::PURE
    },
    OpDef {
        name: "OneHot",
        summary: "Makes vectors that hold one value at the position an index names, else another.",
        inputs: &[
            arg("indices", "TI"),
            arg_of("depth", DType::I32).host(),
            arg("on_value", "T"),
            arg("off_value", "T"),
        ],
        outputs: &[arg("output", "T")],
        attrs: &[
            int_or("axis", -1),
            any_ty("T"),
            ty_or("TI", &[DType::U8, DType::I8, DType::I32, DType::I64], DType::I64),
        ],
        infer: one_hot,
        lowering: Lowering::Kernel,
        gradient: Gradient::Zero,
        sharding: Some(ShardingRule::OneHot),
        ..OpDef::PURE
    },
    OpDef {
        name: "ParallelDynamicStitch",
        summary: "Interleaves rows of tensors by a position for each.",
        gradient: Gradient::Rule(gradient::indexing::dynamic_stitch),
        ..STITCH
    },
    OpDef {
        name: "ScatterNd",
        summary: "Adds up slices at the places that vectors of indices name, among zeros.",
        inputs: &[arg("indices", "Tindices"), arg("updates", "T"), arg("shape", "Tindices").host()],
        outputs: &[arg("output", "T")],
        attrs: &[any_ty("T"), ty("Tindices", WIDE_INDEX), string_or("bad_indices_policy", "")],
        infer: scatter_nd,
        lowering: Lowering::Kernel,
        gradient: Gradient::Rule(gradient::indexing::scatter_nd),
        compiled: XlaFormula::Of(total::scatter),
        sharding: Some(ShardingRule::Scatter),
        ..OpDef::PURE
    },
    OpDef {
        name: "ScatterNdNonAliasingAdd",
        summary: "Adds slices at the places that vectors of indices name.",
        inputs: &[arg("input", "T"), arg("indices", "Tindices"), arg("updates", "T")],
        attrs: &[
            ty("T", NUMBERS_AND_BOOL),
            ty("Tindices", INDEX),
            string_or("bad_indices_policy", ""),
        ],
        gradient: Gradient::Rule(gradient::indexing::scatter_add),
        ..TENSOR_SCATTER
    },
    OpDef {
        name: "TensorScatterAdd",
        summary: "Adds slices at the places that vectors of indices name.",
        gradient: Gradient::Rule(gradient::indexing::scatter_add),
        ..TENSOR_SCATTER
    },
    OpDef {
        name: "TensorScatterMax",
        summary: "Keeps the larger elements at the places that vectors of indices name.",
        gradient: Gradient::Rule(gradient::indexing::scatter_extreme),
        ..TENSOR_SCATTER
    },
    OpDef {
        name: "TensorScatterMin",
        summary: "Keeps the smaller elements at the places that vectors of indices name.",
        gradient: Gradient::Rule(gradient::indexing::scatter_extreme),
        ..TENSOR_SCATTER
    },
    OpDef {
        name: "TensorScatterSub",
        summary: "Subtracts slices at the places that vectors of indices name.",
        gradient: Gradient::Rule(gradient::indexing::scatter_sub),
        ..TENSOR_SCATTER
    },
    OpDef {
        name: "TensorScatterUpdate",
        summary: "Replaces slices at the places that vectors of indices name.",
        attrs: &[
            any_ty("T"),
            ty("Tindices", &[DType::I16, DType::I32, DType::I64, DType::U16]),
            string_or("bad_indices_policy", ""),
        ],
        gradient: Gradient::Rule(gradient::indexing::scatter_update),
        ..TENSOR_SCATTER
    },
    OpDef {
        name: "Where",
        summary: "Gives the coordinates of the elements that are not zero.",
        inputs: &[arg("input", "T")],
        outputs: &[arg_of("index", DType::I64)],
        attrs: &[ty_or("T", NUMBERS_AND_BOOL, DType::Bool)],
        infer: where_true,
        lowering: Lowering::HostKernel(HostReason::DataDependentSizes),
        ..OpDef::PURE
    },
    OpDef {
        name: "_TensorScatterDiv",
        summary: "Divides by slices at the places that vectors of indices name.",
        ..TENSOR_SCATTER
    },
    OpDef {
        name: "_TensorScatterMul",
        summary: "Multiplies by slices at the places that vectors of indices name.",
        gradient: Gradient::Rule(gradient::indexing::scatter_mul),
        ..TENSOR_SCATTER
    },
];

fn dynamic_partition(context: &mut OpContext<'_>) -> Result<()> {
    if let (Some(data), Some(partitions)) = (context.shape(0).dims(), context.shape(1).dims()) {
        if data.len() < partitions.len() {
            let expected = format!("of rank {} or more", partitions.len());
            return Err(context.wrong(0, expected, context.shape(0)));
        }
        let (rows, row) = data.split_at(partitions.len());
        for (&a, &b) in rows.iter().zip(partitions) {
            context.same("sizes of `data` and `partitions`", a, b)?;
        }
        context.set_all(&PartialShape::ranked([None].into_iter().chain(row.iter().copied())));
    }
    Ok(())
}

fn dynamic_stitch(context: &mut OpContext<'_>) -> Result<()> {
    let n = context.n_inputs() / 2;
    let mut row: Option<SmallVec<[Dim; 6]>> = None;
    for index in 0..n {
        let (indices, data) = (context.shape(index), context.shape(n + index));
        let (Some(places), Some(dims)) = (indices.dims(), data.dims()) else { continue };
        let prefix = dims.get(..places.len());
        let fits = prefix.is_some_and(|prefix| {
            let rows = PartialShape::ranked(prefix.iter().copied());
            rows.is_compatible_with(context.shape(index))
        });
        if !fits {
            let expected = format!("of a shape that begins with {}", context.shape(index));
            return Err(context.wrong(n + index, expected, data));
        }
        let own = PartialShape::ranked(dims[places.len()..].iter().copied());
        let merged = match &row {
            Some(row) => PartialShape::Ranked(row.clone()).merge(&own),
            None => Some(own),
        };
        let Some(merged) = merged else {
            return Err(context.wrong(n + index, "of rows like those of the others", data));
        };
        row = merged.dims().map(SmallVec::from);
    }
    if let Some(row) = row {
        context.set(0, PartialShape::ranked([None].into_iter().chain(row)));
    }
    Ok(())
}

fn gather(context: &mut OpContext<'_>) -> Result<()> {
    context.check_rank_at_least(0, 1)?;
    if let (Some(params), Some(indices)) = (context.shape(0).dims(), context.shape(1).dims()) {
        context.set(0, PartialShape::ranked(indices.iter().chain(&params[1..]).copied()));
    }
    Ok(())
}

fn gather_v2(context: &mut OpContext<'_>) -> Result<()> {
    context.check_rank_at_least(0, 1)?;
    let (Some(params), Some(indices)) = (context.shape(0).dims(), context.shape(1).dims()) else {
        return Ok(());
    };
    let batch = context.attrs.int("batch_dims")?;
    let batch = if batch < 0 { batch + indices.len() as i64 } else { batch };
    let Some(batch) = usize::try_from(batch).ok().filter(|&batch| batch <= indices.len()) else {
        let expected = format!("a number of dimensions of {}", context.shape(1));
        return Err(context.wrong_attr("batch_dims", expected, batch));
    };
    if batch >= params.len() {
        return Err(context.wrong_attr("batch_dims", "less than the rank of `params`", batch));
    }
    for (&a, &b) in params[..batch].iter().zip(indices) {
        context.same("batch dimensions", a, b)?;
    }
    let Some(axis) = context.int(2)? else {
        context.set(0, PartialShape::of_rank(params.len() + indices.len() - batch - 1));
        return Ok(());
    };
    let axis = normalize_axis(axis, params.len())?;
    if axis < batch {
        return Err(context.wrong(2, format!("at least {batch}, as many as batch dims"), axis));
    }
    let dims = params[..axis].iter().chain(&indices[batch..]).chain(&params[axis + 1..]);
    context.set(0, PartialShape::ranked(dims.copied()));
    Ok(())
}

fn gather_nd(context: &mut OpContext<'_>) -> Result<()> {
    context.check_rank_at_least(0, 1)?;
    context.check_rank_at_least(1, 1)?;
    let (Some(params), Some(indices)) = (context.shape(0).dims(), context.shape(1).dims()) else {
        return Ok(());
    };
    let Some((&Some(depth), rows)) = indices.split_last() else { return Ok(()) };
    let Some(slice) = params.get(depth..) else {
        let expected = format!("of a last dimension of at most {}", params.len());
        return Err(context.wrong(1, expected, context.shape(1)));
    };
    context.set(0, PartialShape::ranked(rows.iter().chain(slice).copied()));
    Ok(())
}

fn one_hot(context: &mut OpContext<'_>) -> Result<()> {
    context.check_rank(2, 0)?;
    context.check_rank(3, 0)?;
    let depth = context.int(1)?;
    if depth.is_some_and(|depth| depth < 0) {
        return Err(context.wrong(1, "not negative", depth.unwrap_or(0)));
    }
    if let Some(dims) = context.shape(0).dims() {
        let axis = context.attrs.int("axis")?;
        if axis < -1 {
            return Err(Error::argument(context.op.name, "axis", "at least -1", axis));
        }
        let axis = normalize_axis(axis, dims.len() + 1)?;
        let mut result: SmallVec<[Dim; 6]> = dims.into();
        result.insert(axis, depth.map(counted));
        context.set(0, PartialShape::Ranked(result));
    }
    Ok(())
}

fn scatter_nd(context: &mut OpContext<'_>) -> Result<()> {
    let shape = context.shape_value(2)?;
    check_updates(context, &shape, 0)?;
    context.set(0, shape);
    Ok(())
}

fn tensor_scatter(context: &mut OpContext<'_>) -> Result<()> {
    check_updates(context, context.shape(0), 1)?;
    infer::unchanged(context)
}

/// Checks that the updates, the input after input `indices`, have the shape of the slices that
/// the indices name in a tensor of this shape. A vector of indices names rows.
fn check_updates(context: &OpContext<'_>, tensor: &PartialShape, indices: usize) -> Result<()> {
    context.check_rank_at_least(indices, 1)?;
    let updates = indices + 1;
    let (Some(target), Some(places)) = (tensor.known(), context.shape(indices).known()) else {
        return Ok(());
    };
    if target.rank() == 0 {
        return Err(context.wrong(indices, "used with a tensor of rank 1 or more", &target));
    }
    let (rows, depth) = match &places[..] {
        [n] => (&[*n][..], 1),
        [rows @ .., depth] => (rows, *depth),
        [] => (&[][..], 0),
    };
    let Some(slice) = target.get(depth..) else {
        let expected = format!("of a last dimension of at most {}", target.rank());
        return Err(context.wrong(indices, expected, &places));
    };
    let expected = PartialShape::ranked(rows.iter().chain(slice).map(|&size| Some(size)));
    let found = context.shape(updates);
    if !found.is_compatible_with(&expected) {
        return Err(context.wrong(updates, format!("of shape {expected}"), found));
    }
    let none = places.num_elements() == 0 && found.known().is_none_or(|x| x.num_elements() == 0);
    // An index that is ignored out of range is so where nothing is in range.
    let ignored = context.attrs.string("bad_indices_policy").is_ok_and(|policy| policy == "IGNORE");
    if target.num_elements() == 0 && !none && !ignored {
        return Err(context.wrong(indices, "empty, as the tensor is", &places));
    }
    Ok(())
}

fn where_true(context: &mut OpContext<'_>) -> Result<()> {
    if context.dtype(0) == DType::F16 && context.shape(0).rank() == Some(0) {
        // TensorFlow has no kernel for this dtype, and says so before it looks at the rank.
        let what = "scalars of float16".into();
        return Err(Error::Unsupported { op: context.op.name.into(), what });
    }
    context.check_rank_at_least(0, 1)?;
    context.set(0, PartialShape::ranked([None, context.shape(0).rank()]));
    Ok(())
}
