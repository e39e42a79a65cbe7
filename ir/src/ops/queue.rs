//! Queues and staging areas: tensors on their way from one part of a program to another.

use crate::{
    dtype::DType,
    error::Result,
    gradient::Gradient,
    infer::{self, OpContext},
    op::*,
};

/// Makes a queue, or finds it by name.
const CREATION: OpDef = OpDef {
    outputs: &[arg_of("handle", DType::Resource)],
    attrs: &[
        types("component_types").at_least(1),
        shapes("shapes").or(AttrDefault::Shapes).at_least(0),
        int_or("capacity", -1),
        string_or("container", ""),
        string_or("shared_name", ""),
    ],
    infer: infer::scalar,
    lowering: Lowering::Runtime,
    ..OpDef::STATEFUL
};

const DEQUEUE: OpDef = OpDef {
    inputs: &[arg_of("handle", DType::Resource), arg_of("n", DType::I32)],
    outputs: &[args_list("components", "component_types")],
    attrs: &[types("component_types").at_least(1), int_or("timeout_ms", -1)],
    lowering: Lowering::Runtime,
    gradient: Gradient::Zero,
    ..OpDef::WRITES
};

const ENQUEUE: OpDef = OpDef {
    inputs: &[arg_of("handle", DType::Resource), args_list("components", "Tcomponents")],
    attrs: &[types("Tcomponents").at_least(1), int_or("timeout_ms", -1)],
    lowering: Lowering::Runtime,
    ..OpDef::WRITES
};

/// Works on a staging area, which is known by its name.
const STAGING: OpDef = OpDef {
    attrs: &[
        int_or("capacity", 0).at_least(0),
        int_or("memory_limit", 0).at_least(0),
        types("dtypes").at_least(1),
        string_or("container", ""),
        string_or("shared_name", ""),
    ],
    lowering: Lowering::Runtime,
    ..OpDef::STATEFUL
};

/// As [`STAGING`], for ops that do not touch the tensors.
const STAGING_STATE: OpDef = OpDef {
    attrs: &[
        int_or("capacity", 0).at_least(0),
        int_or("memory_limit", 0).at_least(0),
        types("dtypes"),
        string_or("container", ""),
        string_or("shared_name", ""),
    ],
    ..STAGING
};

pub(super) static OPS: &[OpDef] = &[
    OpDef {
        name: "FIFOQueueV2",
        summary: "Makes a queue that gives tensors in the order in which they came.",
        ..CREATION
    },
    OpDef {
        name: "PaddingFIFOQueueV2",
        summary: "Makes a queue that pads tensors with zeros when it stacks them.",
        ..CREATION
    },
    OpDef {
        name: "PriorityQueueV2",
        summary: "Makes a queue that gives tensors in the order of numbers that come with them.",
        attrs: &[
            types("component_types").or(AttrDefault::Types(&[])).at_least(0),
            shapes("shapes").at_least(0),
            int_or("capacity", -1),
            string_or("container", ""),
            string_or("shared_name", ""),
        ],
        ..CREATION
    },
    OpDef {
        name: "QueueCloseV2",
        summary: "Closes a queue: what is in it can still be taken.",
        inputs: &[arg_of("handle", DType::Resource)],
        attrs: &[flag("cancel_pending_enqueues", false)],
        lowering: Lowering::Runtime,
        ..OpDef::WRITES
    },
    OpDef {
        name: "QueueDequeueManyV2",
        summary: "Takes several tuples of tensors from a queue, stacked.",
        infer: stacked,
        ..DEQUEUE
    },
    OpDef {
        name: "QueueDequeueUpToV2",
        summary: "Takes several tuples of tensors from a queue, or fewer if it is closed, stacked.",
        ..DEQUEUE
    },
    OpDef {
        name: "QueueDequeueV2",
        summary: "Takes a tuple of tensors from a queue.",
        inputs: &[arg_of("handle", DType::Resource)],
        ..DEQUEUE
    },
    OpDef {
        name: "QueueEnqueueManyV2",
        summary: "Puts the rows of tensors into a queue, as a tuple each.",
        ..ENQUEUE
    },
    OpDef { name: "QueueEnqueueV2", summary: "Puts a tuple of tensors into a queue.", ..ENQUEUE },
    OpDef {
        name: "QueueIsClosedV2",
        summary: "Tells whether a queue was closed.",
        inputs: &[arg_of("handle", DType::Resource)],
        outputs: &[arg_of("is_closed", DType::Bool)],
        infer: infer::scalar,
        lowering: Lowering::Runtime,
        ..OpDef::READS
    },
    OpDef {
        name: "QueueSizeV2",
        summary: "Gives the number of tuples in a queue.",
        inputs: &[arg_of("handle", DType::Resource)],
        outputs: &[arg_of("size", DType::I32)],
        infer: infer::scalar,
        lowering: Lowering::Runtime,
        ..OpDef::READS
    },
    OpDef {
        name: "RandomShuffleQueueV2",
        summary: "Makes a queue that gives tensors in random order.",
        attrs: &[
            types("component_types").at_least(1),
            shapes("shapes").or(AttrDefault::Shapes).at_least(0),
            int_or("capacity", -1),
            int_or("min_after_dequeue", 0),
            int_or("seed", 0),
            int_or("seed2", 0),
            string_or("container", ""),
            string_or("shared_name", ""),
        ],
        ..CREATION
    },
    OpDef {
        name: "Stage",
        summary: "Puts a tuple of tensors into a staging area.",
        inputs: &[args_list("values", "dtypes")],
        ..STAGING
    },
    OpDef { name: "StageClear", summary: "Empties a staging area.", ..STAGING_STATE },
    OpDef {
        name: "StagePeek",
        summary: "Gives a tuple of tensors in a staging area, which stays there.",
        inputs: &[arg_of("index", DType::I32)],
        outputs: &[args_list("values", "dtypes")],
        ..STAGING
    },
    OpDef {
        name: "StageSize",
        summary: "Gives the number of tuples in a staging area.",
        outputs: &[arg_of("size", DType::I32)],
        infer: infer::scalar,
        ..STAGING_STATE
    },
    OpDef {
        name: "Unstage",
        summary: "Takes a tuple of tensors from a staging area.",
        outputs: &[args_list("values", "dtypes")],
        ..STAGING
    },
];

fn stacked(context: &mut OpContext<'_>) -> Result<()> {
    context.check_rank(1, 0)
}
