//! Global batches, and each replica's part of them.

use super::{PerReplica, Strategy};
use crate::{
    error::{Error, Result},
    ops,
    tensor::Tensor,
};
use std::ops::Range;

/// Examples that can be split by the first dimension.
pub trait Batch: Sized {
    /// The number of examples.
    ///
    /// # Errors
    ///
    /// [`Error::Conversion`] when there is no first dimension, or tensors differ in it.
    fn rows(&self) -> Result<usize>;

    /// Some of the examples.
    ///
    /// # Errors
    ///
    /// When there are not as many.
    fn part(&self, rows: Range<usize>) -> Result<Self>;
}

impl Batch for Tensor {
    fn rows(&self) -> Result<usize> {
        self.shape().dim(0).ok_or_else(|| Error::Conversion {
            expected: "a batch of examples".into(),
            found: self.spec().to_string(),
        })
    }

    fn part(&self, rows: Range<usize>) -> Result<Tensor> {
        let indices: Vec<i32> = rows.map(|row| row as i32).collect();
        if self.is_symbolic() {
            return ops::gather_v2(self, &Tensor::from(indices), &Tensor::from(0i32));
        }
        let (first, end) = (indices.first().copied(), indices.last().map(|last| last + 1));
        let range = first.unwrap_or(0) as usize..end.or(first).unwrap_or(0) as usize;
        Ok(Tensor::from(self.host()?.rows(range).map_err(ferroflow_runtime::Error::from)?))
    }
}

impl<A: Batch, B: Batch> Batch for (A, B) {
    fn rows(&self) -> Result<usize> {
        let (first, second) = (self.0.rows()?, self.1.rows()?);
        if first == second {
            return Ok(first);
        }
        let (expected, found) = (format!("{first} examples"), second.to_string());
        Err(Error::Conversion { expected, found })
    }

    fn part(&self, rows: Range<usize>) -> Result<(A, B)> {
        Ok((self.0.part(rows.clone())?, self.1.part(rows)?))
    }
}

/// Global batches, split for the replicas of this process.
#[derive(Debug)]
pub struct Distributed<I> {
    batches: I,
    strategy: Strategy,
}

impl<I> Distributed<I> {
    pub(super) fn new(strategy: &Strategy, batches: I) -> Distributed<I> {
        Distributed { batches, strategy: strategy.clone() }
    }
}

impl<B: Batch, I: Iterator<Item = B>> Iterator for Distributed<I> {
    type Item = Result<PerReplica<B>>;

    fn next(&mut self) -> Option<Result<PerReplica<B>>> {
        Some(self.strategy.split(&self.batches.next()?))
    }
}

/// The rows of each of `replicas`: as even as can be, the first ones have one more.
pub(super) fn shares(rows: usize, replicas: usize) -> Vec<Range<usize>> {
    let (each, more) = (rows / replicas, rows % replicas);
    let begin = |replica: usize| replica * each + replica.min(more);
    (0..replicas).map(|replica| begin(replica)..begin(replica + 1)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_cover_all_rows_once() {
        for (rows, replicas) in [(0, 3), (1, 4), (7, 3), (8, 2), (5, 5)] {
            let shares = shares(rows, replicas);
            assert_eq!(shares.len(), replicas);
            assert_eq!(
                shares.iter().cloned().flatten().collect::<Vec<_>>(),
                Vec::from_iter(0..rows)
            );
            let sizes = shares.iter().map(ExactSizeIterator::len);
            assert!(sizes.clone().max().unwrap() - sizes.min().unwrap() <= 1);
        }
    }
}
