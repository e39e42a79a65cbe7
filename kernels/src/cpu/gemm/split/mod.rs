//! Matmuls of `f32` in the tile registers of AMX, which multiply `bfloat16`: operands are split into three
//! parts of eight bits, of whose nine products the six largest are summed in `f32`.
//!
//! The other three are less than one unit in the last place of each product together, so sums are as good as
//! those of fused operations: Henry, Tang and Heinecke, "Leveraging the bfloat16 Artificial Intelligence Datatype
//! For Higher-Precision Computations" (2019). Integers whose product is less than 2²⁴ stay exact. Six
//! products in tiles take two fifths of the time that one takes in registers of AVX-512. Blocks with
//! numbers that three parts do not have, as infinities, or whose products come near overflow or so near to
//! underflow that those of parts are subnormal ([`parts::Magnitudes`]), are multiplied in those registers.
//!
//! Where [`Precision::BFloat16`] is asked for, numbers have one part, which is rounded, and there is one product; without tile
//! registers, dot products of AVX-512 ([`dots`](super::dots)) do the same.
//!
//! The summed dimension is cut into depths by its length alone, and the order of the sums of an element is that of
//! its depths: how blocks are shared among threads does not change the bits.

mod block;
mod parts;
mod registers;
#[cfg(test)]
mod tests;
mod unit;

use block::put;
pub(in crate::cpu) use block::{BLOCK, SplitRows, Sums, sum};
pub(in crate::cpu) use parts::Magnitudes;
pub(in crate::cpu) use registers::split_positions;
pub(in crate::cpu) use unit::{DEPTH, LINES, Parts, SplitUnit};

use super::{
    BlockEpilogue, GemmOutput, GemmSizes, Matrix,
    group_order::GroupOrder,
    packed::{self, Depth, RightOperand, depths},
    rect::Rect,
    shares_rows,
    vector::InstructionSet,
    weights::PackedMatrix,
};
use crate::{Precision, scratch::Scratch, threads::Threads};
use parts::pack;
use std::ops::Range;
use unit::{SumRegisters, TILE};

/// The most steps of a depth.
const MOST_STEPS: usize = 32;

/// Bytes of the rows that a thread packs at a time: they stay in the second-level cache with a panel of columns.
const PACKED_ROWS: usize = 768 << 10;

/// Bytes of columns that stay in the second-level cache, whatever the rows.
const CACHED_COLS: usize = 512 << 10;

/// Bytes of rows that stay in the first-level cache.
const CACHED_ROWS: usize = 24 << 10;

/// Columns that are packed at a time, where several blocks of rows use them.
const BLOCK_COLS: usize = 2048;

/// Columns that a thread takes at a time, where one block has all rows: an epilogue reads them from the cache.
const PASSING_COLS: usize = 128;

/// The most columns that are finished together, as rows that are contiguous.
const FINISHED_ROW: usize = 256;

/// The shortest summed dimension.
const SHORTEST: usize = DEPTH;

/// The least multiplications.
const LEAST_WORK: u64 = 1 << 18;

/// Groups of two tiles of lines for the steps of a depth.
pub(in crate::cpu) fn panel_len(unit: SplitUnit, depth: usize) -> usize {
    depth.div_ceil(DEPTH) * unit.parts.step()
}

/// The unit for matmuls of these sizes, where it is the better way.
pub(in crate::cpu) fn unit_for(sizes: GemmSizes, precision: Precision) -> Option<SplitUnit> {
    let GemmSizes { m, k, n } = sizes;
    let padded = |len: usize, to: usize| len.checked_next_multiple_of(to).unwrap_or(len);
    let padded = GemmSizes { m: padded(m, LINES), k: padded(k, DEPTH), n: padded(n, LINES) };
    SplitUnit::detect(precision).filter(|unit| {
        m >= unit.parts.fewest_rows(k.saturating_mul(n))
            && n >= unit.parts.fewest_cols()
            && k >= SHORTEST
            && sizes.work() >= LEAST_WORK
            && padded.work() / unit.parts.most_padded() <= sizes.work() / 2
    })
}

/// The unit for a matmul of few rows by weights, which wait for memory: packed in one part they are half of it.
pub(super) fn unit_for_few_rows(sizes: GemmSizes, precision: Precision) -> Option<SplitUnit> {
    let GemmSizes { m, k, n } = sizes;
    let weights = k.saturating_mul(n);
    let is_it = precision == Precision::BFloat16
        && m < Parts::One.fewest_rows(weights)
        && n >= Parts::One.fewest_cols()
        && k >= SHORTEST
        && weights as u64 >= LEAST_WORK;
    SplitUnit::for_few_rows().filter(|_| is_it)
}

/// The unit that packs the right operand of matmuls of these sizes, whatever the rows.
pub(super) fn packing_unit(sizes: GemmSizes, precision: Precision) -> Option<SplitUnit> {
    match unit_for_few_rows(sizes, precision) {
        Some(_) => SplitUnit::detect(precision),
        None => unit_for(sizes, precision),
    }
}

/// Length of the part of the summed dimension that is taken at a time.
pub(in crate::cpu) fn depth(k: usize) -> usize {
    let steps = k.div_ceil(DEPTH).max(1);
    steps.div_ceil(steps.div_ceil(MOST_STEPS)) * DEPTH
}

/// Packs some columns of the right operand, and returns the magnitudes of each panel. Of these steps of the summed
/// dimension, runs of so many are each filled up with zeros.
pub(in crate::cpu) fn pack_panels(
    (unit, threads): (SplitUnit, &Threads),
    b: Matrix<'_, f32>,
    cols: Range<usize>,
    steps: Range<usize>,
    run: usize,
    packed: &mut [u32],
) -> Vec<Magnitudes> {
    let mut magnitudes = vec![Magnitudes::NONE; cols.len().div_ceil(BLOCK)];
    let panels =
        packed.chunks_exact_mut(steps.len() / run * panel_len(unit, run)).zip(&mut magnitudes);
    threads.for_each(panels.enumerate(), |(index, (packed, magnitudes))| {
        let first = cols.start + index * BLOCK;
        let lines = first..cols.end.min(first + BLOCK);
        let runs = steps.clone().step_by(run).zip(packed.chunks_exact_mut(panel_len(unit, run)));
        for (start, packed) in runs {
            let (lines, depths) = (lines.clone(), start..start + run);
            let met = pack(unit, b.transposed(), lines, depths, GroupOrder::ByGroups, packed);
            *magnitudes = met.into_iter().fold(*magnitudes, Magnitudes::and);
        }
    });
    magnitudes
}

/// Packed columns of the right operand.
#[derive(Debug, Clone, Copy)]
pub(in crate::cpu) struct Panel<'a> {
    pub(in crate::cpu) groups: &'a [u32],
    pub(in crate::cpu) magnitudes: Magnitudes,
    /// The memory that a block asks for before it is read, a quarter of a panel. It may be anywhere.
    ahead: *const u32,
}

impl<'a> Panel<'a> {
    pub(in crate::cpu) fn new(groups: &'a [u32], magnitudes: Magnitudes) -> Panel<'a> {
        Panel { groups, magnitudes, ahead: groups.as_ptr() }
    }

    /// The same for the block of this number: four of them ask for the panel that is so many groups after this
    /// one. It may come from the third-level cache or from memory, for which one block alone would wait.
    pub(in crate::cpu) fn before(self, after: usize, block: usize) -> Panel<'a> {
        let quarter = self.groups.len() / QUARTERS;
        let ahead = if block < QUARTERS && after > 0 { after + block * quarter } else { 0 };
        Panel { ahead: self.groups.as_ptr().wrapping_add(ahead), ..self }
    }
}

/// Blocks that ask for a panel.
const QUARTERS: usize = 4;

/// Computes a matmul, and applies the epilogue to blocks of it.
pub(super) fn multiply(
    (unit, machine): (SplitUnit, InstructionSet),
    threads: &Threads,
    sizes: GemmSizes,
    a: Matrix<'_, f32>,
    b: RightOperand<'_>,
    out: GemmOutput<'_, f32>,
    finish: Option<&dyn BlockEpilogue>,
) {
    let GemmOutput { data, row_stride, accumulate } = out;
    let mut out = Rect::new(data, sizes.m, sizes.n, row_stride);
    let depth = depth(sizes.k);
    let step = unit.parts.step() * size_of::<u32>();
    let offsets: Vec<usize> = (0..depth / DEPTH).map(|index| index * step).collect();
    for depth in depths(sizes.k, depth, accumulate, finish) {
        let offsets = &offsets[..depth.steps.len().div_ceil(DEPTH)];
        let part = Part { unit, machine, threads, sizes, a, b, depth, offsets };
        part.multiply(out.reborrow());
    }
}

/// A matmul over a part of the summed dimension.
struct Part<'a> {
    unit: SplitUnit,
    machine: InstructionSet,
    threads: &'a Threads,
    sizes: GemmSizes,
    a: Matrix<'a, f32>,
    b: RightOperand<'a>,
    depth: Depth<'a>,
    /// Where the steps of packed rows are.
    offsets: &'a [usize],
}

/// Packed rows of the left operand, in blocks of two tiles that each have their magnitudes.
struct PackedRows {
    groups: Scratch<u32>,
    magnitudes: Vec<[Magnitudes; 2]>,
}

impl PackedRows {
    /// Room for so many blocks.
    fn new(blocks: usize, len: usize) -> PackedRows {
        PackedRows {
            groups: Scratch::needed(blocks * len),
            magnitudes: vec![[Magnitudes::NONE; 2]; blocks],
        }
    }
}

/// Packed columns of the right operand, in panels.
enum Panels<'a> {
    /// Panels of weights.
    Kept(&'a PackedMatrix),
    /// Panels from this column on, for all threads.
    Shared { first: usize, groups: &'a [u32], magnitudes: &'a [Magnitudes] },
    /// Panels that are packed one after the other here.
    Own(Scratch<u32>),
}

impl Panels<'_> {
    /// The panel of some columns, and how many groups after it the next one is.
    fn of(&mut self, part: &Part<'_>, cols: Range<usize>) -> (Panel<'_>, usize) {
        let len = part.panel_len();
        match self {
            Panels::Kept(packed) => {
                let panel = packed.split_panel(cols.start);
                let groups = &panel.groups[panel_len(part.unit, part.depth.steps.start)..][..len];
                (Panel::new(groups, panel.magnitudes), panel.groups.len())
            }
            Panels::Shared { first, groups, magnitudes } => {
                let index = (cols.start - *first) / BLOCK;
                (Panel::new(&groups[index * len..][..len], magnitudes[index]), len)
            }
            Panels::Own(room) => {
                let magnitudes = part.pack_cols(&Threads::single(), cols, room);
                (Panel::new(room, magnitudes[0]), 0)
            }
        }
    }
}

impl Part<'_> {
    /// Groups of a packed block of rows or panel of columns.
    fn panel_len(&self) -> usize {
        self.offsets.len() * self.unit.parts.step()
    }

    fn multiply(&self, out: Rect<'_>) {
        let GemmSizes { m, n, .. } = self.sizes;
        let most = (PACKED_ROWS / (size_of::<u32>() * self.panel_len())).max(1);
        let blocks = m.div_ceil(BLOCK);
        let has_few_rows = blocks <= most * self.threads.count() && n > BLOCK;
        if has_few_rows && !shares_rows(self.threads, self.sizes) {
            self.by_columns(out);
        } else {
            self.by_rows(out, most);
        }
    }

    /// Packs all rows; threads share the columns.
    fn by_columns(&self, out: Rect<'_>) {
        let m = self.sizes.m;
        let mut rows = PackedRows::new(m.div_ceil(BLOCK), self.panel_len());
        self.pack_rows(self.threads, 0..m, &mut rows);
        let pieces = out.even_panels(self.threads, BLOCK, PASSING_COLS / BLOCK);
        self.threads.for_each(pieces.collect::<Vec<_>>().into_iter(), |(first, out)| {
            let mut panels = match self.b.packed {
                Some(packed) => Panels::Kept(packed),
                None => Panels::Own(Scratch::needed(self.panel_len())),
            };
            let registers = self.unit.registers();
            self.finished(&registers, &rows, &mut panels, (0, first), out);
        });
    }

    /// Packs many columns; threads share the rows, up to so many blocks at a time.
    fn by_rows(&self, mut out: Rect<'_>, most: usize) {
        let GemmSizes { m, n, .. } = self.sizes;
        let (blocks, tiles) = (m.div_ceil(BLOCK), m.div_ceil(LINES));
        let pieces = blocks.div_ceil(most).next_multiple_of(self.threads.count()).min(blocks);
        // Pieces of as many tiles, give or take one.
        let start = |piece: usize| m.min((piece * tiles).div_ceil(pieces) * LINES);
        let len = self.panel_len();
        // Rows stay in the first-level cache where all columns are in the second-level one.
        let bytes = size_of::<u32>() * len;
        let is_narrow = n.min(BLOCK_COLS).div_ceil(BLOCK) * bytes <= CACHED_COLS;
        let at_once = if is_narrow { (CACHED_ROWS / bytes).max(1) } else { most };
        let fresh = if self.b.packed.is_some() { 0 } else { n.min(BLOCK_COLS).div_ceil(BLOCK) };
        let mut room = Scratch::needed(fresh * len);
        for first in (0..n).step_by(BLOCK_COLS) {
            let mut out = out.take_cols(BLOCK_COLS);
            let cols = first..if fresh > 0 { first + out.cols() } else { first };
            let magnitudes = &self.pack_cols(self.threads, cols, &mut room)[..];
            let groups = &room[..];
            let pieces = (0..pieces).map(|piece| {
                let rows = start(piece)..start(piece + 1);
                let out = out.take_rows(rows.len());
                (rows, out)
            });
            self.threads.for_each(pieces.collect::<Vec<_>>().into_iter(), |(rows, out)| {
                let (mut out, mut rows) = (out, rows);
                let mut panels = match self.b.packed {
                    Some(packed) => Panels::Kept(packed),
                    None => Panels::Shared { first, groups, magnitudes },
                };
                let mut packed = PackedRows::new(at_once.min(rows.len().div_ceil(BLOCK)), len);
                let registers = self.unit.registers();
                while !rows.is_empty() {
                    let own = rows.start..rows.end.min(rows.start + at_once * BLOCK);
                    rows.start = own.end;
                    let (first_row, out) = (own.start, out.take_rows(own.len()));
                    self.pack_rows(&Threads::single(), own, &mut packed);
                    let at = (first_row, first);
                    self.finished(&registers, &packed, &mut panels, at, out);
                }
            });
        }
    }

    /// Packs some columns, the first of which begin a panel.
    fn pack_cols(
        &self,
        threads: &Threads,
        cols: Range<usize>,
        packed: &mut [u32],
    ) -> Vec<Magnitudes> {
        let (with, steps) = ((self.unit, threads), self.depth.steps.clone());
        pack_panels(with, self.b.matrix, cols, steps, self.depth.steps.len(), packed)
    }

    /// Packs some rows, the first of which begin a block, into blocks of their own.
    fn pack_rows(&self, threads: &Threads, rows: Range<usize>, packed: &mut PackedRows) {
        let blocks = packed.groups.chunks_exact_mut(self.panel_len());
        let blocks = blocks.zip(&mut packed.magnitudes).take(rows.len().div_ceil(BLOCK));
        threads.for_each(blocks.enumerate(), |(index, (packed, magnitudes))| {
            let first = rows.start + index * BLOCK;
            let lines = first..rows.end.min(first + BLOCK);
            *magnitudes = pack(
                self.unit,
                self.a,
                lines,
                self.depth.steps.clone(),
                GroupOrder::ByLines,
                packed,
            );
        });
    }

    /// Multiplies packed rows by columns, of which the first are these of all, and finishes the results some
    /// columns at a time.
    fn finished(
        &self,
        registers: &SumRegisters,
        rows: &PackedRows,
        panels: &mut Panels<'_>,
        (first_row, first_col): (usize, usize),
        mut out: Rect<'_>,
    ) {
        let mut sums = [0.0; BLOCK * BLOCK];
        let mut col = first_col;
        while out.cols() > 0 {
            let cols = if out.cols() <= FINISHED_ROW { FINISHED_ROW } else { PASSING_COLS };
            let mut block = out.take_cols(cols);
            let cols = block.cols();
            let at = (first_row, col);
            self.columns(registers, rows, panels, at, block.reborrow(), &mut sums);
            if let Some(finish) = self.depth.finish {
                finish.apply(first_row, col, block);
            }
            col += cols;
        }
    }

    /// Multiplies packed rows by columns, with sums of blocks aside where they go to the results by steps.
    fn columns(
        &self,
        registers: &SumRegisters,
        rows: &PackedRows,
        panels: &mut Panels<'_>,
        (first_row, first_col): (usize, usize),
        mut out: Rect<'_>,
        sums: &mut Sums,
    ) {
        let mut col = first_col;
        while out.cols() > 0 {
            let mut column = out.take_cols(BLOCK);
            let cols = col..col + column.cols();
            let (panel, next) = panels.of(self, cols.clone());
            let blocks = rows.groups.chunks_exact(self.panel_len()).zip(&rows.magnitudes);
            // Few blocks would ask for all columns again and again.
            let next = if rows.magnitudes.len() < QUARTERS { 0 } else { next };
            for (index, (groups, magnitudes)) in blocks.enumerate() {
                let mut block = column.take_rows(BLOCK);
                if block.rows() == 0 {
                    break;
                }
                let panel = panel.before(next, index);
                let suit = magnitudes.map(|magnitudes| magnitudes.suit(panel.magnitudes));
                // Tiles of which only one can be split are multiplied one by one.
                let is_even = block.rows() <= LINES || suit[0] == suit[1];
                let tall = if is_even { BLOCK } else { LINES };
                for (half, suit) in suit.into_iter().enumerate() {
                    let part = block.take_rows(tall);
                    if part.rows() > 0 {
                        let row = first_row + index * BLOCK + half * LINES;
                        let a = SplitRows::packed(
                            self.unit.parts,
                            &groups[half * TILE..],
                            self.offsets,
                        );
                        let a = suit.then_some(a);
                        self.block(registers, a, panel, (row, cols.start), part, sums);
                    }
                }
            }
            col = cols.end;
        }
    }

    /// Multiplies a block of rows, or one tile of it, by a panel of columns; the first of both are these of all.
    /// Without split rows it does so in vectors.
    fn block(
        &self,
        registers: &SumRegisters,
        a: Option<SplitRows<'_>>,
        panel: Panel<'_>,
        (row, col): (usize, usize),
        mut out: Rect<'_>,
        sums: &mut Sums,
    ) {
        let epilogue =
            self.depth.linear.map(|(epilogue, first)| epilogue.tile(first + row, col, 1));
        match (a, epilogue) {
            (Some(a), Some(epilogue)) if !self.depth.add => {
                block::sum(registers, a, panel, (out.rows(), out.cols()), sums);
                return epilogue.put(self.machine, sums, BLOCK, out);
            }
            (Some(a), _) => {
                block::multiply(registers, a, panel, out.reborrow(), self.depth.add, sums);
            }
            (None, _) => self.in_vectors((row, col), out.reborrow(), sums),
        }
        if let Some(epilogue) = epilogue {
            epilogue.run(self.machine, out);
        }
    }

    /// Multiplies the rows and columns of a block, of which the first are these of all, without splitting them.
    fn in_vectors(&self, (row, col): (usize, usize), mut out: Rect<'_>, aside: &mut Sums) {
        let a = self.a.below(row).right_of(self.depth.steps.start);
        let b = self.b.matrix.below(self.depth.steps.start).right_of(col);
        let (rows, cols) = (out.rows(), out.cols());
        let sizes = GemmSizes { m: rows, k: self.depth.steps.len(), n: cols };
        let sums = GemmOutput::row_major(&mut aside[..], cols);
        packed::multiply(self.machine, &Threads::single(), sizes, a, b.into(), sums, None);
        put(&aside[..], cols, &mut out, self.depth.add);
    }
}
