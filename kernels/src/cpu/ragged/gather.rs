//! Rows of ragged tensors: `RaggedGather`.

use super::nested_splits;
use crate::{
    cpu::{
        Build,
        cell::Cell,
        dispatch::with_cell,
        index::{integers, put_integers},
    },
    device::OpCall,
    error::Result,
    kernel::{Io, Kernel},
};
use ferroflow_ir::{DType, Error, Shape};
use std::{ops::Range, sync::Arc};

pub(crate) const KERNELS: &[(&str, Build)] = &[("RaggedGather", gather)];

struct Gather {
    /// Lengths of the splits.
    lengths: Vec<usize>,
    splits_dtype: DType,
    index_dtype: DType,
    dtype: DType,
    values: Shape,
    indices: Shape,
}

fn gather(call: &OpCall<'_>) -> Result<Option<Arc<dyn Kernel>>> {
    let n = call.inputs.len() - 2;
    let gather = Gather {
        lengths: (0..n).map(|input| call.shape(input)[0]).collect(),
        splits_dtype: call.dtype(0),
        index_dtype: call.dtype(n + 1),
        dtype: call.dtype(n),
        values: call.shape(n).clone(),
        indices: call.shape(n + 1).clone(),
    };
    fn kernel<T: Cell>(gather: Gather) -> Arc<dyn Kernel> {
        Arc::new(move |io: &mut Io<'_>| run::<T>(&gather, io))
    }
    Ok(with_cell!(gather.dtype, T => kernel::<T>(gather)))
}

fn run<T: Cell>(gather: &Gather, io: &mut Io<'_>) -> Result<()> {
    let (op, n) = ("RaggedGather", gather.lengths.len());
    let nested = nested_splits(io, op, &gather.lengths, gather.splits_dtype, gather.values[0])?;
    let n_rows = nested[0].len() - 1;
    let mut taken: Vec<Range<usize>> = Vec::new();
    for (position, &index) in integers(io, n + 1, gather.index_dtype).iter().enumerate() {
        let Some(row) = usize::try_from(index).ok().filter(|&row| row < n_rows) else {
            let (what, high) = (format!("number {position} of the indices,").into(), n_rows as i64);
            return Err(Error::Index { what, index, low: 0, high }.into());
        };
        taken.push(row..row + 1);
    }
    let n_outer = uniform_splits(gather, io)?;
    // From level to level, the rows taken become the values they span.
    for (level, splits) in nested.iter().enumerate() {
        let mut own = vec![0usize];
        let total: usize = taken.iter().map(|rows| rows.len()).fold(0, usize::saturating_add);
        io.check_size(gather.splits_dtype, &Shape::new([total.saturating_add(1)])?)?;
        for rows in &mut taken {
            for row in rows.clone() {
                let length = (splits[row + 1] - splits[row]) as usize;
                own.push(own[own.len() - 1].saturating_add(length));
            }
            *rows = splits[rows.start] as usize..splits[rows.end] as usize;
        }
        let shape = Shape::new([own.len()])?;
        put_integers(io, n_outer + level, gather.splits_dtype, &shape, own.into_iter())?;
    }
    let row: usize = gather.values[1..].iter().product();
    let total = taken.iter().map(Range::len).fold(0, usize::saturating_add);
    let shape = Shape::new([total].into_iter().chain(gather.values[1..].iter().copied()))?;
    let values = T::read(io, n)?;
    T::write(io, n_outer + n, gather.dtype, &shape, |mut out| {
        for rows in &taken {
            let (own, rest) = out.split_at_mut(rows.len() * row);
            own.clone_from_slice(&values[rows.start * row..rows.end * row]);
            out = rest;
        }
        Ok(())
    })
}

/// Writes the splits of all dimensions of the indices but the first, whose rows are equally long;
/// gives their number.
fn uniform_splits(gather: &Gather, io: &mut Io<'_>) -> Result<usize> {
    let mut n_rows = 1;
    for (output, sizes) in gather.indices.windows(2).enumerate() {
        n_rows *= sizes[0];
        let splits = (0..=n_rows).map(|row| row * sizes[1]);
        put_integers(io, output, gather.splits_dtype, &Shape::new([n_rows + 1])?, splits)?;
    }
    Ok(gather.indices.rank().saturating_sub(1))
}
