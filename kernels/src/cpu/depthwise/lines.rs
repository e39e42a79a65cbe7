//! Depthwise convolutions of `f32`, line by line of the output.
//!
//! Windows of a stretch of a line have the same taps inside the input, as far from each other as the
//! stride says. Padding is never read.

use super::{
    Geometry, PIECE, at,
    tile::{Strip, Tap},
};
use crate::{
    cpu::gemm::{BlockEpilogue, rect::Rect, tile::InstructionSet},
    plan::window::Stretch,
    threads::Threads,
};

/// Results that are finished together, while they are in the nearest cache.
const FINISHED: usize = 1 << 12;

/// The windows of so many channels that are finished together: whole tiles.
fn group_of(width: usize) -> usize {
    (FINISHED / width).next_multiple_of(4).max(4)
}

/// A convolution with one filter for each channel.
pub(super) struct DepthwiseLines<'a> {
    g: &'a Geometry,
    machine: InstructionSet,
    input: &'a [f32],
    /// `[rows, columns, channels]`.
    filter: &'a [f32],
}

impl<'a> DepthwiseLines<'a> {
    /// The convolution, where the processor has the vectors and channels have one filter each.
    pub(super) fn new(
        g: &'a Geometry,
        input: &'a [f32],
        filter: &'a [f32],
    ) -> Option<DepthwiseLines<'a>> {
        let machine = InstructionSet::detect().filter(|_| g.multiplier == 1)?;
        Some(DepthwiseLines { g, machine, input, filter })
    }

    /// Computes all windows, and finishes them.
    pub(super) fn forward(
        &self,
        threads: &Threads,
        out: &mut [f32],
        finish: Option<&dyn BlockEpilogue>,
    ) {
        let [_, rows, columns] = &self.g.sweep.slides;
        let width = self.g.sweep.channels;
        let line = columns.output * width;
        if out.is_empty() {
            return;
        }
        let linear = finish.and_then(BlockEpilogue::linear);
        let finish = finish.filter(|_| linear.is_none());
        let stretches = Stretch::along(columns);
        threads.for_each_piece(out, (PIECE / line).max(1) * line, |start, out| {
            let mut taps = Vec::new();
            for (index, out) in out.chunks_mut(line).enumerate() {
                let index = start / line + index;
                for stretch in &stretches {
                    let windows = &stretch.windows;
                    let out = &mut out[windows.start * width..windows.end * width];
                    self.list(stretch, index / rows.output, index % rows.output, &mut taps);
                    let step = columns.stride * width;
                    let group = if linear.is_some() { group_of(width) } else { windows.len() };
                    for (number, out) in out.chunks_mut(group * width).enumerate() {
                        let first = number * group;
                        // Windows without taps may be more than the input has.
                        let factors = self.input.get(first * step..).unwrap_or_default();
                        let weights = self.filter;
                        let strip = Strip { weights, factors, taps: &taps, step, width };
                        strip.sum(self.machine, out);
                        if let Some((epilogue, before)) = linear {
                            let row = before + index * columns.output + windows.start + first;
                            let tile = Rect::new(out, out.len() / width, width, width);
                            epilogue.tile(row, 0, 1).run(self.machine, tile);
                        }
                    }
                }
            }
            if let Some(finish) = finish {
                let rows = out.len() / width;
                finish.finish(start / width, 0, Rect::new(out, rows, width, width));
            }
        });
    }

    /// Lists the taps of the first window of a stretch of a row.
    fn list(&self, stretch: &Stretch, image: usize, row: usize, taps: &mut Vec<Tap>) {
        let [_, rows, columns] = &self.g.sweep.slides;
        let width = self.g.sweep.channels;
        let first = stretch.first(columns, stretch.windows.start);
        taps.clear();
        for y in rows.taps(row) {
            let line = (image * rows.input + at(rows, row, y)) * columns.input + first;
            for x in stretch.taps.clone() {
                let position = line + (x - stretch.taps.start) * columns.dilation;
                let weight = (y * columns.size + x) * width;
                taps.push(Tap { weight, factor: position * width });
            }
        }
    }
}
