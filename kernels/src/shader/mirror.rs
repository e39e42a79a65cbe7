//! Mirror images around tensors, and back: `MirrorPad`, `MirrorPadGrad`.

use super::{
    Shader,
    builder::{KernelBuilder, KernelValue},
    scalar_type::{Caps, ScalarType},
};
use crate::{device::OpCall, error::Result};
use ferroflow_ir::Shape;

pub(super) const SHADERS: &[(&str, super::Build)] =
    &[("MirrorPad", mirror_pad), ("MirrorPadGrad", mirror_pad_grad)];

/// A dimension of the tensor inside, and of the padded one.
struct Dim {
    size: usize,
    stride: usize,
    before: usize,
    padded: usize,
    padded_stride: usize,
}

fn dims(call: &OpCall<'_>, inside: &Shape, padded: &Shape) -> Result<Vec<Dim>> {
    let (pairs, strides, wide) = (call.ints(1)?, inside.strides(), padded.strides());
    let dim = |axis: usize| Dim {
        size: inside[axis],
        stride: strides[axis],
        before: pairs[2 * axis] as usize,
        padded: padded[axis],
        padded_stride: wide[axis],
    };
    Ok((0..inside.rank()).map(dim).collect())
}

/// 1 where the outermost step is not repeated in the mirror.
fn own(call: &OpCall<'_>) -> Result<usize> {
    Ok(usize::from(call.attrs.string("mode")? == "REFLECT"))
}

/// Each element looks for the one that it mirrors.
fn mirror_pad(call: &OpCall<'_>, caps: Caps) -> Result<Option<Shader>> {
    let (inside, padded, own) = (call.shape(0), call.output_shape(0)?, own(call)?);
    let k = KernelBuilder::new(caps);
    let ([data], out, n) = (k.inputs(call, [0]), k.result(call), k.element());
    let mut source = k.index(0);
    for Dim { size, stride, before, padded, padded_stride } in dims(call, inside, &padded)? {
        let at = k.variable("at", n / padded_stride.max(1) % padded.max(1));
        if before > 0 {
            let mirrored = (before + own - 1) - at;
            k.when_else(at.lt(before), || at.set(mirrored), || at.set(at - before));
        }
        if padded != size {
            k.when(at.ge(size), || at.set((2 * size - 1 - own) - at));
        }
        source = source + at * stride;
    }
    out.set(n, data.at(source));
    k.finish(padded.num_elements())
}

/// Each element adds up itself and its images, in the order of memory.
fn mirror_pad_grad(call: &OpCall<'_>, caps: Caps) -> Result<Option<Shader>> {
    let (padded, inside, own) = (call.shape(0), call.output_shape(0)?, own(call)?);
    let k = KernelBuilder::new(caps);
    let ([data], out, n) = (k.inputs(call, [0]), k.result(call), k.element());
    k.requires(out.scalar != ScalarType::Bool);
    let sum = k.variable("sum", out.zero());
    let images = Images { k: &k, own, dims: dims(call, &inside, padded)? };
    images.visit(0, k.index(0), &|position| {
        sum.set((sum + data.at(position)).rounded(call.dtype(0)));
    });
    out.set(n, sum);
    k.finish(inside.num_elements())
}

/// The images of an element along all dimensions.
struct Images<'k> {
    k: &'k KernelBuilder,
    own: usize,
    dims: Vec<Dim>,
}

impl<'k> Images<'k> {
    /// Runs statements for the position of each image, from a dimension on.
    fn visit(&self, axis: usize, position: KernelValue<'k>, then: &dyn Fn(KernelValue<'k>)) {
        let Some(dim) = self.dims.get(axis) else { return then(position) };
        let &Dim { size, stride, before, padded, padded_stride } = dim;
        let (k, own, after) = (self.k, self.own, padded - size - before);
        let element = k.bind("element", k.element() / stride.max(1) % size.max(1));
        if before + after == 0 {
            return self.visit(axis + 1, position + element * padded_stride, then);
        }
        // Images before, the element itself, images after.
        let (first, end) = (usize::from(before == 0), if after == 0 { 2 } else { 3 });
        k.for_range("which", (first, end, 1), |which| {
            let at = k.variable("at", element + before);
            let inside = k.variable("inside", k.bool(true));
            k.when(which.eq(0), || {
                at.set((before + own).saturating_sub(1) - element);
                inside.set(at.lt(before));
            });
            k.when(which.eq(2), || {
                at.set((before + 2 * size - 1 - own) - element);
                inside.set(at.ge(before + size).and(at.lt(padded)));
            });
            k.when(inside, || self.visit(axis + 1, position + at * padded_stride, then));
        });
    }
}
