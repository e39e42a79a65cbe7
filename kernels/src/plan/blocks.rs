//! Copies of windows across the grain: elements that are contiguous in the source go to
//! different rows of the result, as in transpositions.
//!
//! Read in the order of the result, each element would need a line of memory of its own, long gone
//! when its neighbour is asked for. Blocks are read line by line into a small buffer, and written
//! from there.

use ferroflow_ir::StridedView;
use std::mem;

/// Rows and columns of a block: as many elements of four bytes as a line of memory has.
const SIDE: usize = 16;

/// The most elements of a band, which one thread copies.
const MAX_BAND: usize = 1 << 20;

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
        let worth_it = inner.stride > 1 && inner.size >= SIDE && row <= MAX_BAND / SIDE;
        worth_it.then(|| Blocks { view: view.clone(), across, row })
    }

    /// Elements of a band: pieces of the result that begin and end with bands can be copied alone.
    pub(crate) fn band(&self) -> usize {
        SIDE * self.row
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
            let rows = (size - first % size).min(SIDE).min(rest.len() / self.row);
            let (band, later) = mem::take(&mut rest).split_at_mut(rows * self.row);
            self.read_band(source, self.view.position(first * self.row), rows, band);
            (rest, first) = (later, first + rows);
        }
    }

    /// Copies `rows` rows, the first of which begins at `base` in the source.
    fn read_band<T: Clone>(&self, source: &[T], base: isize, rows: usize, out: &mut [T]) {
        let [between @ .., inner] = &self.view.dims[self.across + 1..] else { return };
        let between = StridedView { offset: base, dims: between.into() };
        let mut buffer = Vec::with_capacity(SIDE * SIDE);
        for line in 0..self.row / inner.size {
            let base = between.position(line);
            for column in (0..inner.size).step_by(SIDE) {
                let columns = SIDE.min(inner.size - column);
                buffer.clear();
                for column in column..column + columns {
                    let first = (base + column as isize * inner.stride) as usize;
                    buffer.extend_from_slice(&source[first..first + rows]);
                }
                for row in 0..rows {
                    let cells = &mut out[row * self.row + line * inner.size + column..][..columns];
                    let elements = buffer[row..].iter().step_by(rows);
                    cells.iter_mut().zip(elements).for_each(|(cell, x)| cell.clone_from(x));
                }
            }
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
    }

    #[test]
    fn windows_along_the_grain_are_not_for_blocks() {
        let shape = Shape::new([20, 20]).expect("a shape");
        let view = StridedView::whole(&shape);
        assert!(Blocks::of(&view.clone().sliced(1, 0, 18, 1)).is_none());
        assert!(Blocks::of(&view.sliced(1, 19, 20, -1)).is_none());
    }
}
