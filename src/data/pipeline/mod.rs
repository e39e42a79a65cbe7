//! Items that are made, changed and put together on the way to a training.
//!
//! A pipeline is a recipe: it has no items until an epoch of it is begun, and the same epoch has the
//! same items in the same order. Where a training is resumed, with a later epoch or within one
//! ([`epoch_from`](DataPipeline::epoch_from)), it sees what it would have seen.
//!
//! ```
//! use ferroflow::{Tensor, data::DataPipeline};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let numbers = DataPipeline::of((0..10).collect::<Vec<i32>>());
//! let batches = numbers
//!     .filter(|n| n % 2 == 0)
//!     .shuffle(4, 7)
//!     .map(|n| vec![Tensor::from(n), Tensor::from(n * n)])
//!     .batch(2, false)
//!     .prefetch(2);
//! for batch in batches.epoch(0) {
//!     let [x, y] = &batch?[..] else { unreachable!("two tensors in each example") };
//!     assert_eq!(x.square()?.to_vec::<i32>()?, y.to_vec::<i32>()?);
//! }
//! # Ok(())
//! # }
//! ```

mod ahead;
mod batch;
mod folder;
mod loops;
mod order;
#[cfg(test)]
mod tests;

pub use batch::Example;
pub use folder::ImageFolder;

use super::{Error, Result};
use ferroflow_nn::train::{ExampleBatches, Examples};
use std::{fmt, sync::Arc};

/// The items of an epoch.
pub type PipelineItems<T> = Box<dyn Iterator<Item = Result<T>> + Send>;

/// A sequence of items for each epoch. Cheap to clone.
pub struct DataPipeline<T>(Arc<Recipe<T>>);

/// Function that makes the items of an epoch after the first ones, so many of them.
type BeginEpoch<T> = dyn Fn(u64, usize) -> PipelineItems<T> + Send + Sync;

struct Recipe<T> {
    begin: Box<BeginEpoch<T>>,
    /// The number of items in an epoch, if it is known.
    len: Option<usize>,
}

impl<T> Clone for DataPipeline<T> {
    fn clone(&self) -> DataPipeline<T> {
        DataPipeline(self.0.clone())
    }
}

impl<T> fmt::Debug for DataPipeline<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DataPipeline").field("len", &self.0.len).finish_non_exhaustive()
    }
}

impl<T: Send + 'static> DataPipeline<T> {
    /// The items of an iterator that `begin` makes for each epoch, numbered from 0 on.
    pub fn new<I>(begin: impl Fn(u64) -> I + Send + Sync + 'static) -> DataPipeline<T>
    where
        I: Iterator<Item = Result<T>> + Send + 'static,
    {
        DataPipeline::with_len(None, begin)
    }

    /// A pipeline of so many items, if that is known.
    fn with_len<I>(
        len: Option<usize>,
        begin: impl Fn(u64) -> I + Send + Sync + 'static,
    ) -> DataPipeline<T>
    where
        I: Iterator<Item = Result<T>> + Send + 'static,
    {
        DataPipeline::from_position(len, move |epoch, n_done| after(Box::new(begin(epoch)), n_done))
    }

    /// A pipeline that can begin an epoch behind items without making them.
    pub(in crate::data) fn from_position(
        len: Option<usize>,
        begin: impl Fn(u64, usize) -> PipelineItems<T> + Send + Sync + 'static,
    ) -> DataPipeline<T> {
        DataPipeline(Arc::new(Recipe { begin: Box::new(begin), len }))
    }

    /// These items, in this order, in each epoch.
    pub fn of(items: impl Into<Arc<[T]>>) -> DataPipeline<T>
    where
        T: Clone + Sync,
    {
        let items: Arc<[T]> = items.into();
        let len = Some(items.len());
        DataPipeline::from_position(len, move |_, n_done| {
            let items = items.clone();
            Box::new((n_done..items.len()).map(move |index| Ok(items[index].clone())))
        })
    }

    /// The items of an epoch. After the first error there are no more.
    pub fn epoch(&self, epoch: u64) -> PipelineItems<T> {
        self.epoch_from(epoch, 0)
    }

    /// The items of an epoch after the first `n_done`. Functions that make an item of an item, batches,
    /// parts and pairs do not make what comes before; shuffling, filters and caches go through it.
    ///
    /// ```
    /// use ferroflow::data::DataPipeline;
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let shuffled = DataPipeline::of((0..10).collect::<Vec<i32>>()).shuffle(10, 3);
    /// let all = shuffled.epoch(5).collect::<Result<Vec<_>, _>>()?;
    /// assert_eq!(shuffled.epoch_from(5, 4).collect::<Result<Vec<_>, _>>()?, all[4..]);
    /// # Ok(())
    /// # }
    /// ```
    pub fn epoch_from(&self, epoch: u64, n_done: usize) -> PipelineItems<T> {
        let mut failed = false;
        let until_error = (self.0.begin)(epoch, n_done).take_while(move |item| {
            let goes_on = !failed;
            failed |= item.is_err();
            goes_on
        });
        Box::new(until_error)
    }

    /// The number of items in an epoch, if it is known before they are made.
    pub fn len(&self) -> Option<usize> {
        self.0.len
    }

    /// Whether it is known that there are no items.
    pub fn is_empty(&self) -> bool {
        self.0.len == Some(0)
    }

    /// A pipeline whose epochs are made of those of this one, of which all items matter.
    fn then<U: Send + 'static, I: Iterator<Item = Result<U>> + Send + 'static>(
        &self,
        len: Option<usize>,
        change: impl Fn(PipelineItems<T>, u64) -> I + Send + Sync + 'static,
    ) -> DataPipeline<U> {
        let source = self.clone();
        let begin = move |epoch| change(source.epoch(epoch), epoch);
        DataPipeline::with_len(len, begin)
    }

    /// A pipeline whose items are made of `n` items here each, and of no others.
    fn then_each<U: Send + 'static, I: Iterator<Item = Result<U>> + Send + 'static>(
        &self,
        len: Option<usize>,
        n: usize,
        change: impl Fn(PipelineItems<T>) -> I + Send + Sync + 'static,
    ) -> DataPipeline<U> {
        let source = self.clone();
        DataPipeline::from_position(len, move |epoch, n_done| {
            Box::new(change(source.epoch_from(epoch, n_done.saturating_mul(n))))
        })
    }

    /// Results of `f` for each item.
    pub fn map<U: Send + 'static>(
        &self,
        f: impl Fn(T) -> U + Send + Sync + 'static,
    ) -> DataPipeline<U> {
        let f = Arc::new(f);
        self.then_each(self.0.len, 1, move |items| {
            let f = f.clone();
            items.map(move |item| item.map(&*f))
        })
    }

    /// Results of `f` for each item, where it may fail: its error ends the epoch.
    pub fn try_map<U: Send + 'static, E: Into<Box<dyn std::error::Error + Send + Sync>>>(
        &self,
        f: impl Fn(T) -> Result<U, E> + Send + Sync + 'static,
    ) -> DataPipeline<U> {
        let f = Arc::new(f);
        self.then_each(self.0.len, 1, move |items| {
            let f = f.clone();
            items.map(move |item| f(item?).map_err(|error| Error::Function(error.into())))
        })
    }

    /// The items for which `f` is true.
    pub fn filter(&self, f: impl Fn(&T) -> bool + Send + Sync + 'static) -> DataPipeline<T> {
        let f = Arc::new(f);
        self.then(None, move |items, _| {
            let f = f.clone();
            items.filter(move |item| item.as_ref().map_or(true, &*f))
        })
    }

    /// The first `n` items.
    pub fn take(&self, n: usize) -> DataPipeline<T> {
        let source = self.clone();
        DataPipeline::from_position(self.0.len.map(|len| len.min(n)), move |epoch, n_done| {
            Box::new(source.epoch_from(epoch, n_done).take(n.saturating_sub(n_done)))
        })
    }

    /// The items after the first `n`.
    pub fn skip(&self, n: usize) -> DataPipeline<T> {
        let source = self.clone();
        DataPipeline::from_position(
            self.0.len.map(|len| len.saturating_sub(n)),
            move |epoch, n_done| source.epoch_from(epoch, n_done.saturating_add(n)),
        )
    }

    /// Every `n`-th item, from item `index` on: a part of the items for one of several workers.
    ///
    /// # Panics
    ///
    /// When `n` is 0.
    pub fn shard(&self, n: usize, index: usize) -> DataPipeline<T> {
        assert!(n > 0, "items are parted among at least one worker");
        let len = self.0.len.map(|len| len.saturating_sub(index).div_ceil(n));
        let source = self.clone();
        DataPipeline::from_position(len, move |epoch, n_done| {
            let first = n_done.saturating_mul(n).saturating_add(index);
            Box::new(source.epoch_from(epoch, first).step_by(n))
        })
    }

    /// The items of this pipeline and those of another after them.
    pub fn concatenate(&self, other: &DataPipeline<T>) -> DataPipeline<T> {
        let len = self.0.len.zip(other.0.len).map(|(a, b)| a.saturating_add(b));
        let other = other.clone();
        self.then(len, move |items, epoch| items.chain(other.epoch(epoch)))
    }

    /// Pairs of items of this pipeline and of another, as many as both have.
    pub fn zip<U: Send + 'static>(&self, other: &DataPipeline<U>) -> DataPipeline<(T, U)> {
        let len = self.0.len.zip(other.0.len).map(|(a, b)| a.min(b));
        let (source, other) = (self.clone(), other.clone());
        DataPipeline::from_position(len, move |epoch, n_done| {
            let pairs = source.epoch_from(epoch, n_done).zip(other.epoch_from(epoch, n_done));
            Box::new(pairs.map(|(a, b)| Ok((a?, b?))))
        })
    }

    /// `n` epochs of this pipeline as one.
    pub fn repeat(&self, n: usize) -> DataPipeline<T> {
        let source = self.clone();
        let begin = move |epoch: u64| {
            let source = source.clone();
            let first = epoch.wrapping_mul(n as u64);
            (0..n as u64).flat_map(move |index| source.epoch(first.wrapping_add(index)))
        };
        let len = self.0.len.map(|len| len.saturating_mul(n));
        DataPipeline::with_len(len, begin)
    }
}

/// The items after the first `n`, unless one of those is an error, which comes first then.
fn after<T: 'static>(mut items: PipelineItems<T>, n: usize) -> PipelineItems<T> {
    let mut n_left = n;
    Box::new(std::iter::from_fn(move || {
        while n_left > 0 {
            n_left -= 1;
            match items.next() {
                Some(Ok(_)) => {}
                end => return end,
            }
        }
        items.next()
    }))
}

impl Examples for DataPipeline<Example> {
    fn epoch(&self, epoch: u64) -> ExampleBatches<'_> {
        Examples::epoch_from(self, epoch, 0)
    }

    fn epoch_from(&self, epoch: u64, n_done: usize) -> ExampleBatches<'_> {
        let batches = DataPipeline::epoch_from(self, epoch, n_done);
        Box::new(batches.map(|batch| batch.map_err(Into::into)))
    }

    fn n_batches(&self) -> Option<usize> {
        self.0.len
    }
}
