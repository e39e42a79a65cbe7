//! Bands of diagonals: where their elements are in a matrix, and where in the compact form with one
//! row for each diagonal (`tensorflow/core/kernels/linalg/matrix_diag_op.h`).

use crate::{
    error::Result,
    infer::OpContext,
    shape::{PartialShape, Shape, counted},
};

/// Neighbouring diagonals of a matrix. Diagonal 0 is the main one; those above it count up, those
/// below it down.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Band {
    /// Rows of the matrix.
    pub rows: usize,
    /// Columns of the matrix.
    pub columns: usize,
    /// The lowest diagonal.
    pub lower: i64,
    /// The highest diagonal.
    pub upper: i64,
    /// Elements of the longest diagonal: the length of a row of the compact form.
    pub longest: usize,
    /// Whether diagonals above the main one begin at the left of their row.
    left_above: bool,
    /// Whether diagonals below the main one begin at the left of their row.
    left_below: bool,
}

/// A diagonal of a [`Band`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Diagonal {
    /// The first element's row in the matrix.
    pub row: usize,
    /// The first element's column in the matrix.
    pub column: usize,
    /// The number of elements.
    pub len: usize,
    /// Where the elements begin in their row of the compact form.
    pub start: usize,
}

impl Band {
    /// The main diagonal alone.
    pub fn main(rows: usize, columns: usize) -> Band {
        let longest = rows.min(columns);
        Band { rows, columns, lower: 0, upper: 0, longest, left_above: true, left_below: true }
    }

    /// The band that a call makes matrices of, and how many dimensions of `diagonal` count
    /// matrices. Input 1, if there is one, says which diagonals; inputs 2 and 3 the size of a
    /// matrix, where `-1` stands for as small as possible.
    ///
    /// # Errors
    ///
    /// [`crate::Error::Argument`] when there is no such matrix.
    pub fn of_diagonals(context: &OpContext<'_>, diagonal: &Shape) -> Result<(Band, usize)> {
        let (lower, upper) = diagonals(context, 1)?;
        let n = (upper - lower + 1) as usize;
        let several = lower != upper;
        if several && (diagonal.rank() < 2 || diagonal[diagonal.rank() - 2] != n) {
            return Err(context.wrong(0, format!("{n} diagonals"), diagonal));
        }
        let longest = diagonal[diagonal.rank() - 1];
        let size = |index: usize| match context.n_inputs() {
            1 => Ok(-1),
            _ => context.int(index).map(|size| size.unwrap_or(-1)),
        };
        let (rows, columns) = (size(2)?, size(3)?);
        let least_rows = longest as i64 - upper.min(0);
        let least_columns = longest as i64 + lower.max(0);
        let (rows, columns) = match (rows, columns) {
            (-1, -1) => {
                let square = least_rows.max(least_columns);
                (square, square)
            }
            (-1, columns) => (least_rows, columns),
            (rows, -1) => (rows, least_columns),
            sizes => sizes,
        };
        if rows < least_rows || columns < least_columns {
            let expected = format!("{least_rows} by {least_columns} or larger");
            return Err(context.wrong(2, expected, format!("{rows} by {columns}")));
        }
        if rows != least_rows && columns != least_columns {
            let expected = format!("{least_rows} rows or {least_columns} columns");
            return Err(context.wrong(2, expected, format!("{rows} by {columns}")));
        }
        let band = Band::new(context, counted(rows), counted(columns), lower, upper, longest)?;
        Ok((band, diagonal.rank() - 1 - usize::from(several)))
    }

    /// The band of a matrix that a call reads or writes. Input `k`, if there is one, says which
    /// diagonals.
    ///
    /// # Errors
    ///
    /// [`crate::Error::Argument`] when the matrix has no such diagonals.
    pub fn of_matrix(context: &OpContext<'_>, matrix: &Shape, k: usize) -> Result<Band> {
        let (rows, columns) = (matrix[matrix.rank() - 2], matrix[matrix.rank() - 1]);
        let (lower, upper) = diagonals(context, k)?;
        let inside = |d: i64| d == 0 || (-(rows as i64) < d && d < columns as i64);
        if !inside(lower) || !inside(upper) {
            let expected = format!("diagonals of a {rows} by {columns} matrix");
            return Err(context.wrong(k, expected, format!("{lower} to {upper}")));
        }
        let longest =
            (rows as i64 + upper.min(0)).min(columns as i64 - lower.max(0)).max(0) as usize;
        Band::new(context, rows, columns, lower, upper, longest)
    }

    fn new(
        context: &OpContext<'_>,
        rows: usize,
        columns: usize,
        lower: i64,
        upper: i64,
        longest: usize,
    ) -> Result<Band> {
        let align = match context.op.attr("align") {
            Some(_) => context.attrs.string("align")?,
            None => "LEFT_LEFT",
        };
        let (left_above, left_below) = (align.starts_with("LEFT"), align.ends_with("LEFT"));
        Ok(Band { rows, columns, lower, upper, longest, left_above, left_below })
    }

    /// The number of diagonals.
    pub fn count(&self) -> usize {
        (self.upper - self.lower + 1) as usize
    }

    /// The shape of the compact form of matrices counted by `batch`: one diagonal has no dimension
    /// for their number.
    pub fn diagonals(&self, batch: &[usize]) -> PartialShape {
        let count = (self.count() > 1).then(|| self.count());
        let dims = batch.iter().copied().chain(count).chain([self.longest]);
        PartialShape::ranked(dims.map(Some))
    }

    /// The diagonal in row `index` of the compact form; the highest comes first.
    pub fn diagonal(&self, index: usize) -> Diagonal {
        let d = self.upper - index as i64;
        let (row, column) = ((-d).max(0) as usize, d.max(0) as usize);
        let len = self.rows.saturating_sub(row).min(self.columns.saturating_sub(column));
        let start = if self.begins_left(d) { 0 } else { self.longest.saturating_sub(len) };
        Diagonal { row, column, len: len.min(self.longest), start }
    }

    /// Whether diagonal `d` begins at the left of its row of the compact form.
    pub fn begins_left(&self, d: i64) -> bool {
        (d >= 0 && self.left_above) || (d <= 0 && self.left_below)
    }
}

/// The lowest and the highest diagonal that input `index` names; the main one if there is no such
/// input.
fn diagonals(context: &OpContext<'_>, index: usize) -> Result<(i64, i64)> {
    if index >= context.n_inputs() {
        return Ok((0, 0));
    }
    let k = context.known_ints(index)?;
    let (lower, upper) = match k[..] {
        [k] => (k, k),
        [lower, upper] => (lower, upper),
        _ => return Err(context.wrong(index, "one or two diagonals", format!("{k:?}"))),
    };
    if context.shape(index).rank().is_some_and(|rank| rank > 1) || lower > upper {
        return Err(context.wrong(index, "the lowest and the highest diagonal", format!("{k:?}")));
    }
    Ok((lower, upper))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn band(lower: i64, upper: i64, left_above: bool, left_below: bool) -> Band {
        Band { rows: 3, columns: 4, lower, upper, longest: 3, left_above, left_below }
    }

    #[test]
    fn diagonals_begin_where_rows_and_columns_do() {
        let band = band(-1, 2, true, true);
        let of = |index| band.diagonal(index);
        assert_eq!(of(0), Diagonal { row: 0, column: 2, len: 2, start: 0 });
        assert_eq!(of(1), Diagonal { row: 0, column: 1, len: 3, start: 0 });
        assert_eq!(of(2), Diagonal { row: 0, column: 0, len: 3, start: 0 });
        assert_eq!(of(3), Diagonal { row: 1, column: 0, len: 2, start: 0 });
    }

    #[test]
    fn short_diagonals_are_aligned_left_or_right() {
        let starts = |left_above, left_below| {
            let band = band(-1, 2, left_above, left_below);
            [band.diagonal(0).start, band.diagonal(3).start]
        };
        assert_eq!(starts(true, false), [0, 1]);
        assert_eq!(starts(false, true), [1, 0]);
    }
}
