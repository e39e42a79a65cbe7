//! Collective ops: what the members of a group compute together, each with a tensor of its own.
//!
//! A collective op is stateful, so all members meet in the order of their programs. `group_key` says
//! which group, `instance_key` which of its calls belong together.

use crate::{
    dtype::DType::{self, *},
    error::Result,
    gradient::{Gradient, collective as gradient},
    infer::{self, OpContext},
    op::*,
    shape::PartialShape,
};

/// The dtypes that TensorFlow's collectives reduce.
const REDUCED: &[DType] = &[BF16, F32, F16, F64, I32, I64];
const GATHERED: &[DType] = &[F32, F16, F64, I32, I64];
const BROADCAST: &[DType] = &[Bool, F32, F16, F64, I32, I64];
const NCCL: &[DType] = &[F16, F32, F64, I32, I64];
const PERMUTED: &[DType] = &[
    F32, F64, I32, U8, I16, I8, C64, I64, QI8, QU8, QI32, BF16, QI16, QU16, U16, C128, F16, U32,
    U64,
];
const CROSS_REPLICA: &[DType] = &[F16, BF16, F32, F64, I32, U32];

const MERGE_OPS: &[&str] = &["Min", "Max", "Mul", "Add"];
const FINAL_OPS: &[&str] = &["Id", "Div"];
const NCCL_REDUCTIONS: &[&str] = &["min", "max", "prod", "sum"];

/// The base of all: a stateful op that the runtime carries out.
const COLLECTIVE: OpDef =
    OpDef { infer: infer::unchanged, lowering: Lowering::Runtime, ..OpDef::STATEFUL };

const PENDING: &[ArgDef] = &[arg_of("pending", Resource)];
const DATA: &[ArgDef] = &[arg("data", "T")];

/// Inputs of the ops whose group is in scalar tensors, with tokens that order them.
const GROUPED: &[ArgDef] = &[
    arg("input", "T"),
    arg_of("group_size", I32).host(),
    arg_of("group_key", I32).host(),
    arg_of("instance_key", I32).host(),
    args_of("ordering_token", "Nordering_token", Resource),
];

const COMMUNICATOR: &[ArgDef] =
    &[arg("input", "T"), arg_of("communicator", Resource), arg_of("group_assignment", I32).host()];

pub(super) static OPS: &[OpDef] = &[
    OpDef {
        name: "CollectiveAllToAllV2",
        summary: "Sends part `r` of the first dimension to member `r` of a group.",
        inputs: GROUPED,
        outputs: DATA,
        attrs: &[
            ty("T", REDUCED),
            string_or("communication_hint", "auto"),
            float_or("timeout_seconds", 0.0),
            flag("is_stateless", false),
            int_or("Nordering_token", 0).at_least(0),
        ],
        infer: parts,
        gradient: Gradient::Rule(gradient::all_to_all),
        ..COLLECTIVE
    },
    OpDef {
        name: "CollectiveAllToAllV3",
        summary: "Sends part `r` of the first dimension to member `r` of a part of a group.",
        inputs: COMMUNICATOR,
        outputs: DATA,
        attrs: &[ty("T", REDUCED), float_or("timeout_seconds", 0.0)],
        infer: parts,
        gradient: Gradient::Rule(gradient::all_to_all),
        ..COLLECTIVE
    },
    OpDef {
        name: "CollectiveAssignGroupV2",
        summary: "Tells size and key of the group that a device is assigned to.",
        inputs: &[
            arg_of("group_assignment", I32),
            arg_of("device_index", I32),
            arg_of("base_key", I32),
        ],
        outputs: &[arg_of("group_size", I32), arg_of("group_key", I32)],
        infer: infer::scalar,
        gradient: Gradient::Zero,
        ..COLLECTIVE
    },
    OpDef {
        name: "CollectiveBcastRecv",
        summary: "Takes the tensor that another member of a group sends to all.",
        outputs: DATA,
        attrs: SENT_ATTRS,
        infer: declared,
        gradient: Gradient::Missing,
        ..COLLECTIVE
    },
    OpDef {
        name: "CollectiveBcastRecvV2",
        summary: "Takes the tensor that another member of a group sends to all.",
        inputs: &[
            arg_of("group_size", I32).host(),
            arg_of("group_key", I32).host(),
            arg_of("instance_key", I32).host(),
            arg("shape", "Tshape").host(),
        ],
        outputs: DATA,
        attrs: &[
            ty("T", BROADCAST),
            ty_or("Tshape", super::sets::INDEX, I32),
            string_or("communication_hint", "auto"),
            float_or("timeout_seconds", 0.0),
        ],
        infer: received,
        gradient: Gradient::Missing,
        ..COLLECTIVE
    },
    OpDef {
        name: "CollectiveBcastSend",
        summary: "Sends a tensor to all members of a group.",
        inputs: &[arg("input", "T")],
        outputs: DATA,
        attrs: SENT_ATTRS,
        infer: declared,
        gradient: Gradient::Missing,
        ..COLLECTIVE
    },
    OpDef {
        name: "CollectiveBcastSendV2",
        summary: "Sends a tensor to all members of a group.",
        inputs: &[
            arg("input", "T"),
            arg_of("group_size", I32).host(),
            arg_of("group_key", I32).host(),
            arg_of("instance_key", I32).host(),
        ],
        outputs: DATA,
        attrs: &[
            ty("T", BROADCAST),
            string_or("communication_hint", "auto"),
            float_or("timeout_seconds", 0.0),
        ],
        gradient: Gradient::Missing,
        ..COLLECTIVE
    },
    OpDef {
        name: "CollectiveGather",
        summary: "Joins the tensors of all members of a group along the first dimension.",
        inputs: &[arg("input", "T")],
        outputs: DATA,
        attrs: &[
            ty("T", GATHERED),
            int("group_size"),
            int("group_key"),
            int("instance_key"),
            shape("shape"),
            string_or("communication_hint", "auto"),
            float_or("timeout_seconds", 0.0),
        ],
        infer: declared,
        gradient: Gradient::Rule(gradient::gather),
        ..COLLECTIVE
    },
    OpDef {
        name: "CollectiveGatherV2",
        summary: "Joins the tensors of all members of a group along the first dimension.",
        inputs: GROUPED,
        outputs: DATA,
        attrs: &[
            ty("T", GATHERED),
            string_or("communication_hint", "auto"),
            float_or("timeout_seconds", 0.0),
            flag("is_stateless", false),
            int_or("Nordering_token", 0).at_least(0),
        ],
        infer: gathered,
        gradient: Gradient::Rule(gradient::gather),
        ..COLLECTIVE
    },
    OpDef {
        name: "CollectiveInitializeCommunicator",
        summary: "Makes the communicator of a group, in which this member has a rank.",
        inputs: &[arg_of("group_key", I32), arg_of("rank", I32), arg_of("group_size", I32)],
        outputs: &[arg_of("communicator", Resource)],
        attrs: &[string_or("communication_hint", "auto"), float_or("timeout_seconds", 0.0)],
        infer: infer::scalar,
        gradient: Gradient::Zero,
        ..COLLECTIVE
    },
    OpDef {
        name: "CollectivePermute",
        summary: "Sends tensors from member to member; zeros where nothing is sent.",
        inputs: &[arg("input", "T"), arg_of("source_target_pairs", I32)],
        outputs: &[arg("output", "T")],
        attrs: &[ty("T", PERMUTED)],
        gradient: Gradient::Rule(gradient::permute),
        ..COLLECTIVE
    },
    OpDef {
        name: "CollectiveReduce",
        summary: "Reduces the tensors of all members of a group, element by element.",
        inputs: &[arg("input", "T")],
        outputs: DATA,
        attrs: &[
            ty("T", REDUCED),
            int("group_size"),
            int("group_key"),
            int("instance_key"),
            one_of("merge_op", MERGE_OPS),
            one_of("final_op", FINAL_OPS),
            ints("subdiv_offsets"),
            ints_or("wait_for", &[]),
            string_or("communication_hint", "auto"),
            float_or("timeout_seconds", 0.0),
        ],
        gradient: Gradient::Rule(gradient::reduce),
        ..COLLECTIVE
    },
    OpDef {
        name: "CollectiveReduceScatterV2",
        summary: "Reduces the tensors of a group; each member keeps its part of the first dimension.",
        inputs: GROUPED,
        outputs: DATA,
        attrs: REDUCED_ATTRS,
        infer: scattered,
        gradient: Gradient::Rule(gradient::reduce_scatter),
        ..COLLECTIVE
    },
    OpDef {
        name: "CollectiveReduceV2",
        summary: "Reduces the tensors of all members of a group, element by element.",
        inputs: GROUPED,
        outputs: DATA,
        attrs: REDUCED_ATTRS,
        gradient: Gradient::Rule(gradient::reduce),
        ..COLLECTIVE
    },
    OpDef {
        name: "CollectiveReduceV3",
        summary: "Reduces the tensors of the members in each part of a group, element by element.",
        inputs: COMMUNICATOR,
        outputs: DATA,
        attrs: &[
            ty("T", REDUCED),
            one_of("reduction", MERGE_OPS),
            float_or("timeout_seconds", 0.0),
        ],
        gradient: Gradient::Rule(gradient::reduce_communicator),
        ..COLLECTIVE
    },
    OpDef {
        name: "CrossReplicaSum",
        summary: "Adds the tensors of the replicas in each part of an assignment.",
        inputs: &[arg("input", "T"), arg_of("group_assignment", I32)],
        outputs: &[arg("output", "T")],
        attrs: &[ty("T", CROSS_REPLICA)],
        gradient: Gradient::Rule(gradient::cross_replica_sum),
        ..COLLECTIVE
    },
    OpDef {
        name: "NcclAllReduce",
        summary: "Reduces the tensors of all replicas, element by element.",
        inputs: &[arg("input", "T")],
        outputs: DATA,
        attrs: &[
            one_of("reduction", NCCL_REDUCTIONS),
            ty("T", NCCL),
            int("num_devices"),
            string("shared_name"),
        ],
        gradient: Gradient::Rule(gradient::nccl_all_reduce),
        ..COLLECTIVE
    },
    OpDef {
        name: "NcclBroadcast",
        summary: "Sends a tensor to all devices of a graph that use it.",
        inputs: &[arg("input", "T")],
        outputs: &[arg("output", "T")],
        attrs: &[ty("T", NCCL), shape("shape")],
        gradient: Gradient::Same,
        ..COLLECTIVE
    },
    OpDef {
        name: "NcclReduce",
        summary: "Reduces tensors of several devices of a graph, element by element.",
        inputs: &[args("input", "num_devices", "T")],
        outputs: DATA,
        attrs: &[
            one_of("reduction", NCCL_REDUCTIONS),
            ty("T", NCCL),
            int("num_devices").at_least(1),
        ],
        infer: infer::all_same,
        gradient: Gradient::Rule(gradient::nccl_reduce),
        ..COLLECTIVE
    },
    OpDef {
        name: "_CollectiveKey",
        summary: "Gives the key of the next collective of the replica that runs it.",
        outputs: &[arg_of("instance_key", I32).host()],
        infer: infer::scalar,
        lowering: Lowering::Runtime,
        ..OpDef::STATEFUL
    },
    OpDef {
        name: "_CollectiveReduceStart",
        summary: "Starts a reduction as `CollectiveReduceV2`; gives a handle of the result.",
        inputs: GROUPED,
        outputs: PENDING,
        attrs: REDUCED_ATTRS,
        infer: infer::scalar,
        gradient: Gradient::Missing,
        ..COLLECTIVE
    },
    OpDef {
        name: "_CollectiveReduceWait",
        summary: "Waits for the result of a reduction that was started.",
        inputs: PENDING,
        outputs: DATA,
        attrs: &[ty("T", REDUCED), shape("shape")],
        infer: declared,
        lowering: Lowering::Runtime,
        gradient: Gradient::Missing,
        ..OpDef::PURE
    },
];

const SENT_ATTRS: &[AttrDef] = &[
    ty("T", BROADCAST),
    int("group_size"),
    int("group_key"),
    int("instance_key"),
    shape("shape"),
    string_or("communication_hint", "auto"),
    float_or("timeout_seconds", 0.0),
];

const REDUCED_ATTRS: &[AttrDef] = &[
    ty("T", REDUCED),
    one_of("merge_op", MERGE_OPS),
    one_of("final_op", FINAL_OPS),
    string_or("communication_hint", "auto"),
    float_or("timeout_seconds", 0.0),
    flag("is_stateless", false),
    int_or("Nordering_token", 0).at_least(0),
    int_or("max_subdivs_per_device", -1),
];

/// The result has the shape of the attribute.
fn declared(context: &mut OpContext<'_>) -> Result<()> {
    let shape = context.attrs.shape("shape")?.clone();
    context.set(0, shape);
    Ok(())
}

/// The result has the shape in input 3.
fn received(context: &mut OpContext<'_>) -> Result<()> {
    let shape = context.shape_value(3)?;
    context.set(0, shape);
    Ok(())
}

fn parts(context: &mut OpContext<'_>) -> Result<()> {
    context.check_rank_at_least(0, 1)?;
    infer::unchanged(context)
}

/// The number of members, where input 1 is known to say one.
fn group_size(context: &OpContext<'_>) -> Result<Option<usize>> {
    match context.int(1)? {
        None => Ok(None),
        Some(size) => match usize::try_from(size) {
            Ok(size) if size > 0 => Ok(Some(size)),
            _ => Err(context.wrong(1, "a number of members", size)),
        },
    }
}

/// The shape of input 0 with another first dimension.
fn with_rows(context: &OpContext<'_>, rows: Option<usize>) -> PartialShape {
    match context.shape(0).dims() {
        None => PartialShape::Unknown,
        Some(dims) => {
            let rest = dims.iter().skip(1).copied();
            PartialShape::ranked(std::iter::once(rows).chain(rest))
        }
    }
}

fn gathered(context: &mut OpContext<'_>) -> Result<()> {
    context.check_rank_at_least(0, 1)?;
    let size = group_size(context)?;
    let rows = context.shape(0).dim(0).zip(size).and_then(|(rows, size)| rows.checked_mul(size));
    let shape = with_rows(context, rows);
    context.set(0, shape);
    Ok(())
}

fn scattered(context: &mut OpContext<'_>) -> Result<()> {
    context.check_rank_at_least(0, 1)?;
    let rows = match context.shape(0).dim(0).zip(group_size(context)?) {
        None => None,
        Some((rows, size)) if rows % size == 0 => Some(rows / size),
        Some((_, size)) => {
            let expected = format!("of rows that {size} members share evenly");
            return Err(context.wrong(0, expected, context.shape(0)));
        }
    };
    let shape = with_rows(context, rows);
    context.set(0, shape);
    Ok(())
}
