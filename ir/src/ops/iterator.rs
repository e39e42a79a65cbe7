//! The use of data sets: iterators, reductions, numbers of elements.

use super::dataset::{ELEMENTS, SIGNATURE};
use crate::{dtype::DType, gradient::Gradient, infer, op::*};

/// A file of the strings of a data set.
const TO_RECORDS: OpDef = OpDef {
    summary: "Writes the strings of a data set to a file of records.",
    inputs: &[
        arg_of("input_dataset", DType::Variant),
        arg_of("filename", DType::String),
        arg_of("compression_type", DType::String),
    ],
    lowering: Lowering::Runtime,
    ..OpDef::STATEFUL
};

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
        gradient: Gradient::Zero,
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
        gradient: Gradient::Zero,
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
        gradient: Gradient::Zero,
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
        gradient: Gradient::Zero,
        ..OpDef::STATEFUL
    },
    OpDef {
        name: "AnonymousMultiDeviceIterator",
        summary: "Makes an iterator whose elements go to several devices in turn.",
        outputs: &[arg_of("handle", DType::Resource), arg_of("deleter", DType::Variant)],
        attrs: &[
            strings("devices").at_least(1),
            types("output_types").at_least(1),
            shapes("output_shapes").at_least(1),
        ],
        infer: infer::scalar,
        lowering: Lowering::Runtime,
        ..OpDef::STATEFUL
    },
    OpDef {
        name: "AnonymousMultiDeviceIteratorV3",
        summary: "Makes an iterator whose elements go to several devices in turn.",
        outputs: &[arg_of("handle", DType::Resource)],
        attrs: &[
            strings("devices").at_least(1),
            types("output_types").at_least(1),
            shapes("output_shapes").at_least(1),
        ],
        infer: infer::scalar,
        lowering: Lowering::Runtime,
        ..OpDef::STATEFUL
    },
    OpDef {
        name: "CompressElement",
        summary: "Makes one value of the components of an element.",
        inputs: &[args_list("components", "input_types")],
        outputs: &[arg_of("compressed", DType::Variant)],
        attrs: &[types("input_types").at_least(1)],
        infer: infer::scalar,
        lowering: Lowering::Runtime,
        ..OpDef::PURE
    },
    OpDef {
        name: "ComputeBatchSize",
        summary: "Gives the number of rows of elements, -1 if it is not known.",
        inputs: &[arg_of("input_dataset", DType::Variant)],
        outputs: &[arg_of("batch_size", DType::I64)],
        infer: infer::scalar,
        lowering: Lowering::Runtime,
        ..OpDef::PURE
    },
    OpDef {
        name: "DeleteMultiDeviceIterator",
        summary: "Lets go of an iterator.",
        inputs: &[
            arg_of("multi_device_iterator", DType::Resource),
            args_of("iterators", "N", DType::Resource),
            arg_of("deleter", DType::Variant),
        ],
        attrs: &[int("N").at_least(0)],
        lowering: Lowering::Runtime,
        ..OpDef::STATEFUL
    },
    OpDef {
        name: "DeserializeIterator",
        summary: "Lets an iterator go on from a state.",
        inputs: &[arg_of("resource_handle", DType::Resource), arg_of("serialized", DType::Variant)],
        lowering: Lowering::Runtime,
        ..OpDef::STATEFUL
    },
    OpDef {
        name: "ExperimentalIteratorGetDevice",
        summary: "Gives the name of the device of an iterator.",
        inputs: &[arg_of("resource", DType::Resource)],
        outputs: &[arg_of("device", DType::String)],
        infer: infer::scalar,
        lowering: Lowering::Runtime,
        ..OpDef::STATEFUL
    },
    OpDef {
        name: "ExperimentalStatsAggregatorHandle",
        summary: "Stands for a collection of statistics.",
        outputs: &[arg_of("handle", DType::Resource)],
        attrs: &[string_or("container", ""), string_or("shared_name", "")],
        infer: infer::scalar,
        lowering: Lowering::Runtime,
        ..OpDef::STATEFUL
    },
    OpDef {
        name: "ExperimentalThreadPoolHandle",
        summary: "Stands for threads of data sets.",
        outputs: &[arg_of("handle", DType::Resource)],
        attrs: &[
            int("num_threads"),
            int_or("max_intra_op_parallelism", 1),
            string("display_name"),
            string_or("container", ""),
            string_or("shared_name", ""),
        ],
        infer: infer::scalar,
        lowering: Lowering::Runtime,
        ..OpDef::STATEFUL
    },
    OpDef {
        name: "IteratorFromStringHandle",
        summary: "Gives the iterator that a string stands for.",
        inputs: &[arg_of("string_handle", DType::String)],
        outputs: &[arg_of("resource_handle", DType::Resource)],
        attrs: &[
            types("output_types").or(AttrDefault::Types(&[])).at_least(0),
            shapes("output_shapes").or(AttrDefault::Shapes).at_least(0),
        ],
        infer: infer::scalar,
        lowering: Lowering::Runtime,
        ..OpDef::STATEFUL
    },
    OpDef {
        name: "IteratorFromStringHandleV2",
        summary: "Gives the iterator that a string stands for.",
        inputs: &[arg_of("string_handle", DType::String)],
        outputs: &[arg_of("resource_handle", DType::Resource)],
        attrs: &[
            types("output_types").or(AttrDefault::Types(&[])).at_least(0),
            shapes("output_shapes").or(AttrDefault::Shapes).at_least(0),
        ],
        infer: infer::scalar,
        lowering: Lowering::Runtime,
        ..OpDef::STATEFUL
    },
    OpDef {
        name: "IteratorGetDevice",
        summary: "Gives the name of the device of an iterator.",
        inputs: &[arg_of("resource", DType::Resource)],
        outputs: &[arg_of("device", DType::String)],
        infer: infer::scalar,
        lowering: Lowering::Runtime,
        ..OpDef::STATEFUL
    },
    OpDef {
        name: "IteratorToStringHandle",
        summary: "Gives a string that stands for an iterator.",
        inputs: &[arg_of("resource_handle", DType::Resource)],
        outputs: &[arg_of("string_handle", DType::String)],
        infer: infer::scalar,
        lowering: Lowering::Runtime,
        ..OpDef::STATEFUL
    },
    OpDef {
        name: "MultiDeviceIterator",
        summary: "Makes an iterator whose elements go to several devices in turn, or finds it by name.",
        outputs: &[arg_of("handle", DType::Resource)],
        attrs: &[
            strings("devices").at_least(1),
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
        name: "MultiDeviceIteratorFromStringHandle",
        summary: "Gives the iterator that a string stands for.",
        inputs: &[arg_of("string_handle", DType::String)],
        outputs: &[arg_of("multi_device_iterator", DType::Resource)],
        attrs: &[
            types("output_types").or(AttrDefault::Types(&[])).at_least(0),
            shapes("output_shapes").or(AttrDefault::Shapes).at_least(0),
        ],
        infer: infer::scalar,
        lowering: Lowering::Runtime,
        ..OpDef::STATEFUL
    },
    OpDef {
        name: "MultiDeviceIteratorGetNextFromShard",
        summary: "Gives the next element for a device.",
        inputs: &[
            arg_of("multi_device_iterator", DType::Resource),
            arg_of("shard_num", DType::I32),
            arg_of("incarnation_id", DType::I64),
        ],
        outputs: &[args_list("components", "output_types")],
        attrs: SIGNATURE,
        infer: super::optional::components,
        lowering: Lowering::Runtime,
        ..OpDef::STATEFUL
    },
    OpDef {
        name: "MultiDeviceIteratorInit",
        summary: "Lets an iterator of several devices begin with a data set.",
        inputs: &[
            arg_of("dataset", DType::Variant),
            arg_of("multi_device_iterator", DType::Resource),
            arg_of("max_buffer_size", DType::I64),
        ],
        outputs: &[arg_of("incarnation_id", DType::I64)],
        infer: infer::scalar,
        lowering: Lowering::Runtime,
        ..OpDef::STATEFUL
    },
    OpDef {
        name: "MultiDeviceIteratorToStringHandle",
        summary: "Gives a string that stands for an iterator.",
        inputs: &[arg_of("multi_device_iterator", DType::Resource)],
        outputs: &[arg_of("string_handle", DType::String)],
        infer: infer::scalar,
        lowering: Lowering::Runtime,
        ..OpDef::STATEFUL
    },
    OpDef {
        name: "SerializeIterator",
        summary: "Gives the state of an iterator.",
        inputs: &[arg_of("resource_handle", DType::Resource)],
        outputs: &[arg_of("serialized", DType::Variant)],
        attrs: &[int_or("external_state_policy", 0)],
        infer: infer::unknown,
        lowering: Lowering::Runtime,
        ..OpDef::STATEFUL
    },
    OpDef {
        name: "StatsAggregatorHandle",
        summary: "Stands for a collection of statistics.",
        outputs: &[arg_of("handle", DType::Resource)],
        attrs: &[string_or("container", ""), string_or("shared_name", "")],
        infer: infer::scalar,
        lowering: Lowering::Runtime,
        ..OpDef::STATEFUL
    },
    OpDef {
        name: "StatsAggregatorHandleV2",
        summary: "Stands for a collection of statistics.",
        outputs: &[arg_of("handle", DType::Resource)],
        attrs: &[string_or("container", ""), string_or("shared_name", "")],
        infer: infer::scalar,
        lowering: Lowering::Runtime,
        ..OpDef::STATEFUL
    },
    OpDef {
        name: "ThreadPoolHandle",
        summary: "Stands for threads of data sets.",
        outputs: &[arg_of("handle", DType::Resource)],
        attrs: &[
            int("num_threads"),
            int_or("max_intra_op_parallelism", 1),
            string("display_name"),
            string_or("container", ""),
            string_or("shared_name", ""),
        ],
        infer: infer::scalar,
        lowering: Lowering::Runtime,
        ..OpDef::STATEFUL
    },
    OpDef {
        name: "UncompressElement",
        summary: "Gives the components of an element that are one value.",
        inputs: &[arg_of("compressed", DType::Variant)],
        outputs: &[args_list("components", "output_types")],
        attrs: SIGNATURE,
        infer: infer::unknown,
        lowering: Lowering::Runtime,
        ..OpDef::PURE
    },
    OpDef { name: "DatasetToTFRecord", ..TO_RECORDS },
    OpDef { name: "ExperimentalDatasetToTFRecord", ..TO_RECORDS },
];
