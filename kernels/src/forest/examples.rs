//! ForestExamples: rows of numbers, booleans, categories and sets of categories.

use super::{OP, condition::ForestColumn};
use crate::error::Result;
use ferroflow_ir::Error;

/// Columns of each type.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Columns {
    /// Number of columns of numbers.
    pub numbers: usize,
    /// Number of columns of booleans.
    pub booleans: usize,
    /// Number of categories of each column of categories. Others count as category 0.
    pub categories: Vec<i32>,
    /// Number of categories of each column of sets.
    pub sets: Vec<i32>,
}

/// ForestExamples, in rows.
#[derive(Debug, Clone, Copy, Default)]
pub struct ForestExamples<'a> {
    /// Number of examples.
    pub len: usize,
    /// A row of numbers for each; NaN is a missing number.
    pub numbers: &'a [f32],
    /// A row of booleans for each, 0 or 1; NaN is a missing one.
    pub booleans: &'a [f32],
    /// A row of categories for each; -1 is a missing one.
    pub categories: &'a [i32],
    /// The sets of all examples.
    pub sets: Sets<'a>,
}

/// Sets of categories, of one example after the other.
#[derive(Debug, Clone, Copy, Default)]
pub struct Sets<'a> {
    /// The categories of all sets. A set that begins with -1 is missing.
    pub values: &'a [i32],
    /// Where each set begins, and where the last one ends.
    pub splits: &'a [i64],
}

impl Columns {
    /// Whether a column exists.
    pub(super) fn contains(&self, column: ForestColumn) -> bool {
        match column {
            ForestColumn::Number(column) => column < self.numbers,
            ForestColumn::Boolean(column) => column < self.booleans,
            ForestColumn::Category(column) => column < self.categories.len(),
            ForestColumn::Set(column) => column < self.sets.len(),
        }
    }
}

impl<'a> ForestExamples<'a> {
    /// Checks that the examples have these columns.
    pub(super) fn check(&self, columns: &Columns) -> Result<()> {
        let rows = [
            ("numerical_features", self.numbers.len(), columns.numbers),
            ("boolean_features", self.booleans.len(), columns.booleans),
            ("categorical_int_features", self.categories.len(), columns.categories.len()),
        ];
        for (name, found, width) in rows {
            if Some(found) != self.len.checked_mul(width) {
                let expected = format!("{} rows of {width} values", self.len);
                return Err(Error::argument(OP, name, expected, format!("{found} values")).into());
            }
        }
        self.check_sets(columns)
    }

    fn check_sets(&self, columns: &Columns) -> Result<()> {
        let n_sets = self.len.saturating_mul(columns.sets.len());
        let Sets { values, splits } = self.sets;
        let valid = n_sets == 0
            || splits.len() > n_sets
                && splits[0] >= 0
                && splits[..=n_sets].is_sorted()
                && usize::try_from(splits[n_sets]).is_ok_and(|end| end <= values.len());
        if valid {
            return Ok(());
        }
        let name = "categorical_set_int_features_row_splits_dim_1";
        let expected = format!("the ends of {n_sets} sets");
        Err(Error::argument(OP, name, expected, format!("{} other numbers", splits.len())).into())
    }

    /// The category in a column, unless it is missing.
    #[inline]
    pub(super) fn category(&self, columns: &Columns, row: usize, column: usize) -> Option<i32> {
        let category = self.categories[row * columns.categories.len() + column];
        (category != -1).then_some(known(category, columns.categories[column]))
    }

    /// The categories of a set, unless it is missing.
    pub(super) fn set(
        &self,
        columns: &Columns,
        row: usize,
        column: usize,
    ) -> Option<impl Iterator<Item = i32> + 'a> {
        let (at, size) = (row * columns.sets.len() + column, columns.sets[column]);
        let range = self.sets.splits[at] as usize..self.sets.splits[at + 1] as usize;
        let set = &self.sets.values[range];
        // Negative ones are -1, which is missing, and others, which are not known.
        let is_missing = set.first() == Some(&-1);
        (!is_missing).then(|| set.iter().map(move |&category| known(category, size)))
    }

    /// Whether a column has no value.
    pub(super) fn is_missing(&self, columns: &Columns, row: usize, column: ForestColumn) -> bool {
        match column {
            ForestColumn::Number(column) => self.numbers[row * columns.numbers + column].is_nan(),
            ForestColumn::Boolean(column) => {
                self.booleans[row * columns.booleans + column].is_nan()
            }
            ForestColumn::Category(column) => self.category(columns, row, column).is_none(),
            ForestColumn::Set(column) => self.set(columns, row, column).is_none(),
        }
    }
}

/// The category, or 0 if there is none of its number. (-1 within a set stays.)
fn known(category: i32, size: i32) -> i32 {
    if category < -1 || category >= size { 0 } else { category }
}
