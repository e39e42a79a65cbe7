//! Reading and changing parts of variables.

use super::sets::*;
use crate::gradient::{self, Gradient};
use crate::{
    dtype::DType,
    error::Result,
    infer::{self, OpContext},
    op::*,
    shape::PartialShape,
    xla::total,
};

/// Changes the rows of a variable that indices name.
const SCATTER: OpDef = OpDef {
    inputs: &[
        arg_of("resource", DType::Resource),
        arg("indices", "Tindices"),
        arg("updates", "dtype"),
    ],
    attrs: &[ty("dtype", NUMBERS), ty("Tindices", INDEX)],
    lowering: Lowering::Runtime,
    ..OpDef::WRITES
};

/// Changes the slices of a variable that vectors of indices name.
const SCATTER_ND: OpDef = OpDef {
    inputs: &[arg_of("ref", DType::Resource), arg("indices", "Tindices"), arg("updates", "T")],
    attrs: &[
        any_ty("T"),
        ty("Tindices", INDEX),
        flag("use_locking", true),
        string_or("bad_indices_policy", ""),
    ],
    lowering: Lowering::Runtime,
    ..OpDef::WRITES
};

pub(super) static OPS: &[OpDef] = &[
    OpDef {
        name: "ResourceGather",
        summary: "Takes the rows of a variable that indices name, within each batch.",
        inputs: &[arg_of("resource", DType::Resource), arg("indices", "Tindices")],
        outputs: &[arg("output", "dtype")],
        attrs: &[
            int_or("batch_dims", 0),
            flag("validate_indices", true),
            any_ty("dtype"),
            ty("Tindices", INDEX),
        ],
        infer: gather,
        lowering: Lowering::Runtime,
        gradient: Gradient::Rule(gradient::indexing::resource_gather),
        compiled: XlaFormula::Of(total::gather_of_variable),
        ..OpDef::READS
    },
    OpDef {
        name: "ResourceGatherNd",
        summary: "Takes the slices of a variable that vectors of indices name.",
        inputs: &[arg_of("resource", DType::Resource), arg("indices", "Tindices")],
        outputs: &[arg("output", "dtype")],
        attrs: &[any_ty("dtype"), ty("Tindices", INDEX)],
        infer: gather_nd,
        lowering: Lowering::Runtime,
        gradient: Gradient::Rule(gradient::indexing::resource_gather_nd),
        ..OpDef::READS
    },
    OpDef {
        name: "ResourceScatterAdd",
        summary: "Adds to the rows of a variable that indices name.",
        ..SCATTER
    },
    OpDef {
        name: "ResourceScatterDiv",
        summary: "Divides the rows of a variable that indices name.",
        ..SCATTER
    },
    OpDef {
        name: "ResourceScatterMax",
        summary: "Keeps the larger elements in the rows of a variable that indices name.",
        ..SCATTER
    },
    OpDef {
        name: "ResourceScatterMin",
        summary: "Keeps the smaller elements in the rows of a variable that indices name.",
        ..SCATTER
    },
    OpDef {
        name: "ResourceScatterMul",
        summary: "Multiplies the rows of a variable that indices name.",
        ..SCATTER
    },
    OpDef {
        name: "ResourceScatterNdAdd",
        summary: "Adds to the slices of a variable that vectors of indices name.",
        ..SCATTER_ND
    },
    OpDef {
        name: "ResourceScatterNdMax",
        summary: "Keeps the larger elements in slices of a variable that indices name.",
        ..SCATTER_ND
    },
    OpDef {
        name: "ResourceScatterNdMin",
        summary: "Keeps the smaller elements in slices of a variable that indices name.",
        ..SCATTER_ND
    },
    OpDef {
        name: "ResourceScatterNdSub",
        summary: "Subtracts from the slices of a variable that vectors of indices name.",
        ..SCATTER_ND
    },
    OpDef {
        name: "ResourceScatterNdUpdate",
        summary: "Replaces the slices of a variable that vectors of indices name.",
        ..SCATTER_ND
    },
    OpDef {
        name: "ResourceScatterSub",
        summary: "Subtracts from the rows of a variable that indices name.",
        ..SCATTER
    },
    OpDef {
        name: "ResourceScatterUpdate",
        summary: "Replaces the rows of a variable that indices name.",
        attrs: &[any_ty("dtype"), ty("Tindices", INDEX)],
        ..SCATTER
    },
    OpDef {
        name: "ResourceStridedSliceAssign",
        summary: "Replaces a strided slice of a variable.",
        inputs: &[
            arg_of("ref", DType::Resource),
            arg("begin", "Index").host(),
            arg("end", "Index").host(),
            arg("strides", "Index").host(),
            arg("value", "T"),
        ],
        attrs: &[
            any_ty("T"),
            ty("Index", INDEX),
            int_or("begin_mask", 0),
            int_or("end_mask", 0),
            int_or("ellipsis_mask", 0),
            int_or("new_axis_mask", 0),
            int_or("shrink_axis_mask", 0),
        ],
        infer: infer::unknown,
        lowering: Lowering::Runtime,
        ..OpDef::WRITES
    },
];

/// The shape of the variable that input 0 refers to.
fn variable_shape<'a>(context: &OpContext<'a>) -> Option<&'a PartialShape> {
    context.input(0).ty.pointee.as_ref().map(|pointee| &pointee.shape)
}

fn gather(context: &mut OpContext<'_>) -> Result<()> {
    let indices = context.shape(1).dims();
    let variable = variable_shape(context).and_then(PartialShape::dims);
    if let (Some(indices), Some(variable)) = (indices, variable)
        && let Ok(batch) = usize::try_from(context.attrs.int("batch_dims")?)
        && let Some(row) = variable.get(batch + 1..)
    {
        context.set(0, PartialShape::ranked(indices.iter().chain(row).copied()));
    }
    Ok(())
}

fn gather_nd(context: &mut OpContext<'_>) -> Result<()> {
    context.check_rank_at_least(1, 1)?;
    let indices = context.shape(1).dims().and_then(|dims| dims.split_last());
    let variable = variable_shape(context).and_then(PartialShape::dims);
    if let (Some((&Some(depth), rows)), Some(variable)) = (indices, variable)
        && let Some(slice) = variable.get(depth..)
    {
        context.set(0, PartialShape::ranked(rows.iter().chain(slice).copied()));
    }
    Ok(())
}
