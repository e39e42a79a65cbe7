//! Elements of images `[batch, height, width, channels]`.

use super::builder::{KernelBuilder, KernelValue};
use ferroflow_ir::Shape;

/// The coordinates of an element.
#[derive(Debug, Clone, Copy)]
pub(super) struct PixelPosition<'k> {
    pub(super) image: KernelValue<'k>,
    pub(super) y: KernelValue<'k>,
    pub(super) x: KernelValue<'k>,
    pub(super) channel: KernelValue<'k>,
}

impl<'k> PixelPosition<'k> {
    /// The coordinates of this invocation's element of images of a shape.
    pub(super) fn of(k: &'k KernelBuilder, shape: &Shape) -> PixelPosition<'k> {
        let [_, height, width, channels] = [0, 1, 2, 3].map(|axis| shape[axis].max(1));
        let n = k.element();
        PixelPosition {
            channel: k.bind("channel", n % channels),
            x: k.bind("x", n / channels % width),
            y: k.bind("y", n / (channels * width) % height),
            image: k.bind("image", n / (channels * width * height)),
        }
    }

    /// The position in images of a shape, or of such a number, of the element of the same channel at
    /// other coordinates.
    pub(super) fn at(
        self,
        shape: &Shape,
        y: KernelValue<'k>,
        x: KernelValue<'k>,
    ) -> KernelValue<'k> {
        ((self.image * shape[1] + y) * shape[2] + x) * shape[3] + self.channel
    }
}
