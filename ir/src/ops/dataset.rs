//! Data sets: descriptions of sequences of elements, behind handles of dtype variant.

use crate::{dtype::DType, infer, op::*};

/// The dtypes and shapes of an element's components.
pub(super) const SIGNATURE: &[AttrDef] =
    &[types("output_types").at_least(1), shapes("output_shapes").at_least(1)];

/// The dtypes and shapes of an element's components, and a description of the data set.
pub(super) const ELEMENTS: &[AttrDef] = &[
    types("output_types").at_least(1),
    shapes("output_shapes").at_least(1),
    string_or("metadata", ""),
];

/// An op whose one result is the handle of a data set.
pub(super) const DATASET: OpDef = OpDef {
    outputs: &[arg_of("handle", DType::Variant)],
    infer: infer::scalar,
    lowering: Lowering::Runtime,
    ..OpDef::PURE
};

/// A data set that depends on state, or has effects.
pub(super) const STATEFUL_DATASET: OpDef = OpDef { effect: Effect::Stateful, ..DATASET };

/// The elements of one worker of several.
pub(super) const AUTO_SHARD: OpDef = OpDef {
    summary: "Has the elements of one worker of several.",
    inputs: &[
        arg_of("input_dataset", DType::Variant),
        arg_of("num_workers", DType::I64),
        arg_of("index", DType::I64),
    ],
    ..DATASET
};

/// The rows of files of text in columns.
pub(super) const CSV: OpDef = OpDef {
    summary: "Makes a data set of the rows of files of text in columns.",
    inputs: &[
        arg_of("filenames", DType::String),
        arg_of("compression_type", DType::String),
        arg_of("buffer_size", DType::I64),
        arg_of("header", DType::Bool),
        arg_of("field_delim", DType::String),
        arg_of("use_quote_delim", DType::Bool),
        arg_of("na_value", DType::String),
        arg_of("select_cols", DType::I64),
        args_list("record_defaults", "output_types"),
    ],
    attrs: &[types_in("output_types", CSV_TYPES).at_least(1), shapes("output_shapes").at_least(1)],
    ..STATEFUL_DATASET
};

const CSV_TYPES: &[DType] = &[DType::F32, DType::F64, DType::I32, DType::I64, DType::String];

/// Batches in parts for replicas.
pub(super) const REBATCH: OpDef = OpDef {
    summary: "Has batches in as many parts as there are replicas.",
    inputs: &[arg_of("input_dataset", DType::Variant), arg_of("num_replicas", DType::I64)],
    attrs: &[
        types("output_types").at_least(1),
        shapes("output_shapes").at_least(1),
        flag("use_fallback", true),
    ],
    ..DATASET
};

/// Elements whose statistics TensorFlow collects.
pub(super) const SET_STATS: OpDef = OpDef {
    summary: "Has the elements of its input.",
    inputs: &[
        arg_of("input_dataset", DType::Variant),
        arg_of("stats_aggregator", DType::Resource),
        arg_of("tag", DType::String),
        arg_of("counter_prefix", DType::String),
    ],
    attrs: SIGNATURE,
    ..STATEFUL_DATASET
};

pub(super) static OPS: &[OpDef] = &[
    OpDef {
        name: "AssertCardinalityDataset",
        summary: "Fails unless its input has this number of elements.",
        inputs: &[arg_of("input_dataset", DType::Variant), arg_of("cardinality", DType::I64)],
        attrs: SIGNATURE,
        ..DATASET
    },
    OpDef {
        name: "AutoShardDataset",
        summary: "Has the elements of one worker of several.",
        attrs: &[
            int_or("auto_shard_policy", 0),
            types("output_types").at_least(1),
            shapes("output_shapes").at_least(1),
            int_or("num_replicas", 0),
        ],
        ..AUTO_SHARD
    },
    OpDef {
        name: "BatchDataset",
        summary: "Stacks a number of elements at a time.",
        inputs: &[arg_of("input_dataset", DType::Variant), arg_of("batch_size", DType::I64)],
        attrs: ELEMENTS,
        ..DATASET
    },
    OpDef {
        name: "BatchDatasetV2",
        summary: "Stacks a number of elements at a time; may drop the rest.",
        inputs: &[
            arg_of("input_dataset", DType::Variant),
            arg_of("batch_size", DType::I64),
            arg_of("drop_remainder", DType::Bool),
        ],
        attrs: &[
            flag("parallel_copy", false),
            types("output_types").at_least(1),
            shapes("output_shapes").at_least(1),
            string_or("metadata", ""),
        ],
        ..DATASET
    },
    OpDef {
        name: "CacheDataset",
        summary: "Keeps the elements of its input when they are there for the first time.",
        inputs: &[arg_of("input_dataset", DType::Variant), arg_of("filename", DType::String)],
        attrs: ELEMENTS,
        outside: Some(OutsideAccess::Writes),
        ..STATEFUL_DATASET
    },
    OpDef {
        name: "CacheDatasetV2",
        summary: "Keeps the elements of its input in a cache.",
        inputs: &[
            arg_of("input_dataset", DType::Variant),
            arg_of("filename", DType::String),
            arg_of("cache", DType::Resource),
        ],
        attrs: ELEMENTS,
        outside: Some(OutsideAccess::Writes),
        ..STATEFUL_DATASET
    },
    OpDef {
        name: "ConcatenateDataset",
        summary: "Appends the elements of another data set.",
        inputs: &[
            arg_of("input_dataset", DType::Variant),
            arg_of("another_dataset", DType::Variant),
        ],
        attrs: ELEMENTS,
        ..DATASET
    },
    OpDef { name: "CSVDataset", ..CSV },
    OpDef {
        name: "CSVDatasetV2",
        inputs: &[
            arg_of("filenames", DType::String),
            arg_of("compression_type", DType::String),
            arg_of("buffer_size", DType::I64),
            arg_of("header", DType::Bool),
            arg_of("field_delim", DType::String),
            arg_of("use_quote_delim", DType::Bool),
            arg_of("na_value", DType::String),
            arg_of("select_cols", DType::I64),
            args_list("record_defaults", "output_types"),
            arg_of("exclude_cols", DType::I64),
        ],
        outside: Some(OutsideAccess::ReadsFiles),
        ..CSV
    },
    OpDef {
        name: "DenseToSparseBatchDataset",
        summary: "Stacks a number of elements at a time as a sparse tensor.",
        inputs: &[
            arg_of("input_dataset", DType::Variant),
            arg_of("batch_size", DType::I64),
            arg_of("row_shape", DType::I64),
        ],
        attrs: SIGNATURE,
        ..DATASET
    },
    OpDef {
        name: "DirectedInterleaveDataset",
        summary: "Takes elements from data sets that another one names.",
        inputs: &[
            arg_of("selector_input_dataset", DType::Variant),
            args_of("data_input_datasets", "N", DType::Variant),
        ],
        attrs: &[
            types("output_types").at_least(1),
            shapes("output_shapes").at_least(1),
            int("N").at_least(1),
            flag("stop_on_empty_dataset", false),
        ],
        ..DATASET
    },
    OpDef {
        name: "FixedLengthRecordDataset",
        summary: "Makes a data set of the records of one length in files.",
        inputs: &[
            arg_of("filenames", DType::String),
            arg_of("header_bytes", DType::I64),
            arg_of("record_bytes", DType::I64),
            arg_of("footer_bytes", DType::I64),
            arg_of("buffer_size", DType::I64),
        ],
        attrs: &[string_or("metadata", "")],
        outside: Some(OutsideAccess::ReadsFiles),
        ..STATEFUL_DATASET
    },
    OpDef {
        name: "FixedLengthRecordDatasetV2",
        summary: "Makes a data set of the records of one length in files, which may be compressed.",
        inputs: &[
            arg_of("filenames", DType::String),
            arg_of("header_bytes", DType::I64),
            arg_of("record_bytes", DType::I64),
            arg_of("footer_bytes", DType::I64),
            arg_of("buffer_size", DType::I64),
            arg_of("compression_type", DType::String),
        ],
        attrs: &[string_or("metadata", "")],
        outside: Some(OutsideAccess::ReadsFiles),
        ..STATEFUL_DATASET
    },
    OpDef {
        name: "IgnoreErrorsDataset",
        summary: "Leaves out the elements whose computation fails.",
        inputs: &[arg_of("input_dataset", DType::Variant)],
        attrs: &[
            types("output_types").at_least(1),
            shapes("output_shapes").at_least(1),
            flag("log_warning", false),
        ],
        ..DATASET
    },
    OpDef {
        name: "ListDataset",
        summary: "Makes a data set of elements that are given one after another.",
        inputs: &[args_list("tensors", "Tinput_types")],
        attrs: &[
            types("Tinput_types").at_least(1),
            types("output_types").at_least(1),
            shapes("output_shapes").at_least(1),
            string_or("metadata", ""),
        ],
        ..DATASET
    },
    OpDef {
        name: "MaxIntraOpParallelismDataset",
        summary: "Has the elements of its input.",
        inputs: &[
            arg_of("input_dataset", DType::Variant),
            arg_of("max_intra_op_parallelism", DType::I64),
        ],
        attrs: SIGNATURE,
        ..DATASET
    },
    OpDef {
        name: "ModelDataset",
        summary: "Has the elements of its input.",
        inputs: &[arg_of("input_dataset", DType::Variant)],
        attrs: &[
            int_or("algorithm", 0),
            int_or("cpu_budget", 0),
            int_or("ram_budget", 0),
            types("output_types").at_least(1),
            shapes("output_shapes").at_least(1),
        ],
        ..DATASET
    },
    OpDef {
        name: "GetOptions",
        summary: "Gives the options of a data set as a message.",
        inputs: &[arg_of("input_dataset", DType::Variant)],
        outputs: &[arg_of("serialized_options", DType::String)],
        infer: infer::scalar,
        lowering: Lowering::Runtime,
        ..OpDef::PURE
    },
    OpDef {
        name: "OptionsDataset",
        summary: "Has the elements of its input.",
        inputs: &[arg_of("input_dataset", DType::Variant)],
        attrs: &[
            string("serialized_options"),
            types("output_types").at_least(1),
            shapes("output_shapes").at_least(1),
            string_or("metadata", ""),
        ],
        ..DATASET
    },
    OpDef {
        name: "PaddedBatchDataset",
        summary: "Pads a number of elements at a time to one shape, and stacks them.",
        inputs: &[
            arg_of("input_dataset", DType::Variant),
            arg_of("batch_size", DType::I64),
            args_of("padded_shapes", "N", DType::I64),
            args_list("padding_values", "Toutput_types"),
        ],
        attrs: &[
            types("Toutput_types").at_least(1),
            shapes("output_shapes").at_least(1),
            int("N").at_least(1),
            string_or("metadata", ""),
        ],
        ..DATASET
    },
    OpDef {
        name: "PaddedBatchDatasetV2",
        summary: "Pads elements to one shape and stacks them; may drop the rest.",
        inputs: &[
            arg_of("input_dataset", DType::Variant),
            arg_of("batch_size", DType::I64),
            args_of("padded_shapes", "N", DType::I64),
            args_list("padding_values", "Toutput_types"),
            arg_of("drop_remainder", DType::Bool),
        ],
        attrs: &[
            flag("parallel_copy", false),
            types("Toutput_types").at_least(1),
            shapes("output_shapes").at_least(1),
            int("N").at_least(1),
            string_or("metadata", ""),
        ],
        ..DATASET
    },
    OpDef {
        name: "ParallelBatchDataset",
        summary: "Stacks a number of elements at a time, as `BatchDatasetV2` does.",
        inputs: &[
            arg_of("input_dataset", DType::Variant),
            arg_of("batch_size", DType::I64),
            arg_of("num_parallel_calls", DType::I64),
            arg_of("drop_remainder", DType::Bool),
        ],
        attrs: &[
            flag("parallel_copy", false),
            types("output_types").at_least(1),
            shapes("output_shapes").at_least(1),
            string_or("deterministic", "default"),
            string_or("metadata", ""),
        ],
        ..DATASET
    },
    OpDef {
        name: "PrefetchDataset",
        summary: "Has the elements of its input.",
        inputs: &[arg_of("input_dataset", DType::Variant), arg_of("buffer_size", DType::I64)],
        attrs: &[
            types("output_types").at_least(1),
            shapes("output_shapes").at_least(1),
            int_or("slack_period", 0),
            flag("legacy_autotune", true),
            int_or("buffer_size_min", 0),
            string_or("metadata", ""),
        ],
        ..DATASET
    },
    OpDef {
        name: "PrivateThreadPoolDataset",
        summary: "Has the elements of its input.",
        inputs: &[arg_of("input_dataset", DType::Variant), arg_of("num_threads", DType::I64)],
        attrs: SIGNATURE,
        ..DATASET
    },
    OpDef {
        name: "RandomDataset",
        summary: "Makes a data set of random numbers of 32 bits.",
        inputs: &[arg_of("seed", DType::I64), arg_of("seed2", DType::I64)],
        attrs: ELEMENTS,
        ..STATEFUL_DATASET
    },
    OpDef {
        name: "RandomDatasetV2",
        summary: "Makes a data set of random numbers of 32 bits, with seeds of a generator.",
        inputs: &[
            arg_of("seed", DType::I64),
            arg_of("seed2", DType::I64),
            arg_of("seed_generator", DType::Resource),
        ],
        attrs: &[
            flag("rerandomize_each_iteration", false),
            types("output_types").at_least(1),
            shapes("output_shapes").at_least(1),
            string_or("metadata", ""),
        ],
        ..STATEFUL_DATASET
    },
    OpDef {
        name: "RangeDataset",
        summary: "Makes a data set of the numbers of a range.",
        inputs: &[
            arg_of("start", DType::I64),
            arg_of("stop", DType::I64),
            arg_of("step", DType::I64),
        ],
        attrs: &[
            types("output_types").at_least(1),
            shapes("output_shapes").at_least(1),
            string_or("metadata", ""),
            flag("replicate_on_split", false),
        ],
        ..DATASET
    },
    OpDef { name: "RebatchDataset", ..REBATCH },
    OpDef {
        name: "RebatchDatasetV2",
        summary: "Stacks rows of batches to batches of other sizes.",
        inputs: &[
            arg_of("input_dataset", DType::Variant),
            arg_of("batch_sizes", DType::I64),
            arg_of("drop_remainder", DType::Bool),
        ],
        attrs: SIGNATURE,
        ..DATASET
    },
    OpDef {
        name: "RepeatDataset",
        summary: "Repeats all elements a number of times, or for ever.",
        inputs: &[arg_of("input_dataset", DType::Variant), arg_of("count", DType::I64)],
        attrs: ELEMENTS,
        ..DATASET
    },
    OpDef {
        name: "RewriteDataset",
        summary: "Has the elements of its input.",
        inputs: &[arg_of("input_dataset", DType::Variant), arg_of("rewrite_name", DType::String)],
        attrs: SIGNATURE,
        ..DATASET
    },
    OpDef {
        name: "SamplingDataset",
        summary: "Keeps each element with a probability.",
        inputs: &[
            arg_of("input_dataset", DType::Variant),
            arg_of("rate", DType::F32),
            arg_of("seed", DType::I64),
            arg_of("seed2", DType::I64),
        ],
        attrs: SIGNATURE,
        ..DATASET
    },
    OpDef { name: "SetStatsAggregatorDataset", ..SET_STATS },
    OpDef {
        name: "ShardDataset",
        summary: "Keeps every element of one number modulo another.",
        inputs: &[
            arg_of("input_dataset", DType::Variant),
            arg_of("num_shards", DType::I64),
            arg_of("index", DType::I64),
        ],
        attrs: &[
            flag("require_non_empty", false),
            types("output_types").at_least(1),
            shapes("output_shapes").at_least(1),
            string_or("metadata", ""),
        ],
        ..DATASET
    },
    OpDef {
        name: "ShuffleAndRepeatDataset",
        summary: "Repeats all elements, each time in random order.",
        inputs: &[
            arg_of("input_dataset", DType::Variant),
            arg_of("buffer_size", DType::I64),
            arg_of("seed", DType::I64),
            arg_of("seed2", DType::I64),
            arg_of("count", DType::I64),
        ],
        attrs: &[
            types("output_types").at_least(1),
            shapes("output_shapes").at_least(1),
            flag("reshuffle_each_iteration", true),
            string_or("metadata", ""),
        ],
        ..DATASET
    },
    OpDef {
        name: "ShuffleAndRepeatDatasetV2",
        summary: "Repeats all elements, each time in random order, with seeds of a generator.",
        inputs: &[
            arg_of("input_dataset", DType::Variant),
            arg_of("buffer_size", DType::I64),
            arg_of("seed", DType::I64),
            arg_of("seed2", DType::I64),
            arg_of("count", DType::I64),
            arg_of("seed_generator", DType::Resource),
        ],
        attrs: &[
            flag("reshuffle_each_iteration", true),
            types("output_types").at_least(1),
            shapes("output_shapes").at_least(1),
            string_or("metadata", ""),
        ],
        ..STATEFUL_DATASET
    },
    OpDef {
        name: "ShuffleDataset",
        summary: "Draws elements at random from a buffer.",
        inputs: &[
            arg_of("input_dataset", DType::Variant),
            arg_of("buffer_size", DType::I64),
            arg_of("seed", DType::I64),
            arg_of("seed2", DType::I64),
        ],
        attrs: &[
            flag("reshuffle_each_iteration", true),
            types("output_types").at_least(1),
            shapes("output_shapes").at_least(1),
            string_or("metadata", ""),
        ],
        ..STATEFUL_DATASET
    },
    OpDef {
        name: "ShuffleDatasetV2",
        summary: "Puts the elements of its input in random order, with seeds of a generator.",
        inputs: &[
            arg_of("input_dataset", DType::Variant),
            arg_of("buffer_size", DType::I64),
            arg_of("seed_generator", DType::Resource),
        ],
        attrs: ELEMENTS,
        ..STATEFUL_DATASET
    },
    OpDef {
        name: "ShuffleDatasetV3",
        summary: "Draws elements at random from a buffer, with a generator and seeds.",
        inputs: &[
            arg_of("input_dataset", DType::Variant),
            arg_of("buffer_size", DType::I64),
            arg_of("seed", DType::I64),
            arg_of("seed2", DType::I64),
            arg_of("seed_generator", DType::Resource),
        ],
        attrs: &[
            flag("reshuffle_each_iteration", true),
            types("output_types").at_least(1),
            shapes("output_shapes").at_least(1),
            string_or("metadata", ""),
        ],
        ..STATEFUL_DATASET
    },
    OpDef {
        name: "SkipDataset",
        summary: "Leaves out the first elements.",
        inputs: &[arg_of("input_dataset", DType::Variant), arg_of("count", DType::I64)],
        attrs: ELEMENTS,
        ..DATASET
    },
    OpDef {
        name: "SparseTensorSliceDataset",
        summary: "Makes a data set of the rows of a sparse tensor.",
        inputs: &[
            arg_of("indices", DType::I64),
            arg("values", "Tvalues"),
            arg_of("dense_shape", DType::I64),
        ],
        attrs: &[any_ty("Tvalues")],
        ..STATEFUL_DATASET
    },
    OpDef {
        name: "TakeDataset",
        summary: "Keeps the first elements.",
        inputs: &[arg_of("input_dataset", DType::Variant), arg_of("count", DType::I64)],
        attrs: ELEMENTS,
        ..DATASET
    },
    OpDef {
        name: "TensorDataset",
        summary: "Makes a data set of one element.",
        inputs: &[args_list("components", "Toutput_types")],
        attrs: &[
            types("Toutput_types").at_least(1),
            shapes("output_shapes").at_least(1),
            string_or("metadata", ""),
        ],
        ..DATASET
    },
    OpDef {
        name: "TensorSliceDataset",
        summary: "Makes a data set of the rows of tensors.",
        inputs: &[args_list("components", "Toutput_types")],
        attrs: &[
            types("Toutput_types").at_least(1),
            shapes("output_shapes").at_least(1),
            flag("is_files", false),
            string_or("metadata", ""),
            flag("replicate_on_split", false),
        ],
        ..DATASET
    },
    OpDef {
        name: "TextLineDataset",
        summary: "Makes a data set of the lines of files.",
        inputs: &[
            arg_of("filenames", DType::String),
            arg_of("compression_type", DType::String),
            arg_of("buffer_size", DType::I64),
        ],
        attrs: &[string_or("metadata", "")],
        outside: Some(OutsideAccess::ReadsFiles),
        ..STATEFUL_DATASET
    },
    OpDef {
        name: "TFRecordDataset",
        summary: "Makes a data set of the records of files.",
        inputs: &[
            arg_of("filenames", DType::String),
            arg_of("compression_type", DType::String),
            arg_of("buffer_size", DType::I64),
        ],
        attrs: &[string_or("metadata", "")],
        outside: Some(OutsideAccess::ReadsFiles),
        ..STATEFUL_DATASET
    },
    OpDef {
        name: "TFRecordDatasetV2",
        summary: "Makes a data set of the records of files, from places in them on.",
        inputs: &[
            arg_of("filenames", DType::String),
            arg_of("compression_type", DType::String),
            arg_of("buffer_size", DType::I64),
            arg_of("byte_offsets", DType::I64),
        ],
        attrs: &[string_or("metadata", "")],
        outside: Some(OutsideAccess::ReadsFiles),
        ..STATEFUL_DATASET
    },
    OpDef {
        name: "UnbatchDataset",
        summary: "Has the rows of the elements of its input.",
        inputs: &[arg_of("input_dataset", DType::Variant)],
        attrs: ELEMENTS,
        ..DATASET
    },
    OpDef {
        name: "UniqueDataset",
        summary: "Leaves out elements that were there before.",
        inputs: &[arg_of("input_dataset", DType::Variant)],
        attrs: ELEMENTS,
        ..DATASET
    },
    OpDef {
        name: "WindowDataset",
        summary: "Has data sets of a number of consecutive elements.",
        inputs: &[
            arg_of("input_dataset", DType::Variant),
            arg_of("size", DType::I64),
            arg_of("shift", DType::I64),
            arg_of("stride", DType::I64),
            arg_of("drop_remainder", DType::Bool),
        ],
        attrs: ELEMENTS,
        ..DATASET
    },
    OpDef {
        name: "WindowOp",
        summary: "Makes a data set of the tensors of a window.",
        inputs: &[args_list("inputs", "Tinputs")],
        attrs: &[
            types("output_types").at_least(1),
            shapes("output_shapes").at_least(1),
            types("Tinputs").at_least(1),
        ],
        ..DATASET
    },
    OpDef {
        name: "ZipDataset",
        summary: "Joins the elements of data sets one by one.",
        inputs: &[args_of("input_datasets", "N", DType::Variant)],
        attrs: &[
            types("output_types").at_least(1),
            shapes("output_shapes").at_least(1),
            int("N").at_least(1),
            string_or("metadata", ""),
        ],
        ..DATASET
    },
];
