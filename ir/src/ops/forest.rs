//! Decision forests: the ops of TensorFlow Decision Forests that load models of Yggdrasil and run them.
//!
//! Source: `op.cc` of TensorFlow Decision Forests.

use crate::{dtype::DType, error::Result, infer::OpContext, op::*, shape::PartialShape};

const MODEL: ArgDef = arg_of("model_handle", DType::Resource);

const FEATURES: [ArgDef; 6] = [
    arg_of("numerical_features", DType::F32),
    arg_of("boolean_features", DType::F32),
    arg_of("categorical_int_features", DType::I32),
    arg_of("categorical_set_int_features_values", DType::I32),
    arg_of("categorical_set_int_features_row_splits_dim_1", DType::I64),
    arg_of("categorical_set_int_features_row_splits_dim_2", DType::I64),
];

const FEATURES_OF_HANDLE: &[ArgDef] =
    &[FEATURES[0], FEATURES[1], FEATURES[2], FEATURES[3], FEATURES[4], FEATURES[5], MODEL];

const PREDICTIONS: &[ArgDef] =
    &[arg_of("dense_predictions", DType::F32), arg_of("dense_col_representation", DType::String)];

const WIDTH: AttrDef = int("dense_output_dim").at_least(1);

pub(super) static OPS: &[OpDef] = &[
    OpDef {
        name: "SimpleMLCreateModelResource",
        summary: "Makes a decision forest that is to be loaded, or finds it by name.",
        outputs: &[MODEL],
        attrs: &[string_or("container", ""), string_or("shared_name", "")],
        infer: crate::infer::scalar,
        lowering: Lowering::Runtime,
        ..OpDef::STATEFUL
    },
    OpDef {
        name: "SimpleMLInferenceLeafIndexOpWithHandle",
        summary: "Numbers of the leaves that examples reach in each tree of a decision forest.",
        inputs: FEATURES_OF_HANDLE,
        outputs: &[arg_of("leaves", DType::I32)],
        infer: |context| {
            let examples = examples(context)?;
            context.set(0, PartialShape::ranked([examples, None]));
            Ok(())
        },
        lowering: Lowering::Runtime,
        ..OpDef::READS
    },
    OpDef {
        name: "SimpleMLInferenceOp",
        summary: "Predictions of a decision forest for examples. The forest has a name.",
        inputs: &FEATURES,
        outputs: PREDICTIONS,
        attrs: &[string("model_identifier"), WIDTH],
        infer: predictions,
        lowering: Lowering::Runtime,
        ..OpDef::STATEFUL
    },
    OpDef {
        name: "SimpleMLInferenceOpWithHandle",
        summary: "Predictions of a decision forest for examples.",
        inputs: FEATURES_OF_HANDLE,
        outputs: PREDICTIONS,
        attrs: &[WIDTH],
        infer: predictions,
        lowering: Lowering::Runtime,
        ..OpDef::READS
    },
    OpDef {
        name: "SimpleMLLoadModelFromPath",
        summary: "Loads a decision forest under a name, unless there is one of that name.",
        inputs: &[arg_of("path", DType::String)],
        attrs: &[string("model_identifier")],
        lowering: Lowering::Runtime,
        outside: Some(OutsideAccess::ReadsFiles),
        ..OpDef::STATEFUL
    },
    OpDef {
        name: "SimpleMLLoadModelFromPathWithHandle",
        summary: "Loads a decision forest.",
        inputs: &[MODEL, arg_of("path", DType::String)],
        attrs: &[
            strings("output_types").or(AttrDefault::Strings(&[])),
            string_or("file_prefix", ""),
            flag("allow_slow_inference", true),
        ],
        lowering: Lowering::Runtime,
        outside: Some(OutsideAccess::ReadsFiles),
        ..OpDef::STATEFUL
    },
];

/// Number of examples: the rows of the features that have any.
fn examples(context: &mut OpContext<'_>) -> Result<Option<usize>> {
    (0..3).try_for_each(|input| context.check_rank(input, 2))?;
    (3..6).try_for_each(|input| context.check_rank(input, 1))?;
    // The splits have one element more than there are examples.
    let known = [(0, 0), (1, 0), (2, 0), (5, 1)].into_iter().filter_map(|(input, more)| {
        let rows = context.shape(input).dim(0)?.saturating_sub(more);
        (rows > 0).then_some(rows)
    });
    Ok(known.max())
}

fn predictions(context: &mut OpContext<'_>) -> Result<()> {
    let examples = examples(context)?;
    let width = context.attrs.int("dense_output_dim")? as usize;
    context.set(0, PartialShape::ranked([examples, Some(width)]));
    context.set(1, PartialShape::ranked([Some(width)]));
    Ok(())
}
