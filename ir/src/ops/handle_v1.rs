//! Ops on handles that are strings in TensorFlow 1, where it has no op on resources that does the
//! same: their forms on resources, which loaded graphs have in their place.
//!
//! Source: TensorFlow's `core/ops/data_flow_ops.cc` and `sdca_ops.cc` for the interfaces.

use super::{sets::*, state};
use crate::{
    dtype::DType,
    emit::{call, call_with},
    infer::{self, OpContext},
    op::*,
    shape::PartialShape,
    spec::TensorSpec,
};

const HANDLE: ArgDef = arg_of("handle", DType::Resource);

/// Makes something that is found by its name.
const MAKE: OpDef = OpDef {
    outputs: &[HANDLE],
    infer: infer::scalar,
    lowering: Lowering::Runtime,
    ..OpDef::STATEFUL
};

/// Changes what a handle refers to.
const CHANGE: OpDef = OpDef { inputs: &[HANDLE], lowering: Lowering::Runtime, ..OpDef::WRITES };

/// Makes a variable of one run.
const TEMPORARY: OpDef = OpDef {
    outputs: &[arg_of("handle", DType::Resource)],
    infer: state::var_handle,
    lowering: Lowering::Runtime,
    ..OpDef::STATEFUL
};

/// Counts what a barrier has.
const SIZE: OpDef = OpDef {
    inputs: &[HANDLE],
    outputs: &[arg_of("size", DType::I32)],
    infer: infer::scalar,
    lowering: Lowering::Runtime,
    ..OpDef::READS
};

pub(super) static OPS: &[OpDef] = &[
    OpDef {
        name: "_Barrier",
        summary: "Makes a barrier, where tuples wait until they are complete, or finds it by name.",
        attrs: &[
            types("component_types").at_least(1),
            shapes("shapes").or(AttrDefault::Shapes),
            int_or("capacity", -1),
            string_or("container", ""),
            string_or("shared_name", ""),
        ],
        ..MAKE
    },
    OpDef {
        name: "_BarrierClose",
        summary: "Closes a barrier for keys that it does not know.",
        attrs: &[flag("cancel_pending_enqueues", false)],
        ..CHANGE
    },
    OpDef {
        name: "_BarrierIncompleteSize",
        summary: "Counts the tuples of a barrier that are not complete.",
        ..SIZE
    },
    OpDef {
        name: "_BarrierInsertMany",
        summary: "Puts a component of several tuples into a barrier.",
        inputs: &[HANDLE, arg_of("keys", DType::String), arg("values", "T")],
        attrs: &[any_ty("T"), int("component_index")],
        infer: |context| {
            let [n] = context.dims::<1>(1)?;
            context.check_rank_at_least(2, 1)?;
            context.same("the keys and the values", n, context.shape(2).dim(0))?;
            Ok(())
        },
        ..CHANGE
    },
    OpDef {
        name: "_BarrierReadySize",
        summary: "Counts the tuples of a barrier that are complete.",
        ..SIZE
    },
    OpDef {
        name: "_BarrierTakeMany",
        summary: "Takes complete tuples out of a barrier, in the order of their first components.",
        inputs: &[HANDLE, arg_of("num_elements", DType::I32)],
        outputs: &[
            arg_of("indices", DType::I64),
            arg_of("keys", DType::String),
            args_list("values", "component_types"),
        ],
        attrs: &[
            types("component_types").at_least(1),
            flag("allow_small_batch", false),
            flag("wait_for_incomplete", false),
            int_or("timeout_ms", -1),
        ],
        infer: |context| {
            context.check_rank(1, 0)?;
            context.set(0, PartialShape::vector(None));
            context.set(1, PartialShape::vector(None));
            Ok(())
        },
        ..CHANGE
    },
    OpDef {
        name: "_FakeQueue",
        summary: "Gives the handle of a queue.",
        inputs: &[arg_of("resource", DType::Resource)],
        outputs: &[HANDLE],
        infer: infer::scalar,
        lowering: Lowering::Alias(AliasKind::Identity),
        ..OpDef::PURE
    },
    OpDef {
        name: "_SdcaShrinkL1",
        summary: "Moves weights towards zero by `l1 / l2`.",
        inputs: &[args_of("weights", "num_features", DType::Resource)],
        attrs: &[int("num_features").at_least(0), float("l1"), float("l2")],
        lowering: Lowering::Runtime,
        ..OpDef::WRITES
    },
    OpDef {
        name: "_SelectHandle",
        summary: "Gives the handle of number `index`.",
        inputs: &[arg_of("index", DType::I32), args("inputs", "N", "T")],
        outputs: &[arg("output", "T")],
        attrs: &[ty("T", &[DType::Resource]), int("N").at_least(1)],
        infer: |context| {
            context.check_rank(0, 0)?;
            if let Some(spec) = common_pointee(context) {
                context.set_pointee(0, spec);
            }
            infer::scalar(context)
        },
        lowering: Lowering::Runtime,
        ..OpDef::STATEFUL
    },
    OpDef {
        name: "_SparseAccumulatorApplyGradient",
        summary: "Adds sparse rows to an accumulator, unless they are of an earlier step.",
        inputs: &[
            HANDLE,
            arg_of("local_step", DType::I64),
            arg_of("gradient_indices", DType::I64),
            arg("gradient_values", "dtype"),
            arg_of("gradient_shape", DType::I64),
        ],
        attrs: &[ty("dtype", NUMBERS), required_flag("has_known_shape")],
        ..CHANGE
    },
    OpDef {
        name: "_SparseAccumulatorTakeGradient",
        summary: "Takes the mean or the sum of sparse gradients, once there are so many.",
        inputs: &[HANDLE, arg_of("num_required", DType::I32)],
        outputs: &[
            arg_of("indices", DType::I64),
            arg("values", "dtype"),
            arg_of("shape", DType::I64),
        ],
        attrs: &[ty("dtype", NUMBERS)],
        infer: |context| {
            context.check_rank(1, 0)?;
            context.set(0, PartialShape::vector(None));
            context.set(2, PartialShape::vector(None));
            Ok(())
        },
        ..CHANGE
    },
    OpDef {
        name: "_SparseConditionalAccumulator",
        summary: "Makes an accumulator of sparse gradients, or finds it by name.",
        attrs: &[
            ty("dtype", NUMBERS),
            shape("shape"),
            string_or("container", ""),
            string_or("shared_name", ""),
            one_of("reduction_type", &["MEAN", "SUM"]).or(AttrDefault::String("MEAN")),
        ],
        ..MAKE
    },
    OpDef {
        name: "_Stack",
        summary: "Makes a stack of tensors.",
        attrs: &[any_ty("elem_type"), string_or("stack_name", "")],
        ..MAKE
    },
    OpDef {
        name: "_TemporaryVariable",
        summary: "Makes a variable without a value, which no other node can find.",
        attrs: &[shape("shape"), any_ty("dtype"), string_or("var_name", "")],
        ..TEMPORARY
    },
    OpDef {
        name: "_TemporaryZeros",
        summary: "Makes a variable of zeros, which no other node can find.",
        attrs: &[shape("shape"), any_ty("dtype")],
        ..TEMPORARY
    },
    OpDef {
        name: "_TensorArrayPack",
        summary: "Stacks all elements of an array.",
        inputs: &[HANDLE, arg_of("flow_in", DType::F32)],
        outputs: &[arg("value", "dtype")],
        attrs: &[any_ty("dtype"), shape("element_shape").or(AttrDefault::UnknownShape)],
        infer: packed,
        lowering: Lowering::Composite(|c| {
            let size = call("TensorArraySizeV3", [c.x(0), c.x(1)]);
            let all = call("Range", [c.scalar(0i32), size, c.scalar(1i32)]);
            vec![call_with("TensorArrayGatherV3", c.attrs.clone(), [c.x(0), all, c.x(1)])]
        }),
        ..OpDef::WRITES
    },
    OpDef {
        name: "_TensorArrayUnpack",
        summary: "Writes the rows of a tensor to an array.",
        inputs: &[HANDLE, arg("value", "T"), arg_of("flow_in", DType::F32)],
        outputs: &[arg_of("flow_out", DType::F32)],
        attrs: &[any_ty("T")],
        infer: |context| {
            context.check_rank_at_least(1, 1)?;
            infer::scalar(context)
        },
        lowering: Lowering::Composite(|c| {
            let n_rows = c.x(1).shape().first().copied().unwrap_or_default();
            let rows: Vec<i32> = (0..i32::try_from(n_rows).unwrap_or(i32::MAX)).collect();
            vec![call("TensorArrayScatterV3", [c.x(0), c.vector(&rows), c.x(1), c.x(2)])]
        }),
        ..OpDef::WRITES
    },
    OpDef {
        name: "_WriteRow",
        summary: "Replaces a row of a variable.",
        inputs: &[arg_of("value", DType::Resource), arg("update", "T")],
        attrs: &[any_ty("T"), int("loc")],
        lowering: Lowering::Runtime,
        ..OpDef::WRITES
    },
];

/// The type of the value that all handles refer to, if that is the same.
fn common_pointee(context: &OpContext<'_>) -> Option<TensorSpec> {
    let mut specs = (1..context.n_inputs()).map(|index| context.input(index).ty.pointee.as_deref());
    let first = specs.next()??;
    specs.all(|other| other == Some(first)).then(|| first.clone())
}

/// As many rows as there are elements, each of the shape that the attribute tells.
fn packed(context: &mut OpContext<'_>) -> crate::error::Result<()> {
    if let Some(dims) = context.attrs.shape("element_shape")?.dims() {
        let dims: Vec<_> = std::iter::once(None).chain(dims.iter().copied()).collect();
        context.set(0, PartialShape::ranked(dims));
    }
    Ok(())
}
