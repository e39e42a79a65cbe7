//! Ragged tensors as values of dtype variant: taking them apart into rows and putting them together
//! from rows (TensorFlow's `ragged_tensor_to_variant_op.cc` and `ragged_tensor_from_variant_op.cc`).

use crate::{
    context::Context,
    error::{Error, Result},
    rows::{RowRun, join},
};
use ferroflow_ir::{DType, Error as IrError, Handle, HostTensor, Shape};
use std::{any::Any, fmt::Display, ops::Range};

/// A ragged tensor: values, and for each ragged dimension, outermost first, where its rows begin
/// and end.
#[derive(Debug, Clone)]
pub(crate) struct Ragged {
    pub(crate) splits: Vec<Vec<i64>>,
    pub(crate) values: HostTensor,
}

impl Handle for Ragged {
    fn as_any(&self) -> &dyn Any {
        self
    }
}

fn wrong(argument: &'static str, expected: impl Into<String>, found: impl Display) -> Error {
    IrError::argument("ragged tensor", argument, expected.into(), found).into()
}

impl Ragged {
    /// A ragged tensor of these splits and values.
    ///
    /// # Errors
    ///
    /// When splits do not begin at 0, are not sorted, or do not end where the next ones do.
    pub(crate) fn new(splits: Vec<Vec<i64>>, values: HostTensor) -> Result<Ragged> {
        for (level, own) in splits.iter().enumerate() {
            let n_values = match splits.get(level + 1) {
                Some(inner) => Some(inner.len().saturating_sub(1)),
                None => values.shape().first().copied(),
            };
            let starts = own.first() == Some(&0) && own.is_sorted();
            let ends = own.last().copied().zip(n_values).is_some_and(|(a, b)| a == b as i64);
            if !starts || !ends {
                let expected = format!("sorted from 0 to {n_values:?}");
                return Err(wrong("splits", expected, format!("{own:?}")));
            }
        }
        Ok(Ragged { splits, values })
    }

    /// The same rows of values that `change` makes.
    ///
    /// # Errors
    ///
    /// Those of `change`.
    pub(crate) fn map(&self, change: &dyn Fn(&HostTensor) -> Result<HostTensor>) -> Result<Ragged> {
        Ok(Ragged { splits: self.splits.clone(), values: change(&self.values)? })
    }

    /// The sums of the values.
    ///
    /// # Errors
    ///
    /// When the rows are not the same, and those of `sum`.
    pub(crate) fn add(
        &self,
        other: &Ragged,
        sum: &dyn Fn(&HostTensor, &HostTensor) -> Result<HostTensor>,
    ) -> Result<Ragged> {
        if self.splits != other.splits {
            return Err(wrong("splits", "those of the other", "others"));
        }
        Ok(Ragged { splits: self.splits.clone(), values: sum(&self.values, &other.values)? })
    }

    /// The number of rows.
    pub(crate) fn n_rows(&self) -> Result<usize> {
        match self.splits.first() {
            Some(splits) => Ok(splits.len().saturating_sub(1)),
            None => {
                let n_rows = self.values.shape().first().copied();
                n_rows.ok_or_else(|| wrong("values", "of rank 1 or more", self.values.shape()))
            }
        }
    }

    /// The rows, each a ragged tensor of one ragged dimension less; those of a tensor without
    /// ragged dimensions are tensors without the first dimension.
    ///
    /// # Errors
    ///
    /// When the splits do not fit each other or the values.
    pub(crate) fn into_rows(self) -> Result<Vec<Ragged>> {
        let Some((outer, inner)) = self.splits.split_first() else {
            let rows = crate::rows::rows(&self.values)?;
            return Ok(rows.into_iter().map(|values| Ragged { splits: vec![], values }).collect());
        };
        ranges(outer)?
            .into_iter()
            .map(|range| {
                let mut range = range;
                let mut splits = Vec::with_capacity(inner.len());
                for inner in inner {
                    let (own, next) = cut(inner, range)?;
                    splits.push(own);
                    range = next;
                }
                Ok(Ragged { splits, values: self.values.rows(range)? })
            })
            .collect()
    }
}

/// The rows that splits name.
fn ranges(splits: &[i64]) -> Result<Vec<Range<usize>>> {
    splits.windows(2).map(|pair| range(pair[0], pair[1])).collect()
}

fn range(start: i64, end: i64) -> Result<Range<usize>> {
    let ends = usize::try_from(start).ok().zip(usize::try_from(end).ok());
    let range = ends.map(|(start, end)| start..end).filter(|range| range.start <= range.end);
    range.ok_or_else(|| wrong("splits", "not negative and sorted", format!("{start}, {end}")))
}

/// The splits of these rows, counted from their beginning, and the rows of the next dimension that
/// they are made of.
fn cut(splits: &[i64], rows: Range<usize>) -> Result<(Vec<i64>, Range<usize>)> {
    let own = splits.get(rows.start..=rows.end);
    let own =
        own.ok_or_else(|| wrong("splits", format!("enough for rows {rows:?}"), splits.len()))?;
    let next = range(own[0], own[own.len() - 1])?;
    Ok((own.iter().map(|split| split - own[0]).collect(), next))
}

/// A ragged tensor whose rows are `parts`, grouped by the dimensions `dims`: of these all but the
/// first, and then the numbers of rows of the parts, become ragged dimensions. Parts of `None`
/// ragged dimensions are tensors, stacked as they are.
///
/// # Errors
///
/// When the parts are of different dtypes, shapes or ragged ranks, or the result is too large.
pub(crate) fn stack(
    context: &Context,
    dims: &[usize],
    parts: &[&Ragged],
    dtype: DType,
    n_inner: Option<usize>,
) -> Result<Ragged> {
    let mut splits = Vec::new();
    let mut n_outer = 1usize;
    for pair in dims.windows(2) {
        n_outer = n_outer.saturating_mul(pair[0]);
        splits.push((0..=n_outer as i64).map(|row| row * pair[1] as i64).collect());
    }
    let values: Vec<&HostTensor> = parts.iter().map(|part| &part.values).collect();
    let Some(n_inner) = n_inner else {
        return Ok(Ragged { splits, values: stack_equal(context, dtype, &values)? });
    };
    if let Some(part) = parts.iter().find(|part| part.splits.len() != n_inner) {
        return Err(wrong("parts", format!("of {n_inner} ragged dimensions"), part.splits.len()));
    }
    let lengths = parts.iter().map(|part| part.n_rows()).collect::<Result<Vec<_>>>()?;
    splits.push(sums(lengths.into_iter().map(|length| length as i64)));
    for level in 0..n_inner {
        let lengths = parts.iter().flat_map(|part| {
            part.splits[level].windows(2).map(|pair| pair[1].wrapping_sub(pair[0]))
        });
        splits.push(sums(lengths));
    }
    Ok(Ragged { splits, values: concat(context, dtype, &values)? })
}

fn stack_equal(context: &Context, dtype: DType, tensors: &[&HostTensor]) -> Result<HostTensor> {
    let shape = tensors.first().map_or(Shape::scalar(), |tensor| tensor.shape().clone());
    if let Some(other) = tensors.iter().find(|tensor| *tensor.shape() != shape) {
        return Err(wrong("values", format!("of shape {shape}"), other.shape()));
    }
    let parts: Vec<RowRun<'_>> = tensors.iter().map(|&tensor| RowRun::Tensor(tensor)).collect();
    join(context, dtype, crate::rows::stacked(parts.len(), &shape)?, &parts)
}

/// 0, and the sums of the first one, two, three, ... numbers.
fn sums(numbers: impl Iterator<Item = i64>) -> Vec<i64> {
    let mut total = 0i64;
    let sums = numbers.map(|number| {
        total = total.wrapping_add(number);
        total
    });
    [0].into_iter().chain(sums).collect()
}

/// Tensors joined along their first dimension.
///
/// # Errors
///
/// When they do not fit each other, or the result is too large.
pub(crate) fn concat(
    context: &Context,
    dtype: DType,
    tensors: &[&HostTensor],
) -> Result<HostTensor> {
    let Some(first) = tensors.first() else {
        return Ok(HostTensor::zeros(dtype, Shape::new([0])?)?);
    };
    let row = first.shape().get(1..);
    let row = row.ok_or_else(|| wrong("values", "of rank 1 or more", first.shape()))?;
    let mut n_rows = 0usize;
    for tensor in tensors {
        match tensor.shape().split_first() {
            Some((length, other)) if other == row => n_rows = n_rows.saturating_add(*length),
            _ => return Err(wrong("values", format!("of rows of shape {row:?}"), tensor.shape())),
        }
    }
    let parts: Vec<RowRun<'_>> = tensors.iter().map(|&tensor| RowRun::Tensor(tensor)).collect();
    join(context, dtype, crate::rows::stacked(n_rows, row)?, &parts)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn values(elements: &[i32]) -> HostTensor {
        HostTensor::vector(elements).unwrap()
    }

    #[test]
    fn rows_are_stacked_to_what_they_came_from() {
        let splits = vec![vec![0, 2, 2, 3], vec![0, 1, 3, 4]];
        let whole = Ragged::new(splits.clone(), values(&[1, 2, 3, 4])).unwrap();
        let rows = whole.into_rows().unwrap();
        assert_eq!(rows[0].splits, [[0, 1, 3]]);
        assert_eq!(rows[2].values, values(&[4]));
        let rows: Vec<&Ragged> = rows.iter().collect();
        let again = stack(&Context::new(), &[3], &rows, DType::I32, Some(1)).unwrap();
        assert_eq!((again.splits, again.values), (splits, values(&[1, 2, 3, 4])));
    }

    #[test]
    fn splits_are_checked() {
        for splits in [&[0i64, 9][..], &[2, 1], &[-1, 1], &[]] {
            assert!(Ragged::new(vec![splits.to_vec()], values(&[1, 2])).is_err(), "{splits:?}");
        }
    }
}
