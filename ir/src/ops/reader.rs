//! Readers: the records of files whose names come from a queue, as programs of TensorFlow 1 read them.

use crate::{dtype::DType, infer, op::*, shape::PartialShape};

/// Makes a reader, or finds it by name.
const CREATION: OpDef = OpDef {
    outputs: &[arg_of("reader_handle", DType::Resource)],
    attrs: NAMED,
    infer: infer::scalar,
    lowering: Lowering::Runtime,
    ..OpDef::STATEFUL
};

const NAMED: &[AttrDef] = &[string_or("container", ""), string_or("shared_name", "")];

/// Works on a reader.
const WORK: OpDef = OpDef {
    inputs: &[arg_of("reader_handle", DType::Resource)],
    lowering: Lowering::Runtime,
    ..OpDef::WRITES
};

/// Tells something of a reader.
const TOLD: OpDef = OpDef { infer: infer::scalar, effect: Effect::Reads, ..WORK };

pub(super) static OPS: &[OpDef] = &[
    OpDef {
        name: "FixedLengthRecordReaderV2",
        summary: "Makes a reader of records of one length.",
        attrs: &[
            int_or("header_bytes", 0),
            int("record_bytes"),
            int_or("footer_bytes", 0),
            int_or("hop_bytes", 0),
            NAMED[0],
            NAMED[1],
            string_or("encoding", ""),
        ],
        outside: Some(OutsideAccess::ReadsFiles),
        ..CREATION
    },
    OpDef {
        name: "IdentityReaderV2",
        summary: "Makes a reader that gives the names themselves.",
        ..CREATION
    },
    OpDef {
        name: "ReaderNumRecordsProducedV2",
        summary: "Gives the number of records a reader gave.",
        outputs: &[arg_of("records_produced", DType::I64)],
        ..TOLD
    },
    OpDef {
        name: "ReaderNumWorkUnitsCompletedV2",
        summary: "Gives the number of files a reader is done with.",
        outputs: &[arg_of("units_completed", DType::I64)],
        ..TOLD
    },
    OpDef {
        name: "ReaderReadUpToV2",
        summary: "Reads records of a file, but no more than some number.",
        inputs: &[
            arg_of("reader_handle", DType::Resource),
            arg_of("queue_handle", DType::Resource),
            arg_of("num_records", DType::I64),
        ],
        outputs: &[arg_of("keys", DType::String), arg_of("values", DType::String)],
        infer: |context| {
            context.check_rank(2, 0)?;
            context.set_all(&PartialShape::vector(None));
            Ok(())
        },
        ..WORK
    },
    OpDef {
        name: "ReaderReadV2",
        summary: "Reads the next record.",
        inputs: &[
            arg_of("reader_handle", DType::Resource),
            arg_of("queue_handle", DType::Resource),
        ],
        outputs: &[arg_of("key", DType::String), arg_of("value", DType::String)],
        infer: infer::scalar,
        ..WORK
    },
    OpDef { name: "ReaderResetV2", summary: "Has a reader begin again.", ..WORK },
    OpDef {
        name: "ReaderRestoreStateV2",
        summary: "Has a reader go on where another one was.",
        inputs: &[arg_of("reader_handle", DType::Resource), arg_of("state", DType::String)],
        ..WORK
    },
    OpDef {
        name: "ReaderSerializeStateV2",
        summary: "Tells where a reader is.",
        outputs: &[arg_of("state", DType::String)],
        ..TOLD
    },
    OpDef {
        name: "TFRecordReaderV2",
        summary: "Makes a reader of files of records.",
        attrs: &[NAMED[0], NAMED[1], string_or("compression_type", "")],
        outside: Some(OutsideAccess::ReadsFiles),
        ..CREATION
    },
    OpDef {
        name: "TextLineReaderV2",
        summary: "Makes a reader of lines.",
        attrs: &[int_or("skip_header_lines", 0), NAMED[0], NAMED[1]],
        outside: Some(OutsideAccess::ReadsFiles),
        ..CREATION
    },
    OpDef { name: "WholeFileReaderV2", summary: "Makes a reader of whole files.", ..CREATION },
];
