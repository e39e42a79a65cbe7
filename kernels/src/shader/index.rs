//! Index arithmetic.

use super::{
    builder::{KernelBuilder, KernelValue},
    scalar_type::ScalarType,
};
use ferroflow_ir::{Shape, StridedView};

/// The position in a source of element `n` of a window, as a `u32`.
pub(super) fn position<'k>(
    k: &'k KernelBuilder,
    view: &StridedView,
    n: KernelValue<'k>,
) -> KernelValue<'k> {
    let view = view.simplified();
    let signed = view.offset < 0 || view.dims.iter().any(|dim| dim.stride < 0);
    let scalar = if signed { ScalarType::I32 } else { ScalarType::U32 };
    let (mut inner, mut sum) = (1, None);
    for (axis, dim) in view.dims.iter().enumerate().rev() {
        let (size, step) = (dim.size.max(1), n / inner);
        let step = if axis == 0 { step } else { step % size };
        inner *= size;
        if dim.stride != 0 {
            let term = step.to(scalar) * k.number(scalar, dim.stride as i32);
            sum = Some(sum.map_or(term, |sum: KernelValue<'k>| sum + term));
        }
    }
    let offset = k.number(scalar, view.offset as i32);
    match sum {
        Some(sum) if view.offset != 0 => sum + offset,
        Some(sum) => sum,
        None => offset,
    }
    .to(ScalarType::U32)
}

/// A shape seen as `[outer, size, inner]` around an axis.
#[derive(Debug, Clone, Copy)]
pub(super) struct AxisSplit {
    pub(super) outer: usize,
    pub(super) size: usize,
    pub(super) inner: usize,
}

/// The dimensions around `axis`.
pub(super) fn around(shape: &Shape, axis: usize) -> AxisSplit {
    AxisSplit {
        outer: shape[..axis].iter().product(),
        size: shape[axis],
        inner: shape[axis + 1..].iter().product(),
    }
}
