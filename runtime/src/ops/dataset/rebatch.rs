//! Data sets of the rows of batches, and of batches of other sizes.

use super::{Cardinality, Components, Dataset, DatasetSource, Stream, source::n_rows};
use crate::{
    context::Context,
    eager_tensor::Results,
    error::Result,
    ops::RuntimeCall,
    rows::{RowRun, join, row, stacked},
};
use ferroflow_ir::{Error as IrError, HostTensor, Shape};
use std::collections::VecDeque;

/// The rows of each element.
#[derive(Debug)]
struct Unbatch {
    input: Dataset,
    op: &'static str,
    /// The rows of each element, if that is known.
    n_rows: Option<u64>,
}

impl DatasetSource for Unbatch {
    fn stream(&self) -> Stream {
        let (mut input, op) = (self.input.stream(), self.op);
        let (mut batch, mut rows): (Components, std::ops::Range<usize>) = (Vec::new(), 0..0);
        Stream::new(move |scope| {
            loop {
                if let Some(index) = rows.next() {
                    let element = batch.iter().map(|component| row(component, index));
                    return element.collect::<Result<_>>().map(Some);
                }
                let Some(next) = input.next(scope)? else { return Ok(None) };
                rows = 0..n_rows(op, &next)?;
                batch = next;
            }
        })
    }

    fn cardinality(&self) -> Cardinality {
        match (self.input.cardinality(), self.n_rows) {
            (Cardinality::Known(n), Some(rows)) => Cardinality::Known(n.saturating_mul(rows)),
            (Cardinality::Infinite, _) => Cardinality::Infinite,
            _ => Cardinality::Unknown,
        }
    }
}

/// Batching of these sizes, over and over, of the rows of batches.
#[derive(Debug)]
struct Rebatch {
    input: Dataset,
    op: &'static str,
    sizes: Vec<usize>,
    drop_remainder: bool,
}

/// PendingRows that were read and are in no batch yet.
#[derive(Default)]
struct PendingRows {
    parts: VecDeque<Components>,
    n: usize,
    /// The components of rows, without any.
    empty: Option<Components>,
}

impl PendingRows {
    fn push(&mut self, op: &'static str, batch: Components) -> Result<()> {
        let n = n_rows(op, &batch)?;
        if self.empty.is_none() {
            let none = batch.iter().map(|component| Ok(component.rows(0..0)?));
            self.empty = Some(none.collect::<Result<_>>()?);
        }
        if n > 0 {
            self.n += n;
            self.parts.push_back(batch);
        }
        Ok(())
    }

    /// The first rows as one batch.
    fn take(&mut self, context: &Context, n: usize) -> Result<Components> {
        let mut parts: Vec<Components> = Vec::new();
        let mut left = n;
        while left > 0 {
            let Some(batch) = self.parts.pop_front() else { break };
            let rows = batch.first().and_then(|tensor| tensor.shape().first().copied());
            let (rows, whole) = (rows.unwrap_or(0).min(left), rows.unwrap_or(0));
            let cut = |range: std::ops::Range<usize>| -> Result<Components> {
                batch.iter().map(|tensor| Ok(tensor.rows(range.clone())?)).collect()
            };
            parts.push(cut(0..rows)?);
            if rows < whole {
                self.parts.push_front(cut(rows..whole)?);
            }
            left -= rows;
        }
        self.n -= n - left;
        let Some(first) = parts.first().or(self.empty.as_ref()) else { return Ok(Vec::new()) };
        let component = |index: usize| {
            let own: Option<Vec<&HostTensor>> = parts.iter().map(|part| part.get(index)).collect();
            concat(context, &first[index], n - left, &own.unwrap_or_default())
        };
        (0..first.len()).map(component).collect()
    }
}

/// The rows of tensors, which have the dtype and the row shape of `like`, in one.
fn concat(
    context: &Context,
    like: &HostTensor,
    n: usize,
    tensors: &[&HostTensor],
) -> Result<HostTensor> {
    let row_shape = &like.shape()[1..];
    if let Some(other) = tensors.iter().find(|tensor| tensor.shape()[1..] != *row_shape) {
        let expected = format!("of rows as those of {}", like.shape());
        let found = other.shape();
        return Err(IrError::argument("RebatchDatasetV2", "elements", expected, found).into());
    }
    let parts: Vec<RowRun<'_>> = tensors.iter().map(|tensor| RowRun::Tensor(tensor)).collect();
    let shape: Shape = stacked(n, row_shape)?;
    join(context, like.dtype(), shape, &parts)
}

impl DatasetSource for Rebatch {
    fn stream(&self) -> Stream {
        let (mut input, op, sizes) = (Some(self.input.stream()), self.op, self.sizes.clone());
        let (drop_remainder, mut rows, mut at) = (self.drop_remainder, PendingRows::default(), 0);
        Stream::new(move |scope| {
            let size = sizes[at % sizes.len()];
            while rows.n < size.max(1)
                && let Some(stream) = &mut input
            {
                match stream.next(scope)? {
                    Some(batch) => rows.push(op, batch)?,
                    None => input = None,
                }
            }
            if rows.n == 0 || rows.n < size && drop_remainder {
                return Ok(None);
            }
            at += 1;
            let n = size.min(rows.n);
            rows.take(scope.context, n).map(Some)
        })
    }

    fn cardinality(&self) -> Cardinality {
        Cardinality::Unknown
    }
}

pub(super) fn unbatch(call: &mut RuntimeCall<'_>) -> Result<Results> {
    call.dataset(Unbatch { input: call.input_dataset(0)?, op: call.op.name, n_rows: None })
}

pub(super) fn rebatch(call: &mut RuntimeCall<'_>) -> Result<Results> {
    let sizes = call.host(1)?.to_i64s()?;
    let wrong = || {
        let (expected, found) = ("sizes of 0 or more, not all 0", format!("{sizes:?}"));
        IrError::argument(call.op.name, "batch_sizes", expected, found)
    };
    let lengths: Option<Vec<usize>> =
        sizes.iter().map(|size| usize::try_from(*size).ok()).collect();
    let sizes = lengths.filter(|sizes| sizes.iter().any(|size| *size > 0)).ok_or_else(wrong)?;
    let drop_remainder = call.host(2)?.as_bool()?;
    call.dataset(Rebatch { input: call.input_dataset(0)?, op: call.op.name, sizes, drop_remainder })
}
