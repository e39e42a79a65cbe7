//! Operations that move elements: shapes, slices, gathers, paddings.

use super::{
    super::{
        constant::{dtype, malformed},
        module::{HloOp, TensorType},
    },
    ImportScope, exactly,
};
use ferroflow_ir::{
    Attrs, DType, HostTensor, PartialShape, Result,
    emit::{Value, call, call_with, calls_with},
    xla::{
        gather::{GatherAxes, gather},
        pad::{AxisPadding, pad},
        size::{self, Size, of_vector, rank, sizes},
        slice,
    },
};

/// The results of an operation that moves elements; `None` for another one.
pub(super) fn shaping<'e>(
    scope: ImportScope<'e>,
    op: &HloOp,
    x: &[Value<'e>],
) -> Result<Option<Vec<Value<'e>>>> {
    let result = match &*op.name {
        "broadcast_in_dim" => {
            let [a] = *exactly(op, x)?;
            let shape = static_sizes(op)?;
            broadcast_in_dim(op, a, shape)?
        }
        "dynamic_broadcast_in_dim" => {
            let [a, shape] = *exactly(op, x)?;
            broadcast_in_dim(op, a, told_sizes(op, shape)?)?
        }
        "broadcast" => {
            let [a] = *exactly(op, x)?;
            size::broadcast(a, &static_sizes(op)?)
        }
        "reshape" => {
            let [a] = *exactly(op, x)?;
            size::reshape(a, &static_sizes(op)?)
        }
        "dynamic_reshape" => {
            let [a, shape] = *exactly(op, x)?;
            size::reshape(a, &told_sizes(op, shape)?)
        }
        "transpose" => {
            let [a] = *exactly(op, x)?;
            let order = op.axes("permutation", rank(a))?;
            match order.len() == rank(a) {
                true => size::transpose(a, &order),
                false => return Err(malformed(op, "`permutation` has all axes")),
            }
        }
        "reverse" => {
            let [a] = *exactly(op, x)?;
            slice::reverse(a, &op.axes("dimensions", rank(a))?)
        }
        "slice" => {
            let [a] = *exactly(op, x)?;
            let [start, limit, step] = ["start_indices", "limit_indices", "strides"]
                .map(|name| per_axis(op, name, rank(a)));
            static_slice(op, a, &start?, &limit?, &step?)?
        }
        "real_dynamic_slice" => {
            let [a, start, limit, step] = *exactly(op, x)?;
            let [start, limit, step] = [start, limit, step].map(of_vector);
            if [&start, &limit, &step].iter().any(|list| list.len() != rank(a)) {
                return Err(malformed(op, "there is one bound for each axis"));
            }
            slice::strided(a, &start, &limit, &step)
        }
        "dynamic_slice" => {
            let (&a, starts) = x.split_first().ok_or_else(|| malformed(op, "it has operands"))?;
            let slice = per_axis(op, "slice_sizes", rank(a))?;
            check_starts(op, starts, rank(a))?;
            slice::dynamic_slice(a, &slice::starts(starts.iter().copied()), &slice)
        }
        "dynamic_update_slice" => {
            let [a, update, starts @ ..] = x else {
                return Err(malformed(op, "it has operands"));
            };
            check_starts(op, starts, rank(*a))?;
            slice::dynamic_update_slice(*a, *update, &slice::starts(starts.iter().copied()))
        }
        "pad" => {
            let [a, value] = *exactly(op, x)?;
            let [low, high, interior] =
                ["edge_padding_low", "edge_padding_high", "interior_padding"]
                    .map(|name| per_axis(op, name, rank(a)));
            padded(op, a, value, AxisPadding { low: low?, high: high?, interior: interior? })?
        }
        "dynamic_pad" => {
            let [a, value, low, high, interior] = *exactly(op, x)?;
            let [low, high, interior] = [low, high, interior].map(of_vector);
            if [&low, &high, &interior].iter().any(|list| list.len() != rank(a)) {
                return Err(malformed(op, "there is one padding for each axis"));
            }
            padded(op, a, value, AxisPadding { low, high, interior })?
        }
        "concatenate" => {
            let first = x.first().ok_or_else(|| malformed(op, "it has an operand"))?;
            let axis = op.axis("dimension", rank(*first))?;
            match x {
                [one] => *one,
                _ => Value::concat(x, axis as i64),
            }
        }
        "gather" => {
            let [a, indices] = *exactly(op, x)?;
            let slice = per_axis(op, "slice_sizes", rank(a))?;
            gathered(op, a, indices, &slice)?
        }
        "dynamic_gather" => {
            let [a, indices, slice] = *exactly(op, x)?;
            gathered(op, a, indices, &of_vector(slice))?
        }
        "torch_index_select" => {
            let [a, indices] = *exactly(op, x)?;
            let attrs = Attrs::new().with("batch_dims", op.int("batch_dims")?);
            let axis = op.axis("dim", rank(a))? as i64;
            call_with("GatherV2", attrs, [a, indices, a.literal(axis)])
        }
        "get_dimension_size" => {
            let [a] = *exactly(op, x)?;
            let axis = op.axis("dimension", rank(a))?;
            let size = sizes(a).get(axis).copied().unwrap_or(Size::Known(0));
            match size {
                Size::Known(known) => a.literal(known as i32),
                Size::Computed(value) => value.cast(DType::I32),
            }
        }
        "set_dimension_size" => {
            let [a, size] = *exactly(op, x)?;
            let axis = op.axis("dimension", rank(a))? as i32;
            call("XlaSetDynamicDimensionSize", [a, a.literal(axis), size.cast(DType::I32)])
        }
        "iota" => {
            let ty = op.result_type(0)?;
            let anchor = scope.constant(HostTensor::scalar(0i64));
            iota(op, ty, &static_sizes(op)?, anchor)?
        }
        "dynamic_iota" => {
            let [shape] = *exactly(op, x)?;
            iota(op, op.result_type(0)?, &told_sizes(op, shape)?, shape)?
        }
        "optimization_barrier" => {
            let attrs =
                Attrs::new().with("T", x.iter().map(|value| value.dtype()).collect::<Vec<_>>());
            return Ok(Some(match x {
                [] => Vec::new(),
                _ => calls_with("IdentityN", attrs, x).values().to_vec(),
            }));
        }
        "after_all" | "create_token" => scope.constant(HostTensor::scalar_bool(false)),
        "partition_id" | "replica_id" => scope.constant(HostTensor::scalar(0u32)),
        "cross-replica-sum"
        | "all_gather"
        | "all_to_all"
        | "collective_permute"
        | "collective_broadcast" => return one_replica(op, x).map(Some),
        _ => return Ok(None),
    };
    Ok(Some(vec![result]))
}

/// A collective operation of the only replica there is: nothing moves.
fn one_replica<'e>(op: &HloOp, x: &[Value<'e>]) -> Result<Vec<Value<'e>>> {
    for (index, value) in x.iter().enumerate() {
        let expected = PartialShape::ranked(op.result_type(index)?.dims.iter().copied());
        if !value.partial_shape().is_compatible_with(&expected) {
            let what = "several replicas";
            return Err(super::super::constant::unsupported(op, what));
        }
    }
    Ok(x.to_vec())
}

/// The sizes of the result, all of which its type tells.
fn static_sizes<'e>(op: &HloOp) -> Result<Vec<Size<'e>>> {
    let dims = op.result_type(0)?.dims.iter();
    let known: Option<Vec<Size<'e>>> =
        dims.map(|dim| dim.map(|size| Size::Known(size as i64))).collect();
    known.ok_or_else(|| malformed(op, "its result is of known size"))
}

/// The sizes that an operand tells, or the type of the result where that does.
fn told_sizes<'e>(op: &HloOp, shape: Value<'e>) -> Result<Vec<Size<'e>>> {
    let ty = op.result_type(0)?;
    let told = of_vector(shape);
    if told.len() != ty.dims.len() {
        return Err(malformed(op, "the shape of its result is told by an operand"));
    }
    let each = ty.dims.iter().zip(told);
    Ok(each.map(|(dim, told)| dim.map_or(told, |size| Size::Known(size as i64))).collect())
}

/// Integers of an attribute, one for each axis.
fn per_axis<'e>(op: &HloOp, name: &str, rank: usize) -> Result<Vec<Size<'e>>> {
    let ints = op.ints(name)?;
    match ints.len() == rank {
        true => Ok(ints.into_iter().map(Size::Known).collect()),
        false => Err(malformed(op, format!("`{name}` has an element for each axis"))),
    }
}

fn check_starts(op: &HloOp, starts: &[Value<'_>], rank: usize) -> Result<()> {
    match starts.len() == rank && starts.iter().all(|start| start.rank() == Some(0)) {
        true => Ok(()),
        false => Err(malformed(op, "it has a start for each axis")),
    }
}

fn static_slice<'e>(
    op: &HloOp,
    x: Value<'e>,
    start: &[Size<'e>],
    limit: &[Size<'e>],
    step: &[Size<'e>],
) -> Result<Value<'e>> {
    let bounds = start.iter().zip(limit).zip(step);
    let good = bounds.clone().all(|((start, limit), step)| {
        let known = (start.known(), limit.known(), step.known());
        matches!(known, (Some(a), Some(b), Some(c)) if 0 <= a && a <= b && c > 0)
    });
    if !good {
        return Err(malformed(op, "a slice goes forward from its start to its limit"));
    }
    if step.iter().all(|step| step.known() == Some(1)) {
        let size: Vec<Size<'e>> =
            start.iter().zip(limit).map(|(&start, &limit)| limit.minus(start)).collect();
        return Ok(if size.is_empty() { x } else { size::window(x, start, &size) });
    }
    Ok(slice::strided(x, start, limit, step))
}

fn padded<'e>(
    op: &HloOp,
    x: Value<'e>,
    value: Value<'e>,
    padding: AxisPadding<'e>,
) -> Result<Value<'e>> {
    match padding.interior.iter().all(|size| size.known().is_none_or(|size| size >= 0)) {
        true => Ok(pad(x, value, &padding)),
        false => Err(malformed(op, "there are no fewer than 0 elements between others")),
    }
}

fn broadcast_in_dim<'e>(op: &HloOp, x: Value<'e>, shape: Vec<Size<'e>>) -> Result<Value<'e>> {
    let axes = op.axes("broadcast_dimensions", shape.len())?;
    let own = sizes(x);
    if axes.len() != own.len() {
        return Err(malformed(op, "`broadcast_dimensions` has an axis for each of the operand"));
    }
    let (x, axes, own) = match axes.is_sorted() {
        true => (x, axes, own),
        false => {
            let mut order: Vec<usize> = (0..axes.len()).collect();
            order.sort_by_key(|&position| axes[position]);
            let axes = order.iter().map(|&position| axes[position]).collect();
            let own = order.iter().map(|&position| own[position]).collect();
            (size::transpose(x, &order), axes, own)
        }
    };
    let mut wide = vec![Size::Known(1); shape.len()];
    for (&axis, &size) in axes.iter().zip(&own) {
        wide[axis] = size;
    }
    Ok(size::broadcast(size::reshape(x, &wide), &shape))
}

fn iota<'e>(
    op: &HloOp,
    ty: &TensorType,
    shape: &[Size<'e>],
    anchor: Value<'e>,
) -> Result<Value<'e>> {
    let dtype = dtype(ty.element)?;
    let axis = op.axis("iota_dimension", shape.len())?;
    let along = size::range_along(shape[axis], axis, shape.len(), anchor).cast(dtype);
    Ok(size::broadcast(along, shape))
}

fn gathered<'e>(
    op: &HloOp,
    x: Value<'e>,
    indices: Value<'e>,
    slice: &[Size<'e>],
) -> Result<Value<'e>> {
    let (n, m) = (rank(x), rank(indices));
    let axes = GatherAxes {
        offset: op.axes("offset_dims", usize::MAX)?,
        collapsed: op.axes("collapsed_slice_dims", n)?,
        operand_batch: op.axes("operand_batching_dims", n)?,
        indices_batch: op.axes("start_indices_batching_dims", m)?,
        start_map: op.axes("start_index_map", n)?,
        index_vector: op.axis("index_vector_dim", m + 1)?,
    };
    if !axes.fits(n, m) || slice.len() != n {
        return Err(malformed(op, "its axes are those of its operands"));
    }
    let gathered = gather(x, indices, &axes, slice);
    Ok(gathered)
}
