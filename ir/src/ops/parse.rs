//! Data in text and messages: `tf.Example`s, CSV, raw and compressed bytes, tensors.

use super::sets::*;
use crate::{
    dtype::DType,
    error::Result,
    infer::{self, OpContext},
    op::*,
    shape::{Dim, PartialShape},
};

/// The types of columns of text.
const CSV: &[DType] = &[DType::F32, DType::F64, DType::I32, DType::I64, DType::String];

pub(super) static OPS: &[OpDef] = &[
    OpDef {
        name: "DecodeCSV",
        summary: "Reads columns of text.",
        inputs: &[arg_of("records", DType::String), args_list("record_defaults", "OUT_TYPE")],
        outputs: &[args_list("output", "OUT_TYPE")],
        attrs: &[
            types_in("OUT_TYPE", CSV).at_least(1),
            string_or("field_delim", ","),
            flag("use_quote_delim", true),
            string_or("na_value", ""),
            ints_or("select_cols", &[]),
        ],
        infer: csv,
        lowering: Lowering::HostKernel(HostReason::Text),
        ..OpDef::PURE
    },
    OpDef {
        name: "DecodeCompressed",
        summary: "Unpacks compressed bytes.",
        inputs: &[arg_of("bytes", DType::String)],
        outputs: &[arg_of("output", DType::String)],
        attrs: &[string_or("compression_type", "")],
        infer: infer::unchanged,
        lowering: Lowering::HostKernel(HostReason::Text),
        ..OpDef::PURE
    },
    OpDef {
        name: "DecodePaddedRaw",
        summary: "Reads bytes as numbers; strings are cut off or filled up with zeros.",
        inputs: &[arg_of("input_bytes", DType::String), arg_of("fixed_length", DType::I32).host()],
        outputs: &[arg("output", "out_type")],
        attrs: &[
            ty(
                "out_type",
                &[
                    DType::F16,
                    DType::F32,
                    DType::F64,
                    DType::I32,
                    DType::U16,
                    DType::U8,
                    DType::I16,
                    DType::I8,
                    DType::I64,
                    DType::BF16,
                ],
            ),
            flag("little_endian", true),
        ],
        infer: decode_padded_raw,
        lowering: Lowering::HostKernel(HostReason::Text),
        ..OpDef::PURE
    },
    OpDef {
        name: "DecodeRaw",
        summary: "Reads bytes as numbers.",
        inputs: &[arg_of("bytes", DType::String)],
        outputs: &[arg("output", "out_type")],
        attrs: &[
            ty(
                "out_type",
                &[
                    DType::F16,
                    DType::F32,
                    DType::F64,
                    DType::I32,
                    DType::U16,
                    DType::U8,
                    DType::I16,
                    DType::I8,
                    DType::I64,
                    DType::C64,
                    DType::C128,
                    DType::Bool,
                    DType::BF16,
                ],
            ),
            flag("little_endian", true),
        ],
        infer: decode_raw,
        lowering: Lowering::HostKernel(HostReason::Text),
        ..OpDef::PURE
    },
    OpDef {
        name: "ParseExample",
        summary: "Reads features of `tf.Example`s.",
        inputs: &[
            arg_of("serialized", DType::String),
            arg_of("names", DType::String),
            args_of("sparse_keys", "Nsparse", DType::String),
            args_of("dense_keys", "Ndense", DType::String),
            args_list("dense_defaults", "Tdense"),
        ],
        outputs: &[
            args_of("sparse_indices", "Nsparse", DType::I64),
            args_list("sparse_values", "sparse_types"),
            args_of("sparse_shapes", "Nsparse", DType::I64),
            args_list("dense_values", "Tdense"),
        ],
        attrs: &[
            int("Nsparse").at_least(0),
            int("Ndense").at_least(0),
            types_in("sparse_types", FEATURES).at_least(0),
            types_in("Tdense", FEATURES).at_least(0),
            shapes("dense_shapes").at_least(0),
        ],
        same_length: &[&["Nsparse", "sparse_types"], &["Ndense", "Tdense", "dense_shapes"]],
        infer: example,
        lowering: Lowering::HostKernel(HostReason::Text),
        ..OpDef::PURE
    },
    OpDef {
        name: "ParseExampleV2",
        summary: "Reads features of one or many `tf.Example`s.",
        inputs: &[
            arg_of("serialized", DType::String),
            arg_of("names", DType::String),
            arg_of("sparse_keys", DType::String),
            arg_of("dense_keys", DType::String),
            arg_of("ragged_keys", DType::String),
            args_list("dense_defaults", "Tdense"),
        ],
        outputs: &[
            args_of("sparse_indices", "num_sparse", DType::I64),
            args_list("sparse_values", "sparse_types"),
            args_of("sparse_shapes", "num_sparse", DType::I64),
            args_list("dense_values", "Tdense"),
            args_list("ragged_values", "ragged_value_types"),
            args_list("ragged_row_splits", "ragged_split_types"),
        ],
        attrs: &[
            types_in("Tdense", FEATURES).at_least(0),
            int("num_sparse").at_least(0),
            types_in("sparse_types", FEATURES).at_least(0),
            types_in("ragged_value_types", FEATURES).at_least(0),
            types_in("ragged_split_types", INDEX).at_least(0),
            shapes("dense_shapes").at_least(0),
        ],
        same_length: &[
            &["num_sparse", "sparse_types"],
            &["Tdense", "dense_shapes"],
            &["ragged_value_types", "ragged_split_types"],
        ],
        infer: example_v2,
        lowering: Lowering::HostKernel(HostReason::Text),
        ..OpDef::PURE
    },
    OpDef {
        name: "ParseSequenceExample",
        summary: "Reads features and lists of features of `tf.SequenceExample`s.",
        inputs: &[
            arg_of("serialized", DType::String),
            arg_of("debug_name", DType::String),
            args_list("context_dense_defaults", "Tcontext_dense"),
        ],
        outputs: &[
            args_of("context_sparse_indices", "Ncontext_sparse", DType::I64),
            args_list("context_sparse_values", "context_sparse_types"),
            args_of("context_sparse_shapes", "Ncontext_sparse", DType::I64),
            args_list("context_dense_values", "Tcontext_dense"),
            args_of("feature_list_sparse_indices", "Nfeature_list_sparse", DType::I64),
            args_list("feature_list_sparse_values", "feature_list_sparse_types"),
            args_of("feature_list_sparse_shapes", "Nfeature_list_sparse", DType::I64),
            args_list("feature_list_dense_values", "feature_list_dense_types"),
            args_of("feature_list_dense_lengths", "Nfeature_list_dense", DType::I64),
        ],
        attrs: &[
            strings("feature_list_dense_missing_assumed_empty").at_least(0),
            strings("context_sparse_keys").at_least(0),
            strings("context_dense_keys").at_least(0),
            strings("feature_list_sparse_keys").at_least(0),
            strings("feature_list_dense_keys").at_least(0),
            int_or("Ncontext_sparse", 0).at_least(0),
            int_or("Ncontext_dense", 0).at_least(0),
            int_or("Nfeature_list_sparse", 0).at_least(0),
            int_or("Nfeature_list_dense", 0).at_least(0),
            types_in("context_sparse_types", FEATURES).or(AttrDefault::Types(&[])).at_least(0),
            types_in("Tcontext_dense", FEATURES).or(AttrDefault::Types(&[])).at_least(0),
            types_in("feature_list_dense_types", FEATURES).or(AttrDefault::Types(&[])).at_least(0),
            shapes("context_dense_shapes").or(AttrDefault::Shapes).at_least(0),
            types_in("feature_list_sparse_types", FEATURES).or(AttrDefault::Types(&[])).at_least(0),
            shapes("feature_list_dense_shapes").or(AttrDefault::Shapes).at_least(0),
        ],
        same_length: &[
            &["Ncontext_sparse", "context_sparse_keys", "context_sparse_types"],
            &["Ncontext_dense", "context_dense_keys", "Tcontext_dense", "context_dense_shapes"],
            &["Nfeature_list_sparse", "feature_list_sparse_keys", "feature_list_sparse_types"],
            &[
                "Nfeature_list_dense",
                "feature_list_dense_keys",
                "feature_list_dense_types",
                "feature_list_dense_shapes",
            ],
        ],
        infer: sequence_example,
        lowering: Lowering::HostKernel(HostReason::Text),
        ..OpDef::PURE
    },
    OpDef {
        name: "ParseSequenceExampleV2",
        summary: "Reads features and lists of features of `tf.SequenceExample`s.",
        inputs: &[
            arg_of("serialized", DType::String),
            arg_of("debug_name", DType::String),
            arg_of("context_sparse_keys", DType::String),
            arg_of("context_dense_keys", DType::String),
            arg_of("context_ragged_keys", DType::String),
            arg_of("feature_list_sparse_keys", DType::String),
            arg_of("feature_list_dense_keys", DType::String),
            arg_of("feature_list_ragged_keys", DType::String),
            arg_of("feature_list_dense_missing_assumed_empty", DType::Bool),
            args_list("context_dense_defaults", "Tcontext_dense"),
        ],
        outputs: &[
            args_of("context_sparse_indices", "Ncontext_sparse", DType::I64),
            args_list("context_sparse_values", "context_sparse_types"),
            args_of("context_sparse_shapes", "Ncontext_sparse", DType::I64),
            args_list("context_dense_values", "Tcontext_dense"),
            args_list("context_ragged_values", "context_ragged_value_types"),
            args_list("context_ragged_row_splits", "context_ragged_split_types"),
            args_of("feature_list_sparse_indices", "Nfeature_list_sparse", DType::I64),
            args_list("feature_list_sparse_values", "feature_list_sparse_types"),
            args_of("feature_list_sparse_shapes", "Nfeature_list_sparse", DType::I64),
            args_list("feature_list_dense_values", "feature_list_dense_types"),
            args_of("feature_list_dense_lengths", "Nfeature_list_dense", DType::I64),
            args_list("feature_list_ragged_values", "feature_list_ragged_value_types"),
            args_list("feature_list_ragged_outer_splits", "feature_list_ragged_split_types"),
            args_list("feature_list_ragged_inner_splits", "feature_list_ragged_split_types"),
        ],
        attrs: &[
            int_or("Ncontext_sparse", 0).at_least(0),
            types_in("Tcontext_dense", FEATURES).or(AttrDefault::Types(&[])).at_least(0),
            types_in("context_sparse_types", FEATURES).or(AttrDefault::Types(&[])).at_least(0),
            types_in("context_ragged_value_types", FEATURES)
                .or(AttrDefault::Types(&[]))
                .at_least(0),
            types_in("context_ragged_split_types", INDEX).or(AttrDefault::Types(&[])).at_least(0),
            shapes("context_dense_shapes").or(AttrDefault::Shapes).at_least(0),
            int_or("Nfeature_list_sparse", 0).at_least(0),
            int_or("Nfeature_list_dense", 0).at_least(0),
            types_in("feature_list_dense_types", FEATURES).or(AttrDefault::Types(&[])).at_least(0),
            types_in("feature_list_sparse_types", FEATURES).or(AttrDefault::Types(&[])).at_least(0),
            types_in("feature_list_ragged_value_types", FEATURES)
                .or(AttrDefault::Types(&[]))
                .at_least(0),
            types_in("feature_list_ragged_split_types", INDEX)
                .or(AttrDefault::Types(&[]))
                .at_least(0),
            shapes("feature_list_dense_shapes").or(AttrDefault::Shapes).at_least(0),
        ],
        same_length: &[
            &["Ncontext_sparse", "context_sparse_types"],
            &["Tcontext_dense", "context_dense_shapes"],
            &["context_ragged_value_types", "context_ragged_split_types"],
            &["Nfeature_list_sparse", "feature_list_sparse_types"],
            &["Nfeature_list_dense", "feature_list_dense_types", "feature_list_dense_shapes"],
            &["feature_list_ragged_value_types", "feature_list_ragged_split_types"],
        ],
        infer: sequence_example,
        lowering: Lowering::HostKernel(HostReason::Text),
        ..OpDef::PURE
    },
    OpDef {
        name: "ParseSingleExample",
        summary: "Reads features of one `tf.Example`.",
        inputs: &[arg_of("serialized", DType::String), args_list("dense_defaults", "Tdense")],
        outputs: &[
            args_of("sparse_indices", "num_sparse", DType::I64),
            args_list("sparse_values", "sparse_types"),
            args_of("sparse_shapes", "num_sparse", DType::I64),
            args_list("dense_values", "Tdense"),
        ],
        attrs: &[
            int("num_sparse").at_least(0),
            strings("sparse_keys").at_least(0),
            strings("dense_keys").at_least(0),
            types_in("sparse_types", FEATURES).at_least(0),
            types_in("Tdense", FEATURES).at_least(0),
            shapes("dense_shapes").at_least(0),
        ],
        same_length: &[
            &["num_sparse", "sparse_keys", "sparse_types"],
            &["dense_keys", "Tdense", "dense_shapes"],
        ],
        infer: single_example,
        lowering: Lowering::HostKernel(HostReason::Text),
        ..OpDef::PURE
    },
    OpDef {
        name: "ParseSingleSequenceExample",
        summary: "Reads features and lists of features of one `tf.SequenceExample`.",
        inputs: &[
            arg_of("serialized", DType::String),
            arg_of("feature_list_dense_missing_assumed_empty", DType::String),
            args_of("context_sparse_keys", "Ncontext_sparse", DType::String),
            args_of("context_dense_keys", "Ncontext_dense", DType::String),
            args_of("feature_list_sparse_keys", "Nfeature_list_sparse", DType::String),
            args_of("feature_list_dense_keys", "Nfeature_list_dense", DType::String),
            args_list("context_dense_defaults", "Tcontext_dense"),
            arg_of("debug_name", DType::String),
        ],
        outputs: &[
            args_of("context_sparse_indices", "Ncontext_sparse", DType::I64),
            args_list("context_sparse_values", "context_sparse_types"),
            args_of("context_sparse_shapes", "Ncontext_sparse", DType::I64),
            args_list("context_dense_values", "Tcontext_dense"),
            args_of("feature_list_sparse_indices", "Nfeature_list_sparse", DType::I64),
            args_list("feature_list_sparse_values", "feature_list_sparse_types"),
            args_of("feature_list_sparse_shapes", "Nfeature_list_sparse", DType::I64),
            args_list("feature_list_dense_values", "feature_list_dense_types"),
        ],
        attrs: &[
            int_or("Ncontext_sparse", 0).at_least(0),
            int_or("Ncontext_dense", 0).at_least(0),
            int_or("Nfeature_list_sparse", 0).at_least(0),
            int_or("Nfeature_list_dense", 0).at_least(0),
            types_in("context_sparse_types", FEATURES).or(AttrDefault::Types(&[])).at_least(0),
            types_in("Tcontext_dense", FEATURES).or(AttrDefault::Types(&[])).at_least(0),
            types_in("feature_list_dense_types", FEATURES).or(AttrDefault::Types(&[])).at_least(0),
            shapes("context_dense_shapes").or(AttrDefault::Shapes).at_least(0),
            types_in("feature_list_sparse_types", FEATURES).or(AttrDefault::Types(&[])).at_least(0),
            shapes("feature_list_dense_shapes").or(AttrDefault::Shapes).at_least(0),
        ],
        same_length: &[
            &["Ncontext_sparse", "context_sparse_types"],
            &["Ncontext_dense", "Tcontext_dense", "context_dense_shapes"],
            &["Nfeature_list_sparse", "feature_list_sparse_types"],
            &["Nfeature_list_dense", "feature_list_dense_types", "feature_list_dense_shapes"],
        ],
        infer: single_sequence_example,
        lowering: Lowering::HostKernel(HostReason::Text),
        ..OpDef::PURE
    },
    OpDef {
        name: "ParseTensor",
        summary: "Reads a tensor from its message.",
        inputs: &[arg_of("serialized", DType::String)],
        outputs: &[arg("output", "out_type")],
        attrs: &[any_ty("out_type")],
        infer: parse_tensor,
        lowering: Lowering::HostKernel(HostReason::Text),
        ..OpDef::PURE
    },
    OpDef {
        name: "SerializeTensor",
        summary: "Writes a tensor as a message.",
        inputs: &[arg("tensor", "T")],
        outputs: &[arg_of("serialized", DType::String)],
        attrs: &[any_ty("T")],
        infer: infer::scalar,
        lowering: Lowering::HostKernel(HostReason::Text),
        ..OpDef::PURE
    },
];

fn csv(context: &mut OpContext<'_>) -> Result<()> {
    if context.attrs.bytes("field_delim")?.len() != 1 {
        let found = context.attrs.string("field_delim")?;
        return Err(context.wrong_attr("field_delim", "one character", found));
    }
    let columns = context.attrs.ints("select_cols")?;
    if !columns.is_sorted_by(|a, b| a < b) || columns.first().is_some_and(|&first| first < 0) {
        let found = format!("{columns:?}");
        return Err(context.wrong_attr("select_cols", "rising columns", found));
    }
    let n = context.n_outputs();
    if !columns.is_empty() && columns.len() != n {
        return Err(context.wrong_attr("select_cols", format!("{n} columns"), columns.len()));
    }
    for index in 1..context.n_inputs() {
        let default = context.shape(index);
        let too_many = default.known().is_some_and(|shape| shape.num_elements() > 1);
        if too_many || default.rank().is_some_and(|rank| rank > 1) {
            return Err(context.wrong(index, "one default, or none", default));
        }
    }
    context.set_all(context.shape(0));
    Ok(())
}

/// The strings' shape and a last dimension of this size.
fn with_last(context: &mut OpContext<'_>, last: Dim) {
    if let Some(dims) = context.shape(0).dims() {
        context.set(0, PartialShape::ranked(dims.iter().copied().chain([last])));
    }
}

fn decode_raw(context: &mut OpContext<'_>) -> Result<()> {
    with_last(context, None);
    Ok(())
}

fn decode_padded_raw(context: &mut OpContext<'_>) -> Result<()> {
    let size = context.output_dtype(0).size().unwrap_or(1);
    let last = match context.int(1)? {
        None => None,
        Some(length) => match usize::try_from(length) {
            Ok(bytes) if bytes > 0 && bytes % size == 0 => Some(bytes / size),
            _ => return Err(context.wrong(1, format!("a positive multiple of {size}"), length)),
        },
    };
    with_last(context, last);
    Ok(())
}

fn parse_tensor(context: &mut OpContext<'_>) -> Result<()> {
    context.check_rank(0, 0)
}

/// Outputs of the parts of examples, each of which has a position of its own.
struct Outputs(usize);

impl Outputs {
    fn take(&mut self, n: usize) -> std::ops::Range<usize> {
        self.0 += n;
        self.0 - n..self.0
    }
}

/// Sets three arguments to sparse tensors of this rank.
fn set_sparse(context: &mut OpContext<'_>, outputs: &mut Outputs, n: usize, rank: usize) {
    for index in outputs.take(n) {
        context.set(index, PartialShape::ranked([None, Some(rank)]));
    }
    for index in outputs.take(n) {
        context.set(index, PartialShape::vector(None));
    }
    for index in outputs.take(n) {
        context.set(index, PartialShape::vector(Some(rank)));
    }
}

/// Sets an argument to dense tensors: `outer` dimensions, then the shapes in an attribute.
fn set_dense(
    context: &mut OpContext<'_>,
    outputs: &mut Outputs,
    outer: &[Dim],
    shapes: &'static str,
    n: usize,
) -> Result<()> {
    let shapes = context.attrs.shapes(shapes)?;
    if shapes.len() != n {
        let found = shapes.len();
        return Err(context.wrong_attr("dense_shapes", format!("{n} shapes"), found));
    }
    for (index, shape) in outputs.take(n).zip(shapes) {
        if let Some(dims) = shape.dims() {
            context.set(index, PartialShape::ranked(outer.iter().chain(dims).copied()));
        }
    }
    Ok(())
}

/// The dimension of the examples, none for a single one; `None` if that is not known.
fn examples(context: &OpContext<'_>) -> Result<Option<Vec<Dim>>> {
    let shape = context.shape(0);
    match shape.dims() {
        None => Ok(None),
        Some(dims) if dims.len() < 2 => Ok(Some(dims.to_vec())),
        Some(_) => Err(context.wrong(0, "a scalar or a vector", shape)),
    }
}

fn example(context: &mut OpContext<'_>) -> Result<()> {
    context.check_rank(0, 1)?;
    parts_of_examples(context)
}

fn example_v2(context: &mut OpContext<'_>) -> Result<()> {
    for index in 2..5 {
        context.check_rank(index, 1)?;
    }
    if context.attrs.size("num_sparse")? != context.attrs.types("sparse_types")?.len() {
        let found = context.attrs.int("num_sparse")?;
        return Err(context.wrong_attr("num_sparse", "the number of sparse types", found));
    }
    parts_of_examples(context)
}

fn single_example(context: &mut OpContext<'_>) -> Result<()> {
    context.check_rank(0, 0)?;
    parts_of_examples(context)
}

fn parts_of_examples(context: &mut OpContext<'_>) -> Result<()> {
    let Some(outer) = examples(context)? else { return Ok(()) };
    let n_sparse = context.attrs.types("sparse_types")?.len();
    let n_dense = context.attrs.types("Tdense")?.len();
    let mut outputs = Outputs(0);
    set_sparse(context, &mut outputs, n_sparse, outer.len() + 1);
    set_dense(context, &mut outputs, &outer, "dense_shapes", n_dense)?;
    let n_ragged = (context.n_outputs() - outputs.0) / 2;
    set_ragged(context, &mut outputs, n_ragged);
    let splits = outer.first().map_or(Some(0), |n| n.map(|n| n + 1));
    for index in outputs.take(n_ragged) {
        context.set(index, PartialShape::vector(splits));
    }
    Ok(())
}

fn set_ragged(context: &mut OpContext<'_>, outputs: &mut Outputs, n: usize) {
    for index in outputs.take(n) {
        context.set(index, PartialShape::vector(None));
    }
}

fn single_sequence_example(context: &mut OpContext<'_>) -> Result<()> {
    context.check_rank(0, 0)?;
    sequence_example(context)
}

fn sequence_example(context: &mut OpContext<'_>) -> Result<()> {
    let Some(outer) = examples(context)? else { return Ok(()) };
    let count = |name: &str| match context.op.attr(name) {
        Some(_) => Ok(context.attrs.types(name)?.len()),
        None => Ok(0),
    };
    let n_context_sparse = count("context_sparse_types")?;
    let n_context_dense = count("Tcontext_dense")?;
    let n_context_ragged = count("context_ragged_value_types")?;
    let n_sparse = count("feature_list_sparse_types")?;
    let n_dense = count("feature_list_dense_types")?;
    let n_ragged = count("feature_list_ragged_value_types")?;
    let splits = match outer.first() {
        None => PartialShape::scalar(),
        Some(n) => PartialShape::vector(n.map(|n| n + 1)),
    };
    let mut outputs = Outputs(0);
    set_sparse(context, &mut outputs, n_context_sparse, outer.len() + 1);
    set_dense(context, &mut outputs, &outer, "context_dense_shapes", n_context_dense)?;
    set_ragged(context, &mut outputs, n_context_ragged);
    for index in outputs.take(n_context_ragged) {
        context.set(index, splits.clone());
    }
    set_sparse(context, &mut outputs, n_sparse, outer.len() + 2);
    let steps: Vec<Dim> = outer.iter().copied().chain([None]).collect();
    set_dense(context, &mut outputs, &steps, "feature_list_dense_shapes", n_dense)?;
    if context.op.outputs.iter().any(|output| output.name == "feature_list_dense_lengths") {
        for index in outputs.take(n_dense) {
            context.set(index, PartialShape::ranked(outer.iter().copied()));
        }
    }
    set_ragged(context, &mut outputs, n_ragged);
    for index in outputs.take(n_ragged) {
        context.set(index, splits.clone());
    }
    set_ragged(context, &mut outputs, n_ragged);
    Ok(())
}
