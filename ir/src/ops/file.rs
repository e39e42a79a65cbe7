//! Files: reading, writing, finding and naming them.

use crate::{
    dtype::DType,
    error::Result,
    infer::{self, OpContext},
    op::*,
    shape::PartialShape,
};

pub(super) static OPS: &[OpDef] = &[
    OpDef {
        name: "ImmutableConst",
        summary: "Gives a tensor whose elements are the bytes of a file.",
        outputs: &[arg("tensor", "dtype")],
        attrs: &[any_ty("dtype"), shape("shape"), string("memory_region_name")],
        infer: |context| {
            context.set(0, context.attrs.shape("shape")?.clone());
            Ok(())
        },
        effect: Effect::Reads,
        lowering: Lowering::Runtime,
        outside: Some(OutsideAccess::ReadsFiles),
        ..OpDef::PURE
    },
    OpDef {
        name: "MatchingFiles",
        summary: "Gives the names of the files that match a pattern, sorted.",
        inputs: &[arg_of("pattern", DType::String)],
        outputs: &[arg_of("filenames", DType::String)],
        infer: |context| {
            context.set(0, PartialShape::vector(None));
            Ok(())
        },
        effect: Effect::Reads,
        lowering: Lowering::Runtime,
        outside: Some(OutsideAccess::ReadsFiles),
        ..OpDef::PURE
    },
    OpDef {
        name: "ReadFile",
        summary: "Reads a file.",
        inputs: &[arg_of("filename", DType::String)],
        outputs: &[arg_of("contents", DType::String)],
        infer: scalars,
        effect: Effect::Reads,
        lowering: Lowering::Runtime,
        outside: Some(OutsideAccess::ReadsFiles),
        ..OpDef::PURE
    },
    OpDef {
        name: "ShardedFilename",
        summary: "Gives the name of one file of a set.",
        inputs: &[
            arg_of("basename", DType::String),
            arg_of("shard", DType::I32),
            arg_of("num_shards", DType::I32),
        ],
        outputs: &[arg_of("filename", DType::String)],
        infer: scalars,
        lowering: Lowering::Runtime,
        ..OpDef::PURE
    },
    OpDef {
        name: "ShardedFilespec",
        summary: "Gives the pattern that the names of a set of files match.",
        inputs: &[arg_of("basename", DType::String), arg_of("num_shards", DType::I32)],
        outputs: &[arg_of("filename", DType::String)],
        infer: scalars,
        lowering: Lowering::Runtime,
        ..OpDef::PURE
    },
    OpDef {
        name: "WriteFile",
        summary: "Writes a file, and makes the folders it is in.",
        inputs: &[arg_of("filename", DType::String), arg_of("contents", DType::String)],
        infer: scalars,
        lowering: Lowering::Runtime,
        outside: Some(OutsideAccess::Writes),
        ..OpDef::STATEFUL
    },
];

/// Scalars return scalars.
fn scalars(context: &mut OpContext<'_>) -> Result<()> {
    (0..context.n_inputs()).try_for_each(|index| context.check_rank(index, 0))?;
    infer::scalar(context)
}
