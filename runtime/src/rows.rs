//! Tensors out of rows, and rows out of tensors.

use crate::{context::Context, error::Result};
use bytes::Bytes;
use ferroflow_ir::{DType, Error as IrError, Handle, HostTensor, Shape};
use ferroflow_kernels::check_size;
use std::{ops::Range, sync::Arc};

/// A run of elements of a tensor to be.
#[derive(Debug, Clone, Copy)]
pub(crate) enum RowRun<'a> {
    /// All elements of a tensor.
    Tensor(&'a HostTensor),
    /// As many zeros, or empty strings.
    Blank(usize),
}

impl RowRun<'_> {
    fn len(&self) -> usize {
        match self {
            RowRun::Tensor(tensor) => tensor.len(),
            RowRun::Blank(n) => *n,
        }
    }
}

/// A tensor whose elements are those of the parts, one part after the other.
///
/// # Errors
///
/// When it would be too large, a part is of another dtype, or the parts do not fill the shape.
pub(crate) fn join(
    context: &Context,
    dtype: DType,
    shape: Shape,
    parts: &[RowRun<'_>],
) -> Result<HostTensor> {
    check_size(dtype, &shape, context.limits().tensor_bytes)?;
    let found = parts.iter().map(RowRun::len).fold(0, usize::saturating_add);
    if found != shape.num_elements() {
        return Err(IrError::ElementCount { dtype, shape, found }.into());
    }
    for part in parts {
        if let RowRun::Tensor(tensor) = part {
            tensor.check(dtype)?;
        }
    }
    match (dtype, dtype.size()) {
        (DType::String, _) => join_strings(shape, parts),
        (_, Some(size)) => join_bytes(dtype, shape, parts, size),
        (_, None) => join_handles(dtype, shape, parts),
    }
}

fn join_bytes(dtype: DType, shape: Shape, parts: &[RowRun<'_>], size: usize) -> Result<HostTensor> {
    let mut joined = HostTensor::recycled(dtype, shape)?;
    let mut rest = joined.bytes_mut();
    for part in parts {
        let (own, later) = rest.split_at_mut(part.len() * size);
        match part {
            RowRun::Tensor(tensor) => own.copy_from_slice(tensor.bytes()),
            RowRun::Blank(_) => own.fill(0),
        }
        rest = later;
    }
    Ok(joined)
}

fn join_strings(shape: Shape, parts: &[RowRun<'_>]) -> Result<HostTensor> {
    let mut strings = Vec::with_capacity(shape.num_elements());
    for part in parts {
        match part {
            RowRun::Tensor(tensor) => strings.extend_from_slice(tensor.strings()?),
            RowRun::Blank(n) => strings.resize(strings.len() + n, Bytes::new()),
        }
    }
    Ok(HostTensor::from_strings(shape, strings)?)
}

fn join_handles(dtype: DType, shape: Shape, parts: &[RowRun<'_>]) -> Result<HostTensor> {
    let mut handles: Vec<Arc<dyn Handle>> = Vec::with_capacity(shape.num_elements());
    for part in parts {
        match part {
            RowRun::Tensor(tensor) => handles.extend_from_slice(tensor.handles()?),
            RowRun::Blank(0) => {}
            RowRun::Blank(_) => {
                let (expected, found) = (DType::U8, dtype);
                return Err(IrError::DType { expected, found }.into());
            }
        }
    }
    Ok(HostTensor::from_handles(dtype, shape, handles)?)
}

/// Row `index` of a tensor of rank 1 or more, sharing the memory.
///
/// # Errors
///
/// [`IrError::Index`] when there is none.
pub(crate) fn row(tensor: &HostTensor, index: usize) -> Result<HostTensor> {
    let row = tensor.rows(index..index.saturating_add(1))?;
    Ok(row.reshaped(Shape::new(tensor.shape()[1..].iter().copied())?)?)
}

/// The rows of a tensor of rank 1 or more, sharing the memory.
///
/// # Errors
///
/// [`IrError::Index`] when it is a scalar.
pub(crate) fn rows(tensor: &HostTensor) -> Result<Vec<HostTensor>> {
    tensor.rows(0..0)?;
    (0..tensor.shape()[0]).map(|index| row(tensor, index)).collect()
}

/// Consecutive parts of a tensor of rank 1 or more, of these numbers of rows, which are all there
/// are.
///
/// # Errors
///
/// [`IrError::Argument`] when the lengths are negative or do not add up.
pub(crate) fn split(tensor: &HostTensor, lengths: &[i64]) -> Result<Vec<HostTensor>> {
    let n_rows = tensor.shape().first().copied();
    let ranges = n_rows.and_then(|n_rows| ranges(lengths, n_rows)).ok_or_else(|| {
        let expected = format!("that add up to the rows of a tensor of shape {}", tensor.shape());
        IrError::argument("split", "lengths", expected, format!("{lengths:?}"))
    })?;
    ranges.into_iter().map(|range| Ok(tensor.rows(range)?)).collect()
}

fn ranges(lengths: &[i64], n_rows: usize) -> Option<Vec<Range<usize>>> {
    let mut end = 0usize;
    let mut ranges = Vec::with_capacity(lengths.len());
    for &length in lengths {
        let start = end;
        end = start.checked_add(usize::try_from(length).ok()?)?;
        ranges.push(start..end);
    }
    (end == n_rows).then_some(ranges)
}

/// A shape with one more dimension in front.
///
/// # Errors
///
/// [`IrError::Size`] when the elements cannot be counted.
pub(crate) fn stacked(n: usize, shape: &[usize]) -> Result<Shape> {
    Ok(Shape::new([n].into_iter().chain(shape.iter().copied()))?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn splits_must_add_up() {
        assert_eq!(ranges(&[2, 0, 3], 5).unwrap(), [0..2, 2..2, 2..5]);
        assert!(ranges(&[2, 2], 5).is_none());
        assert!(ranges(&[6, -1], 5).is_none());
        assert!(ranges(&[i64::MAX, i64::MAX, 5], 5).is_none());
    }

    #[test]
    fn rows_join_to_what_they_came_from() {
        let context = Context::new();
        let matrix = HostTensor::from_slice(Shape::new([3, 2]).unwrap(), &[1i32, 2, 3, 4, 5, 6]);
        let matrix = matrix.unwrap();
        let rows = rows(&matrix).unwrap();
        let parts: Vec<RowRun<'_>> = rows.iter().map(RowRun::Tensor).collect();
        let joined = join(&context, DType::I32, matrix.shape().clone(), &parts).unwrap();
        assert_eq!(joined, matrix);
        assert!(join(&context, DType::I32, matrix.shape().clone(), &parts[1..]).is_err());
        assert!(join(&context, DType::F32, matrix.shape().clone(), &parts).is_err());
    }
}
