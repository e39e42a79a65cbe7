//! Matmuls of `f32` in the tile registers of AMX, which multiply `bfloat16`: operands are split into three
//! parts of eight bits, of whose nine products the six largest are summed in `f32`.
//!
//! What is left out is less than one unit in the last place of each product, so sums are as good as
//! those of fused operations: Henry, Tang and Heinecke, "Leveraging the bfloat16 Artificial Intelligence Datatype
//! For Higher-Precision Computations" (2019). Integers whose product is less than 2²⁴ stay exact. Six
//! products in tiles take two fifths of the time that one takes in registers of AVX-512. Blocks with
//! numbers that three parts do not have, as infinities, or whose products come near overflow
//! ([`parts::Magnitudes`]) are multiplied in those registers.
//!
//! The summed dimension is cut into depths by its length alone, and the order of the sums of an element is that of
//! its depths: how blocks are shared among threads does not change the bits.

mod block;
mod parts;
mod registers;
#[cfg(test)]
mod tests;

pub(in crate::cpu) use block::{BLOCK, SplitRows, multiply as multiply_block, put};
pub(in crate::cpu) use parts::{DEPTH, LINES, Magnitudes, PARTS, split_positions};

use super::{
    BlockEpilogue, GemmOutput, GemmSizes, Matrix,
    amx::{Configured, TileUnit},
    group_order::GroupOrder,
    linear::LinearEpilogue,
    packed::{self, RightOperand},
    rect::Rect,
    tile::InstructionSet,
    weights::PackedMatrix,
};
use crate::{scratch::Scratch, threads::Threads};
use parts::{STEP, pack};
use std::ops::Range;

/// The most steps of a depth.
const MOST_STEPS: usize = 32;

/// Bytes of the rows that a thread packs at a time: they stay in the second-level cache with a panel of columns.
const PACKED_ROWS: usize = 768 << 10;

/// Columns that are packed at a time, where several blocks of rows use them.
const BLOCK_COLS: usize = 2048;

/// Columns that a thread takes at a time, where one block has all rows: an epilogue reads them from the cache.
const PASSING_COLS: usize = 128;

/// The most columns that are finished together, as rows that are contiguous.
const FINISHED_ROW: usize = 256;

/// The fewest rows, of columns as well, and the shortest summed dimension: packing costs more than tiles save.
const FEWEST: usize = 24;

/// The least multiplications.
const LEAST_WORK: u64 = 1 << 18;

/// The unit for matmuls of these sizes, where it is the better way.
pub(in crate::cpu) fn unit_for(sizes: GemmSizes) -> Option<TileUnit> {
    let GemmSizes { m, k, n } = sizes;
    let padded = |len: usize, to: usize| len.next_multiple_of(to) as u64;
    let padded = padded(m, 16) * padded(n, 16) * padded(k, DEPTH);
    let serves = m >= FEWEST
        && n >= FEWEST
        && k >= FEWEST
        && sizes.work() >= LEAST_WORK
        && padded <= sizes.work() / 2 * 3;
    TileUnit::detect().filter(|_| serves)
}

/// Length of the part of the summed dimension that is taken at a time.
pub(in crate::cpu) fn depth(k: usize) -> usize {
    let steps = k.div_ceil(DEPTH).max(1);
    steps.div_ceil(steps.div_ceil(MOST_STEPS)) * DEPTH
}

/// Groups of two tiles of lines for the steps of a depth.
pub(in crate::cpu) fn panel_len(depth: usize) -> usize {
    depth.div_ceil(DEPTH) * STEP
}

/// Packs a panel of the right operand: some of its columns, of these steps of the summed dimension.
pub(in crate::cpu) fn pack_panel(
    unit: TileUnit,
    b: Matrix<'_, f32>,
    cols: Range<usize>,
    steps: Range<usize>,
    packed: &mut [u32],
) -> Magnitudes {
    pack(unit, b.transposed(), cols, steps, GroupOrder::ByGroups, packed)
}

/// Packs a panel of the right operand by runs of so many steps, each filled up with zeros.
pub(in crate::cpu) fn pack_runs(
    unit: TileUnit,
    b: Matrix<'_, f32>,
    cols: Range<usize>,
    steps: Range<usize>,
    run: usize,
    packed: &mut [u32],
) -> Magnitudes {
    let runs = steps.step_by(run).zip(packed.chunks_exact_mut(panel_len(run)));
    let magnitudes =
        runs.map(|(start, packed)| pack_panel(unit, b, cols.clone(), start..start + run, packed));
    magnitudes.fold(Magnitudes::NONE, Magnitudes::and)
}

/// Packed columns of the right operand.
#[derive(Debug, Clone, Copy)]
pub(in crate::cpu) struct Panel<'a> {
    pub(in crate::cpu) groups: &'a [u32],
    pub(in crate::cpu) magnitudes: Magnitudes,
}

/// Computes a matmul, and applies the epilogue to blocks of it.
pub(super) fn multiply(
    (unit, machine): (TileUnit, InstructionSet),
    threads: &Threads,
    sizes: GemmSizes,
    a: Matrix<'_, f32>,
    b: RightOperand<'_>,
    out: GemmOutput<'_, f32>,
    finish: Option<&dyn BlockEpilogue>,
) {
    let GemmOutput { data, row_stride, accumulate } = out;
    let mut out = Rect::new(data, sizes.m, sizes.n, row_stride);
    let linear = finish.and_then(BlockEpilogue::linear);
    let epilogue = finish.filter(|_| linear.is_none());
    let depth = depth(sizes.k);
    let offsets: Vec<usize> = (0..depth / DEPTH).map(|step| step * STEP * 4).collect();
    for start in (0..sizes.k).step_by(depth) {
        let steps = start..sizes.k.min(start + depth);
        let add = accumulate || start > 0;
        let is_last = steps.end == sizes.k;
        let (finish, linear) = (epilogue.filter(|_| is_last), linear.filter(|_| is_last));
        let offsets = &offsets[..steps.len().div_ceil(DEPTH)];
        let part =
            Part { unit, machine, threads, sizes, a, b, steps, offsets, add, finish, linear };
        part.multiply(out.reborrow());
    }
}

/// A matmul over a part of the summed dimension.
struct Part<'a> {
    unit: TileUnit,
    machine: InstructionSet,
    threads: &'a Threads,
    sizes: GemmSizes,
    a: Matrix<'a, f32>,
    b: RightOperand<'a>,
    steps: Range<usize>,
    /// Where the steps of packed rows are.
    offsets: &'a [usize],
    /// Whether the matmuls are added to what is there.
    add: bool,
    /// The epilogue of blocks, which this part completes.
    finish: Option<&'a dyn BlockEpilogue>,
    /// The epilogue of tiles, and the row of all results that is the first here.
    linear: Option<(&'a LinearEpilogue<'a>, usize)>,
}

/// Packed rows of the left operand, in blocks that each have their magnitudes.
struct PackedRows {
    groups: Scratch<u32>,
    magnitudes: Vec<Magnitudes>,
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
    /// The panel of some columns.
    fn of(&mut self, part: &Part<'_>, cols: Range<usize>) -> Panel<'_> {
        let len = part.panel_len();
        match self {
            Panels::Kept(packed) => {
                let panel = packed.split_panel(cols.start);
                let groups = &panel.groups[panel_len(part.steps.start)..][..len];
                Panel { groups, ..panel }
            }
            Panels::Shared { first, groups, magnitudes } => {
                let index = (cols.start - *first) / BLOCK;
                Panel { groups: &groups[index * len..][..len], magnitudes: magnitudes[index] }
            }
            Panels::Own(room) => {
                let magnitudes =
                    pack_panel(part.unit, part.b.matrix, cols, part.steps.clone(), room);
                Panel { groups: room, magnitudes }
            }
        }
    }
}

impl Part<'_> {
    /// Groups of a packed block of rows or panel of columns.
    fn panel_len(&self) -> usize {
        self.offsets.len() * STEP
    }

    fn multiply(&self, out: Rect<'_>) {
        let GemmSizes { m, n, .. } = self.sizes;
        let most = (PACKED_ROWS / (size_of::<u32>() * self.panel_len())).max(1);
        let blocks = m.div_ceil(BLOCK);
        if blocks <= most * self.threads.count() && n > BLOCK {
            self.by_columns(out);
        } else {
            self.by_rows(out, most);
        }
    }

    /// Packs all rows; threads share the columns.
    fn by_columns(&self, mut out: Rect<'_>) {
        let GemmSizes { m, n, .. } = self.sizes;
        let rows = self.pack_rows(self.threads, 0..m);
        let share = n.div_ceil(self.threads.count()).next_multiple_of(BLOCK);
        let cols = share.min(PASSING_COLS);
        let pieces = (0..n).step_by(cols).map(|first| (first, out.take_cols(cols)));
        self.threads.for_each(pieces.collect::<Vec<_>>().into_iter(), |(first, out)| {
            let panels = match self.b.packed {
                Some(packed) => Panels::Kept(packed),
                None => Panels::Own(scratch(self.panel_len())),
            };
            self.finished(&rows, panels, (0, first), out);
        });
    }

    /// Packs many columns; threads share the rows, up to so many blocks at a time.
    fn by_rows(&self, mut out: Rect<'_>, most: usize) {
        let GemmSizes { m, n, .. } = self.sizes;
        let blocks = m.div_ceil(BLOCK);
        let pieces = blocks.div_ceil(most).next_multiple_of(self.threads.count()).min(blocks);
        let start = |piece: usize| m.min((piece * blocks).div_ceil(pieces) * BLOCK);
        let len = self.panel_len();
        let fresh = if self.b.packed.is_some() { 0 } else { n.min(BLOCK_COLS).div_ceil(BLOCK) };
        let (mut room, mut magnitudes) = (scratch(fresh * len), vec![Magnitudes::NONE; fresh]);
        for first in (0..n).step_by(BLOCK_COLS) {
            let mut out = out.take_cols(BLOCK_COLS);
            let panels = room.chunks_exact_mut(len).zip(&mut magnitudes).enumerate();
            let panels = panels.take(out.cols().div_ceil(BLOCK));
            self.threads.for_each(panels, |(index, (packed, magnitudes))| {
                let first = first + index * BLOCK;
                let cols = first..n.min(first + BLOCK);
                *magnitudes =
                    pack_panel(self.unit, self.b.matrix, cols, self.steps.clone(), packed);
            });
            let (groups, magnitudes) = (&room[..], &magnitudes[..]);
            let pieces = (0..pieces).map(|piece| {
                let rows = start(piece)..start(piece + 1);
                let out = out.take_rows(rows.len());
                (rows, out)
            });
            self.threads.for_each(pieces.collect::<Vec<_>>().into_iter(), |(rows, out)| {
                let at = (rows.start, first);
                let rows = self.pack_rows(&Threads::single(), rows);
                let panels = match self.b.packed {
                    Some(packed) => Panels::Kept(packed),
                    None => Panels::Shared { first, groups, magnitudes },
                };
                self.finished(&rows, panels, at, out);
            });
        }
    }

    /// Packs some rows, the first of which begin a block.
    fn pack_rows(&self, threads: &Threads, rows: Range<usize>) -> PackedRows {
        let len = self.panel_len();
        let mut magnitudes = vec![Magnitudes::NONE; rows.len().div_ceil(BLOCK)];
        let mut groups = scratch(magnitudes.len() * len);
        let blocks = groups.chunks_exact_mut(len).zip(&mut magnitudes).enumerate();
        threads.for_each(blocks, |(index, (packed, magnitudes))| {
            let first = rows.start + index * BLOCK;
            let lines = first..rows.end.min(first + BLOCK);
            *magnitudes =
                pack(self.unit, self.a, lines, self.steps.clone(), GroupOrder::ByLines, packed);
        });
        PackedRows { groups, magnitudes }
    }

    /// Multiplies packed rows by columns, of which the first are these of all, and finishes the results some
    /// columns at a time.
    fn finished(
        &self,
        rows: &PackedRows,
        mut panels: Panels<'_>,
        (first_row, first_col): (usize, usize),
        mut out: Rect<'_>,
    ) {
        let registers = self.unit.registers();
        let mut col = first_col;
        while out.cols() > 0 {
            let cols = if out.cols() <= FINISHED_ROW { FINISHED_ROW } else { PASSING_COLS };
            let mut block = out.take_cols(cols);
            let cols = block.cols();
            self.columns(&registers, rows, &mut panels, (first_row, col), block.reborrow());
            if let Some(finish) = self.finish {
                finish.apply(first_row, col, block);
            }
            col += cols;
        }
    }

    /// Multiplies packed rows by columns.
    fn columns(
        &self,
        registers: &Configured,
        rows: &PackedRows,
        panels: &mut Panels<'_>,
        (first_row, first_col): (usize, usize),
        mut out: Rect<'_>,
    ) {
        let mut col = first_col;
        while out.cols() > 0 {
            let mut column = out.take_cols(BLOCK);
            let cols = col..col + column.cols();
            let panel = panels.of(self, cols.clone());
            let blocks = rows.groups.chunks_exact(self.panel_len()).zip(&rows.magnitudes);
            for (index, (groups, magnitudes)) in blocks.enumerate() {
                let mut block = column.take_rows(BLOCK);
                let row = first_row + index * BLOCK;
                if magnitudes.suit(panel.magnitudes) {
                    let a = SplitRows::packed(groups, self.offsets);
                    multiply_block(registers, a, panel.groups, block.reborrow(), self.add);
                } else {
                    self.in_vectors((row, col), block.reborrow());
                }
                if let Some((epilogue, first)) = self.linear {
                    epilogue.tile(first + row, col, 1).run(self.machine, block);
                }
            }
            col = cols.end;
        }
    }

    /// Multiplies the rows and columns of a block, of which the first are these of all, without splitting them.
    fn in_vectors(&self, (row, col): (usize, usize), mut out: Rect<'_>) {
        let a = self.a.below(row).right_of(self.steps.start);
        let b = self.b.matrix.below(self.steps.start).right_of(col);
        let (rows, cols) = (out.rows(), out.cols());
        let sizes = GemmSizes { m: rows, k: self.steps.len(), n: cols };
        let mut aside = [0.0; BLOCK * BLOCK];
        let sums = GemmOutput::row_major(&mut aside, cols);
        packed::multiply(self.machine, &Threads::single(), sizes, a, b.into(), sums, None);
        put(&aside, cols, &mut out, self.add);
    }
}

fn scratch(len: usize) -> Scratch<u32> {
    Scratch::new(len).expect("there are a few megabytes left")
}
