//! Where values come from, and ops that never leave the process.

use crate::gradient::{Gradient, deferred};
use crate::{
    dtype::DType,
    error::Result,
    infer::{self, OpContext},
    op::*,
    spec::TensorSpec,
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
        name: "Placeholder",
        summary: "Stands for a value that is fed from outside.",
        outputs: &[arg("output", "dtype")],
        attrs: &[any_ty("dtype"), shape("shape").or(AttrDefault::UnknownShape)],
        infer: placeholder,
        lowering: Lowering::Runtime,
        ..OpDef::PURE
    },
    OpDef {
        name: "_AddVariants",
        summary: "Adds the tensors in values of dtype variant.",
        inputs: &[args("inputs", "N", "T")],
        outputs: &[arg("sum", "T")],
        attrs: &[int("N").at_least(1), ty("T", &[DType::Variant])],
        infer: added,
        lowering: Lowering::Runtime,
        gradient: Gradient::Rule(|b| b.xs().iter().map(|_| Some(b.dy(0).into())).collect()),
        ..OpDef::PURE
    },
    OpDef {
        name: "_AddVariantGradients",
        summary: "Adds the tensors in gradients of dtype variant; those without sums have none.",
        inputs: &[args("inputs", "N", "T")],
        outputs: &[arg("sum", "T")],
        attrs: &[int("N").at_least(1), ty("T", &[DType::Variant])],
        infer: added,
        lowering: Lowering::Runtime,
        gradient: Gradient::Rule(|b| b.xs().iter().map(|_| Some(b.dy(0).into())).collect()),
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
        name: "_Bitcast",
        summary: "Reads the bytes of elements as elements of another dtype, as narrow floats, too.",
        inputs: &[arg("input", "T")],
        outputs: &[arg("output", "type")],
        attrs: &[any_ty("T"), any_ty("type")],
        infer: super::math::bitcast,
        lowering: Lowering::Alias(AliasKind::Reinterpret),
        gradient: Gradient::Zero,
        ..OpDef::PURE
    },
    OpDef {
        name: "_DeferredGradient",
        summary: "Computes the gradients of a call, once shapes are known.",
        inputs: &[
            args_list("shape_operands", "Thost").host(),
            args_list("x", "Tx"),
            args_list("y", "Ty"),
            args_list("dy", "Tdy"),
        ],
        outputs: &[args_list("dx", "Tdx")],
        attrs: &[
            int("record").at_least(0),
            func("of"),
            ints("present"),
            ints("wanted"),
            types("Thost"),
            types("Tx"),
            types("Ty"),
            types("Tdy"),
            types("Tdx"),
        ],
        infer: deferred::infer,
        lowering: Lowering::Composite(deferred::formula),
        ..OpDef::PURE
    },
    OpDef {
        name: "_FusedElementwise",
        summary: "Computes the scalar expression that the node holds.",
        inputs: &[args_list("x", "Tin")],
        outputs: &[arg("y", "T")],
        attrs: &[types("Tin").at_least(1), any_ty("T")],
        infer: infer::broadcast,
        lowering: Lowering::Fused,
        ..OpDef::PURE
    },
    OpDef {
        name: "_Outlined",
        summary: "Calls a function that is compiled for the shapes that its arguments turn out to have.",
        inputs: &[args_list("inputs", "Tin")],
        outputs: &[args_list("outputs", "Tout")],
        attrs: &[types("Tin"), types("Tout"), tensor("body")],
        lowering: Lowering::Runtime,
        ..OpDef::STATEFUL
    },
    OpDef {
        name: "_VariantZerosLike",
        summary: "Replaces the tensors in values of dtype variant by zeros.",
        inputs: &[arg("x", "T")],
        outputs: &[arg("y", "T")],
        attrs: &[ty("T", &[DType::Variant])],
        infer: infer::each_unchanged,
        lowering: Lowering::Runtime,
        gradient: Gradient::Zero,
        ..OpDef::PURE
    },
];

/// Facts about all lists that are added hold for the sum.
fn added(context: &mut OpContext<'_>) -> Result<()> {
    infer::all_same(context)?;
    let mut spec = context.input(0).ty.pointee.as_deref().cloned();
    for index in 1..context.n_inputs() {
        spec = match (spec, context.input(index).ty.pointee.as_deref()) {
            (Some(a), Some(b)) => Some(TensorSpec::new(a.dtype, a.shape.generalize(&b.shape))),
            _ => None,
        };
    }
    if let Some(spec) = spec {
        context.set_pointee(0, spec);
    }
    Ok(())
}

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
