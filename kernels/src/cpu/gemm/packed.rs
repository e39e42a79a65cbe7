//! Matmuls of `f32` by packed blocks.
//!
//! The scheme is that of Goto and van de Geijn, "Anatomy of High-Performance Matrix Multiplication"
//! (2008): the summed dimension is cut into depths; blocks of `b` are packed into panels as wide as
//! a tile, which pass through the caches, and blocks of `a` into panels as high as a tile, which
//! stay in the second-level cache. Operands that lie well enough are read where they are.
//!
//! Each element of the product is a chain of fused operations over a depth, and depths are cut by
//! the summed dimension alone: how blocks are cut and shared among threads does not change the
//! bits.

use super::{
    BlockEpilogue, GemmOutput, GemmSizes, Matrix,
    linear::LinearEpilogue,
    pack::{pack, pack_columns},
    rect::Rect,
    shares_rows,
    tile::{LeftOperand, PanelTiles, Right, Span},
    vector::InstructionSet,
    weights::PackedMatrix,
};
use crate::{
    scratch::Scratch,
    threads::{Threads, even_start},
};
use std::ops::Range;

/// The largest depth: matmuls are read and written once for each.
const DEPTH: usize = 512;

/// The largest depth where a block or two hold all rows: panels of `b` stay in the first-level
/// cache.
const FEW_ROWS_DEPTH: usize = 256;

/// Rows of a block of `a`, roughly.
const BLOCK_ROWS: usize = 288;

/// The most columns for which contiguous rows of `a` are read without a copy.
const DIRECT_COLS: usize = 512;

/// Columns of a block of `b`, where several blocks of `a` use it.
const BLOCK_COLS: usize = 4096;

/// Columns of a block of `b`, where only one block of `a` uses it.
const PASSING_COLS: usize = 128;

/// Columns of a block that is finished at a time.
const FINISHED_COLS: usize = 128;

/// The most columns that are finished together, as rows that are contiguous.
const FINISHED_ROW: usize = 256;

/// Computes a matmul, and applies the epilogue to blocks of it.
pub(super) fn multiply(
    machine: InstructionSet,
    threads: &Threads,
    sizes: GemmSizes,
    a: Matrix<'_, f32>,
    b: RightOperand<'_>,
    out: GemmOutput<'_, f32>,
    finish: Option<&dyn BlockEpilogue>,
) {
    multiply_by_depths(machine, threads, (sizes, depth(sizes)), a, b, out, finish);
}

/// As [`multiply`], with the summed dimension cut into parts of this length.
pub(super) fn multiply_by_depths(
    machine: InstructionSet,
    threads: &Threads,
    (sizes, depth): (GemmSizes, usize),
    a: Matrix<'_, f32>,
    b: RightOperand<'_>,
    out: GemmOutput<'_, f32>,
    finish: Option<&dyn BlockEpilogue>,
) {
    let GemmOutput { data, row_stride, accumulate } = out;
    let mut out = Rect::new(data, sizes.m, sizes.n, row_stride);
    for Depth { steps, add, finish, linear } in depths(sizes.k, depth, accumulate, finish) {
        let part = Part { machine, threads, sizes, a, b, steps, add, finish, linear };
        if part.has_few_rows() {
            part.by_columns(out.reborrow());
        } else {
            part.by_rows(out.reborrow());
        }
    }
}

/// A part of the summed dimension, and what is done to its sums.
#[derive(Clone)]
pub(super) struct Depth<'a> {
    pub(super) steps: Range<usize>,
    /// Whether they are added to what is there.
    pub(super) add: bool,
    /// The epilogue of blocks, which this part completes.
    pub(super) finish: Option<&'a dyn BlockEpilogue>,
    /// The epilogue of tiles, and the row of all results that is the first here.
    pub(super) linear: Option<(&'a LinearEpilogue<'a>, usize)>,
}

/// The parts of a summed dimension of `k` steps, of this length, the last of which completes the epilogue.
pub(super) fn depths<'a>(
    k: usize,
    len: usize,
    accumulate: bool,
    finish: Option<&'a dyn BlockEpilogue>,
) -> impl Iterator<Item = Depth<'a>> {
    let linear = finish.and_then(BlockEpilogue::linear);
    let finish = finish.filter(|_| linear.is_none());
    (0..k).step_by(len).map(move |start| {
        let steps = start..k.min(start + len);
        let is_last = steps.end == k;
        let (finish, linear) = (finish.filter(|_| is_last), linear.filter(|_| is_last));
        Depth { steps, add: accumulate || start > 0, finish, linear }
    })
}

/// Length of the part of the summed dimension that is taken at a time.
pub(super) fn depth(sizes: GemmSizes) -> usize {
    let most = if sizes.m <= BLOCK_ROWS { FEW_ROWS_DEPTH } else { DEPTH };
    sizes.k.div_ceil(sizes.k.div_ceil(most).max(1)).max(1)
}

/// The right operand of a matmul, and its packed form if there is one.
#[derive(Clone, Copy)]
pub(super) struct RightOperand<'a> {
    pub(super) matrix: Matrix<'a, f32>,
    pub(super) packed: Option<&'a PackedMatrix>,
}

impl<'a> From<Matrix<'a, f32>> for RightOperand<'a> {
    fn from(matrix: Matrix<'a, f32>) -> RightOperand<'a> {
        RightOperand { matrix, packed: None }
    }
}

impl RightOperand<'_> {
    /// The panels of some columns: packed into `room` where they are not yet.
    fn panels<'p>(
        &'p self,
        threads: &Threads,
        machine: InstructionSet,
        cols: Range<usize>,
        steps: &Range<usize>,
        room: &'p mut Option<Scratch<f32>>,
    ) -> &'p [f32] {
        if let Some(packed) = self.packed {
            return packed.panels(steps, cols.start);
        }
        let panels = cols.len().next_multiple_of(machine.cols()) * steps.len();
        let room = room.get_or_insert_with(|| Scratch::needed(panels));
        pack_columns(threads, machine, self.matrix, cols, steps, &mut room[..panels]);
        room
    }
}

/// A matmul over a part of the summed dimension.
struct Part<'a> {
    machine: InstructionSet,
    threads: &'a Threads,
    sizes: GemmSizes,
    a: Matrix<'a, f32>,
    b: RightOperand<'a>,
    steps: Range<usize>,
    /// Whether the matmuls are added to what is there.
    add: bool,
    /// The epilogue of blocks, which this part completes.
    finish: Option<&'a dyn BlockEpilogue>,
    /// The epilogue of tiles, and the row of all results that is the first here.
    linear: Option<(&'a LinearEpilogue<'a>, usize)>,
}

impl Part<'_> {
    /// Whether a block or two hold all rows, which then need not be cut, and there are columns to
    /// share. Rows that have to be packed should serve many columns.
    fn has_few_rows(&self) -> bool {
        let GemmSizes { m, n, .. } = self.sizes;
        let least = match self.reads_rows() {
            true => self.machine.cols(),
            false => DIRECT_COLS,
        };
        let has_few = m <= BLOCK_ROWS.saturating_mul(self.threads.count()) && n > least;
        has_few && !shares_rows(self.threads, self.sizes)
    }

    /// Whether contiguous rows of `a` are read without a copy. What packing them saves grows with
    /// the columns.
    fn reads_rows(&self) -> bool {
        self.a.col_stride == 1 && self.sizes.n <= DIRECT_COLS
    }

    /// Packs all of `a`, unless it is read without a copy; threads share the columns.
    fn by_columns(&self, out: Rect<'_>) {
        let (high, wide, len) = (self.machine.rows(), self.machine.cols(), self.steps.len());
        let GemmSizes { m, .. } = self.sizes;
        let two_tiles = self.a.col_stride == 1 && m <= 2 * high;
        let unpacked_a = two_tiles || self.reads_rows();
        let mut packed =
            Scratch::needed(if unpacked_a { 0 } else { m.next_multiple_of(high) * len });
        let piece = 8 * high * len;
        self.threads.for_each_piece(&mut packed, piece, |start, packed| {
            let first = start / len;
            let rows = first..m.min(first + 8 * high);
            pack(self.machine, high, self.a, rows, &self.steps, packed);
        });
        let pieces = out.even_panels(self.threads, wide, PASSING_COLS / wide);
        self.threads.for_each(pieces.collect::<Vec<_>>().into_iter(), |(first, out)| {
            let (cols, mut room) = (first..first + out.cols(), None);
            let single = Threads::single();
            let b = self.b.panels(&single, self.machine, cols, &self.steps, &mut room);
            let rows = if unpacked_a { Rows::AsTheyLie(0) } else { Rows::Packed(&packed) };
            self.multiply(&rows, &Columns::Packed(b), (0, first), out);
        });
    }

    /// Packs all of `b`, or many columns of it; threads share the rows.
    fn by_rows(&self, mut out: Rect<'_>) {
        let (high, wide, len) = (self.machine.rows(), self.machine.cols(), self.steps.len());
        let GemmSizes { m, n, .. } = self.sizes;
        let one_tile = n <= wide;
        let b = self.b.matrix;
        let unpacked_b = one_tile && b.col_stride == 1;
        let unpacked_a = self.reads_rows() || (one_tile && self.a.row_stride == 1);
        let block_cols = n.min(BLOCK_COLS).next_multiple_of(wide);
        let mut room = None;
        let (n_tiles, count) = (m.div_ceil(high), self.threads.count());
        let n_blocks = m.div_ceil(BLOCK_ROWS).next_multiple_of(count).min(n_tiles);
        let start = |block: usize| match n_blocks <= count {
            // A block for each thread: all end at a time.
            true => even_start(block, n_blocks, m),
            // Blocks of as many tiles, give or take one.
            false => m.min((block * n_tiles).div_ceil(n_blocks) * high),
        };
        for first in (0..n).step_by(block_cols) {
            let mut out = out.take_cols(block_cols);
            let cols = first..first + out.cols();
            let columns = if unpacked_b {
                Columns::AsTheyLie(&b.data[self.steps.start * b.row_stride..])
            } else {
                let (threads, machine) = (self.threads, self.machine);
                Columns::Packed(self.b.panels(threads, machine, cols, &self.steps, &mut room))
            };
            let blocks = (0..n_blocks).map(|block| {
                let rows = start(block)..start(block + 1);
                let out = out.take_rows(rows.len());
                (rows, out)
            });
            self.threads.for_each(blocks.collect::<Vec<_>>().into_iter(), |(rows, out)| {
                if unpacked_a {
                    let at = (rows.start, first);
                    return self.multiply(&Rows::AsTheyLie(rows.start), &columns, at, out);
                }
                let mut packed = Scratch::needed(rows.len().next_multiple_of(high) * len);
                pack(self.machine, high, self.a, rows.clone(), &self.steps, &mut packed);
                self.multiply(&Rows::Packed(&packed), &columns, (rows.start, first), out);
            });
        }
    }

    /// Multiplies a block of rows by a block of columns, of which the first are these of all, and
    /// finishes what it has computed some columns at a time.
    fn multiply(
        &self,
        a: &Rows<'_>,
        b: &Columns<'_>,
        (first_row, first_col): (usize, usize),
        mut out: Rect<'_>,
    ) {
        let Some(finish) = self.finish else {
            return self.multiply_panels(a, b, (first_row, first_col), 0, out);
        };
        let mut col = 0;
        while out.cols() > 0 {
            let cols = if out.cols() <= FINISHED_ROW { FINISHED_ROW } else { FINISHED_COLS };
            let mut block = out.take_cols(cols);
            let panel = col / self.machine.cols();
            self.multiply_panels(a, b, (first_row, first_col), panel, block.reborrow());
            let cols = block.cols();
            finish.apply(first_row, first_col + col, block);
            col += cols;
        }
    }

    /// Multiplies a block of rows by the columns of a block from a panel on.
    fn multiply_panels(
        &self,
        a: &Rows<'_>,
        b: &Columns<'_>,
        (first_row, first_col): (usize, usize),
        panel: usize,
        mut out: Rect<'_>,
    ) {
        let (wide, len) = (self.machine.cols(), self.steps.len());
        let high = self.machine.rows();
        // What divides is computed once: tiles may have few steps.
        let (n_rows, n_tiles) = (out.rows(), out.rows().div_ceil(high).max(1));
        // Tiles of like heights: those of a row or two wait for their sums.
        let (height, n_highest) = match a {
            Rows::Packed(_) => (high, n_tiles),
            Rows::AsTheyLie(_) => {
                let height = n_rows.div_ceil(n_tiles);
                (height, n_rows - height.saturating_sub(1) * n_tiles)
            }
        };
        let tiles = PanelTiles::new(wide, len, n_tiles);
        let mut panel = panel;
        while out.cols() > 0 {
            let mut column = out.take_cols(wide);
            let (mut row, mut tile) = (0, 0);
            while column.rows() > 0 {
                let left = match a {
                    Rows::Packed(data) => {
                        LeftOperand { data: &data[row * len..], row_stride: 1, step_stride: high }
                    }
                    Rows::AsTheyLie(first) => {
                        let Matrix { data, row_stride, col_stride, .. } = self.a;
                        let at = (first + row) * row_stride + self.steps.start * col_stride;
                        LeftOperand { data: &data[at..], row_stride, step_stride: col_stride }
                    }
                };
                let right = match b {
                    Columns::Packed(data) => {
                        Right::panel(&data[panel * wide * len..], wide, tile, &tiles)
                    }
                    Columns::AsTheyLie(data) => Right::new(data, self.b.matrix.row_stride),
                };
                let spans = [Span { left: 0, right: 0, len }];
                let height = if tile < n_highest { height } else { height - 1 };
                let epilogue = self.linear.map(|(epilogue, first)| {
                    epilogue.tile(first + first_row + row, first_col + panel * wide, 1)
                });
                let output = column.take_rows(height);
                self.machine.tile(left, right, &spans, output, self.add, epilogue);
                row += height;
                tile += 1;
            }
            panel += 1;
        }
    }
}

/// Rows of `a`.
enum Rows<'a> {
    Packed(&'a [f32]),
    /// Those from this one on.
    AsTheyLie(usize),
}

/// Columns of `b`.
enum Columns<'a> {
    Packed(&'a [f32]),
    /// No more than a tile has, from the first step on.
    AsTheyLie(&'a [f32]),
}

#[cfg(test)]
pub(super) mod tests {
    use super::{
        super::{small, vector::times_plus},
        *,
    };
    use std::num::NonZeroUsize;

    fn numbers(len: usize, seed: usize) -> Vec<f32> {
        (0..len).map(|index| ((index * 7919 + seed) % 1009) as f32 / 64.0 - 7.0).collect()
    }

    /// The matmul by chains over depths, added up in order.
    fn chains(
        sizes: GemmSizes,
        a: Matrix<'_, f32>,
        b: Matrix<'_, f32>,
        out: &mut GemmOutput<'_, f32>,
    ) {
        let GemmSizes { m, k, n } = sizes;
        for (row, cols) in out.data.chunks_mut(out.row_stride).take(m).enumerate() {
            for (col, cell) in cols.iter_mut().take(n).enumerate() {
                let at = |step: usize| {
                    let a = a.data[row * a.row_stride + step * a.col_stride];
                    (a, b.data[step * b.row_stride + col * b.col_stride])
                };
                let depth = depth(sizes);
                for start in (0..k).step_by(depth) {
                    let steps = (start..k.min(start + depth)).map(at);
                    let sum = steps.fold(0.0f32, |sum, (a, b)| times_plus(a, b, sum));
                    *cell = if out.accumulate || start > 0 { *cell + sum } else { sum };
                }
            }
        }
    }

    fn check(machine: InstructionSet, m: usize, k: usize, n: usize) {
        let sizes = GemmSizes { m, k, n };
        let (a, b) = (numbers(m * k, 1), numbers(k * n, 500));
        for (transposed_a, transposed_b, accumulate) in
            [(false, false, false), (true, false, true), (false, true, false), (true, true, true)]
        {
            let view = |data, rows, cols, transposed| match transposed {
                true => Matrix::row_major(data, rows).transposed(),
                false => Matrix::row_major(data, cols),
            };
            let (a, b) = (view(&a[..], m, k, transposed_a), view(&b[..], k, n, transposed_b));
            let row_stride = n + 3;
            let mut expected = numbers(m * row_stride, 9);
            let before = expected.clone();
            let mut output = GemmOutput { data: &mut expected, row_stride, accumulate };
            chains(sizes, a, b, &mut output);
            for count in [1, 2, 3] {
                let threads = Threads::new(NonZeroUsize::new(count).expect("not zero"));
                let mut found = before.clone();
                let out = GemmOutput { data: &mut found, row_stride, accumulate };
                multiply(machine, &threads, sizes, a, b.into(), out, None);
                assert_eq!(found, expected, "{machine:?} {sizes:?} {transposed_a} {transposed_b}");
                if a.col_stride == 1 && b.col_stride == 1 {
                    let mut found = before.clone();
                    let out = GemmOutput { data: &mut found, row_stride, accumulate };
                    small::multiply(machine, &threads, sizes, a, b, out);
                    assert_eq!(found, expected, "{machine:?} {sizes:?} in place");
                }
            }
        }
    }

    #[test]
    fn sums_are_chains_whatever_the_threads() {
        for machine in InstructionSet::all() {
            for (m, k, n) in [
                (2, 3, 2),
                (8, 8, 8),
                (7, 5, 17),
                (13, 600, 24),
                (65, 530, 20),
                (20, 257, 150),
                (150, 40, 33),
                (300, 700, 130),
                (900, 5, 70),
            ] {
                check(machine, m, k, n);
            }
        }
    }

    /// Doubles each element, and adds the numbers of its row and column.
    pub(in crate::cpu::gemm) struct Mark;

    impl BlockEpilogue for Mark {
        fn apply(&self, first_row: usize, first_col: usize, mut block: Rect<'_>) {
            for row in 0..block.rows() {
                for (col, x) in block.row(row).iter_mut().enumerate() {
                    *x = 2.0 * *x + (first_row + row) as f32 + 0.125 * (first_col + col) as f32;
                }
            }
        }
    }

    #[test]
    fn every_element_is_finished_once() {
        for (m, k, n) in
            [(7, 5, 17), (13, 600, 24), (290, 257, 150), (300, 20, 700), (20, 40, 1000)]
        {
            let sizes = GemmSizes { m, k, n };
            let (a, b) = (numbers(m * k, 1), numbers(k * n, 500));
            let (a, b) = (Matrix::row_major(&a[..], k), Matrix::row_major(&b[..], n));
            for machine in InstructionSet::all() {
                for count in [1, 3] {
                    let threads = Threads::new(NonZeroUsize::new(count).expect("not zero"));
                    let (mut plain, mut found) = (vec![0.0; m * n], vec![0.0; m * n]);
                    let output = GemmOutput::row_major(&mut plain, n);
                    multiply(machine, &threads, sizes, a, b.into(), output, None);
                    Mark.apply(0, 0, Rect::new(&mut plain, m, n, n));
                    let output = GemmOutput::row_major(&mut found, n);
                    multiply(machine, &threads, sizes, a, b.into(), output, Some(&Mark));
                    assert_eq!(found, plain, "{machine:?} {sizes:?}, {count} threads");
                }
            }
        }
    }
}
