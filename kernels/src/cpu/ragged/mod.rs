//! Ragged tensors: elements, and splits, which say where each row begins and the last one ends.

pub(super) mod cross;
pub(super) mod gather;
pub(super) mod rows;
pub(super) mod to_sparse;
pub(super) mod to_tensor;

use super::index::integers;
use crate::{error::Result, kernel::Io};
use ferroflow_ir::{DType, Error};
use std::borrow::Cow;

/// The splits in an input, which must rise from 0 or more to `n_values` or less.
///
/// # Errors
///
/// [`Error::Argument`] when they do not.
fn splits<'a>(
    io: &Io<'a>,
    op: &'static str,
    input: usize,
    dtype: DType,
    n_values: usize,
) -> Result<Cow<'a, [i64]>> {
    let splits = integers(io, input, dtype);
    let fits = splits.last().is_some_and(|&last| last <= n_values as i64);
    if splits.is_sorted() && splits.first().is_some_and(|&first| first >= 0) && fits {
        return Ok(splits);
    }
    let expected = format!("rising splits of {n_values} values");
    Err(Error::argument(op, format!("input {input}"), expected, format!("{splits:?}")).into())
}

/// The nested splits in the first inputs, which must span all of the values under them.
///
/// # Errors
///
/// [`Error::Argument`] when they do not.
fn nested_splits<'a>(
    io: &Io<'a>,
    op: &'static str,
    lengths: &[usize],
    dtype: DType,
    n_values: usize,
) -> Result<Vec<Cow<'a, [i64]>>> {
    let mut nested = Vec::with_capacity(lengths.len());
    for input in 0..lengths.len() {
        let below = lengths.get(input + 1).map_or(n_values, |length| length.saturating_sub(1));
        nested.push(splits(io, op, input, dtype, below)?);
    }
    Ok(nested)
}
