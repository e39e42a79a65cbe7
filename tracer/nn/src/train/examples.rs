//! Where batches come from.

use ferroflow_tracer::Tensor;
use std::error::Error;

/// The batches of an epoch.
pub type ExampleBatches<'a> =
    Box<dyn Iterator<Item = Result<Vec<Tensor>, Box<dyn Error + Send + Sync>>> + 'a>;

/// Examples that are gone through once in each epoch. A batch is inputs and targets, and weights of
/// the examples if there is a third tensor.
pub trait Examples {
    /// The batches of an epoch, numbered from 0 on. The same number has the same batches: a training
    /// that is resumed goes on with those that come next.
    fn epoch(&self, epoch: u64) -> ExampleBatches<'_>;

    /// The batches of an epoch after the first `n_done`: where a training is resumed within it. Examples
    /// that can do without making the first ones override it.
    fn epoch_from(&self, epoch: u64, n_done: usize) -> ExampleBatches<'_> {
        let mut batches = self.epoch(epoch);
        let mut n_left = n_done;
        Box::new(std::iter::from_fn(move || {
            while n_left > 0 {
                n_left -= 1;
                match batches.next() {
                    Some(Ok(_)) => {}
                    end => return end,
                }
            }
            batches.next()
        }))
    }

    /// The number of batches in an epoch, if it is known beforehand.
    fn n_batches(&self) -> Option<usize> {
        None
    }
}

/// The same batches in each epoch.
impl Examples for Vec<Vec<Tensor>> {
    fn epoch(&self, _: u64) -> ExampleBatches<'_> {
        self.epoch_from(0, 0)
    }

    fn epoch_from(&self, _: u64, n_done: usize) -> ExampleBatches<'_> {
        Box::new(self.iter().skip(n_done).map(|batch| Ok(batch.clone())))
    }

    fn n_batches(&self) -> Option<usize> {
        Some(self.len())
    }
}

/// The batches that a function makes for each epoch.
impl<F, I> Examples for F
where
    F: Fn(u64) -> I,
    I: Iterator<Item = Result<Vec<Tensor>, Box<dyn Error + Send + Sync>>> + 'static,
{
    fn epoch(&self, epoch: u64) -> ExampleBatches<'_> {
        Box::new(self(epoch))
    }
}
