//! Kernels as operations of StableHLO.

use super::super::module::Attr;
use super::{
    block::{Block, HloAttrs, Typed, attrs, case::Direction, int, ints},
    lower::{LoweredNode, bound},
    scalar::element,
    slices, window,
};
use ferroflow_ir::{DType, HostTensor, Result, expr::Constant};
use std::sync::Arc;

type Rule = fn(&mut Block<'_>, &LoweredNode<'_>) -> Result<Vec<Typed>>;

/// The kernels that have a form, by op.
const RULES: &[(&str, Rule)] = &[
    ("ArgMax", |block, node| arg(block, node, false)),
    ("ArgMin", |block, node| arg(block, node, true)),
    ("AvgPool", |block, node| window::pool(block, node, false)),
    ("AvgPool3D", |block, node| window::pool(block, node, false)),
    ("BatchMatMul", |block, node| matmul(block, node, ["adj_x", "adj_y"])),
    ("BatchMatMulV2", |block, node| matmul(block, node, ["adj_x", "adj_y"])),
    ("BatchMatMulV3", |block, node| matmul(block, node, ["adj_x", "adj_y"])),
    ("Cholesky", cholesky),
    ("ConcatV2", concat),
    ("Conv2D", |block, node| window::convolution(block, node, false)),
    ("Conv2DBackpropInput", window::transposed),
    ("Conv3D", |block, node| window::convolution(block, node, false)),
    ("Cumsum", cumsum),
    ("DepthwiseConv2dNative", |block, node| window::convolution(block, node, true)),
    ("Fill", |block, node| {
        let (_, dims) = node.result(0)?;
        Ok(vec![block.broadcast(node.x(1)?, &[], &dims)])
    }),
    ("GatherV2", gather),
    ("LogSoftmax", |block, node| softmax(block, node, true)),
    ("MatMul", |block, node| matmul(block, node, ["transpose_a", "transpose_b"])),
    ("MaxPool", |block, node| window::pool(block, node, true)),
    ("MaxPool3D", |block, node| window::pool(block, node, true)),
    ("OneHot", one_hot),
    ("Pack", pack),
    ("Pad", pad),
    ("PadV2", pad),
    ("Softmax", |block, node| softmax(block, node, false)),
    ("TensorScatterAdd", |block, node| scatter(block, node, Some("add"))),
    ("TensorScatterMax", |block, node| scatter(block, node, Some("maximum"))),
    ("TensorScatterMin", |block, node| scatter(block, node, Some("minimum"))),
    ("TensorScatterSub", |block, node| scatter(block, node, Some("subtract"))),
    ("TensorScatterUpdate", |block, node| scatter(block, node, None)),
    ("TensorStridedSliceUpdate", update),
    ("TopKV2", top_k),
    ("_TensorScatterMul", |block, node| scatter(block, node, Some("multiply"))),
];

pub(super) fn lower(block: &mut Block<'_>, node: &LoweredNode<'_>) -> Result<Vec<Typed>> {
    let rule = RULES.iter().find(|(name, _)| *name == node.op.name).map(|(_, rule)| rule);
    let rule = rule.ok_or_else(|| node.refused("StableHLO has no form of it here"))?;
    rule(block, node)
}

/// An axis that may count from the end.
fn axis(node: &LoweredNode<'_>, axis: i64, rank: usize) -> Result<usize> {
    let from_end = if axis < 0 { axis + rank as i64 } else { axis };
    let found = usize::try_from(from_end).ok().filter(|&axis| axis < rank);
    found.ok_or_else(|| node.refused(format!("axis {axis} of {rank}")))
}

fn concat(block: &mut Block<'_>, node: &LoweredNode<'_>) -> Result<Vec<Typed>> {
    let n = node.node.inputs().len() - 1;
    let parts: Vec<&Typed> = (0..n).map(|index| node.x(index)).collect::<Result<_>>()?;
    let axis = axis(node, node.int(n)?, parts[0].rank())?;
    Ok(vec![block.concatenate(&parts, axis)])
}

fn pack(block: &mut Block<'_>, node: &LoweredNode<'_>) -> Result<Vec<Typed>> {
    let parts = node.xs()?;
    let axis = axis(node, node.node.attrs.int("axis")?, parts[0].rank() + 1)?;
    let mut dims = parts[0].dims.clone();
    dims.insert(axis, 1);
    let parts: Vec<Typed> = parts.into_iter().map(|part| block.reshape(part, &dims)).collect();
    Ok(vec![block.concatenate(&parts.iter().collect::<Vec<_>>(), axis)])
}

/// The product of matrices, the last two dimensions of operands whose others broadcast.
fn matmul(block: &mut Block<'_>, node: &LoweredNode<'_>, flags: [&str; 2]) -> Result<Vec<Typed>> {
    let (dtype, dims) = node.result(0)?;
    let batch = &dims[..dims.len() - 2];
    let operand = |block: &mut Block<'_>, x: &Typed| {
        let dims = [batch, &x.dims[x.rank() - 2..]].concat();
        block.broadcast_last(x, &dims)
    };
    let (a, b) = (operand(block, node.x(0)?), operand(block, node.x(1)?));
    let [a_flag, b_flag] = flags.map(|flag| node.node.attrs.bool(flag));
    let (a_flag, b_flag) = (a_flag?, b_flag?);
    if (a_flag || b_flag) && flags[0] == "adj_x" && a.dtype.is_complex() {
        return Err(node.refused("adjoints of complex matrices"));
    }
    let rank = batch.len();
    let batches: Vec<usize> = (0..rank).collect();
    let contracted = [if a_flag { rank } else { rank + 1 }, if b_flag { rank + 1 } else { rank }];
    let attrs = dot_attrs(&batches, contracted);
    Ok(vec![block.op("dot_general", attrs, &[&a, &b], (dtype, &dims))])
}

fn dot_attrs(batches: &[usize], [left, right]: [usize; 2]) -> HloAttrs {
    attrs([
        ("lhs_batching_dimensions", ints(batches)),
        ("lhs_contracting_dimensions", ints(&[left])),
        ("precision_config", precision()),
        ("rhs_batching_dimensions", ints(batches)),
        ("rhs_contracting_dimensions", ints(&[right])),
    ])
}

/// The default precision, of both operands.
pub(super) fn precision() -> Attr {
    Attr::Array([0, 0].map(|case| Arc::new(Attr::Case(case))).into())
}

/// Along the last dimension; the largest element is taken away first.
fn softmax(block: &mut Block<'_>, node: &LoweredNode<'_>, log: bool) -> Result<Vec<Typed>> {
    let x = node.x(0)?;
    let (dtype, dims) = (x.dtype, x.dims.clone());
    let wide = if dtype == DType::F64 { DType::F64 } else { DType::F32 };
    let x = block.convert(x, wide);
    let last = x.rank() - 1;
    let kept: Vec<usize> = (0..last).collect();
    let lowest = block.constant(&element(bound(wide, false), wide)?);
    let zero = block.constant(&element(Constant::Int(0), wide)?);
    let most = block.reduce(&x, &lowest, &[last], "maximum");
    let most = block.broadcast(&most, &kept, &dims);
    let shifted = block.same("subtract", &[&x, &most]);
    let exp = block.same("exponential", &[&shifted]);
    let sum = block.reduce(&exp, &zero, &[last], "add");
    let result = if log {
        let sum = block.same("log", &[&sum]);
        let sum = block.broadcast(&sum, &kept, &dims);
        block.same("subtract", &[&shifted, &sum])
    } else {
        let sum = block.broadcast(&sum, &kept, &dims);
        block.same("divide", &[&exp, &sum])
    };
    Ok(vec![block.convert(&result, dtype)])
}

fn pad(block: &mut Block<'_>, node: &LoweredNode<'_>) -> Result<Vec<Typed>> {
    let x = node.x(0)?.clone();
    let (dtype, dims) = node.result(0)?;
    let amounts: Vec<usize> = node
        .ints(1)?
        .into_iter()
        .map(|amount| usize::try_from(amount).map_err(|_| node.refused("negative padding")))
        .collect::<Result<_>>()?;
    let value = match node.node.inputs().len() {
        2 => block.constant(&element(Constant::Int(0), dtype)?),
        _ => node.x(2)?.clone(),
    };
    let side = |side: usize| ints(&amounts.chunks(2).map(|pair| pair[side]).collect::<Vec<_>>());
    let attrs = attrs([
        ("edge_padding_high", side(1)),
        ("edge_padding_low", side(0)),
        ("interior_padding", ints(&vec![0; x.rank()])),
    ]);
    Ok(vec![block.op("pad", attrs, &[&x, &value], (dtype, &dims))])
}

/// Slices along an axis, by an index for each, from the part of each batch. Indices outside are moved
/// inside, as XLA does.
fn gather(block: &mut Block<'_>, node: &LoweredNode<'_>) -> Result<Vec<Typed>> {
    let (params, indices) = (node.x(0)?.clone(), node.x(1)?.clone());
    let (dtype, dims) = node.result(0)?;
    let axis = axis(node, node.int(2)?, params.rank())?;
    let rank = indices.rank();
    let batch = node.node.attrs.int("batch_dims")?;
    let batch = if batch < 0 { batch + rank as i64 } else { batch } as usize;
    if batch > axis || batch > rank {
        return Err(node.refused(format!("{batch} dimensions of batches")));
    }
    // Behind each index stand the numbers of its batch.
    let starts = match batch {
        0 => indices.clone(),
        _ => {
            let one = [&indices.dims[..], &[1]].concat();
            let own: Vec<Typed> =
                (0..batch).map(|axis| block.iota(indices.dtype, &one, axis)).collect();
            let indices = block.reshape(&indices, &one);
            block.concatenate(&own.iter().chain([&indices]).collect::<Vec<_>>(), rank)
        }
    };
    let offsets = (batch..axis).chain(axis + rank - batch..dims.len());
    let named: Vec<usize> = (0..batch).chain([axis]).collect();
    let mut sizes = params.dims.clone();
    named.iter().for_each(|&axis| sizes[axis] = 1);
    let attrs = attrs([
        ("collapsed_slice_dims", ints(&named)),
        ("index_vector_dim", int(rank)),
        ("indices_are_sorted", Attr::Bool(false)),
        ("offset_dims", ints(&offsets.collect::<Vec<_>>())),
        ("slice_sizes", ints(&sizes)),
        ("start_index_map", ints(&named)),
    ]);
    Ok(vec![block.op("gather", attrs, &[&params, &starts], (dtype, &dims))])
}

/// Slices that are combined with those that indices name, or replace them. Those outside are left out, as
/// XLA does.
fn scatter(block: &mut Block<'_>, node: &LoweredNode<'_>, by: Option<&str>) -> Result<Vec<Typed>> {
    let (x, indices, updates) = (node.x(0)?.clone(), node.x(1)?.clone(), node.x(2)?.clone());
    let (dtype, dims) = node.result(0)?;
    let batch = indices.rank().saturating_sub(1);
    let depth = indices.dims.last().copied().unwrap_or(0);
    let named: Vec<usize> = (0..depth).collect();
    let attrs = attrs([
        ("index_vector_dim", int(batch)),
        ("indices_are_sorted", Attr::Bool(false)),
        ("inserted_window_dims", ints(&named)),
        ("scatter_dims_to_operand_dims", ints(&named)),
        ("unique_indices", Attr::Bool(false)),
        ("update_window_dims", ints(&(batch..updates.rank()).collect::<Vec<_>>())),
    ]);
    let region = match by {
        Some(by) => block.pairwise(dtype, by),
        None => {
            let args = [block.numbers.value(dtype, &[]), block.numbers.value(dtype, &[])];
            Block::new(block.numbers).region(&args, &[&args[1]])
        }
    };
    Ok(block.op_with("scatter", attrs, &[&x, &indices, &updates], vec![region], &[(dtype, &dims)]))
}

/// An update of a window without gaps, which has as many dimensions as the tensor.
fn update(block: &mut Block<'_>, node: &LoweredNode<'_>) -> Result<Vec<Typed>> {
    let (x, begin, value) = (node.x(0)?.clone(), node.x(1)?.clone(), node.x(4)?.clone());
    let masks = ["begin_mask", "ellipsis_mask", "new_axis_mask", "shrink_axis_mask"];
    let masks = masks.into_iter().map(|mask| node.node.attrs.int(mask));
    let is_plain = masks.collect::<Result<Vec<i64>>>()?.iter().all(|&mask| mask == 0)
        && node.ints(3)?.iter().all(|&stride| stride == 1)
        && value.rank() == x.rank()
        && begin.dims == [x.rank()];
    match is_plain {
        true => Ok(vec![slices::update(block, &x, &begin, &value)]),
        false => Err(node.refused("an update of a window with gaps")),
    }
}

/// The first of the sorted elements; those that are equal stay in order.
fn top_k(block: &mut Block<'_>, node: &LoweredNode<'_>) -> Result<Vec<Typed>> {
    let x = node.x(0)?.clone();
    let ((_, dims), (index, _)) = (node.result(0)?, node.result(1)?);
    let last = x.rank() - 1;
    let numbers = block.iota(index, &x.dims, last);
    let args = [x.dtype, x.dtype, index, index].map(|dtype| block.numbers.value(dtype, &[]));
    let mut order = Block::new(block.numbers);
    let is_larger = order.compare(Direction::Gt, &args[0], &args[1]);
    let region = order.region(&args, &[&is_larger]);
    let attrs = attrs([("dimension", int(last)), ("is_stable", Attr::Bool(true))]);
    let types: [(DType, &[usize]); 2] = [(x.dtype, &x.dims), (index, &x.dims)];
    let sorted = block.op_with("sort", attrs, &[&x, &numbers], vec![region], &types);
    let (start, strides) = (vec![0; x.rank()], vec![1; x.rank()]);
    Ok(sorted.iter().map(|all| block.slice(all, &start, &dims, &strides)).collect())
}

/// The lower factor; what is above the diagonal is 0.
fn cholesky(block: &mut Block<'_>, node: &LoweredNode<'_>) -> Result<Vec<Typed>> {
    let x = node.x(0)?.clone();
    let (dtype, dims) = node.result(0)?;
    let factor = block.op("cholesky", attrs([("lower", Attr::Bool(true))]), &[&x], (dtype, &dims));
    let [rows, columns] =
        [2, 1].map(|from_end| block.iota(DType::I32, &dims, dims.len() - from_end));
    let is_below = block.compare(Direction::Ge, &rows, &columns);
    let zero = block.splat(dtype, element(Constant::Int(0), dtype)?.bytes(), &dims);
    Ok(vec![block.select(&is_below, &factor, &zero)])
}

fn one_hot(block: &mut Block<'_>, node: &LoweredNode<'_>) -> Result<Vec<Typed>> {
    let indices = node.x(0)?.clone();
    let (_, dims) = node.result(0)?;
    let at = match node.node.attrs.int("axis")? {
        -1 => indices.rank(),
        other => axis(node, other, indices.rank() + 1)?,
    };
    let axes: Vec<usize> = (0..dims.len()).filter(|&axis| axis != at).collect();
    let wanted = block.broadcast(&indices, &axes, &dims);
    let numbers = block.iota(indices.dtype, &dims, at);
    let is_there = block.compare(Direction::Eq, &wanted, &numbers);
    let [on, off] = [node.x(2)?, node.x(3)?].map(|value| block.broadcast(value, &[], &dims));
    Ok(vec![block.select(&is_there, &on, &off)])
}

/// The index of the first of the largest elements: the least index at which the largest is. A value
/// that is not a number is the largest, and the smallest.
fn arg(block: &mut Block<'_>, node: &LoweredNode<'_>, least: bool) -> Result<Vec<Typed>> {
    let x = node.x(0)?.clone();
    let (dtype, dims) = node.result(0)?;
    let axis = axis(node, node.int(1)?, x.rank())?;
    let extreme = block.constant(&element(bound(x.dtype, least), x.dtype)?);
    let by = if least { "minimum" } else { "maximum" };
    let best = block.reduce(&x, &extreme, &[axis], by);
    let kept: Vec<usize> = (0..x.rank()).filter(|&other| other != axis).collect();
    let best = block.broadcast(&best, &kept, &x.dims.clone());
    let mut is_best = block.compare(Direction::Eq, &x, &best);
    if x.dtype.is_float() {
        let is_nan = block.compare(Direction::Ne, &x, &x);
        is_best = block.same("or", &[&is_best, &is_nan]);
    }
    let numbers = block.iota(dtype, &x.dims, axis);
    let none = element(bound(dtype, true), dtype)?;
    let others = block.splat(dtype, none.bytes(), &x.dims);
    let chosen = block.select(&is_best, &numbers, &others);
    let initial = block.constant(&none);
    let index = block.reduce(&chosen, &initial, &[axis], "minimum");
    Ok(vec![block.reshape(&index, &dims)])
}

/// A window over all elements before each.
fn cumsum(block: &mut Block<'_>, node: &LoweredNode<'_>) -> Result<Vec<Typed>> {
    let x = node.x(0)?.clone();
    let axis = axis(node, node.int(1)?, x.rank())?;
    let reverse = node.node.attrs.bool("reverse")?;
    let exclusive = node.node.attrs.bool("exclusive")?;
    let zero: HostTensor = element(Constant::Int(0), x.dtype)?;
    let size = x.dims[axis];
    let reach = size as i64 - 1;
    let near = i64::from(exclusive);
    let (before, after) = (reach + near, -near);
    let padding = if reverse { [after, before] } else { [before, after] };
    let initial = block.constant(&zero);
    window::summed(block, &x, &initial, axis, size, padding).map(|sum| vec![sum])
}
