//! Arrays of tensors and stacks of tensors, as programs from before TensorFlow 2 use them: state
//! behind handles. A flow value orders what happens to an array.

use crate::gradient::{self, Gradient};
use crate::{
    dtype::DType,
    error::Result,
    infer::{self, OpContext},
    op::*,
    shape::PartialShape,
};

/// Writes to an array.
const WRITE: OpDef = OpDef {
    outputs: &[arg_of("flow_out", DType::F32)],
    attrs: &[any_ty("T")],
    infer: infer::scalar,
    lowering: Lowering::Runtime,
    ..OpDef::WRITES
};

/// Makes the array that collects gradients by the elements of another.
const GRADIENT: OpDef = OpDef {
    outputs: &[arg_of("grad_handle", DType::Resource), arg_of("flow_out", DType::F32)],
    attrs: &[string("source")],
    infer: infer::scalar,
    lowering: Lowering::Runtime,
    ..OpDef::WRITES
};

pub(super) static OPS: &[OpDef] = &[
    OpDef {
        name: "StackCloseV2",
        summary: "Empties a stack for good.",
        inputs: &[arg_of("handle", DType::Resource)],
        lowering: Lowering::Runtime,
        ..OpDef::WRITES
    },
    OpDef {
        name: "StackPopV2",
        summary: "Takes the last tensor off a stack.",
        inputs: &[arg_of("handle", DType::Resource)],
        outputs: &[arg("elem", "elem_type")],
        attrs: &[any_ty("elem_type")],
        lowering: Lowering::Runtime,
        ..OpDef::WRITES
    },
    OpDef {
        name: "StackPushV2",
        summary: "Puts a tensor on a stack.",
        inputs: &[arg_of("handle", DType::Resource), arg("elem", "T")],
        outputs: &[arg("output", "T")],
        attrs: &[any_ty("T"), flag("swap_memory", false)],
        infer: |context| {
            context.set(0, context.shape(1).clone());
            Ok(())
        },
        lowering: Lowering::Runtime,
        ..OpDef::WRITES
    },
    OpDef {
        name: "StackV2",
        summary: "Makes a stack of tensors.",
        inputs: &[arg_of("max_size", DType::I32)],
        outputs: &[arg_of("handle", DType::Resource)],
        attrs: &[any_ty("elem_type"), string_or("stack_name", "")],
        infer: infer::scalar,
        lowering: Lowering::Runtime,
        ..OpDef::STATEFUL
    },
    OpDef {
        name: "TensorArrayCloseV3",
        summary: "Empties an array for good.",
        inputs: &[arg_of("handle", DType::Resource)],
        lowering: Lowering::Runtime,
        ..OpDef::WRITES
    },
    OpDef {
        name: "TensorArrayConcatV3",
        summary: "Joins the elements of an array along their first dimension.",
        inputs: &[arg_of("handle", DType::Resource), arg_of("flow_in", DType::F32)],
        outputs: &[arg("value", "dtype"), arg_of("lengths", DType::I64)],
        attrs: &[any_ty("dtype"), shape("element_shape_except0").or(AttrDefault::UnknownShape)],
        infer: |context| {
            context.set(1, PartialShape::vector(None));
            Ok(())
        },
        lowering: Lowering::Runtime,
        gradient: Gradient::Rule(gradient::tensor_array::of_concat),
        ..OpDef::WRITES
    },
    OpDef {
        name: "TensorArrayGatherV3",
        summary: "Stacks the elements of an array that indices name.",
        inputs: &[
            arg_of("handle", DType::Resource),
            arg_of("indices", DType::I32),
            arg_of("flow_in", DType::F32),
        ],
        outputs: &[arg("value", "dtype")],
        attrs: &[any_ty("dtype"), shape("element_shape").or(AttrDefault::UnknownShape)],
        infer: gathered,
        lowering: Lowering::Runtime,
        gradient: Gradient::Rule(gradient::tensor_array::of_gather),
        ..OpDef::WRITES
    },
    OpDef {
        name: "TensorArrayGradV3",
        summary: "Makes the array of gradients by the elements of an array, or finds it.",
        inputs: &[arg_of("handle", DType::Resource), arg_of("flow_in", DType::F32)],
        ..GRADIENT
    },
    OpDef {
        name: "TensorArrayGradWithShape",
        summary: "Makes the array of gradients by the elements of an array, with more dimensions.",
        inputs: &[
            arg_of("handle", DType::Resource),
            arg_of("flow_in", DType::F32),
            arg_of("shape_to_prepend", DType::I32),
        ],
        ..GRADIENT
    },
    OpDef {
        name: "TensorArrayReadV3",
        summary: "Reads an element of an array.",
        inputs: &[
            arg_of("handle", DType::Resource),
            arg_of("index", DType::I32),
            arg_of("flow_in", DType::F32),
        ],
        outputs: &[arg("value", "dtype")],
        attrs: &[any_ty("dtype")],
        lowering: Lowering::Runtime,
        gradient: Gradient::Rule(gradient::tensor_array::of_read),
        ..OpDef::WRITES
    },
    OpDef {
        name: "TensorArrayScatterV3",
        summary: "Writes the rows of a tensor to the elements of an array that indices name.",
        inputs: &[
            arg_of("handle", DType::Resource),
            arg_of("indices", DType::I32),
            arg("value", "T"),
            arg_of("flow_in", DType::F32),
        ],
        gradient: Gradient::Rule(gradient::tensor_array::of_scatter),
        ..WRITE
    },
    OpDef {
        name: "TensorArraySizeV3",
        summary: "Gives the number of elements of an array.",
        inputs: &[arg_of("handle", DType::Resource), arg_of("flow_in", DType::F32)],
        outputs: &[arg_of("size", DType::I32)],
        infer: infer::scalar,
        lowering: Lowering::Runtime,
        ..OpDef::READS
    },
    OpDef {
        name: "TensorArraySplitV3",
        summary: "Writes consecutive parts of a tensor to the elements of an array.",
        inputs: &[
            arg_of("handle", DType::Resource),
            arg("value", "T"),
            arg_of("lengths", DType::I64),
            arg_of("flow_in", DType::F32),
        ],
        gradient: Gradient::Rule(gradient::tensor_array::of_split),
        ..WRITE
    },
    OpDef {
        name: "TensorArrayV3",
        summary: "Makes an array of tensors.",
        inputs: &[arg_of("size", DType::I32)],
        outputs: &[arg_of("handle", DType::Resource), arg_of("flow", DType::F32)],
        attrs: &[
            any_ty("dtype"),
            shape("element_shape").or(AttrDefault::UnknownShape),
            flag("dynamic_size", false),
            flag("clear_after_read", true),
            flag("identical_element_shapes", false),
            string_or("tensor_array_name", ""),
        ],
        infer: infer::scalar,
        lowering: Lowering::Runtime,
        ..OpDef::STATEFUL
    },
    OpDef {
        name: "TensorArrayWriteV3",
        summary: "Writes an element of an array.",
        inputs: &[
            arg_of("handle", DType::Resource),
            arg_of("index", DType::I32),
            arg("value", "T"),
            arg_of("flow_in", DType::F32),
        ],
        gradient: Gradient::Rule(gradient::tensor_array::of_write),
        ..WRITE
    },
];

fn gathered(context: &mut OpContext<'_>) -> Result<()> {
    context.check_rank(1, 1)?;
    let n = context.shape(1).dim(0);
    if let Some(element) = context.attrs.shape("element_shape")?.dims() {
        let dims: Vec<_> = [n].into_iter().chain(element.iter().copied()).collect();
        context.set(0, PartialShape::ranked(dims));
    }
    Ok(())
}
