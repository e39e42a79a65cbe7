//! Lines that are computed as one, because each alone would leave a part of its last tile unused.
//!
//! Lines that follow each other in memory are one long line for operations that look at one element at a
//! time. Elements that lines share, and those that each line has a single one of, are repeated in memory of
//! their own first. Totals are those of lines alone: the parts of a tile, combined pairwise.

use super::{Line, Program, Total, start};
use crate::{
    elementwise::{
        lines::{ElementLines, LinesSource, Runner},
        tile::machine::TileMachine,
    },
    simd::vectorize,
};
use ferroflow_ir::ReduceKind;
use smallvec::SmallVec;
use std::{mem, ops::Deref};

/// Lines of more tiles lose little by their last one.
const MOST_TILES: usize = 4;

/// Whether lines are computed faster as one.
pub(super) fn is_faster<const N: usize>(lines: &ElementLines<'_>) -> bool {
    lines.n > 1 && !lines.len.is_multiple_of(N) && lines.len < MOST_TILES * N
}

/// Memory for lines that are computed as one.
#[derive(Default)]
pub(super) struct PackedLines {
    /// For each input, its elements where they are not in one piece.
    inputs: Vec<Vec<u8>>,
    /// Elements before they are combined to totals.
    elements: Vec<f32>,
}

impl PackedLines {
    /// Puts together the inputs that are not in one piece, by the widths of their elements.
    fn gather(&mut self, lines: &ElementLines<'_>, widths: &[usize]) {
        self.inputs.resize_with(self.inputs.len().max(lines.sources.len()), Vec::new);
        for ((source, &width), to) in lines.sources.iter().zip(widths).zip(&mut self.inputs) {
            to.clear();
            match *source {
                LinesSource::Elements { bytes, step, .. } if step != lines.len * width => {
                    for line in 0..lines.n {
                        to.extend_from_slice(&bytes[line * step..][..lines.len * width]);
                    }
                }
                LinesSource::Single { bytes, step, width } if step > 0 => {
                    for line in 0..lines.n {
                        repeat(&bytes[line * step..][..width], lines.len, to);
                    }
                }
                _ => {}
            }
        }
    }

    /// The inputs of lines as those of one line.
    fn sources<'a>(&'a self, lines: &ElementLines<'a>) -> SmallVec<[LinesSource<'a>; 6]> {
        let one = |(source, own): (&LinesSource<'a>, &'a Vec<u8>)| match own.is_empty() {
            true => *source,
            false => LinesSource::Elements { bytes: own, step: 0, asked: [0, 0] },
        };
        lines.sources.iter().zip(&self.inputs).map(one).collect()
    }
}

/// Adds an element `n` times.
fn repeat(element: &[u8], n: usize, to: &mut Vec<u8>) {
    match <[u8; 4]>::try_from(element) {
        Ok(element) => {
            let before = to.len();
            to.resize(before + n * element.len(), 0);
            to[before..].as_chunks_mut().0.fill(element);
        }
        Err(_) => (0..n).for_each(|_| to.extend_from_slice(element)),
    }
}

impl<M, P, const N: usize> Line<P, N>
where
    M: TileMachine<N>,
    P: Deref<Target = Program<M, N>> + Clone + Send,
{
    /// [`Runner::run_lines`], for lines as one.
    pub(super) fn run_packed(
        &mut self,
        lines: &ElementLines<'_>,
        outs: &mut [&mut [u8]],
        streams: bool,
    ) {
        let mut packed = mem::take(&mut self.packed);
        packed.gather(lines, &self.program.input_widths);
        let sources = packed.sources(lines);
        let (n, is_all) = (lines.n * lines.len, lines.is_all);
        self.run_lines(&ElementLines { sources: &sources, n: 1, len: n, is_all }, outs, streams);
        drop(sources);
        self.packed = packed;
    }

    /// [`Runner::fold_lines`], for lines shorter than a tile as one.
    pub(super) fn fold_packed(
        &mut self,
        lines: &ElementLines<'_>,
        kind: ReduceKind,
        totals: &mut [f32],
    ) {
        let mut elements = mem::take(&mut self.packed.elements);
        elements.resize(lines.n * lines.len, 0.0);
        // Each element is combined with what its part of the accumulator begins with.
        let accumulator = self.program.n_own;
        self.tiles[accumulator].0.fill(start(kind));
        self.run_packed(lines, &mut [bytemuck::cast_slice_mut(&mut elements)], false);
        let lines = elements.chunks_exact(lines.len).zip(totals);
        lines.for_each(|(line, total)| *total = total_of(line, kind));
        self.packed.elements = elements;
    }
}

/// The total of a line of no more than 128 elements: as of a tile that has the start of a reduction behind them.
fn total_of(line: &[f32], kind: ReduceKind) -> f32 {
    fn of<const N: usize>(line: &[f32], kind: ReduceKind) -> f32 {
        let mut parts = [start(kind); N];
        parts[..line.len()].copy_from_slice(line);
        vectorize(Total(&mut parts, kind))
    }
    match line.len() {
        0..=16 => of::<16>(line, kind),
        17..=32 => of::<32>(line, kind),
        33..=64 => of::<64>(line, kind),
        _ => of::<128>(line, kind),
    }
}
