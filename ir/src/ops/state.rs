//! Variables behind handles.

use super::sets::*;
use crate::gradient::Gradient;
use crate::{
    dtype::DType,
    error::Result,
    infer::{self, OpContext},
    op::*,
    shape::PartialShape,
    spec::TensorSpec,
};

pub(super) static OPS: &[OpDef] = &[
    OpDef {
        name: "AssignAddVariableOp",
        summary: "Adds to a variable.",
        inputs: &[arg_of("resource", DType::Resource), arg("value", "dtype")],
        attrs: &[any_ty("dtype")],
        lowering: Lowering::Runtime,
        ..OpDef::WRITES
    },
    OpDef {
        name: "AssignSubVariableOp",
        summary: "Subtracts from a variable.",
        inputs: &[arg_of("resource", DType::Resource), arg("value", "dtype")],
        attrs: &[any_ty("dtype")],
        lowering: Lowering::Runtime,
        ..OpDef::WRITES
    },
    OpDef {
        name: "AssignVariableOp",
        summary: "Sets a variable.",
        inputs: &[arg_of("resource", DType::Resource), arg("value", "dtype")],
        attrs: &[any_ty("dtype"), flag("validate_shape", false)],
        lowering: Lowering::Runtime,
        ..OpDef::WRITES
    },
    OpDef {
        name: "DestroyResourceOp",
        summary: "Forgets a resource.",
        inputs: &[arg_of("resource", DType::Resource)],
        attrs: &[flag("ignore_lookup_error", true)],
        lowering: Lowering::Runtime,
        ..OpDef::WRITES
    },
    OpDef {
        name: "DisableCopyOnRead",
        summary: "Says that reads of a variable need no copy; they never do here.",
        inputs: &[arg_of("resource", DType::Resource)],
        lowering: Lowering::Runtime,
        ..OpDef::WRITES
    },
    OpDef {
        name: "ReadVariableOp",
        summary: "Reads a variable.",
        inputs: &[arg_of("resource", DType::Resource)],
        outputs: &[arg("value", "dtype")],
        attrs: &[any_ty("dtype")],
        infer: read_variable,
        lowering: Lowering::Runtime,
        gradient: Gradient::Same,
        ..OpDef::READS
    },
    OpDef {
        name: "ResourceCountUpTo",
        summary: "Adds 1 to a scalar variable below a limit, and returns the value before.",
        inputs: &[arg_of("resource", DType::Resource)],
        outputs: &[arg("output", "T")],
        attrs: &[int("limit"), ty("T", INDEX)],
        infer: infer::scalar,
        lowering: Lowering::Runtime,
        gradient: Gradient::Zero,
        ..OpDef::WRITES
    },
    OpDef {
        name: "VarHandleOp",
        summary: "Makes the handle of a variable, and the variable if it is not there.",
        outputs: &[arg_of("resource", DType::Resource)],
        attrs: &[
            string_or("container", ""),
            string_or("shared_name", ""),
            string_or("debug_name", ""),
            any_ty("dtype"),
            shape("shape"),
            strings("allowed_devices").or(AttrDefault::Strings(&[])),
        ],
        infer: var_handle,
        lowering: Lowering::Runtime,
        ..OpDef::PURE
    },
    OpDef {
        name: "VarIsInitializedOp",
        summary: "Tells whether a variable has a value.",
        inputs: &[arg_of("resource", DType::Resource)],
        outputs: &[arg_of("is_initialized", DType::Bool)],
        infer: infer::scalar,
        lowering: Lowering::Runtime,
        ..OpDef::READS
    },
    OpDef {
        name: "VariableShape",
        summary: "Gives the shape of a variable.",
        inputs: &[arg_of("input", DType::Resource)],
        outputs: &[arg("output", "out_type")],
        attrs: &[ty_or("out_type", INDEX, DType::I32)],
        infer: variable_shape,
        lowering: Lowering::Runtime,
        ..OpDef::READS
    },
];

/// A handle of a variable of the attributes' dtype and shape.
pub(super) fn var_handle(context: &mut OpContext<'_>) -> Result<()> {
    context.set(0, PartialShape::scalar());
    let (dtype, shape) = (context.attrs.dtype("dtype")?, context.attrs.shape("shape")?.clone());
    context.set_pointee(0, TensorSpec::new(dtype, shape));
    Ok(())
}

fn read_variable(context: &mut OpContext<'_>) -> Result<()> {
    if let Some(pointee) = &context.input(0).ty.pointee {
        let dtype = context.attrs.dtype("dtype")?;
        if pointee.dtype != dtype {
            return Err(context.wrong_attr("dtype", pointee.dtype.name(), dtype));
        }
        context.set(0, pointee.shape.clone());
    }
    Ok(())
}

fn variable_shape(context: &mut OpContext<'_>) -> Result<()> {
    let rank = context.input(0).ty.pointee.as_ref().and_then(|pointee| pointee.shape.rank());
    context.set(0, PartialShape::vector(rank));
    Ok(())
}
