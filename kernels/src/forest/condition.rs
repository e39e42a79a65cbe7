//! Conditions on the columns of an example.

use super::examples::{Columns, ForestExamples};

/// A condition on an example. It has no value where its column has none.
#[derive(Debug, Clone, PartialEq)]
pub enum SplitCondition {
    /// Whether a number is at least a threshold.
    AtLeast {
        /// Position among the columns of numbers.
        column: usize,
        /// The threshold.
        threshold: f32,
    },
    /// Whether a boolean, a number of 0 to 1, is at least a half.
    True {
        /// Position among the columns of booleans.
        column: usize,
    },
    /// Whether a category is one of these.
    Category {
        /// Position among the columns of categories.
        column: usize,
        /// The categories.
        categories: Categories,
    },
    /// Whether a set has one of these categories.
    CategorySet {
        /// Position among the columns of sets.
        column: usize,
        /// The categories.
        categories: Categories,
    },
    /// Whether a column has no value. This condition always has one.
    Missing(ForestColumn),
    /// Whether a weighted sum of numbers is at least a threshold.
    Oblique {
        /// The summands.
        terms: Box<[ObliqueTerm]>,
        /// The threshold.
        threshold: f32,
    },
}

/// A column of any type.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ForestColumn {
    /// A number, which is missing if it is NaN.
    Number(usize),
    /// A boolean, which is missing if it is NaN.
    Boolean(usize),
    /// A category, which is missing if it is -1.
    Category(usize),
    /// A set of categories, which is missing if it begins with -1.
    Set(usize),
}

/// A summand of [`SplitCondition::Oblique`].
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ObliqueTerm {
    /// Position among the columns of numbers.
    pub column: usize,
    /// Factor of the number.
    pub weight: f32,
    /// The number if it is missing. Without one the condition has no value then.
    pub replacement: Option<f32>,
}

/// Some of the categories of a column.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Categories {
    /// In ascending order.
    Sorted(Box<[i32]>),
    /// A bit for each, the least significant of a byte first.
    Bitmap(Box<[u8]>),
}

impl Categories {
    /// The categories of a list in any order.
    pub fn of_list(mut list: Vec<i32>) -> Categories {
        list.sort_unstable();
        Categories::Sorted(list.into())
    }

    fn contains(&self, category: i32) -> bool {
        match self {
            Categories::Sorted(list) => list.binary_search(&category).is_ok(),
            Categories::Bitmap(bytes) => usize::try_from(category).is_ok_and(|category| {
                bytes.get(category / 8).is_some_and(|byte| byte >> (category % 8) & 1 == 1)
            }),
        }
    }
}

impl SplitCondition {
    /// The columns that it reads.
    pub(super) fn columns(&self) -> impl Iterator<Item = ForestColumn> + '_ {
        let (one, terms) = match self {
            SplitCondition::AtLeast { column, .. } => {
                (Some(ForestColumn::Number(*column)), &[][..])
            }
            SplitCondition::True { column } => (Some(ForestColumn::Boolean(*column)), &[][..]),
            SplitCondition::Category { column, .. } => {
                (Some(ForestColumn::Category(*column)), &[][..])
            }
            SplitCondition::CategorySet { column, .. } => {
                (Some(ForestColumn::Set(*column)), &[][..])
            }
            SplitCondition::Missing(column) => (Some(*column), &[][..]),
            SplitCondition::Oblique { terms, .. } => (None, &terms[..]),
        };
        one.into_iter().chain(terms.iter().map(|term| ForestColumn::Number(term.column)))
    }

    /// Its value for example `row`.
    #[inline]
    pub(super) fn holds(
        &self,
        examples: &ForestExamples<'_>,
        columns: &Columns,
        row: usize,
    ) -> Option<bool> {
        match self {
            SplitCondition::AtLeast { column, threshold } => {
                let number = examples.numbers[row * columns.numbers + column];
                (!number.is_nan()).then_some(number >= *threshold)
            }
            SplitCondition::True { column } => {
                let boolean = examples.booleans[row * columns.booleans + column];
                (!boolean.is_nan()).then_some(boolean >= 0.5)
            }
            SplitCondition::Category { column, categories } => {
                let category = examples.category(columns, row, *column)?;
                Some(categories.contains(category))
            }
            SplitCondition::CategorySet { column, categories } => {
                let mut set = examples.set(columns, row, *column)?;
                Some(set.any(|category| categories.contains(category)))
            }
            SplitCondition::Missing(column) => Some(examples.is_missing(columns, row, *column)),
            SplitCondition::Oblique { terms, threshold } => {
                let mut sum = 0.0f32;
                for term in terms {
                    let number = examples.numbers[row * columns.numbers + term.column];
                    let number = if number.is_nan() { term.replacement? } else { number };
                    sum += number * term.weight;
                }
                Some(sum >= *threshold)
            }
        }
    }
}
