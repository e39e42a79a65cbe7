//! Copies of windows across the grain: elements that are contiguous in the source go to
//! different rows of the result, as in transpositions.
//!
//! Read in the order of the result, each element would need a line of memory of its own, long gone
//! when its neighbour is asked for. Blocks are read line by line, and written from registers or a small
//! buffer.

use ferroflow_ir::StridedView;
use std::{array, mem};

/// Rows and columns of a block: as many elements of four bytes as a line of memory has.
const SIDE: usize = 16;

/// Rows of a band: blocks beside each other are of the same pages of memory.
const BAND_ROWS: usize = 4 * SIDE;

/// The most elements of a band, which one thread copies.
const MAX_BAND: usize = 1 << 22;

/// A window that is copied in blocks: its rows are the steps of all loops up to `across`, whose
/// elements are neighbours in the source; the innermost loop takes longer steps.
#[derive(Debug, Clone)]
pub(crate) struct Blocks {
    view: StridedView,
    /// The loop of stride 1.
    across: usize,
    /// Elements of a row.
    row: usize,
}

impl Blocks {
    /// Copies of a window by blocks, if it can be copied so. It has no more loops than it needs.
    pub(crate) fn of(view: &StridedView) -> Option<Blocks> {
        let (inner, outer) = view.dims.split_last()?;
        let across = outer.iter().rposition(|dim| dim.stride == 1 && dim.size >= SIDE)?;
        let row: usize = view.dims[across + 1..].iter().map(|dim| dim.size).product();
        let worth_it = inner.stride > 1 && inner.size >= SIDE && row <= MAX_BAND / BAND_ROWS;
        worth_it.then(|| Blocks { view: view.clone(), across, row })
    }

    /// Elements of a band: pieces of the result that begin and end with bands can be copied alone.
    pub(crate) fn band(&self) -> usize {
        BAND_ROWS * self.row
    }

    /// Copies the elements from `start`, the beginning of a row, that fill `out`.
    ///
    /// # Panics
    ///
    /// When the window does not [fit](StridedView::fits) the source, or `out` does not end with a
    /// row.
    pub(crate) fn read<T: Clone>(&self, source: &[T], start: usize, out: &mut [T]) {
        let size = self.view.dims[self.across].size;
        let mut first = start / self.row;
        let mut rest = out;
        while !rest.is_empty() {
            let rows = (size - first % size).min(BAND_ROWS).min(rest.len() / self.row);
            let (band, later) = mem::take(&mut rest).split_at_mut(rows * self.row);
            self.read_band(source, self.view.position(first * self.row), rows, band);
            (rest, first) = (later, first + rows);
        }
    }

    /// Copies `rows` rows, the first of which begins at `base` in the source.
    fn read_band<T: Clone>(&self, source: &[T], base: isize, rows: usize, out: &mut [T]) {
        let [between @ .., inner] = &self.view.dims[self.across + 1..] else { return };
        let between = StridedView { offset: base, dims: between.into() };
        for line in 0..self.row / inner.size {
            let base = between.position(line);
            for column in (0..inner.size).step_by(SIDE) {
                let n_columns = SIDE.min(inner.size - column);
                let of_column = |n: usize| (base + (column + n) as isize * inner.stride) as usize;
                for row in (0..rows).step_by(SIDE) {
                    let n_rows = SIDE.min(rows - row);
                    let out = &mut out[row * self.row + line * inner.size + column..];
                    if (n_rows, n_columns) == (SIDE, SIDE) {
                        whole_block(|n| &source[of_column(n) + row..], out, self.row);
                    } else {
                        let from = |n: usize| &source[of_column(n) + row..][..n_rows];
                        part_of_block(from, n_columns, out, self.row);
                    }
                }
            }
        }
    }
}

/// Copies a block: column `n` of the result is what `columns(n)` begins with. All of it is read before any of
/// it is written: lines at distances of powers of two displace each other from the cache.
#[inline(always)]
fn whole_block<'a, T: Clone + 'a>(
    columns: impl Fn(usize) -> &'a [T],
    out: &mut [T],
    distance: usize,
) {
    let lines: [[T; SIDE]; SIDE] = array::from_fn(|n| {
        let line = &columns(n)[..SIDE];
        array::from_fn(|row| line[row].clone())
    });
    for (row, out) in out.chunks_mut(distance).take(SIDE).enumerate() {
        for (cell, line) in out[..SIDE].iter_mut().zip(&lines) {
            cell.clone_from(&line[row]);
        }
    }
}

/// Copies a block at the edge of a window, of fewer rows or columns.
fn part_of_block<'a, T: Clone + 'a>(
    columns: impl Fn(usize) -> &'a [T],
    n_columns: usize,
    out: &mut [T],
    distance: usize,
) {
    for column in 0..n_columns {
        for (out, x) in out[column..].iter_mut().step_by(distance).zip(columns(column)) {
            out.clone_from(x);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{super::strided, *};
    use ferroflow_ir::Shape;

    fn check(dims: &[usize], permutation: &[usize]) {
        let shape = Shape::new(dims.iter().copied()).expect("a shape");
        let source: Vec<u32> = (0..shape.num_elements() as u32).collect();
        let view = StridedView::whole(&shape).transposed(permutation).simplified();
        let blocks = Blocks::of(&view).expect("a transposition");
        let mut expected = vec![0; source.len()];
        strided::read(&view, &source, 0, &mut expected);
        let mut found = vec![0; source.len()];
        for (index, band) in found.chunks_mut(blocks.band()).enumerate() {
            blocks.read(&source, index * blocks.band(), band);
        }
        assert_eq!(found, expected, "{dims:?} by {permutation:?}");
    }

    #[test]
    fn blocks_are_put_where_elements_belong() {
        check(&[40, 33], &[1, 0]);
        check(&[3, 20, 50], &[0, 2, 1]);
        check(&[17, 5, 19], &[2, 1, 0]);
        check(&[2, 18, 3, 21], &[0, 3, 2, 1]);
        check(&[16, 2, 3, 16], &[3, 1, 2, 0]);
        check(&[130, 70], &[1, 0]);
        check(&[2, 48, 150], &[0, 2, 1]);
    }

    #[test]
    fn windows_along_the_grain_are_not_for_blocks() {
        let shape = Shape::new([20, 20]).expect("a shape");
        let view = StridedView::whole(&shape);
        assert!(Blocks::of(&view.clone().sliced(1, 0, 18, 1)).is_none());
        assert!(Blocks::of(&view.sliced(1, 19, 20, -1)).is_none());
    }
}
