//! Lookup tables: keys and the values they stand for, behind handles.

use crate::{
    dtype::DType,
    error::Result,
    infer::{self, OpContext},
    op::*,
    shape::PartialShape,
    spec::TensorSpec,
};

/// Makes a table.
const CREATION: OpDef = OpDef {
    outputs: &[arg_of("table_handle", DType::Resource)],
    infer: created,
    lowering: Lowering::Runtime,
    ..OpDef::STATEFUL
};

/// Changes a table by keys and values.
const CHANGE: OpDef = OpDef {
    inputs: &[arg_of("table_handle", DType::Resource), arg("keys", "Tin"), arg("values", "Tout")],
    attrs: &[any_ty("Tin"), any_ty("Tout")],
    lowering: Lowering::Runtime,
    ..OpDef::WRITES
};

const NAMED: [AttrDef; 3] = [
    string_or("container", ""),
    string_or("shared_name", ""),
    flag("use_node_name_sharing", false),
];

pub(super) static OPS: &[OpDef] = &[
    OpDef {
        name: "AnonymousHashTable",
        summary: "Makes a lookup table that is filled once.",
        attrs: &[any_ty("key_dtype"), any_ty("value_dtype")],
        ..CREATION
    },
    OpDef {
        name: "AnonymousMutableDenseHashTable",
        summary: "Makes a lookup table that may change and reserves two keys.",
        inputs: &[arg("empty_key", "key_dtype"), arg("deleted_key", "key_dtype")],
        attrs: &[
            any_ty("key_dtype"),
            any_ty("value_dtype"),
            shape("value_shape").or(AttrDefault::Shape(&[])),
            int_or("initial_num_buckets", 131072),
            float_or("max_load_factor", 0.8),
        ],
        ..CREATION
    },
    OpDef {
        name: "AnonymousMutableHashTable",
        summary: "Makes a lookup table that may change.",
        attrs: &[any_ty("key_dtype"), any_ty("value_dtype")],
        ..CREATION
    },
    OpDef {
        name: "AnonymousMutableHashTableOfTensors",
        summary: "Makes a lookup table of vectors that may change.",
        attrs: &[
            any_ty("key_dtype"),
            any_ty("value_dtype"),
            shape("value_shape").or(AttrDefault::Shape(&[])),
        ],
        ..CREATION
    },
    OpDef {
        name: "GenerateVocabRemapping",
        summary: "Gives the line of an old vocabulary for each line of a new one, and counts those.",
        inputs: &[arg_of("new_vocab_file", DType::String), arg_of("old_vocab_file", DType::String)],
        outputs: &[arg_of("remapping", DType::I64), arg_of("num_present", DType::I32)],
        attrs: &[
            int("new_vocab_offset").at_least(0),
            int("num_new_vocab").at_least(0),
            int_or("old_vocab_size", -1).at_least(-1),
        ],
        infer: |context| {
            (0..2).try_for_each(|index| context.check_rank(index, 0))?;
            let n = usize::try_from(context.attrs.int("num_new_vocab")?).ok();
            context.set(0, PartialShape::vector(n));
            context.set(1, PartialShape::scalar());
            Ok(())
        },
        effect: Effect::Reads,
        lowering: Lowering::Runtime,
        ..OpDef::PURE
    },
    OpDef {
        name: "HashTableV2",
        summary: "Makes a lookup table that is filled once, or finds it by name.",
        attrs: &[NAMED[0], NAMED[1], NAMED[2], any_ty("key_dtype"), any_ty("value_dtype")],
        ..CREATION
    },
    OpDef {
        name: "InitializeTableFromDataset",
        summary: "Fills a table with the keys and values that are the elements of a data set.",
        inputs: &[arg_of("table_handle", DType::Resource), arg_of("dataset", DType::Variant)],
        lowering: Lowering::Runtime,
        ..OpDef::STATEFUL
    },
    OpDef {
        name: "InitializeTableFromTextFileV2",
        summary: "Fills a lookup table with the lines of a file.",
        inputs: &[arg_of("table_handle", DType::Resource), arg_of("filename", DType::String)],
        attrs: &[
            int("key_index").at_least(-2),
            int("value_index").at_least(-2),
            int_or("vocab_size", -1).at_least(-1),
            string_or("delimiter", "\t"),
            int_or("offset", 0),
        ],
        lowering: Lowering::Runtime,
        outside: Some(OutsideAccess::ReadsFiles),
        ..OpDef::WRITES
    },
    OpDef {
        name: "InitializeTableV2",
        summary: "Fills a lookup table.",
        inputs: &[
            arg_of("table_handle", DType::Resource),
            arg("keys", "Tkey"),
            arg("values", "Tval"),
        ],
        attrs: &[any_ty("Tkey"), any_ty("Tval")],
        ..CHANGE
    },
    OpDef {
        name: "LookupTableExportV2",
        summary: "Gives all keys and values of a lookup table.",
        inputs: &[arg_of("table_handle", DType::Resource)],
        outputs: &[arg("keys", "Tkeys"), arg("values", "Tvalues")],
        attrs: &[any_ty("Tkeys"), any_ty("Tvalues")],
        lowering: Lowering::Runtime,
        ..OpDef::READS
    },
    OpDef {
        name: "LookupTableFindV2",
        summary: "Looks up keys in a table; a default stands for those that are not there.",
        inputs: &[
            arg_of("table_handle", DType::Resource),
            arg("keys", "Tin"),
            arg("default_value", "Tout"),
        ],
        outputs: &[arg("values", "Tout")],
        attrs: &[any_ty("Tin"), any_ty("Tout")],
        infer: found,
        lowering: Lowering::Runtime,
        ..OpDef::READS
    },
    OpDef {
        name: "LookupTableImportV2",
        summary: "Replaces all entries of a lookup table.",
        ..CHANGE
    },
    OpDef {
        name: "LookupTableInsertV2",
        summary: "Adds entries to a lookup table, or replaces their values.",
        ..CHANGE
    },
    OpDef {
        name: "LookupTableRemoveV2",
        summary: "Removes entries of a lookup table.",
        inputs: &[arg_of("table_handle", DType::Resource), arg("keys", "Tin")],
        attrs: &[any_ty("Tin")],
        lowering: Lowering::Runtime,
        ..OpDef::WRITES
    },
    OpDef {
        name: "LookupTableSizeV2",
        summary: "Gives the number of entries of a lookup table.",
        inputs: &[arg_of("table_handle", DType::Resource)],
        outputs: &[arg_of("size", DType::I64)],
        infer: infer::scalar,
        lowering: Lowering::Runtime,
        ..OpDef::READS
    },
    OpDef {
        name: "MutableDenseHashTableV2",
        summary: "Makes a lookup table that may change and reserves two keys, or finds it by name.",
        inputs: &[arg("empty_key", "key_dtype"), arg("deleted_key", "key_dtype")],
        attrs: &[
            NAMED[0],
            NAMED[1],
            NAMED[2],
            any_ty("key_dtype"),
            any_ty("value_dtype"),
            shape("value_shape").or(AttrDefault::Shape(&[])),
            int_or("initial_num_buckets", 131072),
            float_or("max_load_factor", 0.8),
        ],
        ..CREATION
    },
    OpDef {
        name: "MutableHashTableOfTensorsV2",
        summary: "Makes a lookup table of vectors that may change, or finds it by name.",
        attrs: &[
            NAMED[0],
            NAMED[1],
            NAMED[2],
            any_ty("key_dtype"),
            any_ty("value_dtype"),
            shape("value_shape").or(AttrDefault::Shape(&[])),
        ],
        ..CREATION
    },
    OpDef {
        name: "MutableHashTableV2",
        summary: "Makes a lookup table that may change, or finds it by name.",
        attrs: &[NAMED[0], NAMED[1], NAMED[2], any_ty("key_dtype"), any_ty("value_dtype")],
        ..CREATION
    },
];

/// A handle of a table, which refers to the value of one key.
fn created(context: &mut OpContext<'_>) -> Result<()> {
    context.set(0, PartialShape::scalar());
    let of_scalars = context.n_inputs() == 0 || context.shape(0).rank() == Some(0);
    if of_scalars {
        let dtype = context.attrs.dtype("value_dtype")?;
        let shape = context.attrs.shape("value_shape").map_or(PartialShape::scalar(), Clone::clone);
        context.set_pointee(0, TensorSpec::new(dtype, shape));
    }
    Ok(())
}

/// A value for each key.
fn found(context: &mut OpContext<'_>) -> Result<()> {
    let value = context.input(0).ty.pointee.as_ref().and_then(|pointee| pointee.shape.dims());
    if let (Some(keys), Some(value)) = (context.shape(1).dims(), value) {
        context.set(0, PartialShape::ranked(keys.iter().chain(value).copied()));
    }
    Ok(())
}
