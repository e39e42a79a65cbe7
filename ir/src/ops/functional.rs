//! Calls of functions, once, by choice, or repeatedly.

use crate::{
    dtype::DType,
    error::Result,
    host_tensor::HostTensor,
    infer::{self, OpContext},
    op::*,
    shape::{PartialShape, Shape},
};

/// Calls one function on its own results while the other returns true.
pub(super) const LOOP: OpDef = OpDef {
    inputs: &[args_list("input", "T")],
    outputs: &[args_list("output", "T")],
    attrs: &[types("T").at_least(0), func("cond"), func("body")],
    effect: Effect::OfCallee,
    lowering: Lowering::Runtime,
    call: CallKind::While,
    ..OpDef::PURE
};

pub(super) static OPS: &[OpDef] = &[
    OpDef {
        name: "BatchFunction",
        summary: "Calls a function with what a server would have gathered from several requests.",
        inputs: &[args_list("in_tensors", "Tin"), args_list("captured_tensors", "Tcaptured")],
        outputs: &[args_list("out_tensors", "Tout")],
        attrs: &[
            func("f"),
            int("num_batch_threads"),
            int("max_batch_size"),
            int("batch_timeout_micros"),
            int_or("max_enqueued_batches", 10),
            ints_or("allowed_batch_sizes", &[]),
            string_or("container", ""),
            string_or("shared_name", ""),
            string_or("batching_queue", ""),
            int_or("low_priority_max_batch_size", 0),
            int_or("low_priority_batch_timeout_micros", 0),
            ints_or("low_priority_allowed_batch_sizes", &[]),
            int_or("low_priority_max_enqueued_batches", 0),
            one_of(
                "mixed_priority_policy",
                &[
                    "low_priority_padding_with_max_batch_size",
                    "low_priority_padding_with_next_allowed_batch_size",
                    "priority_isolation",
                    "priority_merge",
                ],
            )
            .or(AttrDefault::String("low_priority_padding_with_max_batch_size")),
            one_of(
                "batch_padding_policy",
                &["PAD_UP", "BATCH_DOWN", "MINIMIZE_TPU_COST_PER_REQUEST"],
            )
            .or(AttrDefault::String("PAD_UP")),
            types("Tin").at_least(1),
            types("Tcaptured").at_least(0),
            types("Tout").at_least(1),
            flag("enable_large_batch_splitting", false),
        ],
        effect: Effect::OfCallee,
        lowering: Lowering::Runtime,
        call: CallKind::Inline,
        ..OpDef::PURE
    },
    OpDef {
        name: "Case",
        summary: "Calls the function of number `branch_index`.",
        inputs: &[arg_of("branch_index", DType::I32), args_list("input", "Tin")],
        outputs: &[args_list("output", "Tout")],
        attrs: &[
            types("Tin").at_least(0),
            types("Tout").at_least(0),
            funcs("branches").at_least(1),
            shapes("output_shapes").or(AttrDefault::Shapes),
        ],
        infer: output_shapes,
        effect: Effect::OfCallee,
        lowering: Lowering::Runtime,
        call: CallKind::Case,
        ..OpDef::PURE
    },
    OpDef {
        name: "DeviceIndex",
        summary: "Gives the number of the kind of device among these, or how many there are.",
        outputs: &[arg_of("index", DType::I32)],
        attrs: &[strings("device_names")],
        infer: infer::scalar,
        lowering: Lowering::Composite(|c| {
            let names = c.attrs.strings("device_names").unwrap_or_default();
            let index = names.iter().position(|name| &name[..] == b"CPU").unwrap_or(names.len());
            vec![c.scalar(i32::try_from(index).unwrap_or(i32::MAX))]
        }),
        ..OpDef::PURE
    },
    OpDef {
        name: "FakeParam",
        summary: "Stands for a value that is not used: zeros, and none along unknown dimensions.",
        outputs: &[arg("output", "dtype")],
        attrs: &[any_ty("dtype"), shape("shape")],
        infer: |context| {
            let shape = unused(context.attrs.shape("shape")?)?;
            context.set(0, &shape);
            Ok(())
        },
        lowering: Lowering::Composite(|c| {
            let shape = c.attrs.shape("shape").and_then(unused);
            vec![
                c.constant(shape.and_then(|shape| HostTensor::zeros(c.dtype_attr("dtype"), shape))),
            ]
        }),
        ..OpDef::PURE
    },
    OpDef {
        name: "If",
        summary: "Calls one function or the other.",
        inputs: &[arg("cond", "Tcond"), args_list("input", "Tin")],
        outputs: &[args_list("output", "Tout")],
        attrs: &[
            any_ty("Tcond"),
            types("Tin").at_least(0),
            types("Tout").at_least(0),
            func("then_branch"),
            func("else_branch"),
            shapes("output_shapes").or(AttrDefault::Shapes),
        ],
        infer: output_shapes,
        effect: Effect::OfCallee,
        lowering: Lowering::Runtime,
        call: CallKind::If,
        ..OpDef::PURE
    },
    OpDef {
        name: "IsTensorFloat32Enabled",
        summary: "Tells whether products of single precision may be computed with shorter numbers.",
        outputs: &[arg_of("enabled", DType::Bool)],
        infer: infer::scalar,
        lowering: Lowering::Composite(|c| vec![c.constant(Ok(HostTensor::scalar_bool(true)))]),
        ..OpDef::PURE
    },
    OpDef {
        name: "PartitionedCall",
        summary: "Calls a function.",
        inputs: &[args_list("args", "Tin")],
        outputs: &[args_list("output", "Tout")],
        attrs: &[
            types("Tin").at_least(0),
            types("Tout").at_least(0),
            func("f"),
            string_or("config", ""),
            string_or("config_proto", ""),
            string_or("executor_type", ""),
        ],
        effect: Effect::OfCallee,
        lowering: Lowering::Runtime,
        call: CallKind::Inline,
        ..OpDef::PURE
    },
    OpDef {
        name: "RemoteCall",
        summary: "Calls a function that may have effects; every device here is in this process.",
        inputs: &[arg_of("target", DType::String), args_list("args", "Tin")],
        outputs: &[args_list("output", "Tout")],
        attrs: &[types("Tin").at_least(1), types("Tout").at_least(1), func("f")],
        effect: Effect::OfCallee,
        lowering: Lowering::Runtime,
        call: CallKind::Inline,
        outside: Some(OutsideAccess::OtherMachines),
        ..OpDef::PURE
    },
    OpDef {
        name: "StatefulPartitionedCall",
        summary: "Calls a function that may have effects.",
        inputs: &[args_list("args", "Tin")],
        outputs: &[args_list("output", "Tout")],
        attrs: &[
            types("Tin").at_least(0),
            types("Tout").at_least(0),
            func("f"),
            string_or("config", ""),
            string_or("config_proto", ""),
            string_or("executor_type", ""),
        ],
        effect: Effect::OfCallee,
        lowering: Lowering::Runtime,
        call: CallKind::Inline,
        ..OpDef::PURE
    },
    OpDef {
        name: "StatelessCase",
        summary: "Calls the function of number `branch_index`; none has effects.",
        inputs: &[arg_of("branch_index", DType::I32), args_list("input", "Tin")],
        outputs: &[args_list("output", "Tout")],
        attrs: &[
            types("Tin").at_least(0),
            types("Tout").at_least(0),
            funcs("branches").at_least(1),
            shapes("output_shapes").or(AttrDefault::Shapes),
        ],
        infer: output_shapes,
        effect: Effect::OfCallee,
        lowering: Lowering::Runtime,
        call: CallKind::Case,
        ..OpDef::PURE
    },
    OpDef {
        name: "StatelessIf",
        summary: "Calls one function or the other; neither has effects.",
        inputs: &[arg("cond", "Tcond"), args_list("input", "Tin")],
        outputs: &[args_list("output", "Tout")],
        attrs: &[
            any_ty("Tcond"),
            types("Tin").at_least(0),
            types("Tout").at_least(0),
            func("then_branch"),
            func("else_branch"),
            shapes("output_shapes").or(AttrDefault::Shapes),
        ],
        infer: output_shapes,
        effect: Effect::OfCallee,
        lowering: Lowering::Runtime,
        call: CallKind::If,
        ..OpDef::PURE
    },
    OpDef {
        name: "StatelessWhile",
        summary: "Calls `body` on its own results while `cond` is true; neither has effects.",
        inputs: &[args_list("input", "T")],
        outputs: &[args_list("output", "T")],
        attrs: &[
            types("T").at_least(0),
            func("cond"),
            func("body"),
            shapes("output_shapes").or(AttrDefault::Shapes),
            int_or("parallel_iterations", 10),
        ],
        infer: output_shapes,
        effect: Effect::OfCallee,
        lowering: Lowering::Runtime,
        call: CallKind::While,
        ..OpDef::PURE
    },
    OpDef {
        name: "TPUPartitionedCall",
        summary: "Calls a function that was placed on a TPU.",
        inputs: &[args_list("args", "Tin"), arg_of("device_ordinal", DType::I32)],
        outputs: &[args_list("output", "Tout")],
        attrs: &[
            types("Tin").at_least(0),
            types("Tout").at_least(0),
            func("f"),
            int_or("autotuner_thresh", 0),
        ],
        effect: Effect::OfCallee,
        lowering: Lowering::Runtime,
        call: CallKind::Inline,
        ..OpDef::PURE
    },
    OpDef {
        name: "While",
        summary: "Calls `body` on its own results while `cond` is true.",
        inputs: &[args_list("input", "T")],
        outputs: &[args_list("output", "T")],
        attrs: &[
            types("T").at_least(0),
            func("cond"),
            func("body"),
            shapes("output_shapes").or(AttrDefault::Shapes),
            int_or("parallel_iterations", 10),
        ],
        infer: output_shapes,
        effect: Effect::OfCallee,
        lowering: Lowering::Runtime,
        call: CallKind::While,
        ..OpDef::PURE
    },
    OpDef {
        name: "XlaCallModule",
        summary: "Runs a StableHLO program.",
        inputs: &[args_list("args", "Tin")],
        outputs: &[args_list("output", "Tout")],
        attrs: &[
            int("version"),
            string("module"),
            shapes("Sout").at_least(0),
            types("Tout").at_least(0),
            types("Tin").at_least(0),
            strings("dim_args_spec").or(AttrDefault::Strings(&[])),
            strings("platforms").or(AttrDefault::Strings(&[])),
            funcs("function_list").or(AttrDefault::Funcs),
            flag("has_token_input_output", false),
            strings("disabled_checks").or(AttrDefault::Strings(&[])),
            flag("use_shardy_partitioner", false),
        ],
        infer: |context| {
            for (index, shape) in context.attrs.shapes("Sout")?.to_vec().into_iter().enumerate() {
                if index < context.n_outputs() {
                    context.set(index, shape);
                }
            }
            Ok(())
        },
        effect: Effect::OfCallee,
        lowering: Lowering::Runtime,
        call: CallKind::Module,
        ..OpDef::PURE
    },
    OpDef {
        name: "XlaIf",
        summary: "Calls one function or the other.",
        inputs: &[arg("cond", "Tcond"), args_list("inputs", "Tin")],
        outputs: &[args_list("output", "Tout")],
        attrs: &[
            any_ty("Tcond"),
            func("then_branch"),
            func("else_branch"),
            types("Tin").at_least(0),
            types("Tout").at_least(0),
        ],
        effect: Effect::OfCallee,
        lowering: Lowering::Runtime,
        call: CallKind::If,
        ..OpDef::PURE
    },
    OpDef {
        name: "XlaLaunch",
        summary: "Calls a function that was to be compiled.",
        inputs: &[
            args_list("constants", "Tconstants"),
            args_list("args", "Targs"),
            args_of("resources", "Nresources", DType::Resource),
        ],
        outputs: &[args_list("results", "Tresults")],
        attrs: &[
            types("Tconstants").at_least(0),
            types("Targs").at_least(0),
            int("Nresources").at_least(0),
            types("Tresults").at_least(0),
            func("function"),
        ],
        effect: Effect::OfCallee,
        lowering: Lowering::Runtime,
        call: CallKind::Inline,
        ..OpDef::PURE
    },
    OpDef {
        name: "XlaLaunchV2",
        summary: "Calls a function that was to be compiled.",
        inputs: &[args_list("args", "Targs")],
        outputs: &[args_list("results", "Tresults")],
        attrs: &[
            types("Targs").at_least(0),
            types("Tresults").at_least(0),
            ints("constants").at_least(0),
            ints("resources").at_least(0),
            func("function"),
        ],
        effect: Effect::OfCallee,
        lowering: Lowering::Runtime,
        call: CallKind::Inline,
        ..OpDef::PURE
    },
    OpDef {
        name: "XlaWhile",
        summary: "Calls `body` on its own results while `cond` is true.",
        ..LOOP
    },
    OpDef {
        name: "_ReplicatedCall",
        summary: "Calls a function in each replica of a strategy; gives the results of all.",
        inputs: &[arg_of("strategy", DType::Resource), args_list("input", "Tin")],
        outputs: &[args_list("output", "Tout")],
        attrs: &[
            types("Tin").at_least(0),
            types("Tout").at_least(0),
            funcs("replicas").at_least(1),
            shapes("output_shapes").or(AttrDefault::Shapes),
        ],
        infer: output_shapes,
        lowering: Lowering::Runtime,
        ..OpDef::STATEFUL
    },
];

/// The shape of a value that is not used.
fn unused(shape: &PartialShape) -> Result<Shape> {
    Shape::new(shape.dims().unwrap_or_default().iter().map(|dim| dim.unwrap_or(0)))
}

/// Results have the shapes of the attribute, if it has any.
fn output_shapes(context: &mut OpContext<'_>) -> Result<()> {
    let shapes = context.attrs.shapes("output_shapes")?.to_vec();
    if shapes.len() == context.n_outputs() {
        for (index, shape) in shapes.into_iter().enumerate() {
            context.set(index, shape);
        }
    }
    Ok(())
}
