//! Ragged tensors as values of dtype variant.

use super::sets::*;
use crate::gradient::{self, Gradient};
use crate::{dtype::DType, error::Result, infer::OpContext, op::*, shape::PartialShape};

pub(super) static OPS: &[OpDef] = &[
    OpDef {
        name: "RaggedTensorFromVariant",
        summary: "Puts a ragged tensor together from parts that are values of dtype variant.",
        inputs: &[arg_of("encoded_ragged", DType::Variant)],
        outputs: &[
            args("output_nested_splits", "output_ragged_rank", "Tsplits"),
            arg("output_dense_values", "Tvalues"),
        ],
        attrs: &[
            int("input_ragged_rank").at_least(-1),
            int("output_ragged_rank").at_least(0),
            any_ty("Tvalues"),
            ty_or("Tsplits", INDEX, DType::I64),
        ],
        infer: from_variant,
        lowering: Lowering::Runtime,
        gradient: Gradient::Rule(gradient::sparse::ragged_from_variant),
        ..OpDef::PURE
    },
    OpDef {
        name: "RaggedTensorToVariant",
        summary: "Makes a ragged tensor, or each of its rows, a value of dtype variant.",
        inputs: &[
            args("rt_nested_splits", "RAGGED_RANK", "Tsplits"),
            arg("rt_dense_values", "Tvalues"),
        ],
        outputs: &[arg_of("encoded_ragged", DType::Variant)],
        attrs: &[
            int("RAGGED_RANK").at_least(0),
            any_ty("Tvalues"),
            ty_or("Tsplits", INDEX, DType::I64),
            required_flag("batched_input"),
        ],
        infer: to_variant,
        lowering: Lowering::Runtime,
        gradient: Gradient::Rule(gradient::sparse::ragged_to_variant),
        ..OpDef::PURE
    },
    OpDef {
        name: "RaggedTensorToVariantGradient",
        summary: "Joins the values of the gradients by the rows of a ragged tensor.",
        inputs: &[
            arg_of("encoded_ragged_grad", DType::Variant),
            arg("row_splits", "Tsplits"),
            arg_of("dense_values_shape", DType::I32).host(),
        ],
        outputs: &[arg("dense_values_grad", "Tvalues")],
        attrs: &[any_ty("Tvalues"), ty_or("Tsplits", INDEX, DType::I64)],
        infer: |context| {
            let shape = context.shape_value(2)?;
            context.set(0, shape);
            Ok(())
        },
        lowering: Lowering::Runtime,
        ..OpDef::PURE
    },
];

fn from_variant(context: &mut OpContext<'_>) -> Result<()> {
    for index in 0..context.n_outputs() - 1 {
        context.set(index, PartialShape::vector(None));
    }
    Ok(())
}

fn to_variant(context: &mut OpContext<'_>) -> Result<()> {
    let n_splits = context.n_inputs() - 1;
    (0..n_splits).try_for_each(|index| context.check_rank(index, 1))?;
    if !context.attrs.bool("batched_input")? {
        context.set(0, PartialShape::scalar());
        return Ok(());
    }
    let n_rows = match n_splits {
        0 => context.shape(0).dim(0),
        _ => context.shape(0).dim(0).and_then(|n| n.checked_sub(1)),
    };
    context.set(0, PartialShape::vector(n_rows));
    Ok(())
}
