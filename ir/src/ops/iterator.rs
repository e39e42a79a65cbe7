//! The use of data sets: iterators, reductions, numbers of elements.

use super::dataset::{ELEMENTS, SIGNATURE};
use crate::{dtype::DType, infer, op::*};

pub(super) static OPS: &[OpDef] = &[
    OpDef {
        name: "AnonymousIterator",
        summary: "Makes an iterator.",
        outputs: &[arg_of("handle", DType::Resource)],
        attrs: SIGNATURE,
        infer: infer::scalar,
        lowering: Lowering::Runtime,
        ..OpDef::STATEFUL
    },
    OpDef {
        name: "AnonymousIteratorV2",
        summary: "Makes an iterator.",
        outputs: &[arg_of("handle", DType::Resource), arg_of("deleter", DType::Variant)],
        attrs: SIGNATURE,
        infer: infer::scalar,
        lowering: Lowering::Runtime,
        ..OpDef::STATEFUL
    },
    OpDef {
        name: "AnonymousIteratorV3",
        summary: "Makes an iterator.",
        outputs: &[arg_of("handle", DType::Resource)],
        attrs: SIGNATURE,
        infer: infer::scalar,
        lowering: Lowering::Runtime,
        ..OpDef::STATEFUL
    },
    OpDef {
        name: "AnonymousMemoryCache",
        summary: "Makes a cache of elements.",
        outputs: &[arg_of("handle", DType::Resource), arg_of("deleter", DType::Variant)],
        infer: infer::scalar,
        lowering: Lowering::Runtime,
        ..OpDef::STATEFUL
    },
    OpDef {
        name: "AnonymousRandomSeedGenerator",
        summary: "Makes a generator of seeds.",
        inputs: &[arg_of("seed", DType::I64), arg_of("seed2", DType::I64)],
        outputs: &[arg_of("handle", DType::Resource), arg_of("deleter", DType::Variant)],
        infer: infer::scalar,
        lowering: Lowering::Runtime,
        ..OpDef::STATEFUL
    },
    OpDef {
        name: "AnonymousSeedGenerator",
        summary: "Makes a generator of seeds.",
        inputs: &[
            arg_of("seed", DType::I64),
            arg_of("seed2", DType::I64),
            arg_of("reshuffle", DType::Bool),
        ],
        outputs: &[arg_of("handle", DType::Resource), arg_of("deleter", DType::Variant)],
        infer: infer::scalar,
        lowering: Lowering::Runtime,
        ..OpDef::STATEFUL
    },
    OpDef {
        name: "DatasetCardinality",
        summary: "Gives the number of elements, -1 if there is no end, -2 if it is not known.",
        inputs: &[arg_of("input_dataset", DType::Variant)],
        outputs: &[arg_of("cardinality", DType::I64)],
        attrs: &[string_or("cardinality_options", "")],
        infer: infer::scalar,
        lowering: Lowering::Runtime,
        ..OpDef::PURE
    },
    OpDef {
        name: "DatasetToSingleElement",
        summary: "Gives the only element of a data set.",
        inputs: &[arg_of("dataset", DType::Variant)],
        outputs: &[args_list("components", "output_types")],
        attrs: ELEMENTS,
        infer: super::optional::components,
        lowering: Lowering::Runtime,
        ..OpDef::STATEFUL
    },
    OpDef {
        name: "DeleteIterator",
        summary: "Lets go of an iterator.",
        inputs: &[arg_of("handle", DType::Resource), arg_of("deleter", DType::Variant)],
        lowering: Lowering::Runtime,
        ..OpDef::STATEFUL
    },
    OpDef {
        name: "DeleteMemoryCache",
        summary: "Lets go of a cache.",
        inputs: &[arg_of("handle", DType::Resource), arg_of("deleter", DType::Variant)],
        lowering: Lowering::Runtime,
        ..OpDef::STATEFUL
    },
    OpDef {
        name: "DeleteRandomSeedGenerator",
        summary: "Lets go of a generator of seeds.",
        inputs: &[arg_of("handle", DType::Resource), arg_of("deleter", DType::Variant)],
        lowering: Lowering::Runtime,
        ..OpDef::STATEFUL
    },
    OpDef {
        name: "DeleteSeedGenerator",
        summary: "Lets go of a generator of seeds.",
        inputs: &[arg_of("handle", DType::Resource), arg_of("deleter", DType::Variant)],
        lowering: Lowering::Runtime,
        ..OpDef::STATEFUL
    },
    OpDef {
        name: "ExperimentalDatasetCardinality",
        summary: "Gives the number of elements, -1 if there is no end, -2 if it is not known.",
        inputs: &[arg_of("input_dataset", DType::Variant)],
        outputs: &[arg_of("cardinality", DType::I64)],
        infer: infer::scalar,
        lowering: Lowering::Runtime,
        ..OpDef::PURE
    },
    OpDef {
        name: "GetElementAtIndex",
        summary: "Gives an element of a data set.",
        inputs: &[arg_of("dataset", DType::Variant), arg_of("index", DType::I64)],
        outputs: &[args_list("components", "output_types")],
        attrs: SIGNATURE,
        infer: super::optional::components,
        lowering: Lowering::Runtime,
        ..OpDef::PURE
    },
    OpDef {
        name: "Iterator",
        summary: "Makes an iterator, or finds it by name.",
        outputs: &[arg_of("handle", DType::Resource)],
        attrs: &[
            string("shared_name"),
            string("container"),
            types("output_types").at_least(1),
            shapes("output_shapes").at_least(1),
        ],
        infer: infer::scalar,
        lowering: Lowering::Runtime,
        ..OpDef::STATEFUL
    },
    OpDef {
        name: "OneShotIterator",
        summary: "Makes an iterator over the data set that a function gives, or finds it by name.",
        outputs: &[arg_of("handle", DType::Resource)],
        attrs: &[
            func("dataset_factory"),
            types("output_types").at_least(1),
            shapes("output_shapes").at_least(1),
            string_or("container", ""),
            string_or("shared_name", ""),
        ],
        infer: infer::scalar,
        lowering: Lowering::Runtime,
        ..OpDef::STATEFUL
    },
    OpDef {
        name: "UnwrapDatasetVariant",
        summary: "Gives the data set itself.",
        inputs: &[arg_of("input_handle", DType::Variant)],
        outputs: &[arg_of("output_handle", DType::Variant)],
        infer: infer::scalar,
        lowering: Lowering::Runtime,
        ..OpDef::PURE
    },
    OpDef {
        name: "WrapDatasetVariant",
        summary: "Gives the data set itself.",
        inputs: &[arg_of("input_handle", DType::Variant)],
        outputs: &[arg_of("output_handle", DType::Variant)],
        infer: infer::scalar,
        lowering: Lowering::Runtime,
        ..OpDef::PURE
    },
    OpDef {
        name: "DummyMemoryCache",
        summary: "Stands for no cache.",
        outputs: &[arg_of("handle", DType::Resource)],
        infer: infer::scalar,
        lowering: Lowering::Runtime,
        ..OpDef::PURE
    },
    OpDef {
        name: "DummySeedGenerator",
        summary: "Stands for no generator.",
        outputs: &[arg_of("handle", DType::Resource)],
        infer: infer::scalar,
        lowering: Lowering::Runtime,
        ..OpDef::PURE
    },
    OpDef {
        name: "IteratorGetNext",
        summary: "Gives the next element of an iterator.",
        inputs: &[arg_of("iterator", DType::Resource)],
        outputs: &[args_list("components", "output_types")],
        attrs: SIGNATURE,
        infer: super::optional::components,
        lowering: Lowering::Runtime,
        ..OpDef::STATEFUL
    },
    OpDef {
        name: "IteratorGetNextAsOptional",
        summary: "Gives the next element of an iterator, or nothing at its end.",
        inputs: &[arg_of("iterator", DType::Resource)],
        outputs: &[arg_of("optional", DType::Variant)],
        attrs: SIGNATURE,
        infer: infer::scalar,
        lowering: Lowering::Runtime,
        ..OpDef::STATEFUL
    },
    OpDef {
        name: "IteratorGetNextSync",
        summary: "Gives the next element of an iterator.",
        inputs: &[arg_of("iterator", DType::Resource)],
        outputs: &[args_list("components", "output_types")],
        attrs: SIGNATURE,
        infer: super::optional::components,
        lowering: Lowering::Runtime,
        ..OpDef::STATEFUL
    },
    OpDef {
        name: "IteratorV2",
        summary: "Makes an iterator, or finds it by name.",
        outputs: &[arg_of("handle", DType::Resource)],
        attrs: &[
            string("shared_name"),
            string("container"),
            types("output_types").at_least(1),
            shapes("output_shapes").at_least(1),
        ],
        infer: infer::scalar,
        lowering: Lowering::Runtime,
        ..OpDef::STATEFUL
    },
    OpDef {
        name: "MakeIterator",
        summary: "Lets an iterator begin with a data set.",
        inputs: &[arg_of("dataset", DType::Variant), arg_of("iterator", DType::Resource)],
        lowering: Lowering::Runtime,
        ..OpDef::STATEFUL
    },
    OpDef {
        name: "ReduceDataset",
        summary: "Calls a function on a state and every element; gives the last state.",
        inputs: &[
            arg_of("input_dataset", DType::Variant),
            args_list("initial_state", "Tstate"),
            args_list("other_arguments", "Targuments"),
        ],
        outputs: &[args_list("components", "output_types")],
        attrs: &[
            func("f"),
            types("Tstate").at_least(1),
            types("Targuments").at_least(0),
            types("output_types").at_least(1),
            shapes("output_shapes").at_least(1),
            flag("use_inter_op_parallelism", true),
            string_or("metadata", ""),
        ],
        infer: super::optional::components,
        lowering: Lowering::Runtime,
        ..OpDef::STATEFUL
    },
];
