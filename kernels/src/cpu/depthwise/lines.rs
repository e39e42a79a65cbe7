//! Depthwise convolutions of `f32`, line by line of the output.
//!
//! Windows of a stretch of a line have the same taps inside the input, as far from each other as
//! the stride says. Padding is never read.

use super::{
    Geometry, PIECE, at,
    tile::{KernelOffset, Strip},
};
use crate::{
    cpu::gemm::{BlockEpilogue, rect::Rect, vector::InstructionSet},
    plan::window::Stretch,
    threads::Threads,
};

/// The most results that are finished together, while they are in the nearest cache.
const FINISHED: usize = 1 << 13;

/// The windows of so many channels that are finished together: whole tiles.
fn group_of(width: usize) -> usize {
    (FINISHED / 2 / width).next_multiple_of(4).max(4)
}

/// Bytes of the inputs of a line of windows that stay in the nearest cache, which results pass, too.
const CACHED: usize = 24 << 10;

/// The fewest channels of a block: shorter runs of memory take longer to come.
const LEAST_BLOCK: usize = 128;

/// Pieces of work for each thread, where there are several.
const PIECES: usize = 4;

/// A convolution with one filter for each channel.
pub(super) struct DepthwiseLines<'a> {
    g: &'a Geometry,
    machine: InstructionSet,
    /// The elements from line `first` of all images on.
    input: &'a [f32],
    first: usize,
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
        Some(DepthwiseLines { g, machine, input, first: 0, filter })
    }

    /// The same with an input that begins with line `first` of all images.
    pub(super) fn starting_at(self, first: usize) -> DepthwiseLines<'a> {
        DepthwiseLines { first, ..self }
    }

    /// Computes all windows, and finishes them.
    pub(super) fn forward(
        &self,
        threads: &Threads,
        out: &mut [f32],
        finish: Option<&dyn BlockEpilogue>,
    ) {
        let [_, _, columns] = &self.g.sweep.slides;
        let line = columns.output * self.g.sweep.channels;
        if out.is_empty() {
            return;
        }
        let (all, count) = (out.len() / line, threads.count());
        let own = all.div_ceil(count);
        let most = if count > 1 { own.div_ceil(PIECES).max(PIECE / line) } else { all };
        // Pieces that a thread's share consists of.
        let lines =
            (1..=most.clamp(1, own)).rev().find(|&lines| own.is_multiple_of(lines)).unwrap_or(1);
        threads.for_each_piece(out, lines * line, |start, out| {
            self.compute(start / line, out, finish);
        });
    }

    /// Computes the lines of all images that fill `out`, from line `start` on, and finishes them.
    pub(super) fn compute(
        &self,
        start: usize,
        out: &mut [f32],
        finish: Option<&dyn BlockEpilogue>,
    ) {
        let [_, rows, columns] = &self.g.sweep.slides;
        let width = self.g.sweep.channels;
        let line = columns.output * width;
        let stretches = Stretch::along(columns);
        let mut offsets = Vec::new();
        for first in (0..width).step_by(self.block()) {
            let channels = first..width.min(first + self.block());
            // The results that are finished together: those of a line, or of a few windows.
            let few = match columns.output * channels.len() > FINISHED {
                true => group_of(channels.len()).min(columns.output),
                false => columns.output,
            };
            for (index, out) in out.chunks_mut(line).enumerate() {
                let index = start + index;
                let finish = |window: usize, out: &mut [f32]| {
                    let Some(epilogue) = finish else { return };
                    let (row, windows) = (index * columns.output + window, out.len() / width);
                    let results = Rect::new(&mut out[first..], windows, channels.len(), width);
                    match epilogue.linear() {
                        Some((linear, before)) => {
                            linear.tile(before + row, first, 1).run(self.machine, results);
                        }
                        None => epilogue.apply(row, first, results),
                    }
                };
                for stretch in &stretches {
                    let windows = &stretch.windows;
                    self.list(stretch, index / rows.output, index % rows.output, &mut offsets);
                    let out = &mut out[windows.start * width..windows.end * width];
                    let step = columns.stride * width;
                    for (number, out) in out.chunks_mut(few * width).enumerate() {
                        let before = number * few;
                        // Windows without taps may be more than the input has.
                        let factors = self.input.get(before * step..).unwrap_or_default();
                        let (weights, channels) = (self.filter, channels.clone());
                        let strip =
                            Strip { weights, factors, taps: &offsets, step, width, channels };
                        strip.sum(self.machine, out);
                        if few < columns.output {
                            finish(windows.start + before, out);
                        }
                    }
                }
                if few == columns.output {
                    finish(0, out);
                }
            }
        }
    }

    /// Channels that are computed together: so many that the inputs of a line stay cached from one line
    /// to the next, and whole tiles; all where those would be few.
    fn block(&self) -> usize {
        let [_, rows, columns] = &self.g.sweep.slides;
        let line = (rows.size * columns.input * size_of::<f32>()).max(1);
        match CACHED / line / self.machine.cols() * self.machine.cols() {
            block if block >= LEAST_BLOCK => block,
            _ => self.g.sweep.channels.max(1),
        }
    }

    /// Lists the kernel offsets of the first window of a stretch of a row.
    fn list(&self, stretch: &Stretch, image: usize, row: usize, taps: &mut Vec<KernelOffset>) {
        let [_, rows, columns] = &self.g.sweep.slides;
        let width = self.g.sweep.channels;
        let first = stretch.first(columns, stretch.windows.start);
        taps.clear();
        for y in rows.kernel_offsets(row) {
            let line = image * rows.input + at(rows, row, y) - self.first;
            let line = line * columns.input + first;
            for x in stretch.taps.clone() {
                let position = line + (x - stretch.taps.start) * columns.dilation;
                let weight = (y * columns.size + x) * width;
                taps.push(KernelOffset { weight, factor: position * width });
            }
        }
    }
}
