//! The ops of tensorflow_text: normal forms, tokenizers, trimming, tags and metrics.
//!
//! Offsets count bytes. Tokens share the memory of the text that they are part of, and texts that a call
//! writes share blocks.

mod bert;
mod binarize;
mod boise;
mod byte_split;
mod char_set;
mod constrained;
mod find_offsets;
mod flatbuffer;
mod model;
mod ngrams;
mod normal;
mod normalize;
mod phrase;
mod regex_split;
mod rouge;
mod round_robin;
mod script;
mod sentence;
pub mod sentencepiece;
mod shared;
mod spanning_tree;
mod split_merge;
mod tokens;
mod trie;
mod utf8;
mod whitespace;
pub(crate) mod wordpiece;

use super::{Build, cell::Cell};
use crate::{error::Result, kernel::Io};
use bytes::Bytes;
use ferroflow_ir::{Code, DType, Error, HostTensor, Shape};

pub(super) const KERNELS: &[&[(&str, Build)]] = &[
    bert::KERNELS,
    binarize::KERNELS,
    boise::KERNELS,
    byte_split::KERNELS,
    constrained::KERNELS,
    find_offsets::KERNELS,
    ngrams::KERNELS,
    normalize::KERNELS,
    phrase::KERNELS,
    regex_split::KERNELS,
    rouge::KERNELS,
    round_robin::KERNELS,
    script::KERNELS,
    sentence::KERNELS,
    sentencepiece::fast::KERNELS,
    spanning_tree::KERNELS,
    split_merge::KERNELS,
    whitespace::KERNELS,
    wordpiece::KERNELS,
];

/// Sets an output to a vector of plain elements.
fn put_vector<T: Cell + Copy>(
    io: &mut Io<'_>,
    output: usize,
    dtype: DType,
    values: &[T],
) -> Result<()> {
    T::write(io, output, dtype, &Shape::new([values.len()])?, |out| {
        out.copy_from_slice(values);
        Ok(())
    })
}

/// Sets an output to a vector of strings.
fn put_texts(io: &mut Io<'_>, output: usize, texts: Vec<Bytes>) -> Result<()> {
    let shape = Shape::new([texts.len()])?;
    io.check_size(DType::String, &shape)?;
    io.put(output, HostTensor::from_strings(shape, texts)?)
}

/// Sets an output to a vector of integers of an index type.
fn put_splits(io: &mut Io<'_>, output: usize, dtype: DType, splits: &[usize]) -> Result<()> {
    let shape = Shape::new([splits.len()])?;
    super::index::put_integers(io, output, dtype, &shape, splits.iter().copied())
}

/// Row splits as ranges of values, one for each row; a row that ends before it begins is empty.
///
/// # Errors
///
/// When there are no splits, or one lies outside the values.
fn rows(op: &'static str, splits: &[i64], n_values: usize) -> Result<Vec<std::ops::Range<usize>>> {
    let split_index = |split: i64| match usize::try_from(split) {
        Ok(place) if place <= n_values => Ok(place),
        _ => Err(wrong_splits(op, format!("within 0 and {n_values}"), splits)),
    };
    if splits.is_empty() {
        return Err(wrong_splits(op, "not empty".into(), splits));
    }
    splits
        .windows(2)
        .map(|ends| {
            let (start, end) = (split_index(ends[0])?, split_index(ends[1])?);
            Ok(start..end.max(start))
        })
        .collect()
}

fn wrong_splits(op: &'static str, expected: String, found: &[i64]) -> crate::Error {
    let found = &found[..found.len().min(8)];
    Error::argument(op, "row splits", expected, format!("{found:?}")).into()
}

/// An error of a status other than an invalid argument.
fn failed(op: &'static str, code: Code, detail: impl Into<String>) -> crate::Error {
    Error::Status { op: op.into(), code, detail: detail.into() }.into()
}
