//! Parts of matrices laid out in the order in which tiles read them.

use super::{Matrix, interleave::interleave, vector::InstructionSet};
use crate::{
    simd::{Vectorized, prefetch, vectorize},
    threads::Threads,
};
use std::ops::Range;

/// Panels that threads pack at a time: reading longer parts of rows pays.
const PANELS: usize = 4;

/// Packs columns of a right operand `[steps, columns]` into panels as wide as a tile; threads share them.
pub(in crate::cpu) fn pack_columns(
    threads: &Threads,
    machine: InstructionSet,
    matrix: Matrix<'_, f32>,
    cols: Range<usize>,
    steps: &Range<usize>,
    packed: &mut [f32],
) {
    let wide = machine.cols();
    threads.for_each_piece(packed, PANELS * wide * steps.len(), |start, packed| {
        let first = cols.start + start / steps.len();
        let some = first..cols.end.min(first + PANELS * wide);
        pack(machine, wide, matrix.transposed(), some, steps, packed);
    });
}

/// Copies `lines` of a matrix into panels of `width` rows, of which each has the elements of `steps`:
/// the first ones of all its rows, then the second ones, and so on, with zeros for the rows that are
/// not there.
pub(in crate::cpu) fn pack(
    machine: InstructionSet,
    width: usize,
    matrix: Matrix<'_, f32>,
    lines: Range<usize>,
    steps: &Range<usize>,
    packed: &mut [f32],
) {
    match width {
        4 => panels::<4>(machine, matrix, lines, steps, packed),
        6 => panels::<6>(machine, matrix, lines, steps, packed),
        8 => panels::<8>(machine, matrix, lines, steps, packed),
        12 => panels::<12>(machine, matrix, lines, steps, packed),
        16 => panels::<16>(machine, matrix, lines, steps, packed),
        32 => panels::<32>(machine, matrix, lines, steps, packed),
        _ => unreachable!("no tile is {width} wide"),
    }
}

fn panels<const W: usize>(
    machine: InstructionSet,
    matrix: Matrix<'_, f32>,
    lines: Range<usize>,
    steps: &Range<usize>,
    packed: &mut [f32],
) {
    if matrix.col_stride != 1 {
        return vectorize(Pack::<W> { matrix, lines, steps, packed });
    }
    let whole = lines.len() / W;
    let (panels, rest) = packed.split_at_mut(whole * W * steps.len());
    for (index, panel) in panels.chunks_exact_mut(W * steps.len()).enumerate() {
        let first = lines.start + index * W;
        let row = |row| &matrix.data[(first + row) * matrix.row_stride..][steps.clone()];
        if W == 6 {
            interleave::<6>(machine, std::array::from_fn(row), panel, W);
            continue;
        }
        for some in (0..W).step_by(4) {
            let rows = std::array::from_fn(|index| row(some + index));
            interleave::<4>(machine, rows, &mut panel[some..], W);
        }
    }
    if !rest.is_empty() {
        let lines = lines.start + whole * W..lines.end;
        vectorize(Pack::<W> { matrix, lines, steps, packed: rest });
    }
}

/// Memory is asked for so many steps before it is copied.
const AHEAD: usize = 16;

/// Rows of any strides, element by element.
struct Pack<'a, const W: usize> {
    matrix: Matrix<'a, f32>,
    lines: Range<usize>,
    steps: &'a Range<usize>,
    packed: &'a mut [f32],
}

impl<const W: usize> Vectorized for Pack<'_, W> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let Matrix { data, row_stride, col_stride, .. } = self.matrix;
        let (len, n_lines) = (self.steps.len(), self.lines.len());
        let data = &data[self.lines.start * row_stride + self.steps.start * col_stride..];
        let whole = n_lines / W;
        let (panels, rest) = self.packed.split_at_mut(whole * W * len);
        if row_stride == 1 {
            // The elements of a step follow each other, those of the next panels behind them.
            for step in 0..len {
                // Rows of a large matrix are too far apart for the processor to see what comes.
                let later = data.as_ptr().wrapping_add((step + AHEAD) * col_stride);
                prefetch(later, size_of::<f32>() * whole * W);
                let elements = data[step * col_stride..].chunks_exact(W);
                for (panel, elements) in panels.chunks_exact_mut(W * len).zip(elements) {
                    panel[step * W..][..W].copy_from_slice(elements);
                }
            }
        } else {
            for (index, panel) in panels.chunks_exact_mut(W * len).enumerate() {
                gather::<W>(&data[index * W * row_stride..], row_stride, col_stride, W, panel);
            }
        }
        if n_lines > whole * W {
            let data = &data[whole * W * row_stride..];
            gather::<W>(data, row_stride, col_stride, n_lines - whole * W, rest);
        }
    }
}

/// Fills a panel with `n_rows` rows of any strides.
#[inline(always)]
fn gather<const W: usize>(
    data: &[f32],
    row_stride: usize,
    col_stride: usize,
    n_rows: usize,
    out: &mut [f32],
) {
    for (step, cell) in out.chunks_exact_mut(W).enumerate() {
        let (own, missing) = cell.split_at_mut(n_rows);
        for (row, element) in own.iter_mut().enumerate() {
            *element = data[row * row_stride + step * col_stride];
        }
        missing.fill(0.0);
    }
}
