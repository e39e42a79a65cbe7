//! `RaggedCross`: combinations of the features of examples, whose columns may be ragged, sparse or
//! dense (`ragged_cross_op.cc`).

use super::splits;
use crate::{
    cpu::{
        Build,
        index::put_integers,
        sparse::cross::{
            CrossJoin, FeatureColumn, FeatureValues, HashedCross, JoinedText, combinations,
        },
        sparse::put_values,
    },
    device::OpCall,
    error::Result,
    kernel::{Io, Kernel},
};
use ferroflow_ir::{DType, Error, Shape, budget, workspace};
use std::{ops::Range, sync::Arc};

pub(crate) const KERNELS: &[(&str, Build)] = &[("RaggedCross", cross)];

const OP: &str = "RaggedCross";

/// A column among the inputs of a call.
#[derive(Debug, Clone, Copy)]
enum Source {
    Ragged { values: usize, dtype: DType, splits: usize, index: DType, n: usize },
    Sparse { indices: usize, values: usize, dtype: DType, shape: usize, n: usize },
    Dense { input: usize, dtype: DType, rows: usize, width: usize },
}

fn sources(call: &OpCall<'_>) -> Result<Vec<Source>> {
    let types = |name: &str| call.attrs.types(name);
    let ragged = types("ragged_values_types")?;
    let indices = types("ragged_splits_types")?;
    let (sparse, dense) = (types("sparse_values_types")?, types("dense_types")?);
    let [n_ragged, n_sparse] = [ragged.len(), sparse.len()];
    let wrong = || {
        let found = call.attrs.string("input_order").unwrap_or_default();
        call.wrong("input_order", "`R`, `S` or `D` for each column", found)
    };
    let mut counts = [0, 0, 0];
    let mut found = Vec::new();
    for kind in call.attrs.string("input_order")?.chars() {
        let index = "RSD".find(kind).ok_or_else(wrong)?;
        let at = counts[index];
        counts[index] += 1;
        found.push(match kind {
            'R' if at < n_ragged && at < indices.len() => Source::Ragged {
                values: at,
                dtype: ragged[at],
                splits: n_ragged + at,
                index: indices[at],
                n: vector(call, at)?,
            },
            'S' if at < n_sparse => {
                let first = 2 * n_ragged + at;
                let (values, shape) = (first + n_sparse, first + 2 * n_sparse);
                let n = vector(call, values)?;
                if call.shape(first)[..] != [n, 2] || call.shape(shape)[..] != [2] {
                    return Err(call.wrong("sparse_indices", "of matrices", call.shape(first)));
                }
                Source::Sparse { indices: first, values, dtype: sparse[at], shape, n }
            }
            'D' if at < dense.len() => {
                let input = 2 * n_ragged + 3 * n_sparse + at;
                let [rows, width] = call.shape(input)[..] else {
                    return Err(call.wrong("dense_inputs", "matrices", call.shape(input)));
                };
                Source::Dense { input, dtype: dense[at], rows, width }
            }
            _ => return Err(wrong()),
        });
    }
    match counts == [n_ragged, n_sparse, dense.len()] {
        true => Ok(found),
        false => Err(wrong()),
    }
}

fn vector(call: &OpCall<'_>, input: usize) -> Result<usize> {
    match call.shape(input)[..] {
        [n] => Ok(n),
        _ => Err(call.wrong("values", "vectors", call.shape(input))),
    }
}

impl Source {
    /// The number of examples.
    fn n_examples(&self, io: &Io<'_>) -> Result<usize> {
        match *self {
            Source::Ragged { splits: input, index, n, .. } => {
                Ok(splits(io, OP, input, index, n)?.len() - 1)
            }
            Source::Sparse { shape, .. } => {
                let rows = io.input::<i64>(shape)[0];
                Ok(Shape::from_i64(&[rows])?[0])
            }
            Source::Dense { rows, .. } => Ok(rows),
        }
    }

    fn column<'a>(&self, io: &Io<'a>, n_examples: usize) -> Result<FeatureColumn<'a>> {
        match *self {
            Source::Ragged { values, dtype, splits: input, index, n } => {
                let splits = splits(io, OP, input, index, n)?;
                let rows = splits.windows(2).map(|ends| ends[0] as usize..ends[1] as usize);
                FeatureColumn::new(FeatureValues::read(io, values, dtype)?, rows.collect(), false)
            }
            Source::Sparse { indices, values, dtype, n, .. } => {
                let rows = rows_of(io.input(indices), n, n_examples)?;
                FeatureColumn::new(FeatureValues::read(io, values, dtype)?, rows, false)
            }
            Source::Dense { input, dtype, rows, width } => {
                let rows = (0..rows).map(|row| row * width..(row + 1) * width).collect();
                FeatureColumn::new(FeatureValues::read(io, input, dtype)?, rows, true)
            }
        }
    }
}

/// The range of the elements of a sparse matrix in each row.
fn rows_of(indices: &[i64], n: usize, n_examples: usize) -> Result<Vec<Range<usize>>> {
    let mut rows = workspace::reserve(n_examples)?;
    let mut end = 0;
    for row in 0..n_examples {
        let start = end;
        while end < n && indices[2 * end] <= row as i64 {
            end += 1;
        }
        rows.push(start..end);
    }
    Ok(rows)
}

fn cross(call: &OpCall<'_>) -> Result<Option<Arc<dyn Kernel>>> {
    let (sources, index) = (sources(call)?, call.attrs.dtype("out_row_splits_type")?);
    let seed = call.attrs.int("hash_key")? as u64;
    let hashed = HashedCross::seeded(seed, call.attrs.int("num_buckets")?);
    let text = JoinedText::new(b"_X_");
    Ok(Some(match call.attrs.dtype("out_values_type")? {
        DType::String => {
            Arc::new(move |io: &mut Io<'_>| run(io, &sources, index, DType::String, &text))
        }
        _ => Arc::new(move |io: &mut Io<'_>| run(io, &sources, index, DType::I64, &hashed)),
    }))
}

fn run<J: CrossJoin>(
    io: &mut Io<'_>,
    sources: &[Source],
    index: DType,
    dtype: DType,
    join: &J,
) -> Result<()> {
    let n_examples = sources.first().map_or(Ok(0), |source| source.n_examples(io))?;
    io.check_size(DType::I64, &Shape::new([n_examples])?)?;
    let mut columns = Vec::with_capacity(sources.len());
    for source in sources {
        let own = source.n_examples(io)?;
        if own != n_examples {
            let expected = format!("of {n_examples} examples, as the others");
            return Err(Error::argument(OP, "a column", expected, own).into());
        }
        columns.push(source.column(io, n_examples)?);
    }
    let mut ends = workspace::reserve(n_examples + 1)?;
    ends.push(0usize);
    let mut total = 0usize;
    for example in 0..n_examples {
        let counts = columns.iter().map(|column| column.len(example));
        total = total.saturating_add(counts.fold(1, usize::saturating_mul));
        ends.push(total);
    }
    io.check_size(DType::I64, &Shape::new([total])?)?;
    let mut values = workspace::reserve(total)?;
    for example in 0..n_examples {
        combinations(&columns, example, |combination| {
            budget::tick();
            values.push(join.join(combination));
        });
    }
    put_values(io, 0, dtype, &values)?;
    put_integers(io, 1, index, &Shape::new([ends.len()])?, ends.into_iter())
}
