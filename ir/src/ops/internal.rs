//! Where values come from, and ops that never leave the process.

use crate::{
    error::Result,
    infer::{self, OpContext},
    op::*,
};

pub(super) static OPS: &[OpDef] = &[
    OpDef {
        name: "Const",
        summary: "Gives a constant.",
        outputs: &[arg("output", "dtype")],
        attrs: &[tensor("value"), any_ty("dtype")],
        infer: constant,
        lowering: Lowering::Runtime,
        ..OpDef::PURE
    },
    OpDef {
        name: "NoOp",
        summary: "Does nothing; other nodes run before or after it.",
        lowering: Lowering::Runtime,
        ..OpDef::PURE
    },
    OpDef {
        name: "Placeholder",
        summary: "Stands for a value that is fed from outside.",
        outputs: &[arg("output", "dtype")],
        attrs: &[any_ty("dtype"), shape("shape").or(AttrDefault::UnknownShape)],
        infer: placeholder,
        lowering: Lowering::Runtime,
        ..OpDef::PURE
    },
    OpDef {
        name: "_Arg",
        summary: "Gives an argument of the function around it.",
        outputs: &[arg("output", "T")],
        attrs: &[any_ty("T"), int("index").at_least(0)],
        lowering: Lowering::Runtime,
        ..OpDef::PURE
    },
    OpDef {
        name: "_FusedElementwise",
        summary: "Computes the scalar expression that the node holds.",
        inputs: &[args_list("x", "Tin")],
        outputs: &[arg("y", "T")],
        attrs: &[types("Tin"), any_ty("T")],
        infer: infer::broadcast,
        lowering: Lowering::Fused,
        ..OpDef::PURE
    },
];

fn constant(context: &mut OpContext<'_>) -> Result<()> {
    let (value, dtype) = (context.attrs.tensor("value")?, context.attrs.dtype("dtype")?);
    if value.dtype() != dtype {
        return Err(context.wrong_attr("value", format!("of dtype {dtype}"), value.dtype()));
    }
    context.set(0, value.shape());
    Ok(())
}

fn placeholder(context: &mut OpContext<'_>) -> Result<()> {
    context.set(0, context.attrs.shape("shape")?.clone());
    Ok(())
}
