//! Ops that read and write checkpoints.

use crate::{
    dtype::DType,
    error::Result,
    infer::{self, OpContext},
    op::*,
    shape::PartialShape,
};

pub(super) static OPS: &[OpDef] = &[
    OpDef {
        name: "LoadAndRemapMatrix",
        summary: "Reads a matrix of a checkpoint with its rows and columns in another order.",
        inputs: &[
            arg_of("ckpt_path", DType::String),
            arg_of("old_tensor_name", DType::String),
            arg_of("row_remapping", DType::I64),
            arg_of("col_remapping", DType::I64),
            arg_of("initializing_values", DType::F32),
        ],
        outputs: &[arg_of("output_matrix", DType::F32)],
        attrs: &[
            int("num_rows").at_least(0),
            int("num_cols").at_least(1),
            int_or("max_rows_in_memory", -1),
        ],
        infer: |context| {
            (2..4).try_for_each(|index| context.check_rank(index, 1))?;
            let size = |name| Ok(usize::try_from(context.attrs.int(name)?).ok());
            let shape = PartialShape::ranked([size("num_rows")?, size("num_cols")?]);
            context.set(0, shape);
            Ok(())
        },
        lowering: Lowering::Runtime,
        outside: Some(OutsideAccess::ReadsFiles),
        ..OpDef::STATEFUL
    },
    OpDef {
        name: "MergeV2Checkpoints",
        summary: "Makes one checkpoint of several.",
        inputs: &[
            arg_of("checkpoint_prefixes", DType::String),
            arg_of("destination_prefix", DType::String),
        ],
        attrs: &[flag("delete_old_dirs", true), flag("allow_missing_files", false)],
        infer: |context| context.check_rank(1, 0),
        lowering: Lowering::Runtime,
        outside: Some(OutsideAccess::Writes),
        ..OpDef::STATEFUL
    },
    OpDef {
        name: "Restore",
        summary: "Reads a tensor of a checkpoint.",
        inputs: &[arg_of("file_pattern", DType::String), arg_of("tensor_name", DType::String)],
        outputs: &[arg("tensor", "dt")],
        attrs: &[any_ty("dt"), int_or("preferred_shard", -1)],
        infer: infer::unknown,
        lowering: Lowering::Runtime,
        outside: Some(OutsideAccess::ReadsFiles),
        ..OpDef::READS
    },
    OpDef {
        name: "RestoreSlice",
        summary: "Reads a slice of a tensor of a checkpoint.",
        inputs: &[
            arg_of("file_pattern", DType::String),
            arg_of("tensor_name", DType::String),
            arg_of("shape_and_slice", DType::String),
        ],
        outputs: &[arg("tensor", "dt")],
        attrs: &[any_ty("dt"), int_or("preferred_shard", -1)],
        infer: infer::unknown,
        lowering: Lowering::Runtime,
        outside: Some(OutsideAccess::ReadsFiles),
        ..OpDef::READS
    },
    OpDef {
        name: "RestoreV2",
        summary: "Reads tensors of a checkpoint, whole ones or slices.",
        inputs: &[
            arg_of("prefix", DType::String),
            arg_of("tensor_names", DType::String),
            arg_of("shape_and_slices", DType::String),
        ],
        outputs: &[args_list("tensors", "dtypes")],
        attrs: &[types("dtypes").at_least(1)],
        infer: |context| one_string_each(context, "dtypes"),
        lowering: Lowering::Runtime,
        outside: Some(OutsideAccess::ReadsFiles),
        ..OpDef::READS
    },
    OpDef {
        name: "Save",
        summary: "Writes tensors to a checkpoint of the first format.",
        inputs: &[
            arg_of("filename", DType::String),
            arg_of("tensor_names", DType::String),
            args_list("data", "T"),
        ],
        attrs: &[types("T").at_least(1)],
        infer: |context| {
            context.check_rank(0, 0)?;
            strings_of(context, &[1], "T")
        },
        lowering: Lowering::Runtime,
        outside: Some(OutsideAccess::Writes),
        ..OpDef::STATEFUL
    },
    OpDef {
        name: "SaveSlices",
        summary: "Writes tensors or slices of some to a checkpoint of the first format.",
        inputs: &[
            arg_of("filename", DType::String),
            arg_of("tensor_names", DType::String),
            arg_of("shapes_and_slices", DType::String),
            args_list("data", "T"),
        ],
        attrs: &[types("T").at_least(1)],
        infer: |context| {
            context.check_rank(0, 0)?;
            strings_of(context, &[1, 2], "T")
        },
        lowering: Lowering::Runtime,
        outside: Some(OutsideAccess::Writes),
        ..OpDef::STATEFUL
    },
    OpDef {
        name: "SaveV2",
        summary: "Writes tensors to a checkpoint, whole ones or slices.",
        inputs: &[
            arg_of("prefix", DType::String),
            arg_of("tensor_names", DType::String),
            arg_of("shape_and_slices", DType::String),
            args_list("tensors", "dtypes"),
        ],
        attrs: &[types("dtypes").at_least(1)],
        infer: |context| one_string_each(context, "dtypes"),
        lowering: Lowering::Runtime,
        outside: Some(OutsideAccess::Writes),
        ..OpDef::STATEFUL
    },
];

/// There is a name and a slice for each dtype in a list.
fn one_string_each(context: &mut OpContext<'_>, dtypes: &str) -> Result<()> {
    strings_of(context, &[1, 2], dtypes)
}

/// These inputs have a string for each dtype in a list.
fn strings_of(context: &OpContext<'_>, inputs: &[usize], dtypes: &str) -> Result<()> {
    let n_tensors = context.attrs.types(dtypes)?.len();
    for &index in inputs {
        let found = context.input(index).ty.shape.dim(0);
        if let Some(found) = found.filter(|&found| found != n_tensors) {
            let expected = format!("a vector of {n_tensors} strings");
            return Err(context.wrong(index, expected, format!("{found}")));
        }
    }
    Ok(())
}
