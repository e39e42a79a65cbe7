//! Joining strings: `ReduceJoin`, `StringJoin`.

use super::put_strings;
use crate::{
    cpu::Build,
    device::OpCall,
    error::Result,
    kernel::{Io, Kernel},
};
use bytes::Bytes;
use ferroflow_ir::infer::normalize_axis;
use std::sync::Arc;

pub(crate) const KERNELS: &[(&str, Build)] =
    &[("ReduceJoin", reduce_join), ("StringJoin", string_join)];

/// The strings one after the other, with a separator between them.
fn joined<'a>(texts: impl IntoIterator<Item = &'a Bytes>, separator: &[u8]) -> Bytes {
    let mut joined = Vec::new();
    for (n, text) in texts.into_iter().enumerate() {
        if n > 0 {
            joined.extend_from_slice(separator);
        }
        joined.extend_from_slice(text);
    }
    joined.into()
}

fn string_join(call: &OpCall<'_>) -> Result<Option<Arc<dyn Kernel>>> {
    let (n, shape) = (call.inputs.len(), call.output_shape(0)?);
    let scalars: Vec<bool> = (0..n).map(|input| call.shape(input).rank() == 0).collect();
    let separator = call.attrs.bytes("separator")?.clone();
    Ok(Some(Arc::new(move |io: &mut Io<'_>| {
        let inputs: Result<Vec<&[Bytes]>> = (0..n).map(|input| io.strings(input)).collect();
        let inputs = inputs?;
        let all = (0..shape.num_elements()).map(|element| {
            let own = inputs.iter().zip(&scalars);
            joined(own.map(|(texts, &scalar)| &texts[if scalar { 0 } else { element }]), &separator)
        });
        put_strings(io, 0, &shape, all)
    })))
}

fn reduce_join(call: &OpCall<'_>) -> Result<Option<Arc<dyn Kernel>>> {
    let (input, shape) = (call.shape(0).clone(), call.output_shape(0)?);
    let separator = call.attrs.bytes("separator")?.clone();
    let mut axes = Vec::new();
    for axis in call.ints(1)? {
        axes.push(normalize_axis(axis, input.rank())?);
    }
    let strides = input.strides();
    let step = |axis: usize| (input[axis], strides[axis]);
    let kept: Vec<(usize, usize)> =
        (0..input.rank()).rev().filter(|axis| !axes.contains(axis)).map(step).collect();
    let reduced: Vec<(usize, usize)> = axes.into_iter().map(step).collect();
    let n_joined = reduced.iter().map(|&(size, _)| size).product();
    Ok(Some(Arc::new(move |io: &mut Io<'_>| {
        let texts = io.strings(0)?;
        let all = (0..shape.num_elements()).map(|element| {
            let first = offset(element, &kept);
            joined((0..n_joined).map(|n| &texts[first + offset(n, &reduced)]), &separator)
        });
        put_strings(io, 0, &shape, all)
    })))
}

/// Where element `n` is when dimensions of these sizes and strides are counted, the first one
/// fastest.
fn offset(mut n: usize, dims: &[(usize, usize)]) -> usize {
    let mut offset = 0;
    for &(size, stride) in dims {
        offset += n % size * stride;
        n /= size;
    }
    offset
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_dimension_is_counted_fastest() {
        let offsets: Vec<usize> = (0..6).map(|n| offset(n, &[(2, 3), (3, 1)])).collect();
        assert_eq!(offsets, [0, 3, 1, 4, 2, 5]);
    }
}
