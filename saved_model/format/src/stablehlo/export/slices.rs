//! Slices that begin where only data tells.
//!
//! Those that would end outside are moved inside, as XLA does, where TensorFlow has errors.

use super::block::{Block, Typed, attrs, ints};

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

/// The part of a tensor that has these sizes and begins where a vector says.
pub(super) fn slice(block: &mut Block<'_>, x: &Typed, begin: &Typed, dims: &[usize]) -> Typed {
    let starts = scalars(block, begin);
    let operands: Vec<&Typed> = [x].into_iter().chain(&starts).collect();
    let attrs = attrs([("slice_sizes", ints(dims))]);
    block.op("dynamic_slice", attrs, &operands, (x.dtype, dims))
}

/// The tensor with another part, which begins where a vector says.
pub(super) fn update(block: &mut Block<'_>, x: &Typed, begin: &Typed, value: &Typed) -> Typed {
    let starts = scalars(block, begin);
    let operands: Vec<&Typed> = [x, value].into_iter().chain(&starts).collect();
    block.op("dynamic_update_slice", Vec::new(), &operands, (x.dtype, &x.dims))
}
