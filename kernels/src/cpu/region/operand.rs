//! Correspondence of the inputs of a region to its rows.

use crate::elementwise::{flush::flush, lines::Along};
use ferroflow_ir::{Shape, StridedView, view::ViewDim};
use std::borrow::Cow;

/// An input beside rows of elements.
#[derive(Debug, Clone)]
pub(super) struct RegionOperand {
    /// Bytes of an element.
    pub(super) width: usize,
    /// Whether it has elements of its own along a row.
    pub(super) along: Along,
    /// Element that the first of each row needs.
    rows: StridedView,
    /// Bytes from one row to the next, where all are as far apart.
    pub(super) step: Option<usize>,
    /// Bytes of a row.
    row_bytes: usize,
}

impl RegionOperand {
    /// An input of shape `own` beside elements of shape `space`, of which the last `n_last`
    /// dimensions are a row; `None` where elements along a row are neither one nor contiguous.
    pub(super) fn new(
        own: &Shape,
        space: &Shape,
        n_last: usize,
        width: usize,
    ) -> Option<RegionOperand> {
        let (rank, strides) = (space.rank(), own.strides());
        let missing = rank.checked_sub(own.rank())?;
        let dim = |axis: usize| {
            let index = axis.checked_sub(missing).filter(|&index| own[index] != 1);
            ViewDim { size: space[axis], stride: index.map_or(0, |index| strides[index] as isize) }
        };
        let view = StridedView { offset: 0, dims: (0..rank).map(dim).collect() };
        RegionOperand::of_view(&view, n_last, width)
    }

    /// An input whose elements a view reads, of which the last `n_last` dimensions are a row; `None` where
    /// elements along a row are neither one nor contiguous.
    pub(super) fn of_view(
        view: &StridedView,
        n_last: usize,
        width: usize,
    ) -> Option<RegionOperand> {
        let (first, last) = view.dims.split_at(view.dims.len().checked_sub(n_last)?);
        let part = |offset, dims: &[ViewDim]| {
            StridedView { offset, dims: dims.iter().copied().collect() }.simplified()
        };
        let (rows, row) = (part(view.offset, first), part(0, last));
        let along = match row.dims.as_slice() {
            dims if dims.iter().all(|dim| dim.stride == 0) => Along::Single,
            [dim] if dim.stride == 1 => Along::Elements,
            _ => return None,
        };
        let n = if along == Along::Single { 1 } else { row.num_elements() };
        let step = match rows.dims.as_slice() {
            [] => Some(0),
            [dim] => usize::try_from(dim.stride).ok().map(|stride| stride * width),
            _ => None,
        };
        usize::try_from(view.offset).ok()?;
        Some(RegionOperand { width, along, rows, step, row_bytes: n * width })
    }

    /// Bytes of a row.
    pub(super) fn row_bytes(&self) -> usize {
        self.row_bytes
    }

    /// Whether all rows meet the same elements.
    pub(super) fn is_same_for_all(&self) -> bool {
        self.rows.dims.iter().all(|dim| dim.stride == 0)
    }

    /// Whether there are several rows, and all meet the same elements.
    pub(super) fn is_shared(&self) -> bool {
        !self.rows.dims.is_empty() && self.is_same_for_all()
    }

    /// Whether each row meets the elements at its own position.
    pub(super) fn is_whole(&self, n_cols: usize) -> bool {
        let is_contiguous = match self.rows.dims.as_slice() {
            [] => true,
            [dim] => dim.stride == n_cols as isize,
            _ => false,
        };
        self.along == Along::Elements && is_contiguous && self.rows.offset == 0
    }

    /// Elements for `n` rows from row `first` on, all of them [as far apart](RegionOperand::step).
    pub(super) fn rows<'a>(&self, bytes: &'a [u8], first: usize, n: usize) -> &'a [u8] {
        let from = match self.step {
            Some(step) => self.rows.offset as usize * self.width + first * step,
            None => self.rows.position(first) as usize * self.width,
        };
        &bytes[from..from + (n - 1) * self.step.unwrap_or(0) + self.row_bytes]
    }

    /// Elements for row `row`, from its column `col` on.
    pub(super) fn row<'a>(&self, bytes: &'a [u8], row: usize, col: usize) -> &'a [u8] {
        let skipped = if self.along == Along::Single { 0 } else { col * self.width };
        &self.rows(bytes, row, 1)[skipped..]
    }
}

/// Numbers with zeros of the same sign for those that are not normal.
pub(super) fn flushed(numbers: &[f32]) -> Cow<'_, [f32]> {
    // Without an end before the last: that is done in vectors.
    if !numbers.iter().fold(false, |any, x| any | x.is_subnormal()) {
        return numbers.into();
    }
    let mut flushed = numbers.to_vec();
    flush(bytemuck::cast_slice_mut(&mut flushed));
    flushed.into()
}
