//! Convolutions and their gradients as matmuls by tiles, one matrix of which is nowhere: its
//! elements are read where they lie in the images.

use super::{
    Shader,
    builder::{KernelBuffer, KernelBuilder, KernelValue},
    epilogue::FusedOutput,
    sweep::{ImagePosition, apart, covered, covering, inputs, outputs, sizes},
    tiles::{self, TileOperand, TileSizes, TileSquare},
};
use crate::{error::Result, plan::window::Sweep};
use ferroflow_ir::window::Slide;

/// Workgroups that a gradient of filters must have: it sums over all windows, so that few of them
/// would be longer at it than many single invocations.
const FEWEST_TILES: usize = 16;

/// A convolution of one group.
pub(super) struct Convolution<'a> {
    pub(super) sweep: &'a Sweep,
    pub(super) filters: usize,
}

/// Meeting of a position along one dimension and a kernel offset: with which position, and whether
/// there is one.
type MeetAlong<'k> = fn(
    &'k KernelBuilder,
    &Slide,
    KernelValue<'k>,
    KernelValue<'k>,
) -> (KernelValue<'k>, KernelValue<'k>);

/// A matrix `[positions, kernel offsets × width]` of what positions of some sizes meet, among
/// positions of other sizes in a buffer.
struct MetMatrix<'k> {
    buffer: KernelBuffer<'k>,
    width: usize,
    from: [usize; 3],
    to: [usize; 3],
    meet: MeetAlong<'k>,
}

impl Convolution<'_> {
    fn n_offsets(&self) -> usize {
        sizes(self.sweep).iter().product()
    }

    /// Elements of all images, but for channels.
    fn positions(&self) -> usize {
        self.sweep.batch * inputs(self.sweep).iter().product::<usize>()
    }

    /// Assigns an element of such a matrix to a variable that is 0, if there is one.
    fn read<'k>(
        &self,
        k: &'k KernelBuilder,
        matrix: &MetMatrix<'k>,
        (position, column): (KernelValue<'k>, KernelValue<'k>),
        x: KernelValue<'k>,
    ) {
        let MetMatrix { buffer, width, from, to, meet } = *matrix;
        let offset = apart(k, column / width, sizes(self.sweep));
        let position = ImagePosition::of(k, position, from);
        let (mut met, mut inside) = (position.at, k.bool(true));
        for (axis, slide) in self.sweep.slides.iter().enumerate() {
            let (at, is_met) = meet(k, slide, position.at[axis], offset[axis]);
            met[axis] = at;
            inside = inside.and(is_met);
        }
        let number = position.moved(met).number(to);
        k.when(inside, || x.set(buffer.at(number * width + column % width)));
    }

    /// Images as windows meet them.
    fn images<'k>(&self, buffer: KernelBuffer<'k>) -> MetMatrix<'k> {
        let (from, to) = (outputs(self.sweep), inputs(self.sweep));
        MetMatrix { buffer, width: self.sweep.channels, from, to, meet: covered }
    }

    /// Windows by filters, of images and filters.
    pub(super) fn forward<'k>(
        &self,
        k: &'k KernelBuilder,
        [images, filters]: [KernelBuffer<'k>; 2],
        out: &FusedOutput<'k>,
    ) -> Option<Result<Option<Shader>>> {
        let sizes = TileSizes {
            m: self.sweep.n_windows(),
            k: self.n_offsets() * self.sweep.channels,
            n: self.filters,
            batch: 1,
        };
        if !tiles::fits(sizes.m, sizes.k, sizes.n) {
            return None;
        }
        let images = self.images(images);
        let read_windows = |along, deep, x| self.read(k, &images, (along, deep), x);
        let read_filters = |along, deep: KernelValue<'k>, x: KernelValue<'k>| {
            x.set(filters.at(deep * self.filters + along));
        };
        let windows = TileOperand { read: &read_windows, is_deep: true };
        let filters = TileOperand { read: &read_filters, is_deep: false };
        Some(TileSquare::new(k, sizes).kernel(out, [&windows, &filters]))
    }

    /// Positions by channels, summed over kernel offsets and filters, of filters and the gradient.
    pub(super) fn of_images<'k>(
        &self,
        k: &'k KernelBuilder,
        [filters, gradients]: [KernelBuffer<'k>; 2],
        out: &FusedOutput<'k>,
    ) -> Option<Result<Option<Shader>>> {
        let (width, count) = (self.sweep.channels, self.filters);
        let sizes =
            TileSizes { m: self.positions(), k: self.n_offsets() * count, n: width, batch: 1 };
        if !tiles::fits(sizes.m, sizes.k, sizes.n) {
            return None;
        }
        let (from, to) = (inputs(self.sweep), outputs(self.sweep));
        let gradients = MetMatrix { buffer: gradients, width: count, from, to, meet: covering };
        let read_gradients = |along, deep, x| self.read(k, &gradients, (along, deep), x);
        let read_filters = |along: KernelValue<'k>, deep: KernelValue<'k>, x: KernelValue<'k>| {
            x.set(filters.at((deep / count * width + along) * count + deep % count));
        };
        let gradients = TileOperand { read: &read_gradients, is_deep: true };
        let filters = TileOperand { read: &read_filters, is_deep: true };
        Some(TileSquare::new(k, sizes).kernel(out, [&gradients, &filters]))
    }

    /// Kernel offsets and channels by filters, summed over windows, of images and the gradient.
    pub(super) fn of_filters<'k>(
        &self,
        k: &'k KernelBuilder,
        [images, gradients]: [KernelBuffer<'k>; 2],
        out: &FusedOutput<'k>,
    ) -> Option<Result<Option<Shader>>> {
        let sizes = TileSizes {
            m: self.n_offsets() * self.sweep.channels,
            k: self.sweep.n_windows(),
            n: self.filters,
            batch: 1,
        };
        let is_small = tiles::count(sizes.m, sizes.n) < FEWEST_TILES;
        if is_small || !tiles::fits(sizes.m, sizes.k, sizes.n) {
            return None;
        }
        let images = self.images(images);
        let read_images = |along, deep, x| self.read(k, &images, (deep, along), x);
        let read_gradients = |along, deep: KernelValue<'k>, x: KernelValue<'k>| {
            x.set(gradients.at(deep * self.filters + along));
        };
        let images = TileOperand { read: &read_images, is_deep: false };
        let gradients = TileOperand { read: &read_gradients, is_deep: false };
        Some(TileSquare::new(k, sizes).kernel(out, [&images, &gradients]))
    }
}
