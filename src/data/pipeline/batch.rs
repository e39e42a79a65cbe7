//! Examples as batches.

use super::{DataPipeline, PipelineItems};
use crate::data::{Error, Result};
use ferroflow_ir::{HostTensor, Shape};
use ferroflow_tracer::Tensor;
use std::sync::Arc;

/// An example or a batch of examples: inputs, targets, perhaps weights.
pub type Example = Vec<Tensor>;

impl DataPipeline<Example> {
    /// Batches of `size` examples, whose tensors have the same dtypes and shapes; of fewer at the end,
    /// unless those are dropped.
    pub fn batch(&self, size: usize, drop_remainder: bool) -> DataPipeline<Example> {
        self.batches(size, drop_remainder, false)
    }

    /// Batches of `size` examples, whose tensors are made as large as the largest of them in each
    /// dimension: with zeros, `false` or empty strings after their elements.
    pub fn padded_batch(&self, size: usize, drop_remainder: bool) -> DataPipeline<Example> {
        self.batches(size, drop_remainder, true)
    }

    fn batches(&self, size: usize, drop_remainder: bool, padded: bool) -> DataPipeline<Example> {
        let size = size.max(1);
        let len =
            self.len().map(|len| if drop_remainder { len / size } else { len.div_ceil(size) });
        self.then_each(len, size, move |items| Bucketed {
            items,
            buckets: vec![Vec::new()],
            sizes: [size].into(),
            bucket: Arc::new(|_| 0),
            drop_remainder,
            padded,
        })
    }

    /// Padded batches of examples of similar length: `length` tells it, and those between two
    /// boundaries share batches. There is a size of batches for each bucket, one more than there are
    /// boundaries; an example whose length is a boundary is in the bucket above it.
    ///
    /// # Panics
    ///
    /// When there are not as many sizes.
    pub fn bucket_by_sequence_length(
        &self,
        length: impl Fn(&Example) -> usize + Send + Sync + 'static,
        boundaries: &[usize],
        sizes: &[usize],
        drop_remainder: bool,
    ) -> DataPipeline<Example> {
        assert_eq!(sizes.len(), boundaries.len() + 1, "each bucket has a size of batches");
        let (boundaries, sizes): (Arc<[usize]>, Arc<[usize]>) = (boundaries.into(), sizes.into());
        let bucket = Arc::new(move |example: &Example| {
            let length = length(example);
            boundaries.iter().filter(|&&boundary| boundary <= length).count()
        });
        self.then(None, move |items, _| Bucketed {
            items,
            buckets: vec![Vec::new(); sizes.len()],
            sizes: sizes.clone(),
            bucket: bucket.clone(),
            drop_remainder,
            padded: true,
        })
    }
}

/// The bucket of an example.
type BucketOf = Arc<dyn Fn(&Example) -> usize + Send + Sync>;

struct Bucketed {
    items: PipelineItems<Example>,
    buckets: Vec<Vec<Example>>,
    sizes: Arc<[usize]>,
    bucket: BucketOf,
    drop_remainder: bool,
    padded: bool,
}

impl Iterator for Bucketed {
    type Item = Result<Example>;

    fn next(&mut self) -> Option<Result<Example>> {
        for item in self.items.by_ref() {
            let example = match item {
                Ok(example) => example,
                Err(error) => return Some(Err(error)),
            };
            let index = (self.bucket)(&example);
            self.buckets[index].push(example);
            if self.buckets[index].len() >= self.sizes[index] {
                return Some(stacked(&std::mem::take(&mut self.buckets[index]), self.padded));
            }
        }
        if self.drop_remainder {
            return None;
        }
        let rest = self.buckets.iter_mut().find(|bucket| !bucket.is_empty())?;
        Some(stacked(&std::mem::take(rest), self.padded))
    }
}

/// A batch of examples, of which there is one.
fn stacked(examples: &[Example], padded: bool) -> Result<Example> {
    let n_tensors = examples[0].len();
    if let Some(index) = examples.iter().position(|example| example.len() != n_tensors) {
        let tensors = |n: usize| format!("{n} tensors");
        let (expected, found) = (tensors(n_tensors), tensors(examples[index].len()));
        return Err(Error::Batch {
            index,
            tensor: n_tensors.min(examples[index].len()),
            expected,
            found,
        });
    }
    let host =
        |tensor: &Tensor| tensor.host().cloned().map_err(|error| Error::Function(error.into()));
    let column = |tensor: usize| {
        let parts: Result<Vec<HostTensor>> =
            examples.iter().map(|example| host(&example[tensor])).collect();
        Ok(stack(&parts?, tensor, padded)?.into())
    };
    (0..n_tensors).map(column).collect()
}

/// Tensors as rows of one; made as large as the largest, if that is wanted.
fn stack(parts: &[HostTensor], tensor: usize, padded: bool) -> Result<HostTensor> {
    let first = &parts[0];
    let fits = |part: &HostTensor| {
        let same = if padded {
            part.shape().rank() == first.shape().rank()
        } else {
            part.shape() == first.shape()
        };
        same && part.dtype() == first.dtype()
    };
    if let Some(index) = parts.iter().position(|part| !fits(part)) {
        let text = |part: &HostTensor| format!("{}{}", part.dtype(), part.shape());
        let (expected, found) = (text(first), text(&parts[index]));
        return Err(Error::Batch { index, tensor, expected, found });
    }
    let largest = |axis: usize| parts.iter().map(|part| part.shape()[axis]).max().unwrap_or(0);
    let dims: Vec<usize> = (0..first.shape().rank()).map(largest).collect();
    let shape = Shape::new(std::iter::once(parts.len()).chain(dims.iter().copied()))?;
    if first.is_plain() {
        let width = first.dtype().size().unwrap_or(1);
        let mut bytes = vec![0; shape.num_elements() * width];
        let size = bytes.len() / parts.len();
        for (part, row) in parts.iter().zip(bytes.chunks_mut(size.max(1))) {
            for_each_line(part.shape(), &dims, |from, to, n| {
                let line = &part.bytes()[from * width..(from + n) * width];
                row[to * width..(to + n) * width].copy_from_slice(line);
            });
        }
        return Ok(HostTensor::from_bytes(first.dtype(), shape, &bytes)?);
    }
    let mut strings = vec![Default::default(); shape.num_elements()];
    let size = strings.len() / parts.len();
    for (part, row) in parts.iter().zip(strings.chunks_mut(size.max(1))) {
        let of_part = part.strings()?;
        for_each_line(part.shape(), &dims, |from, to, n| {
            row[to..to + n].clone_from_slice(&of_part[from..from + n]);
        });
    }
    Ok(HostTensor::from_strings(shape, strings)?)
}

/// The lines of a tensor along its last dimension: where each begins there, where it begins in one of
/// sizes `into`, which are no smaller, and its length.
fn for_each_line(shape: &Shape, into: &[usize], mut copy: impl FnMut(usize, usize, usize)) {
    let dims = shape.dims();
    let Some((&line, outer)) = dims.split_last() else { return copy(0, 0, 1) };
    for index in 0..outer.iter().product::<usize>() {
        let (mut rest, mut to, mut stride) = (index, 0, into[dims.len() - 1]);
        for axis in (0..outer.len()).rev() {
            to += rest % outer[axis] * stride;
            rest /= outer[axis];
            stride *= into[axis];
        }
        copy(index * line, to, line);
    }
}
