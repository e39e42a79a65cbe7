//! Rectangles of a matrix in memory that different threads may write.

use crate::threads::Threads;
use std::marker::PhantomData;

/// Rows and columns of a matrix, borrowed exclusively: rows of `cols` floats, `row_stride` apart.
/// It can be cut into others that do not overlap.
#[derive(Debug)]
pub(in crate::cpu) struct Rect<'a> {
    data: *mut f32,
    rows: usize,
    cols: usize,
    row_stride: usize,
    borrow: PhantomData<&'a mut [f32]>,
}

// SAFETY: a rectangle is an exclusive borrow of plain floats, which may go to another thread.
#[expect(unsafe_code, reason = "a borrow in parts")]
unsafe impl Send for Rect<'_> {}

impl<'a> Rect<'a> {
    /// The rectangle that begins with the first element of `data`.
    ///
    /// # Panics
    ///
    /// When `data` is too short, or rows overlap.
    pub(in crate::cpu) fn new(
        data: &'a mut [f32],
        rows: usize,
        cols: usize,
        row_stride: usize,
    ) -> Rect<'a> {
        if rows > 0 && cols > 0 {
            let last = (rows - 1).checked_mul(row_stride).and_then(|at| at.checked_add(cols));
            assert!(last.is_some_and(|last| last <= data.len()), "room for a rectangle");
            assert!(rows == 1 || cols <= row_stride, "rows apart");
        }
        Rect { data: data.as_mut_ptr(), rows, cols, row_stride, borrow: PhantomData }
    }

    pub(in crate::cpu) fn rows(&self) -> usize {
        self.rows
    }

    pub(in crate::cpu) fn cols(&self) -> usize {
        self.cols
    }

    pub(super) fn row_stride(&self) -> usize {
        self.row_stride
    }

    /// The elements of a row.
    ///
    /// # Panics
    ///
    /// When there is no such row.
    #[expect(unsafe_code, reason = "a borrow in parts")]
    pub(in crate::cpu) fn row(&mut self, index: usize) -> &mut [f32] {
        assert!(index < self.rows, "a row of a rectangle");
        // SAFETY: the rectangle is an exclusive borrow of its rows, each of `cols` floats and
        // `row_stride` from the one before; the result borrows all of it.
        unsafe { std::slice::from_raw_parts_mut(self.data.add(index * self.row_stride), self.cols) }
    }

    /// All elements, if rows are contiguous.
    #[expect(unsafe_code, reason = "a borrow in parts")]
    pub(in crate::cpu) fn contiguous(&mut self) -> Option<&mut [f32]> {
        let is_contiguous = self.rows == 1 || self.row_stride == self.cols;
        // SAFETY: the rectangle is an exclusive borrow of its rows, which follow each other; the
        // result borrows all of it.
        (is_contiguous && self.rows > 0)
            .then(|| unsafe { std::slice::from_raw_parts_mut(self.data, self.rows * self.cols) })
    }

    pub(super) fn as_ptr(&self) -> *mut f32 {
        self.data
    }

    /// The same position for a shorter time.
    pub(in crate::cpu) fn reborrow(&mut self) -> Rect<'_> {
        Rect { borrow: PhantomData, ..*self }
    }

    /// So many of the rows, of which each is `step` after the one before.
    ///
    /// # Panics
    ///
    /// When there are not so many.
    pub(in crate::cpu) fn every(self, first: usize, step: usize, rows: usize) -> Rect<'a> {
        assert!(rows == 0 || first + (rows - 1) * step < self.rows, "rows of a rectangle");
        assert!(rows < 2 || step > 0, "rows apart");
        let (data, row_stride) = (self.data.wrapping_add(first * self.row_stride), self.row_stride);
        Rect { data, rows, row_stride: step * row_stride, ..self }
    }

    /// Takes the first rows off.
    pub(in crate::cpu) fn take_rows(&mut self, rows: usize) -> Rect<'a> {
        let rows = rows.min(self.rows);
        let taken = Rect { rows, borrow: PhantomData, ..*self };
        self.rows -= rows;
        if self.rows > 0 {
            self.data = self.data.wrapping_add(rows * self.row_stride);
        }
        taken
    }

    /// Cuts the columns into pieces of at most `most` panels, which are `wide`, as many for each thread; with the
    /// first column of each.
    pub(in crate::cpu) fn even_panels(
        mut self,
        threads: &Threads,
        wide: usize,
        most: usize,
    ) -> impl ExactSizeIterator<Item = (usize, Rect<'a>)> + use<'a> {
        let panels = threads.even_ranges(self.cols.div_ceil(wide), most);
        panels.map(move |panels| (panels.start * wide, self.take_cols(panels.len() * wide)))
    }

    /// Takes the first columns off.
    pub(in crate::cpu) fn take_cols(&mut self, cols: usize) -> Rect<'a> {
        let cols = cols.min(self.cols);
        let taken = Rect { cols, borrow: PhantomData, ..*self };
        self.cols -= cols;
        self.data = self.data.wrapping_add(cols);
        taken
    }
}
