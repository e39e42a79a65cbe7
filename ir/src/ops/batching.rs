//! Batches of what several runs want computed, as servers make them.

use crate::{dtype::DType, error::Result, infer::OpContext, op::*};

const CONTAINER: AttrDef = string_or("container", "");
const SHARED_NAME: AttrDef = string_or("shared_name", "");

pub(super) static OPS: &[OpDef] = &[
    OpDef {
        name: "Batch",
        summary: "Gathers the tensors of several runs: the last run gets the batch, others nothing.",
        inputs: &[args_list("in_tensors", "T")],
        outputs: &[
            args_list("batched_tensors", "T"),
            arg_of("batch_index", DType::I64),
            arg_of("id", DType::I64),
        ],
        attrs: &[
            int("num_batch_threads"),
            int("max_batch_size"),
            int_or("max_enqueued_batches", 10),
            int("batch_timeout_micros"),
            ints_or("allowed_batch_sizes", &[]),
            int("grad_timeout_micros"),
            CONTAINER,
            SHARED_NAME,
            string_or("batching_queue", ""),
            types("T").at_least(1),
        ],
        infer: |context| {
            for name in ["num_batch_threads", "max_batch_size"] {
                let found = context.attrs.int(name)?;
                if found <= 0 {
                    return Err(context.wrong_attr(name, "positive", found));
                }
            }
            let sizes = context.attrs.ints("allowed_batch_sizes")?;
            let most = context.attrs.int("max_batch_size")?;
            let fits = sizes.is_sorted_by(|a, b| a < b) && sizes.last().is_none_or(|&n| n == most);
            if !fits {
                let found = format!("{sizes:?}");
                let expected = format!("rising up to {most}");
                return Err(context.wrong_attr("allowed_batch_sizes", expected, found));
            }
            (0..context.n_inputs()).try_for_each(|index| context.check_rank_at_least(index, 1))
        },
        lowering: Lowering::Runtime,
        ..OpDef::STATEFUL
    },
    OpDef {
        name: "Unbatch",
        summary: "Gives each run its rows of what was computed for a batch.",
        inputs: &[
            arg("batched_tensor", "T"),
            arg_of("batch_index", DType::I64),
            arg_of("id", DType::I64),
        ],
        outputs: &[arg("unbatched_tensor", "T")],
        attrs: &[int("timeout_micros"), CONTAINER, SHARED_NAME, any_ty("T")],
        infer: |context| {
            context.check_rank_at_least(0, 1)?;
            check_index(context, 1)?;
            context.check_rank(2, 0)
        },
        lowering: Lowering::Runtime,
        ..OpDef::STATEFUL
    },
    OpDef {
        name: "UnbatchGrad",
        summary: "Gathers the gradients of the runs of a batch, in the order of the batch.",
        inputs: &[
            arg("original_input", "T"),
            arg_of("batch_index", DType::I64),
            arg("grad", "T"),
            arg_of("id", DType::I64),
        ],
        outputs: &[arg("batched_grad", "T")],
        attrs: &[CONTAINER, SHARED_NAME, any_ty("T")],
        infer: |context| {
            context.check_rank_at_least(2, 1)?;
            check_index(context, 1)?;
            context.check_rank(3, 0)
        },
        lowering: Lowering::Runtime,
        ..OpDef::STATEFUL
    },
];

/// A row of a batch's index has the number of a run, and where its rows begin and end.
fn check_index(context: &OpContext<'_>, index: usize) -> Result<()> {
    let [_, numbers] = context.dims::<2>(index)?;
    context.same("the numbers in a row of the index", numbers, Some(3)).map(|_| ())
}
