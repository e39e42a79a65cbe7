//! Optional values: tensors or nothing, behind a handle of dtype variant.

use crate::gradient::{self, Gradient};
use crate::{
    dtype::DType,
    error::Result,
    infer::{self, OpContext},
    op::*,
};

pub(super) static OPS: &[OpDef] = &[
    OpDef {
        name: "OptionalFromValue",
        summary: "Makes an optional that holds tensors.",
        inputs: &[args_list("components", "Toutput_types")],
        outputs: &[arg_of("optional", DType::Variant)],
        attrs: &[types("Toutput_types").at_least(1)],
        infer: infer::scalar,
        lowering: Lowering::Runtime,
        gradient: Gradient::Rule(gradient::optional::from_value),
        ..OpDef::PURE
    },
    OpDef {
        name: "OptionalGetValue",
        summary: "Gives the tensors that an optional holds.",
        inputs: &[arg_of("optional", DType::Variant)],
        outputs: &[args_list("components", "output_types")],
        attrs: &[types("output_types").at_least(1), shapes("output_shapes").at_least(1)],
        infer: components,
        lowering: Lowering::Runtime,
        gradient: Gradient::Rule(gradient::optional::get_value),
        ..OpDef::PURE
    },
    OpDef {
        name: "OptionalHasValue",
        summary: "Tells whether an optional holds anything.",
        inputs: &[arg_of("optional", DType::Variant)],
        outputs: &[arg_of("has_value", DType::Bool)],
        infer: infer::scalar,
        lowering: Lowering::Runtime,
        ..OpDef::PURE
    },
    OpDef {
        name: "OptionalNone",
        summary: "Makes an optional that holds nothing.",
        outputs: &[arg_of("optional", DType::Variant)],
        infer: infer::scalar,
        lowering: Lowering::Runtime,
        ..OpDef::PURE
    },
];

pub(super) fn components(context: &mut OpContext<'_>) -> Result<()> {
    let shapes = context.attrs.shapes("output_shapes")?.to_vec();
    if shapes.len() != context.n_outputs() {
        let expected = format!("{} shapes", context.n_outputs());
        return Err(context.wrong_attr("output_shapes", expected, shapes.len()));
    }
    for (index, shape) in shapes.into_iter().enumerate() {
        context.set(index, shape);
    }
    Ok(())
}
