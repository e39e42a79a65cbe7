//! Data sets that call functions on the elements of another.

use super::dataset::{DATASET, STATEFUL_DATASET};
use crate::{dtype::DType, op::*};

pub(super) static OPS: &[OpDef] = &[
    OpDef {
        name: "FilterDataset",
        summary: "Keeps the elements for which a function is true.",
        inputs: &[
            arg_of("input_dataset", DType::Variant),
            args_list("other_arguments", "Targuments"),
        ],
        attrs: &[
            func("predicate"),
            types("Targuments").at_least(0),
            types("output_types").at_least(1),
            shapes("output_shapes").at_least(1),
            string_or("metadata", ""),
        ],
        ..DATASET
    },
    OpDef {
        name: "FlatMapDataset",
        summary: "Joins the data sets that a function makes of elements.",
        inputs: &[
            arg_of("input_dataset", DType::Variant),
            args_list("other_arguments", "Targuments"),
        ],
        attrs: &[
            func("f"),
            types("Targuments").at_least(0),
            types("output_types").at_least(1),
            shapes("output_shapes").at_least(1),
            string_or("metadata", ""),
        ],
        ..DATASET
    },
    OpDef {
        name: "GroupByReducerDataset",
        summary: "Folds the elements of each key.",
        inputs: &[
            arg_of("input_dataset", DType::Variant),
            args_list("key_func_other_arguments", "Tkey_func_other_arguments"),
            args_list("init_func_other_arguments", "Tinit_func_other_arguments"),
            args_list("reduce_func_other_arguments", "Treduce_func_other_arguments"),
            args_list("finalize_func_other_arguments", "Tfinalize_func_other_arguments"),
        ],
        attrs: &[
            func("key_func"),
            func("init_func"),
            func("reduce_func"),
            func("finalize_func"),
            types("Tkey_func_other_arguments").at_least(0),
            types("Tinit_func_other_arguments").at_least(0),
            types("Treduce_func_other_arguments").at_least(0),
            types("Tfinalize_func_other_arguments").at_least(0),
            types("output_types").at_least(1),
            shapes("output_shapes").at_least(1),
        ],
        ..STATEFUL_DATASET
    },
    OpDef {
        name: "GroupByWindowDataset",
        summary: "Makes data sets of elements of one key, and joins what a function makes of them.",
        inputs: &[
            arg_of("input_dataset", DType::Variant),
            args_list("key_func_other_arguments", "Tkey_func_other_arguments"),
            args_list("reduce_func_other_arguments", "Treduce_func_other_arguments"),
            args_list("window_size_func_other_arguments", "Twindow_size_func_other_arguments"),
        ],
        attrs: &[
            func("key_func"),
            func("reduce_func"),
            func("window_size_func"),
            types("Tkey_func_other_arguments").at_least(0),
            types("Treduce_func_other_arguments").at_least(0),
            types("Twindow_size_func_other_arguments").at_least(0),
            types("output_types").at_least(1),
            shapes("output_shapes").at_least(1),
            string_or("metadata", ""),
        ],
        ..DATASET
    },
    OpDef {
        name: "InterleaveDataset",
        summary: "Takes turns with data sets that a function makes of elements.",
        inputs: &[
            arg_of("input_dataset", DType::Variant),
            args_list("other_arguments", "Targuments"),
            arg_of("cycle_length", DType::I64),
            arg_of("block_length", DType::I64),
        ],
        attrs: &[
            func("f"),
            types("Targuments").at_least(0),
            types("output_types").at_least(1),
            shapes("output_shapes").at_least(1),
            string_or("metadata", ""),
        ],
        ..DATASET
    },
    OpDef {
        name: "LegacyParallelInterleaveDatasetV2",
        summary: "Takes turns with data sets, as `InterleaveDataset` does.",
        inputs: &[
            arg_of("input_dataset", DType::Variant),
            args_list("other_arguments", "Targuments"),
            arg_of("cycle_length", DType::I64),
            arg_of("block_length", DType::I64),
            arg_of("buffer_output_elements", DType::I64),
            arg_of("prefetch_input_elements", DType::I64),
        ],
        attrs: &[
            func("f"),
            string_or("deterministic", "default"),
            types("Targuments").at_least(0),
            types("output_types").at_least(1),
            shapes("output_shapes").at_least(1),
            string_or("metadata", ""),
        ],
        ..DATASET
    },
    OpDef {
        name: "MapAndBatchDataset",
        summary: "Calls a function on every element, and stacks a number of results at a time.",
        inputs: &[
            arg_of("input_dataset", DType::Variant),
            args_list("other_arguments", "Targuments"),
            arg_of("batch_size", DType::I64),
            arg_of("num_parallel_calls", DType::I64),
            arg_of("drop_remainder", DType::Bool),
        ],
        attrs: &[
            func("f"),
            types("Targuments").at_least(0),
            types("output_types").at_least(1),
            shapes("output_shapes").at_least(1),
            flag("preserve_cardinality", false),
            string_or("metadata", ""),
        ],
        ..DATASET
    },
    OpDef {
        name: "MapDataset",
        summary: "Calls a function on every element.",
        inputs: &[
            arg_of("input_dataset", DType::Variant),
            args_list("other_arguments", "Targuments"),
        ],
        attrs: &[
            func("f"),
            types("Targuments").at_least(0),
            types("output_types").at_least(1),
            shapes("output_shapes").at_least(1),
            flag("use_inter_op_parallelism", true),
            flag("preserve_cardinality", false),
            flag("force_synchronous", false),
            string_or("metadata", ""),
        ],
        ..DATASET
    },
    OpDef {
        name: "ParallelFilterDataset",
        summary: "Keeps the elements for which a function is true.",
        inputs: &[
            arg_of("input_dataset", DType::Variant),
            args_list("other_arguments", "Targuments"),
            arg_of("num_parallel_calls", DType::I64),
        ],
        attrs: &[
            func("predicate"),
            string_or("deterministic", "default"),
            types("Targuments").at_least(0),
            types("output_types").at_least(1),
            shapes("output_shapes").at_least(1),
            string_or("metadata", ""),
        ],
        ..DATASET
    },
    OpDef {
        name: "ParallelInterleaveDataset",
        summary: "Takes turns with data sets, as `InterleaveDataset` does.",
        inputs: &[
            arg_of("input_dataset", DType::Variant),
            args_list("other_arguments", "Targuments"),
            arg_of("cycle_length", DType::I64),
            arg_of("block_length", DType::I64),
            arg_of("sloppy", DType::Bool),
            arg_of("buffer_output_elements", DType::I64),
            arg_of("prefetch_input_elements", DType::I64),
        ],
        attrs: &[
            func("f"),
            types("Targuments").at_least(0),
            types("output_types").at_least(1),
            shapes("output_shapes").at_least(1),
            string_or("metadata", ""),
        ],
        ..DATASET
    },
    OpDef {
        name: "ParallelInterleaveDatasetV2",
        summary: "Takes turns with data sets, as `InterleaveDataset` does.",
        inputs: &[
            arg_of("input_dataset", DType::Variant),
            args_list("other_arguments", "Targuments"),
            arg_of("cycle_length", DType::I64),
            arg_of("block_length", DType::I64),
            arg_of("num_parallel_calls", DType::I64),
        ],
        attrs: &[
            func("f"),
            types("Targuments").at_least(0),
            types("output_types").at_least(1),
            shapes("output_shapes").at_least(1),
            flag("sloppy", false),
            string_or("metadata", ""),
        ],
        ..DATASET
    },
    OpDef {
        name: "ParallelInterleaveDatasetV3",
        summary: "Takes turns with data sets, as `InterleaveDataset` does.",
        inputs: &[
            arg_of("input_dataset", DType::Variant),
            args_list("other_arguments", "Targuments"),
            arg_of("cycle_length", DType::I64),
            arg_of("block_length", DType::I64),
            arg_of("num_parallel_calls", DType::I64),
        ],
        attrs: &[
            func("f"),
            string_or("deterministic", "default"),
            types("Targuments").at_least(0),
            types("output_types").at_least(1),
            shapes("output_shapes").at_least(1),
            string_or("metadata", ""),
        ],
        ..DATASET
    },
    OpDef {
        name: "ParallelInterleaveDatasetV4",
        summary: "Takes turns with data sets, as `InterleaveDataset` does.",
        inputs: &[
            arg_of("input_dataset", DType::Variant),
            args_list("other_arguments", "Targuments"),
            arg_of("cycle_length", DType::I64),
            arg_of("block_length", DType::I64),
            arg_of("buffer_output_elements", DType::I64),
            arg_of("prefetch_input_elements", DType::I64),
            arg_of("num_parallel_calls", DType::I64),
        ],
        attrs: &[
            func("f"),
            string_or("deterministic", "default"),
            types("Targuments").at_least(0),
            types("output_types").at_least(1),
            shapes("output_shapes").at_least(1),
            string_or("metadata", ""),
        ],
        ..DATASET
    },
    OpDef {
        name: "ParallelMapDataset",
        summary: "Calls a function on every element, as `MapDataset` does.",
        inputs: &[
            arg_of("input_dataset", DType::Variant),
            args_list("other_arguments", "Targuments"),
            arg_of("num_parallel_calls", DType::I32),
        ],
        attrs: &[
            func("f"),
            types("Targuments").at_least(0),
            types("output_types").at_least(1),
            shapes("output_shapes").at_least(1),
            flag("use_inter_op_parallelism", true),
            flag("sloppy", false),
            flag("preserve_cardinality", false),
            string_or("metadata", ""),
        ],
        ..DATASET
    },
    OpDef {
        name: "ParallelMapDatasetV2",
        summary: "Calls a function on every element, as `MapDataset` does.",
        inputs: &[
            arg_of("input_dataset", DType::Variant),
            args_list("other_arguments", "Targuments"),
            arg_of("num_parallel_calls", DType::I64),
        ],
        attrs: &[
            func("f"),
            types("Targuments").at_least(0),
            types("output_types").at_least(1),
            shapes("output_shapes").at_least(1),
            flag("use_inter_op_parallelism", true),
            string_or("deterministic", "default"),
            flag("preserve_cardinality", false),
            flag("use_unbounded_threadpool", false),
            string_or("metadata", ""),
        ],
        ..DATASET
    },
    OpDef {
        name: "ScanDataset",
        summary: "Calls a function on a state and every element.",
        inputs: &[
            arg_of("input_dataset", DType::Variant),
            args_list("initial_state", "Tstate"),
            args_list("other_arguments", "Targuments"),
        ],
        attrs: &[
            func("f"),
            types("Tstate").at_least(1),
            types("Targuments").at_least(0),
            types("output_types").at_least(1),
            shapes("output_shapes").at_least(1),
            flag("preserve_cardinality", false),
            flag("use_default_device", true),
            string_or("metadata", ""),
        ],
        ..DATASET
    },
    OpDef {
        name: "TakeWhileDataset",
        summary: "Keeps the elements before the first for which a function is false.",
        inputs: &[
            arg_of("input_dataset", DType::Variant),
            args_list("other_arguments", "Targuments"),
        ],
        attrs: &[
            func("predicate"),
            types("Targuments").at_least(0),
            types("output_types").at_least(1),
            shapes("output_shapes").at_least(1),
            string_or("metadata", ""),
        ],
        ..DATASET
    },
];
