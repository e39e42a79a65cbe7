//! Maps from tensors to tensors: values of dtype variant.

use crate::{dtype::DType, infer, op::*};

/// An op on a map that returns a map.
const UPDATE: OpDef = OpDef {
    outputs: &[arg_of("output_handle", DType::Variant)],
    attrs: &[any_ty("key_dtype"), any_ty("value_dtype")],
    infer: infer::scalar,
    lowering: Lowering::Runtime,
    ..OpDef::PURE
};

pub(super) static OPS: &[OpDef] = &[
    OpDef {
        name: "EmptyTensorMap",
        summary: "Makes a map without entries.",
        outputs: &[arg_of("handle", DType::Variant)],
        attrs: &[],
        ..UPDATE
    },
    OpDef {
        name: "TensorMapErase",
        summary: "Takes an entry out of a map.",
        inputs: &[arg_of("input_handle", DType::Variant), arg("key", "key_dtype")],
        ..UPDATE
    },
    OpDef {
        name: "TensorMapHasKey",
        summary: "Tells whether a map has an entry of a key.",
        inputs: &[arg_of("input_handle", DType::Variant), arg("key", "key_dtype")],
        outputs: &[arg_of("has_key", DType::Bool)],
        attrs: &[any_ty("key_dtype")],
        ..UPDATE
    },
    OpDef {
        name: "TensorMapInsert",
        summary: "Adds an entry to a map, or replaces its value.",
        inputs: &[
            arg_of("input_handle", DType::Variant),
            arg("key", "key_dtype"),
            arg("value", "value_dtype"),
        ],
        ..UPDATE
    },
    OpDef {
        name: "TensorMapLookup",
        summary: "Gives the value of a key in a map.",
        inputs: &[arg_of("input_handle", DType::Variant), arg("key", "key_dtype")],
        outputs: &[arg("value", "value_dtype")],
        infer: infer::unknown,
        ..UPDATE
    },
    OpDef {
        name: "TensorMapSize",
        summary: "Gives the number of entries of a map.",
        inputs: &[arg_of("input_handle", DType::Variant)],
        outputs: &[arg_of("size", DType::I32)],
        attrs: &[],
        ..UPDATE
    },
    OpDef {
        name: "TensorMapStackKeys",
        summary: "Stacks the keys of a map.",
        inputs: &[arg_of("input_handle", DType::Variant)],
        outputs: &[arg("keys", "key_dtype")],
        attrs: &[any_ty("key_dtype")],
        infer: infer::unknown,
        ..UPDATE
    },
];
