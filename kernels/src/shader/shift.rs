//! Moving elements along dimensions by amounts that come as data: `Roll`, `ReverseSequence`.

use super::{Shader, builder::KernelBuilder, scalar_type::Caps};
use crate::{device::OpCall, error::Result};

pub(super) const SHADERS: &[(&str, super::Build)] =
    &[("ReverseSequence", reverse_sequence), ("Roll", roll)];

/// Each element adds up the shifts along all shifted axes.
fn roll(call: &OpCall<'_>, caps: Caps) -> Result<Option<Shader>> {
    let (shape, shifts) = (call.shape(0), call.shape(1).num_elements());
    let k = KernelBuilder::new(caps);
    let ([data, amounts, axes], out) = (k.inputs(call, [0, 1, 2]), k.result(call));
    let n = k.element();
    let strides = shape.strides();
    let dims = shape.iter().zip(&strides).enumerate().filter(|(_, (size, _))| **size > 1);
    let dims = dims.map(|(axis, (&size, &stride))| {
        (axis as i32, size, stride, k.variable("shift", k.index(0)))
    });
    let dims: Vec<_> = dims.collect();
    k.for_below("i", shifts, |i| {
        let named = k.bind("named", axes.at(i));
        let shifted = named.lt(0).select(named + shape.rank(), named);
        let shifted = k.bind("axis", shifted);
        for &(axis, size, _, shift) in &dims {
            let amount = amounts.at(i);
            let function = format!("floor_mod_{}_", amounts.scalar.name());
            let amount = amount.function_with(function, size).as_index();
            k.when(shifted.eq(axis), || shift.set((shift + amount) % size));
        }
    });
    let moved = |&(_, size, stride, shift)| (n / stride % size + size - shift) % size * stride;
    let source = dims.iter().map(moved).fold(k.index(0), |source, step| source + step);
    out.set(n, data.at(source));
    k.finish(shape.num_elements())
}

/// Lengths outside reverse the whole row.
fn reverse_sequence(call: &OpCall<'_>, caps: Caps) -> Result<Option<Shader>> {
    let axis = |name: &str| call.attrs.int(name).map(|axis| axis as usize);
    let (batch, sequence) = (axis("batch_dim")?, axis("seq_dim")?);
    let (shape, strides) = (call.shape(0), call.shape(0).strides());
    let (stride, size) = (strides[sequence].max(1), shape[sequence].max(1));
    let k = KernelBuilder::new(caps);
    let ([data, lengths], out, n) = (k.inputs(call, [0, 1]), k.result(call), k.element());
    let length = lengths.at(n / strides[batch].max(1) % shape[batch].max(1));
    let end = k.bind("end", length.as_index().min(size));
    let step = k.bind("step", n / stride % size);
    let source = k.variable("source", n);
    k.when(step.lt(end), || {
        source.set(n - step * stride + (end - 1 - step) * stride);
    });
    out.set(n, data.at(source));
    k.finish(shape.num_elements())
}
