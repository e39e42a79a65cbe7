//! Slices that begin where only data tells.
//!
//! Those that would end outside are moved inside, as XLA does, where TensorFlow has errors.

use super::{
    block::{Block, Typed, attrs, ints},
    lower::LoweredNode,
};
use ferroflow_ir::Result;

/// The elements of a vector, as scalars.
fn scalars(block: &mut Block<'_>, vector: &Typed) -> Vec<Typed> {
    let n = vector.dims.first().copied().unwrap_or(0);
    (0..n)
        .map(|index| {
            let one = block.slice(vector, &[index], &[index + 1], &[1]);
            block.reshape(&one, &[])
        })
        .collect()
}

/// `Slice`.
pub(super) fn slice(block: &mut Block<'_>, node: &LoweredNode<'_>) -> Result<Typed> {
    let (x, begin) = (node.x(0)?.clone(), node.x(1)?.clone());
    let (dtype, dims) = node.result(0)?;
    let starts = scalars(block, &begin);
    let operands: Vec<&Typed> = [&x].into_iter().chain(&starts).collect();
    let attrs = attrs([("slice_sizes", ints(&dims))]);
    Ok(block.op("dynamic_slice", attrs, &operands, (dtype, &dims)))
}

/// `TensorStridedSliceUpdate` of a window without gaps, which has as many dimensions as the tensor.
pub(super) fn update(block: &mut Block<'_>, node: &LoweredNode<'_>) -> Result<Typed> {
    let (x, begin, value) = (node.x(0)?.clone(), node.x(1)?.clone(), node.x(4)?.clone());
    let masks = ["begin_mask", "ellipsis_mask", "new_axis_mask", "shrink_axis_mask"];
    let masks = masks.into_iter().map(|mask| node.node.attrs.int(mask));
    let is_plain = masks.collect::<Result<Vec<i64>>>()?.iter().all(|&mask| mask == 0)
        && node.ints(3)?.iter().all(|&stride| stride == 1)
        && value.rank() == x.rank()
        && begin.dims == [x.rank()];
    if !is_plain {
        return Err(node.refused("an update of a window with gaps"));
    }
    let starts = scalars(block, &begin);
    let operands: Vec<&Typed> = [&x, &value].into_iter().chain(&starts).collect();
    Ok(block.op("dynamic_update_slice", Vec::new(), &operands, (x.dtype, &x.dims)))
}
