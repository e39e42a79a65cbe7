//! Summaries: messages about the course of a training.

use super::sets::*;
use crate::{dtype::DType, infer, op::*};

/// An op that adds to what a summary writer has.
const WRITES_EVENTS: OpDef = OpDef { lowering: Lowering::Runtime, ..OpDef::STATEFUL };

const WRITER: ArgDef = arg_of("writer", DType::Resource);
const STEP: ArgDef = arg_of("step", DType::I64);
const TAG: ArgDef = arg_of("tag", DType::String);

const REALS_AND_BOOL: &[DType] = &[
    DType::BF16,
    DType::F16,
    DType::F32,
    DType::F64,
    DType::I8,
    DType::I16,
    DType::I32,
    DType::I64,
    DType::U8,
    DType::U16,
    DType::U32,
    DType::U64,
    DType::Bool,
];

/// Makes a summary.
const SUMMARY: OpDef = OpDef {
    inputs: &[TAG, arg_of("tensor", DType::F32)],
    outputs: &[arg_of("summary", DType::String)],
    infer: infer::scalar,
    lowering: Lowering::Runtime,
    ..OpDef::PURE
};

pub(super) static OPS: &[OpDef] = &[
    OpDef {
        name: "AudioSummary",
        summary: "Makes a summary with clips of sound.",
        attrs: &[float("sample_rate"), int_or("max_outputs", 3).at_least(1)],
        ..SUMMARY
    },
    OpDef {
        name: "AudioSummaryV2",
        summary: "Makes a summary with clips of sound.",
        inputs: &[TAG, arg_of("tensor", DType::F32), arg_of("sample_rate", DType::F32)],
        attrs: &[int_or("max_outputs", 3).at_least(1)],
        ..SUMMARY
    },
    OpDef {
        name: "CloseSummaryWriter",
        summary: "Writes what is left and closes the file.",
        inputs: &[WRITER],
        ..WRITES_EVENTS
    },
    OpDef {
        name: "CreateSummaryFileWriter",
        summary: "Begins an event file for a summary writer that has none.",
        inputs: &[
            WRITER,
            arg_of("logdir", DType::String),
            arg_of("max_queue", DType::I32),
            arg_of("flush_millis", DType::I32),
            arg_of("filename_suffix", DType::String),
        ],
        outside: Some(OutsideAccess::Writes),
        ..WRITES_EVENTS
    },
    OpDef {
        name: "FlushSummaryWriter",
        summary: "Writes what is waiting.",
        inputs: &[WRITER],
        ..WRITES_EVENTS
    },
    OpDef {
        name: "HistogramSummary",
        summary: "Makes a summary with the distribution of values.",
        inputs: &[arg_of("tag", DType::String), arg("values", "T")],
        outputs: &[arg_of("summary", DType::String)],
        attrs: &[ty_or("T", REALS, DType::F32)],
        infer: infer::scalar,
        lowering: Lowering::Runtime,
        ..OpDef::PURE
    },
    OpDef {
        name: "ImportEvent",
        summary: "Writes an event.",
        inputs: &[WRITER, arg_of("event", DType::String)],
        ..WRITES_EVENTS
    },
    OpDef {
        name: "MergeSummary",
        summary: "Makes one summary of several.",
        inputs: &[args_of("inputs", "N", DType::String)],
        outputs: &[arg_of("summary", DType::String)],
        attrs: &[int("N").at_least(1)],
        infer: infer::scalar,
        lowering: Lowering::Runtime,
        ..OpDef::PURE
    },
    OpDef {
        name: "ScalarSummary",
        summary: "Makes a summary with scalars.",
        inputs: &[arg_of("tags", DType::String), arg("values", "T")],
        outputs: &[arg_of("summary", DType::String)],
        attrs: &[ty("T", REALS)],
        infer: |context| {
            context.merged(0, 1)?;
            infer::scalar(context)
        },
        lowering: Lowering::Runtime,
        ..OpDef::PURE
    },
    OpDef {
        name: "SummaryWriter",
        summary: "Gives a handle of a summary writer.",
        outputs: &[WRITER],
        attrs: &[string_or("shared_name", ""), string_or("container", "")],
        infer: infer::scalar,
        ..WRITES_EVENTS
    },
    OpDef {
        name: "TensorSummary",
        summary: "Makes a summary with a tensor under the name of the node.",
        inputs: &[arg("tensor", "T")],
        attrs: &[
            any_ty("T"),
            string_or("description", ""),
            strings("labels").or(AttrDefault::Strings(&[])),
            string_or("display_name", ""),
        ],
        ..SUMMARY
    },
    OpDef {
        name: "TensorSummaryV2",
        summary: "Makes a summary with a tensor.",
        inputs: &[TAG, arg("tensor", "T"), arg_of("serialized_summary_metadata", DType::String)],
        attrs: &[any_ty("T")],
        ..SUMMARY
    },
    OpDef {
        name: "WriteAudioSummary",
        summary: "Writes clips of sound.",
        inputs: &[
            WRITER,
            STEP,
            TAG,
            arg_of("tensor", DType::F32),
            arg_of("sample_rate", DType::F32),
        ],
        attrs: &[int_or("max_outputs", 3).at_least(1)],
        ..WRITES_EVENTS
    },
    OpDef {
        name: "WriteGraphSummary",
        summary: "Writes a graph, as a GraphDef.",
        inputs: &[WRITER, STEP, arg_of("tensor", DType::String)],
        ..WRITES_EVENTS
    },
    OpDef {
        name: "WriteHistogramSummary",
        summary: "Writes the distribution of values.",
        inputs: &[WRITER, STEP, TAG, arg("values", "T")],
        attrs: &[ty_or("T", REALS_AND_BOOL, DType::F32)],
        ..WRITES_EVENTS
    },
    OpDef {
        name: "WriteImageSummary",
        summary: "Writes the first images of a batch, as PNG files.",
        inputs: &[WRITER, STEP, TAG, arg("tensor", "T"), arg_of("bad_color", DType::U8)],
        attrs: &[
            int_or("max_images", 3).at_least(1),
            ty_or("T", &[DType::U8, DType::F64, DType::F32, DType::F16], DType::F32),
        ],
        ..WRITES_EVENTS
    },
    OpDef {
        name: "WriteRawProtoSummary",
        summary: "Writes a summary message.",
        inputs: &[WRITER, STEP, arg_of("tensor", DType::String)],
        outside: Some(OutsideAccess::Writes),
        ..WRITES_EVENTS
    },
    OpDef {
        name: "WriteScalarSummary",
        summary: "Writes a number.",
        inputs: &[WRITER, STEP, TAG, arg("value", "T")],
        attrs: &[ty("T", REALS)],
        ..WRITES_EVENTS
    },
    OpDef {
        name: "WriteSummary",
        summary: "Writes a tensor, with a message that says what TensorBoard makes of it.",
        inputs: &[WRITER, STEP, arg("tensor", "T"), TAG, arg_of("summary_metadata", DType::String)],
        attrs: &[any_ty("T")],
        outside: Some(OutsideAccess::Writes),
        ..WRITES_EVENTS
    },
];
