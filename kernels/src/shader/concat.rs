//! Joining and filling: `ConcatV2`, `Pack`, `Fill`, `OneHot`, `Pad`.

use super::{
    Shader,
    builder::KernelBuilder,
    index::{AxisSplit, around},
    scalar_type::Caps,
};
use crate::{device::OpCall, error::Result};
use ferroflow_ir::infer::normalize_axis;

pub(super) const SHADERS: &[(&str, super::Build)] = &[
    ("ConcatV2", concat_v2),
    ("Fill", fill),
    ("OneHot", one_hot),
    ("Pack", pack),
    ("Pad", pad),
    ("PadV2", pad),
];

fn concat_v2(call: &OpCall<'_>, caps: Caps) -> Result<Option<Shader>> {
    let n = call.inputs.len() - 1;
    let axis = normalize_axis(call.ints(n)?[0], call.shape(0).rank())?;
    join(call, caps, n, axis)
}

fn pack(call: &OpCall<'_>, caps: Caps) -> Result<Option<Shader>> {
    let axis = normalize_axis(call.attrs.int("axis")?, call.shape(0).rank() + 1)?;
    join(call, caps, call.inputs.len(), axis)
}

/// Joins the first `n` inputs along an axis: each returns runs of its own length.
fn join(call: &OpCall<'_>, caps: Caps, n: usize, axis: usize) -> Result<Option<Shader>> {
    let runs: Vec<usize> = (0..n)
        .map(|index| call.shape(index)[axis.min(call.shape(index).rank())..].iter().product())
        .collect();
    let length = runs.iter().sum::<usize>().max(1);
    let k = KernelBuilder::new(caps);
    let (out, n) = (k.result(call), k.element());
    let (row, at) = (k.bind("row", n / length), k.bind("at", n % length));
    let mut start = 0;
    for (index, &run) in runs.iter().enumerate().filter(|(_, run)| **run > 0) {
        let (input, end) = (k.input(index, call.dtype(index)), start + run);
        let inside = at.ge(start).and(at.lt(end));
        k.when(inside, || out.set(n, input.at(row * run + at - start)));
        start = end;
    }
    k.finish(call.output_shape(0)?.num_elements())
}

fn fill(call: &OpCall<'_>, caps: Caps) -> Result<Option<Shader>> {
    let k = KernelBuilder::new(caps);
    let ([value], out) = (k.inputs(call, [1]), k.result(call));
    out.set(k.element(), value.at(0));
    k.finish(call.output_shape(0)?.num_elements())
}

/// `[rows, inner]` indices → `[rows, depth, inner]`.
fn one_hot(call: &OpCall<'_>, caps: Caps) -> Result<Option<Shader>> {
    let shape = call.output_shape(0)?;
    let axis = normalize_axis(call.attrs.int("axis")?, shape.rank())?;
    let AxisSplit { size: depth, inner, .. } = around(&shape, axis);
    let (depth, inner) = (depth.max(1), inner.max(1));
    let k = KernelBuilder::new(caps);
    let ([indices, on, off], out) = (k.inputs(call, [0, 2, 3]), k.result(call));
    let n = k.element();
    let index = indices.at(n / (depth * inner) * inner + n % inner);
    let is_here = index.as_index().eq(n / inner % depth);
    k.when_else(is_here, || out.set(n, on.at(0)), || out.set(n, off.at(0)));
    k.finish(shape.num_elements())
}

fn pad(call: &OpCall<'_>, caps: Caps) -> Result<Option<Shader>> {
    let (shape, output, pairs) = (call.shape(0), call.output_shape(0)?, call.ints(1)?);
    let k = KernelBuilder::new(caps);
    let ([data], out, n) = (k.inputs(call, [0]), k.result(call), k.element());
    let padding = match call.inputs.len() > 2 {
        true => k.input(2, call.dtype(2)).at(0),
        false => out.zero(),
    };
    let (mut inside, mut position) = (k.bool(shape.num_elements() > 0), k.index(0));
    for (axis, (&size, &stride)) in shape.iter().zip(&shape.strides()).enumerate() {
        let (before, padded) = (pairs[2 * axis] as usize, output[axis].max(1));
        let step = n / output.strides()[axis].max(1) % padded;
        if output[axis] != size {
            inside = inside.and(step.ge(before)).and(step.lt(before + size));
        }
        position = position + (step - before) * stride;
    }
    k.when_else(inside, || out.set(n, data.at(position)), || out.set(n, padding));
    k.finish(output.num_elements())
}
