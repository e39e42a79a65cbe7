//! Data sets that call functions on the elements of another.

use super::dataset::{DATASET, STATEFUL_DATASET};
use crate::{dtype::DType, error::Result, infer::OpContext, op::*, shape::PartialShape};

pub(super) static OPS: &[OpDef] = &[
    OpDef {
        name: "ChooseFastestBranchDataset",
        summary: "Has the elements of what a function makes of its input: the first of several.",
        inputs: &[
            arg_of("input_dataset", DType::Variant),
            arg_of("ratio_numerator", DType::I64),
            arg_of("ratio_denominator", DType::I64),
            args_list("other_arguments", "Targuments"),
        ],
        attrs: &[
            types("Targuments").at_least(0),
            int("num_elements_per_branch").at_least(1),
            funcs("branches").at_least(1),
            ints("other_arguments_lengths").at_least(1),
            types("output_types").at_least(1),
            shapes("output_shapes").at_least(1),
        ],
        ..DATASET
    },
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
        name: "GeneratorDataset",
        summary: "Has what a function makes of a state until it says that there is no more.",
        inputs: &[
            args_list("init_func_other_args", "Tinit_func_args"),
            args_list("next_func_other_args", "Tnext_func_args"),
            args_list("finalize_func_other_args", "Tfinalize_func_args"),
        ],
        attrs: &[
            func("init_func"),
            func("next_func"),
            func("finalize_func"),
            types("Tinit_func_args").at_least(0),
            types("Tnext_func_args").at_least(0),
            types("Tfinalize_func_args").at_least(0),
            types("output_types").at_least(1),
            shapes("output_shapes").at_least(1),
            string_or("metadata", ""),
        ],
        outside: Some(OutsideAccess::RunsCode),
        ..STATEFUL_DATASET
    },
    OpDef {
        name: "MapDefun",
        summary: "Calls a function on each row of tensors, and stacks the results.",
        inputs: &[args_list("arguments", "Targuments"), args_list("captured_inputs", "Tcaptured")],
        outputs: &[args_list("output", "output_types")],
        attrs: &[
            types("Targuments").at_least(1),
            types("Tcaptured").or(AttrDefault::Types(&[])).at_least(0),
            types("output_types").at_least(1),
            shapes("output_shapes").at_least(1),
            func("f"),
            int_or("max_intra_op_parallelism", 1),
        ],
        infer: rows_of_components,
        lowering: Lowering::Runtime,
        ..OpDef::PURE
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

/// The shapes of the components of a row, after the number of rows, which is that of input 0.
fn rows_of_components(context: &mut OpContext<'_>) -> Result<()> {
    let (n, shapes) = (context.shape(0).dim(0), context.attrs.shapes("output_shapes")?.to_vec());
    for (index, shape) in shapes.iter().enumerate().take(context.n_outputs()) {
        let all = shape.dims().map(|dims| [n].into_iter().chain(dims.iter().copied()));
        context.set(index, all.map_or(PartialShape::Unknown, PartialShape::ranked));
    }
    Ok(())
}
