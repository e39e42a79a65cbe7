//! Sparse tensors as values: lists of coordinates with elements.

use crate::{
    context::Context,
    error::{Error, Result},
    resource::Resource,
    rows::{RowRun, join},
    sync::Mutex,
};
use ferroflow_ir::{DType, Error as IrError, HostTensor, Shape, budget, workspace};
use std::{collections::HashMap, fmt::Display, sync::Arc};

/// A sparse tensor.
#[derive(Debug, Clone)]
pub struct Sparse {
    /// The indices of each coordinate: as many as there are dimensions, one coordinate after the
    /// other.
    indices: Vec<i64>,
    /// The elements at these coordinates.
    values: HostTensor,
    /// The sizes, which rows of one tensor share.
    dims: Arc<[i64]>,
}

/// Rows between two looks at the budget of the call.
const ROWS_BETWEEN_LOOKS: usize = 1 << 12;

fn wrong(argument: &'static str, expected: impl Into<String>, found: impl Display) -> Error {
    IrError::argument("sparse tensor", argument, expected.into(), found).into()
}

impl Sparse {
    /// A sparse tensor from coordinates `[n, rank]`, elements `[n]` and sizes `[rank]`.
    ///
    /// # Errors
    ///
    /// [`IrError::Argument`] when the shapes do not go together.
    pub fn new(indices: &HostTensor, values: &HostTensor, dims: &HostTensor) -> Result<Sparse> {
        let n = values.len();
        if values.shape().rank() != 1 {
            return Err(wrong("values", "a vector", values.shape()));
        }
        if dims.shape().rank() != 1 {
            return Err(wrong("shape", "a vector", dims.shape()));
        }
        if indices.shape()[..] != [n, dims.len()] {
            let expected = format!("of shape [{n}, {}]", dims.len());
            return Err(wrong("indices", expected, indices.shape()));
        }
        let (indices, dims) = (indices.to_i64s()?, dims.to_i64s()?);
        if let Some(negative) = dims.iter().find(|&&dim| dim < 0) {
            return Err(wrong("shape", "not negative", negative));
        }
        Ok(Sparse { indices, values: values.clone(), dims: dims.into() })
    }

    /// The rows of the first dimension.
    ///
    /// # Errors
    ///
    /// When there is only one dimension, a place is outside, or there are more than `limit` rows, or more than
    /// memory has room for.
    fn into_rows(self, context: &Context, limit: usize) -> Result<Vec<Sparse>> {
        let rank = self.dims.len();
        if rank < 2 {
            return Err(wrong("tensor", "of rank 2 or more", rank));
        }
        let n_rows = usize::try_from(self.dims[0]).ok().filter(|&n_rows| n_rows <= limit);
        let n_rows =
            n_rows.ok_or_else(|| wrong("rows", format!("at most {limit}"), self.dims[0]))?;
        let mut indices: Vec<Vec<usize>> = workspace::filled(Vec::new(), n_rows)?;
        for (place, index) in self.indices.chunks(rank).enumerate() {
            let row = usize::try_from(index[0]).ok().and_then(|row| indices.get_mut(row));
            row.ok_or_else(|| wrong("indices", format!("below {n_rows}"), index[0]))?.push(place);
        }
        let dims: Arc<[i64]> = self.dims[1..].into();
        // Most rows of many are empty, and share their elements too.
        let nothing = HostTensor::zeros(self.values.dtype(), Shape::new([0])?)?;
        let row = |places: Vec<usize>| -> Result<Sparse> {
            if places.is_empty() {
                let values = nothing.clone();
                return Ok(Sparse { indices: Vec::new(), values, dims: dims.clone() });
            }
            let parts: Vec<HostTensor> = places
                .iter()
                .map(|&place| Ok(self.values.rows(place..place + 1)?))
                .collect::<Result<_>>()?;
            let parts: Vec<RowRun<'_>> = parts.iter().map(RowRun::Tensor).collect();
            let shape = Shape::new([parts.len()])?;
            let values = join(context, self.values.dtype(), shape, &parts)?;
            let indices =
                places.iter().flat_map(|place| &self.indices[place * rank + 1..][..rank - 1]);
            Ok(Sparse { indices: indices.copied().collect(), values, dims: dims.clone() })
        };
        let mut rows = workspace::reserve(n_rows)?;
        for (number, places) in indices.into_iter().enumerate() {
            if number.is_multiple_of(ROWS_BETWEEN_LOOKS) {
                budget::tick();
            }
            rows.push(row(places)?);
        }
        Ok(rows)
    }
}

/// Sparse tensors of one rank as one, behind dimensions `outer`, which say how many there are. The
/// other sizes are the largest there are. Gives places, elements and sizes.
///
/// # Errors
///
/// When the tensors are of different ranks or of another dtype, or the result is too large.
pub fn stack(
    context: &Context,
    outer: &[usize],
    parts: &[Sparse],
    dtype: DType,
) -> Result<[HostTensor; 3]> {
    let Some(first) = parts.first() else {
        return Err(wrong("tensors", "at least one", 0));
    };
    let inner = first.dims.len();
    let mut dims = first.dims.to_vec();
    let mut indices = Vec::new();
    for (number, part) in parts.iter().enumerate() {
        if part.dims.len() != inner {
            return Err(wrong("tensors", format!("of rank {inner}"), part.dims.len()));
        }
        if part.values.dtype() != dtype {
            return Err(wrong("tensors", format!("of dtype {dtype}"), part.values.dtype()));
        }
        dims.iter_mut().zip(&*part.dims).for_each(|(dim, &own)| *dim = own.max(*dim));
        let mut own = vec![0i64; outer.len()];
        let mut rest = number;
        for (index, &size) in own.iter_mut().zip(outer).rev() {
            *index = (rest % size.max(1)) as i64;
            rest /= size.max(1);
        }
        for place in 0..part.values.len() {
            indices.extend_from_slice(&own);
            indices.extend_from_slice(&part.indices[place * inner..][..inner]);
        }
    }
    let n: usize = parts.iter().map(|part| part.values.len()).sum();
    let rank = outer.len() + inner;
    let values: Vec<RowRun<'_>> = parts.iter().map(|part| RowRun::Tensor(&part.values)).collect();
    let sizes: Vec<i64> = outer.iter().map(|&size| size as i64).chain(dims).collect();
    Ok([
        HostTensor::from_slice(Shape::new([n, rank])?, &indices)?,
        join(context, dtype, Shape::new([n])?, &values)?,
        HostTensor::vector(&sizes)?,
    ])
}

fn no_room(n: usize) -> Error {
    let (what, needed) = ("a collection of sparse tensors".into(), format!("room for {n} more"));
    IrError::Limit { what, needed, limit: workspace::LIMIT as u64 }.into()
}

/// Sparse tensors that are known by numbers.
#[derive(Debug, Default)]
pub(crate) struct SparseTensors(Mutex<Numbered>);

#[derive(Debug, Default)]
struct Numbered {
    next: i64,
    tensors: HashMap<i64, Sparse>,
}

impl SparseTensors {
    /// Adds a tensor; returns its number.
    ///
    /// # Errors
    ///
    /// When there is no memory.
    pub(crate) fn add(&self, tensor: Sparse) -> Result<i64> {
        self.add_all(vec![tensor]).map(|numbers| numbers[0])
    }

    /// Adds tensors; returns their numbers.
    fn add_all(&self, tensors: Vec<Sparse>) -> Result<Vec<i64>> {
        let mut numbered = self.0.lock();
        let first = numbered.next;
        workspace::check::<(i64, Sparse)>(tensors.len())?;
        numbered.tensors.try_reserve(tensors.len()).map_err(|_| no_room(tensors.len()))?;
        let numbers: Vec<i64> = workspace::collected((first..).take(tensors.len()))?;
        numbered.next += tensors.len() as i64;
        numbered.tensors.extend(numbers.iter().copied().zip(tensors));
        Ok(numbers)
    }

    /// Adds the rows of a tensor, at most `limit`; returns their numbers.
    ///
    /// # Errors
    ///
    /// When the tensor has no rows, or too many, or a place is outside.
    pub(crate) fn add_rows(
        &self,
        context: &Context,
        tensor: Sparse,
        limit: usize,
    ) -> Result<Vec<i64>> {
        self.add_all(tensor.into_rows(context, limit)?)
    }

    /// Takes tensors out.
    ///
    /// # Errors
    ///
    /// When there is none of a number; then those before are gone all the same.
    pub(crate) fn take(&self, numbers: &[i64]) -> Result<Vec<Sparse>> {
        let mut numbered = self.0.lock();
        let take = |number: &i64| {
            let tensor = numbered.tensors.remove(number);
            tensor.ok_or_else(|| wrong("handle", "that of a tensor", number))
        };
        numbers.iter().map(take).collect()
    }
}

impl Resource for SparseTensors {
    fn kind(&self) -> &'static str {
        "a collection of sparse tensors"
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sparse(indices: &[i64], values: &[f32], dims: &[i64]) -> Sparse {
        let shape = Shape::new([values.len(), dims.len()]).unwrap();
        let indices = HostTensor::from_slice(shape, indices).unwrap();
        let dims = HostTensor::vector(dims).unwrap();
        Sparse::new(&indices, &HostTensor::vector(values).unwrap(), &dims).unwrap()
    }

    #[test]
    fn rows_come_back_stacked() {
        let (context, tensors) = (Context::new(), SparseTensors::default());
        let whole = sparse(&[0, 1, 2, 0], &[1.0, 2.0], &[3, 2]);
        let numbers = tensors.add_rows(&context, whole.clone(), 10).unwrap();
        let rows = tensors.take(&numbers).unwrap();
        let [indices, values, dims] = stack(&context, &[3], &rows, DType::F32).unwrap();
        assert_eq!(indices.as_slice::<i64>().unwrap(), [0, 1, 2, 0]);
        assert_eq!(values.as_slice::<f32>().unwrap(), [1.0, 2.0]);
        assert_eq!(dims.as_slice::<i64>().unwrap(), [3, 2]);
        assert!(tensors.take(&numbers[..1]).is_err());
        assert!(tensors.add_rows(&context, whole, 2).is_err());
        assert!(tensors.add_rows(&context, sparse(&[5, 0], &[1.0], &[3, 2]), 9).is_err());
    }

    #[test]
    fn sizes_are_the_largest() {
        let parts = [sparse(&[0], &[1.0], &[2]), sparse(&[4], &[2.0], &[5])];
        let [indices, _, dims] = stack(&Context::new(), &[2, 1], &parts, DType::F32).unwrap();
        assert_eq!(indices.as_slice::<i64>().unwrap(), [0, 0, 0, 1, 0, 4]);
        assert_eq!(dims.as_slice::<i64>().unwrap(), [2, 1, 5]);
    }
}
