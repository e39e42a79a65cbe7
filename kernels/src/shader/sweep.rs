//! Loops over windows.
//!
//! Windows and positions have three spatial dimensions, the last one innermost; those that are
//! missing have size 1. Positions before the first one are large numbers, as `u32` wraps.

use super::builder::{KernelBuilder, KernelValue};
use crate::plan::window::Sweep;
use ferroflow_ir::window::Slide;

/// A position along the spatial dimensions of an image.
#[derive(Debug, Clone, Copy)]
pub(super) struct ImagePosition<'k> {
    pub(super) image: KernelValue<'k>,
    pub(super) at: [KernelValue<'k>; 3],
}

impl<'k> ImagePosition<'k> {
    /// The position of this number among images of these sizes.
    pub(super) fn of(
        k: &'k KernelBuilder,
        number: KernelValue<'k>,
        sizes: [usize; 3],
    ) -> ImagePosition<'k> {
        let n = sizes.iter().map(|&size| size.max(1)).product::<usize>();
        ImagePosition { image: k.bind("image", number / n), at: apart(k, number, sizes) }
    }

    /// The number of the position: the reverse of [`ImagePosition::of`].
    pub(super) fn number(self, [a, b, c]: [usize; 3]) -> KernelValue<'k> {
        let [x, y, z] = self.at;
        ((self.image * a + x) * b + y) * c + z
    }

    /// Another position of the same image.
    pub(super) fn moved(self, at: [KernelValue<'k>; 3]) -> ImagePosition<'k> {
        ImagePosition { at, ..self }
    }
}

/// The coordinates of a number among positions of these sizes, or of one that is taken modulo their
/// number.
pub(super) fn apart<'k>(
    k: &'k KernelBuilder,
    number: KernelValue<'k>,
    sizes: [usize; 3],
) -> [KernelValue<'k>; 3] {
    let [a, b, c] = sizes.map(|size| size.max(1));
    let [x, y, z] = [number / (b * c) % a, number / c % b, number % c];
    [k.bind("x", x), k.bind("y", y), k.bind("z", z)]
}

/// Positions of the input along each dimension.
pub(super) fn inputs(sweep: &Sweep) -> [usize; 3] {
    sweep.slides.map(|slide| slide.input)
}

/// Windows along each dimension.
pub(super) fn outputs(sweep: &Sweep) -> [usize; 3] {
    sweep.slides.map(|slide| slide.output)
}

/// Kernel offsets along each dimension.
pub(super) fn sizes(sweep: &Sweep) -> [usize; 3] {
    sweep.slides.map(|slide| slide.size)
}

/// The position that a window covers with a kernel offset, and whether the input has it.
pub(super) fn covered<'k>(
    k: &'k KernelBuilder,
    slide: &Slide,
    window: KernelValue<'k>,
    offset: KernelValue<'k>,
) -> (KernelValue<'k>, KernelValue<'k>) {
    let Slide { input, stride, dilation, before, .. } = *slide;
    let position = less(window * stride + offset * dilation, before);
    let position = k.bind("position", position);
    (position, position.lt(input))
}

/// The window that covers a position with a kernel offset, and whether there is one.
pub(super) fn covering<'k>(
    k: &'k KernelBuilder,
    slide: &Slide,
    position: KernelValue<'k>,
    offset: KernelValue<'k>,
) -> (KernelValue<'k>, KernelValue<'k>) {
    let Slide { output, stride, dilation, before, .. } = *slide;
    let first = k.bind("first", less(position, -before) - offset * dilation);
    let window = k.bind("window", first / stride);
    (window, first.lt(output * stride).and((first % stride).eq(0)))
}

/// A number without a signed one.
fn less(number: KernelValue<'_>, by: isize) -> KernelValue<'_> {
    if by < 0 { number + by.unsigned_abs() } else { number - by.unsigned_abs() }
}

/// Runs statements for every kernel offset of a window that is inside, with the number of the offset
/// and its position.
pub(super) fn for_each_offset<'k>(
    k: &'k KernelBuilder,
    sweep: &Sweep,
    window: ImagePosition<'k>,
    mut body: impl FnMut(KernelValue<'k>, ImagePosition<'k>),
) {
    let meet = |axis, offset| covered(k, &sweep.slides[axis], window.at[axis], offset);
    for_each_met(k, sizes(sweep), meet, |offsets, position| {
        body(number_of_offset(k, sweep, offsets), window.moved(position));
    });
}

/// Runs statements for every window that covers a position, with the number of the kernel offset
/// that is there and the window.
pub(super) fn for_each_cover<'k>(
    k: &'k KernelBuilder,
    sweep: &Sweep,
    position: ImagePosition<'k>,
    mut body: impl FnMut(KernelValue<'k>, ImagePosition<'k>),
) {
    let meet = |axis, offset| covering(k, &sweep.slides[axis], position.at[axis], offset);
    for_each_met(k, sizes(sweep), meet, |offsets, window| {
        body(number_of_offset(k, sweep, offsets), position.moved(window));
    });
}

/// Runs statements for every window of an image that covers a position of it with one kernel offset,
/// with the window and the position.
pub(super) fn for_each_window<'k>(
    k: &'k KernelBuilder,
    sweep: &Sweep,
    offset: [KernelValue<'k>; 3],
    body: impl FnMut([KernelValue<'k>; 3], [KernelValue<'k>; 3]),
) {
    let meet = |axis, window| covered(k, &sweep.slides[axis], window, offset[axis]);
    for_each_met(k, outputs(sweep), meet, body);
}

fn number_of_offset<'k>(
    k: &'k KernelBuilder,
    sweep: &Sweep,
    [x, y, z]: [KernelValue<'k>; 3],
) -> KernelValue<'k> {
    let [_, b, c] = sizes(sweep);
    k.bind("kernel_offset", (x * b + y) * c + z)
}

/// Runs statements for all numbers below three counts for which there is something along each
/// dimension, with these numbers and with that.
fn for_each_met<'k>(
    k: &'k KernelBuilder,
    counts: [usize; 3],
    meet: impl Fn(usize, KernelValue<'k>) -> (KernelValue<'k>, KernelValue<'k>),
    mut body: impl FnMut([KernelValue<'k>; 3], [KernelValue<'k>; 3]),
) {
    let along = |axis: usize, then: &mut dyn FnMut(KernelValue<'k>, KernelValue<'k>)| {
        k.for_below("offset", counts[axis], |number| {
            let (to, inside) = meet(axis, number);
            k.when(inside, || then(number, to));
        });
    };
    along(0, &mut |i, x| {
        along(1, &mut |j, y| along(2, &mut |l, z| body([i, j, l], [x, y, z])));
    });
}
