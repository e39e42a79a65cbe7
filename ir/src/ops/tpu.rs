//! Ops around computations for TPUs, with the meaning they have on a single device: there is one
//! replica, and the parts of a tensor are put together again.

use super::blocks::{cut, join};
use crate::{
    dtype::DType,
    emit::{Composite, Value},
    error::{Error, Result},
    host_tensor::HostTensor,
    infer::{self, OpContext},
    op::*,
    shape::{Dim, PartialShape},
};

/// Puts the parts of a tensor together.
const PARTITIONED_INPUT: OpDef = OpDef {
    inputs: &[args("inputs", "N", "T")],
    outputs: &[arg("output", "T")],
    infer: |context| {
        let shape = whole(context)?;
        context.set(0, shape);
        Ok(())
    },
    lowering: Lowering::Composite(|c| match (c.n_inputs(), partitions(c, c.n_inputs())) {
        (1, _) | (_, None) => vec![c.x(0)],
        (_, Some(counts)) => vec![join(c.inputs(), &counts)],
    }),
    ..OpDef::PURE
};

/// Cuts a tensor into parts.
const PARTITIONED_OUTPUT: OpDef = OpDef {
    inputs: &[arg("inputs", "T")],
    outputs: &[args("output", "num_splits", "T")],
    infer: |context| {
        let shape = part(context)?;
        context.set_all(&shape);
        Ok(())
    },
    lowering: Lowering::Composite(|c| {
        let n = usize::try_from(c.int("num_splits")).unwrap_or(1);
        match (n, partitions(c, n)) {
            (1, _) => vec![c.x(0)],
            (_, None) => vec![c.x(0); n],
            (_, Some(counts)) => cut(c.x(0), &counts),
        }
    }),
    ..OpDef::PURE
};

pub(super) static OPS: &[OpDef] = &[
    OpDef {
        name: "TPUCompilationResult",
        summary: "Tells how a compilation went: an empty message, which means that it went well.",
        outputs: &[arg_of("output", DType::String)],
        infer: infer::scalar,
        lowering: Lowering::Composite(|c| vec![c.constant(Ok(HostTensor::scalar_string("")))]),
        ..OpDef::PURE
    },
    OpDef {
        name: "TPUOrdinalSelector",
        summary: "Names the cores to run on: the first.",
        outputs: &[arg_of("device_ordinals", DType::I32)],
        infer: |context| {
            context.set(0, PartialShape::vector(Some(1)));
            Ok(())
        },
        lowering: Lowering::Composite(|c| vec![c.vector(&[0i32])]),
        ..OpDef::PURE
    },
    OpDef {
        name: "TPUPartitionedInput",
        summary: "Puts the parts of a tensor together along a dimension.",
        attrs: &[int("N").at_least(1), any_ty("T"), int_or("partition_dim", 0)],
        ..PARTITIONED_INPUT
    },
    OpDef {
        name: "TPUPartitionedInputV2",
        summary: "Puts the parts of a tensor together along all dimensions.",
        attrs: &[
            int("N").at_least(1),
            any_ty("T"),
            ints("partition_dims"),
            flag("is_packed", false),
        ],
        ..PARTITIONED_INPUT
    },
    OpDef {
        name: "TPUPartitionedOutput",
        summary: "Cuts a tensor into parts along a dimension.",
        attrs: &[any_ty("T"), int("num_splits").at_least(1), int_or("partition_dim", 0)],
        ..PARTITIONED_OUTPUT
    },
    OpDef {
        name: "TPUPartitionedOutputV2",
        summary: "Cuts a tensor into parts along all dimensions.",
        attrs: &[any_ty("T"), int("num_splits").at_least(1), ints("partition_dims")],
        ..PARTITIONED_OUTPUT
    },
    OpDef {
        name: "TPUReplicateMetadata",
        summary: "Says how a computation was to be replicated.",
        attrs: &[
            int("num_replicas").at_least(0),
            int_or("num_cores_per_replica", 1),
            string_or("topology", ""),
            flag("use_tpu", true),
            ints_or("device_assignment", &[]),
            ints_or("computation_shape", &[]),
            strings("host_compute_core").or(AttrDefault::Strings(&[])),
            strings("padding_map").or(AttrDefault::Strings(&[])),
            string_or("step_marker_location", "STEP_MARK_AT_ENTRY"),
            flag("allow_soft_placement", false),
            flag("use_spmd_for_xla_partitioning", false),
            flag("use_shardy_partitioner", false),
            string_or("tpu_compile_options_proto", ""),
        ],
        lowering: Lowering::Composite(|_| Vec::new()),
        ..OpDef::PURE
    },
    OpDef {
        name: "TPUReplicatedInput",
        summary: "Takes the input of the first replica.",
        inputs: &[args("inputs", "N", "T")],
        outputs: &[arg("output", "T")],
        attrs: &[
            int("N").at_least(1),
            any_ty("T"),
            flag("is_mirrored_variable", false),
            int_or("index", -1),
            flag("is_packed", false),
        ],
        infer: infer::all_same,
        lowering: Lowering::Composite(|c| vec![c.x(0)]),
        ..OpDef::PURE
    },
    OpDef {
        name: "TPUReplicatedOutput",
        summary: "Gives every replica the output.",
        inputs: &[arg("input", "T")],
        outputs: &[args("outputs", "num_replicas", "T")],
        attrs: &[int("num_replicas").at_least(1), any_ty("T")],
        infer: |context| {
            let shape = context.shape(0).clone();
            context.set_all(&shape);
            Ok(())
        },
        lowering: Lowering::Composite(|c| {
            vec![c.x(0); usize::try_from(c.int("num_replicas")).unwrap_or(1)]
        }),
        ..OpDef::PURE
    },
    OpDef {
        name: "TPURoundRobin",
        summary: "Names the core to run on: the first.",
        outputs: &[arg_of("device_ordinal", DType::I32)],
        infer: infer::scalar,
        lowering: Lowering::Composite(|c| vec![c.scalar(0i32)]),
        ..OpDef::PURE
    },
];

/// The numbers of parts along the dimensions; `None` where every part is the whole tensor.
fn partitions<'e>(c: &Composite<'e>, n: usize) -> Option<Vec<i64>> {
    let x: Value<'e> = c.x(0);
    match c.attrs.ints("partition_dims") {
        Ok([]) => None,
        Ok(dims) => Some(dims.to_vec()),
        Err(_) => {
            let axis = usize::try_from(c.int("partition_dim")).ok()?;
            let mut counts = vec![1; x.shape().rank()];
            *counts.get_mut(axis)? = n as i64;
            Some(counts)
        }
    }
}

/// The numbers of parts of a tensor of this rank, as [`partitions`].
fn counts(context: &OpContext<'_>, rank: usize, n: usize) -> Result<Option<Vec<usize>>> {
    if n == 1 {
        return Ok(None);
    }
    if let Some(value) = context.attrs.get("partition_dims") {
        let dims = context.attrs.ints("partition_dims")?;
        let counts: Option<Vec<usize>> = dims.iter().map(|&n| usize::try_from(n).ok()).collect();
        let is_fit = |counts: &Vec<usize>| {
            let all = counts.iter().try_fold(1usize, |all, &count| all.checked_mul(count));
            counts.is_empty() || (counts.len() == rank && all == Some(n))
        };
        let expected = format!("{n} parts of a tensor of rank {rank}");
        let wrong = || context.wrong_attr("partition_dims", expected, value);
        let counts = counts.filter(is_fit).ok_or_else(wrong)?;
        return Ok((!counts.is_empty()).then_some(counts));
    }
    let axis = context.attrs.int("partition_dim")?;
    let Ok(axis) = usize::try_from(axis) else { return Ok(None) };
    if axis >= rank {
        let expected = format!("a dimension of a tensor of rank {rank}");
        return Err(context.wrong_attr("partition_dim", expected, axis));
    }
    let mut counts = vec![1; rank];
    counts[axis] = n;
    Ok(Some(counts))
}

/// The shape of the parts put together.
fn whole(context: &OpContext<'_>) -> Result<PartialShape> {
    let mut shape = context.shape(0).clone();
    for index in 1..context.n_inputs() {
        let other = context.shape(index);
        let merged = shape.merge(other);
        let wrong = || context.wrong(index, format!("of shape {shape}, as the others"), other);
        shape = merged.ok_or_else(wrong)?;
    }
    let Some(dims) = shape.dims() else { return Ok(shape) };
    let Some(counts) = counts(context, dims.len(), context.n_inputs())? else { return Ok(shape) };
    if matches!(context.dtype(0), DType::Resource | DType::Variant) {
        let what = "parts of a variable on several devices".into();
        return Err(Error::Unsupported { op: context.op.name.into(), what });
    }
    let sizes = dims.iter().zip(counts).map(|(dim, count)| dim.map(|size| size * count));
    Ok(PartialShape::ranked(sizes.collect::<Vec<Dim>>()))
}

/// The shape of a part.
fn part(context: &OpContext<'_>) -> Result<PartialShape> {
    let shape = context.shape(0);
    let Some(dims) = shape.dims() else { return Ok(shape.clone()) };
    let Some(counts) = counts(context, dims.len(), context.n_outputs())? else {
        return Ok(shape.clone());
    };
    let mut sizes: Vec<Dim> = Vec::with_capacity(dims.len());
    for (&dim, &count) in dims.iter().zip(&counts) {
        if count == 0 || dim.is_some_and(|size| !size.is_multiple_of(count)) {
            let expected = format!("of sizes that are multiples of {counts:?}");
            return Err(context.wrong(0, expected, shape));
        }
        sizes.push(dim.map(|size| size / count));
    }
    Ok(PartialShape::ranked(sizes))
}
