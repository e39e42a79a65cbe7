//! Gradients of convolutions of `f32` by the filter, without an im2col matrix.
//!
//! A tap meets the same windows of every line. Its channels are the rows of a tile, the filters its
//! columns, and the windows of some lines its steps, which are added up line by line.

use super::super::gemm::{
    rect::Rect,
    tile::{LeftOperand, Right, Span},
    vector::InstructionSet,
};
use super::Geometry;
use crate::threads::Threads;
use ferroflow_ir::window::Slide;
use std::ops::Range;

/// Elements of the gradient of the output that tiles go through at a time: they stay in the
/// second-level cache.
const CHUNK: usize = 1 << 16;

/// The windows that have a kernel offset inside the input.
fn windows(slide: &Slide, tap: usize) -> Range<usize> {
    let mut windows =
        (0..slide.output).filter(|&window| slide.kernel_offsets(window).contains(&tap));
    let Some(first) = windows.next() else { return 0..0 };
    first..windows.next_back().unwrap_or(first) + 1
}

/// A gradient by the filter.
pub(super) struct DirectFilter<'a> {
    g: &'a Geometry,
    machine: InstructionSet,
    input: &'a [f32],
    dy: &'a [f32],
    /// For each dimension and kernel offset, the windows.
    windows: [Vec<Range<usize>>; 3],
}

impl<'a> DirectFilter<'a> {
    /// The way, where it is a good one.
    pub(super) fn new(g: &'a Geometry, input: &'a [f32], dy: &'a [f32]) -> Option<Self> {
        let machine = InstructionSet::detect()?;
        let windows = g
            .sweep
            .slides
            .each_ref()
            .map(|slide| (0..slide.size).map(|tap| windows(slide, tap)).collect());
        Some(DirectFilter { g, machine, input, dy, windows })
    }

    /// Computes the sums; threads share the rows of the filter.
    pub(super) fn sum(&self, threads: &Threads, dw: &mut [f32]) {
        let own = self.g.channels(0).len();
        let height = own.div_ceil(own.div_ceil(self.machine.rows()));
        let tiles = self.g.sweep.n_kernel_offsets() * own.div_ceil(height);
        let share = tiles.div_ceil(threads.count());
        let mut out =
            Rect::new(dw, self.g.sweep.n_kernel_offsets() * own, self.g.filters, self.g.filters);
        let mut pieces: Vec<Vec<Tile<'_>>> = Vec::new();
        for tap in 0..self.g.sweep.n_kernel_offsets() {
            for channel in (0..own).step_by(height) {
                if pieces.last().is_none_or(|piece| piece.len() == share) {
                    pieces.push(Vec::with_capacity(share));
                }
                let out = out.take_rows(height.min(own - channel));
                let Some(piece) = pieces.last_mut() else { continue };
                piece.push(Tile { tap, channel, out });
            }
        }
        let [a, b, c] = &self.g.sweep.slides;
        let n_lines = self.g.sweep.batch * a.output * b.output;
        let at_a_time = (CHUNK / (c.output * self.g.filters).max(1)).clamp(1, n_lines.max(1));
        threads.for_each(pieces.into_iter(), |mut tiles| {
            let mut spans = Vec::new();
            for first in (0..n_lines).step_by(at_a_time) {
                let lines = first..n_lines.min(first + at_a_time);
                let mut listed = None;
                for tile in &mut tiles {
                    if listed != Some(tile.tap) {
                        self.spans(tile.tap, lines.clone(), &mut spans);
                        listed = Some(tile.tap);
                    }
                    self.add(tile, &spans, lines.start > 0);
                }
            }
        });
    }

    /// Lists the windows of some lines that have a kernel offset inside.
    fn spans(&self, tap: usize, lines: Range<usize>, spans: &mut Vec<Span>) {
        let [a, b, c] = &self.g.sweep.slides;
        let [of_a, of_b, of_c] = &self.windows;
        let (rest, z) = (tap / c.size, tap % c.size);
        let (x, y) = (rest / b.size, rest % b.size);
        let along = |slide: &Slide, window: usize, tap: usize| {
            (slide.first(window) + (tap * slide.dilation) as isize).max(0) as usize
        };
        spans.clear();
        let columns = &of_c[z];
        if columns.is_empty() {
            return;
        }
        let first = along(c, columns.start, z);
        for line in lines {
            let (plane, row) = (line / b.output, line % b.output);
            let (image, depth) = (plane / a.output, plane % a.output);
            if of_b[y].contains(&row) && of_a[x].contains(&depth) {
                let position = image * a.input + along(a, depth, x);
                let position = (position * b.input + along(b, row, y)) * c.input + first;
                let window = line * c.output + columns.start;
                spans.push(Span {
                    left: position * self.g.sweep.channels,
                    right: window * self.g.filters,
                    len: columns.len(),
                });
            }
        }
    }

    /// Adds what the windows of the spans return, or puts it there.
    fn add(&self, tile: &mut Tile<'_>, spans: &[Span], add: bool) {
        let (own, channels) = (self.g.own_filters(), self.g.sweep.channels);
        for group in 0..self.g.groups {
            let data = &self.input[self.g.channels(group).start + tile.channel..];
            let step_stride = self.g.sweep.slides[2].stride * channels;
            let left = LeftOperand { data, row_stride: 1, step_stride };
            let mut out = tile.out.reborrow();
            out.take_cols(group * own);
            let mut out = out.take_cols(own);
            let mut first = group * own;
            while out.cols() > 0 {
                let part = out.take_cols(self.machine.cols());
                let cols = part.cols();
                let right = Right::new(&self.dy[first..], self.g.filters);
                self.machine.tile(left, right, spans, part, add, None);
                first += cols;
            }
        }
    }
}

/// Some channels of a kernel offset.
struct Tile<'a> {
    tap: usize,
    channel: usize,
    out: Rect<'a>,
}
