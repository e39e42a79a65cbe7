//! Sparse tensors that wait under a number until they are taken, and as messages.

use crate::{
    dtype::DType,
    error::Result,
    infer::{self, OpContext},
    op::*,
    shape::PartialShape,
};

/// Puts a sparse tensor aside.
const ADDITION: OpDef = OpDef {
    inputs: &[
        arg_of("sparse_indices", DType::I64),
        arg("sparse_values", "T"),
        arg_of("sparse_shape", DType::I64),
    ],
    attrs: &[any_ty("T"), string_or("container", ""), string_or("shared_name", "")],
    lowering: Lowering::Runtime,
    ..OpDef::STATEFUL
};

const SPARSE: [ArgDef; 3] = [
    arg_of("sparse_indices", DType::I64),
    arg("sparse_values", "dtype"),
    arg_of("sparse_shape", DType::I64),
];

pub(super) static OPS: &[OpDef] = &[
    OpDef {
        name: "AddManySparseToTensorsMap",
        summary: "Puts the rows of a sparse tensor aside, and gives their numbers.",
        outputs: &[arg_of("sparse_handles", DType::I64)],
        infer: |context| {
            context.set(0, PartialShape::vector(None));
            Ok(())
        },
        ..ADDITION
    },
    OpDef {
        name: "AddSparseToTensorsMap",
        summary: "Puts a sparse tensor aside, and gives its number.",
        outputs: &[arg_of("sparse_handle", DType::I64)],
        infer: infer::scalar,
        ..ADDITION
    },
    OpDef {
        name: "DeserializeManySparse",
        summary: "Stacks sparse tensors that are messages.",
        inputs: &[arg_of("serialized_sparse", DType::String)],
        outputs: &SPARSE,
        attrs: &[any_ty("dtype")],
        infer: sparse,
        lowering: Lowering::Runtime,
        ..OpDef::PURE
    },
    OpDef {
        name: "DeserializeSparse",
        summary: "Stacks sparse tensors that are messages.",
        inputs: &[arg("serialized_sparse", "Tserialized")],
        outputs: &SPARSE,
        attrs: &[
            any_ty("dtype"),
            ty_or("Tserialized", &[DType::String, DType::Variant], DType::String),
        ],
        infer: sparse,
        lowering: Lowering::Runtime,
        ..OpDef::PURE
    },
    OpDef {
        name: "TakeManySparseFromTensorsMap",
        summary: "Stacks sparse tensors that were put aside.",
        inputs: &[arg_of("sparse_handles", DType::I64)],
        outputs: &SPARSE,
        attrs: &[any_ty("dtype"), string_or("container", ""), string_or("shared_name", "")],
        infer: sparse,
        lowering: Lowering::Runtime,
        ..OpDef::STATEFUL
    },
];

/// Coordinates, elements and sizes.
fn sparse(context: &mut OpContext<'_>) -> Result<()> {
    context.set(0, PartialShape::of_rank(2));
    context.set(1, PartialShape::vector(None));
    context.set(2, PartialShape::vector(None));
    Ok(())
}
