//! Elements put among zeros, or over others: `StridedSliceGrad`, `TensorStridedSliceUpdate`, and
//! what is kept around diagonals: `MatrixBandPart`.

use super::{
    Shader,
    builder::{KernelBuilder, KernelValue},
    scalar_type::{Caps, ScalarType},
};
use crate::{device::OpCall, error::Result};
use ferroflow_ir::{Shape, StridedView, strided_slice::strided_slice};

pub(super) const SHADERS: &[(&str, super::Build)] = &[
    ("MatrixBandPart", band),
    ("StridedSliceGrad", |call, caps| put(call, caps, None)),
    ("TensorStridedSliceUpdate", |call, caps| put(call, caps, Some(0))),
];

/// The position of the input that is put into the window.
const ELEMENTS: usize = 4;

/// Every element of the result asks whether the window covers it.
fn put(call: &OpCall<'_>, caps: Caps, before: Option<usize>) -> Result<Option<Shader>> {
    let (shape, dtype) = (call.output_shape(0)?, call.dtype(ELEMENTS));
    let (view, sliced) = call.with_context(|context| strided_slice(context, &shape))?;
    if *call.shape(ELEMENTS) != sliced {
        return Ok(None);
    }
    let k = KernelBuilder::new(caps);
    let before = before.map(|before| k.input(before, dtype));
    let (out, n) = (k.output(dtype), k.element());
    let other = before.map_or(out.zero(), |before| before.at(n));
    match view.num_elements() {
        0 => out.set(n, other),
        _ => {
            let elements = k.input(ELEMENTS, dtype);
            let (at, inside) = inverse(&k, &view, &shape);
            k.when_else(inside, || out.set(n, elements.at(at)), || out.set(n, other));
        }
    }
    k.finish(shape.num_elements())
}

/// The position in a view of this invocation's element of a shape, and whether the view has it.
fn inverse<'k>(
    k: &'k KernelBuilder,
    view: &StridedView,
    shape: &Shape,
) -> (KernelValue<'k>, KernelValue<'k>) {
    let (mut position, mut inside) = (k.index(0), k.bool(true));
    for (&size, &stride) in shape.iter().zip(&shape.strides()).filter(|(size, _)| **size > 1) {
        // An axis is walked by the one dimension whose step is that of the axis, times less than its
        // size.
        let begin = view.offset as usize / stride % size;
        let walks =
            |step: usize| step >= stride && step < stride * size && step.is_multiple_of(stride);
        let walker =
            view.dims.iter().position(|dim| dim.size > 1 && walks(dim.stride.unsigned_abs()));
        let at = k.bind("at", k.element() / stride % size);
        let Some(walker) = walker else {
            inside = inside.and(at.eq(begin));
            continue;
        };
        let dim = &view.dims[walker];
        let step = dim.stride.unsigned_abs() / stride;
        let inner: usize = view.dims[walker + 1..].iter().map(|dim| dim.size).product();
        // Positions before the beginning become large.
        let far = if dim.stride > 0 { at - begin } else { begin - at };
        let far = k.bind("far", far);
        inside = inside.and((far % step).eq(0)).and((far / step).lt(dim.size));
        position = position + far / step * inner;
    }
    (position, inside)
}

/// Negative numbers of diagonals keep all of them.
fn band(call: &OpCall<'_>, caps: Caps) -> Result<Option<Shader>> {
    let [.., rows, columns] = call.shape(0)[..] else { return Ok(None) };
    let (rows, columns) = (rows.max(1), columns.max(1));
    let k = KernelBuilder::new(caps);
    let ([data, lower, upper], out) = (k.inputs(call, [0, 1, 2]), k.result(call));
    let (n, int) = (k.element(), ScalarType::I32);
    let below = k.bind("below", (n / columns % rows).to(int) - (n % columns).to(int));
    let lower = k.bind("lower", lower.at(0).to(int));
    let upper = k.bind("upper", upper.at(0).to(int));
    let is_kept = lower.lt(0).or(below.le(lower)).and(upper.lt(0).or((-below).le(upper)));
    k.when_else(is_kept, || out.set(n, data.at(n)), || out.set(n, out.zero()));
    k.finish(call.shape(0).num_elements())
}
