//! Examples in memory, and batches of them.

use super::{Error, Result, prefetch, random::SplitMix};
use ferroflow_ir::{HostTensor, Shape};
use ferroflow_nn::train::{ExampleBatches, Examples};
use ferroflow_tracer::Tensor;
use std::sync::Arc;

/// The batches that are prepared ahead of a training.
const AHEAD: usize = 2;

/// Arrays with a row for each example, such as images and labels. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Arrays {
    arrays: Arc<[HostTensor]>,
    n_rows: usize,
}

/// Collation of examples.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BatchOptions {
    /// Examples in a batch; at least one.
    pub size: usize,
    /// The seed of the order; that of the arrays if there is none.
    pub shuffle: Option<u64>,
    /// Whether a last batch of fewer examples is left out.
    pub drop_remainder: bool,
}

impl Default for BatchOptions {
    /// 32 examples in the order of the arrays.
    fn default() -> BatchOptions {
        BatchOptions { size: 32, shuffle: None, drop_remainder: false }
    }
}

impl Arrays {
    /// Arrays whose first dimension counts the examples.
    ///
    /// # Errors
    ///
    /// [`Error::Rows`] when they have different numbers of rows; a scalar has none.
    pub fn new(arrays: impl IntoIterator<Item = HostTensor>) -> Result<Arrays> {
        let arrays: Arc<[HostTensor]> = arrays.into_iter().collect();
        let rows = |array: &HostTensor| array.shape().dims().first().copied().unwrap_or(0);
        let n_rows = arrays.first().map_or(0, rows);
        match arrays.iter().position(|array| rows(array) != n_rows) {
            Some(index) => {
                Err(Error::Rows { index, expected: n_rows, found: rows(&arrays[index]) })
            }
            None => Ok(Arrays { arrays, n_rows }),
        }
    }

    /// The number of examples.
    pub fn len(&self) -> usize {
        self.n_rows
    }

    /// Whether there are no examples.
    pub fn is_empty(&self) -> bool {
        self.n_rows == 0
    }

    /// The number of batches of an epoch.
    pub fn n_batches(&self, options: &BatchOptions) -> usize {
        let size = options.size.max(1);
        if options.drop_remainder { self.n_rows / size } else { self.n_rows.div_ceil(size) }
    }

    /// The examples of a training: inputs, targets, and perhaps weights. Batches are prepared on a
    /// thread of their own.
    pub fn epochs(&self, options: &BatchOptions) -> ArrayEpochs {
        ArrayEpochs { arrays: self.clone(), options: *options }
    }

    /// The batches of an epoch: every example once, in an order that seed and epoch decide.
    pub fn batches(&self, options: &BatchOptions, epoch: u64) -> Batches {
        let mut order: Vec<usize> = (0..self.n_rows).collect();
        if let Some(seed) = options.shuffle {
            SplitMix::new(seed, epoch).shuffle(&mut order);
        }
        order.truncate(self.n_batches(options) * options.size.max(1));
        Batches { arrays: self.arrays.clone(), order, size: options.size.max(1), next: 0 }
    }
}

/// Arrays as the examples of a training: [`Arrays::epochs`].
#[derive(Debug, Clone)]
pub struct ArrayEpochs {
    arrays: Arrays,
    options: BatchOptions,
}

impl Examples for ArrayEpochs {
    fn epoch(&self, epoch: u64) -> ExampleBatches<'_> {
        self.epoch_from(epoch, 0)
    }

    fn epoch_from(&self, epoch: u64, n_done: usize) -> ExampleBatches<'_> {
        let mut batches = self.arrays.batches(&self.options, epoch);
        batches.next = batches.order.len().min(n_done.saturating_mul(batches.size));
        Box::new(prefetch(batches, AHEAD).map(|batch| batch.map_err(Into::into)))
    }

    fn n_batches(&self) -> Option<usize> {
        Some(self.arrays.n_batches(&self.options))
    }
}

/// The batches of an epoch: a tensor of each array.
#[derive(Debug)]
pub struct Batches {
    arrays: Arc<[HostTensor]>,
    order: Vec<usize>,
    size: usize,
    next: usize,
}

impl Iterator for Batches {
    type Item = Result<Vec<Tensor>>;

    fn next(&mut self) -> Option<Result<Vec<Tensor>>> {
        let end = self.order.len().min(self.next + self.size);
        let rows = &self.order[self.next..end];
        if rows.is_empty() {
            return None;
        }
        self.next = end;
        Some(self.arrays.iter().map(|array| Ok(gather(array, rows)?.into())).collect())
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let left = (self.order.len() - self.next).div_ceil(self.size);
        (left, Some(left))
    }
}

impl ExactSizeIterator for Batches {}

/// Some rows of an array, in this order.
fn gather(array: &HostTensor, rows: &[usize]) -> Result<HostTensor, ferroflow_ir::Error> {
    let dims = array.shape().dims();
    let shape = Shape::new(std::iter::once(rows.len()).chain(dims[1..].iter().copied()))?;
    if !array.is_plain() {
        let (strings, width) = (array.strings()?, dims[1..].iter().product::<usize>());
        let each = rows.iter().flat_map(|row| &strings[row * width..][..width]);
        return HostTensor::from_strings(shape, each.cloned().collect());
    }
    let bytes = array.bytes();
    let width = bytes.len() / dims[0];
    let gathered: Vec<u8> =
        rows.iter().flat_map(|row| &bytes[row * width..][..width]).copied().collect();
    HostTensor::from_bytes(array.dtype(), shape, &gathered)
}

#[cfg(test)]
mod tests {
    use super::*;
    use ferroflow_ir::DType;

    fn numbers(n: usize) -> Arrays {
        let shape = Shape::new([n, 2]).unwrap();
        let pairs: Vec<i32> = (0..n as i32).flat_map(|number| [number, -number]).collect();
        let names = (0..n).map(|number| number.to_string().into()).collect();
        Arrays::new([
            HostTensor::from_slice(shape, &pairs).unwrap(),
            HostTensor::from_strings(Shape::new([n]).unwrap(), names).unwrap(),
        ])
        .unwrap()
    }

    fn seen(arrays: &Arrays, options: &BatchOptions, epoch: u64) -> Vec<i32> {
        let mut seen = Vec::new();
        for batch in arrays.batches(options, epoch) {
            let [pairs, names] = &batch.unwrap()[..] else { panic!("two arrays") };
            let pairs: Vec<i32> = pairs.to_vec().unwrap();
            for (pair, name) in pairs.chunks(2).zip(names.host().unwrap().strings().unwrap()) {
                assert_eq!(pair[0], -pair[1]);
                assert_eq!(*name, pair[0].to_string());
                seen.push(pair[0]);
            }
        }
        seen
    }

    #[test]
    fn every_example_comes_once_an_epoch() {
        let arrays = numbers(10);
        let options = BatchOptions { size: 4, shuffle: Some(1), drop_remainder: false };
        let (first, second) = (seen(&arrays, &options, 0), seen(&arrays, &options, 1));
        assert_ne!(first, second);
        assert_eq!(first, seen(&arrays, &options, 0));
        for mut epoch in [first, second] {
            epoch.sort_unstable();
            assert_eq!(epoch, (0..10).collect::<Vec<_>>());
        }
        let in_order = BatchOptions { shuffle: None, drop_remainder: true, ..options };
        assert_eq!(seen(&arrays, &in_order, 5), (0..8).collect::<Vec<_>>());
        assert_eq!((arrays.n_batches(&options), arrays.n_batches(&in_order)), (3, 2));
    }

    #[test]
    fn arrays_have_as_many_rows_as_each_other() {
        let array = |n| HostTensor::zeros(DType::F32, Shape::new([n]).unwrap()).unwrap();
        let error = Arrays::new([array(2), array(3)]).unwrap_err();
        assert_eq!(error.to_string(), "array 1 has 3 rows, the first one 2");
        assert!(Arrays::new([]).unwrap().batches(&BatchOptions::default(), 0).next().is_none());
    }
}
