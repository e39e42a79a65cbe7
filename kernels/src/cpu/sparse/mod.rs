//! Sparse tensors: coordinates of elements, `[n, rank]`, the elements, `[n]`, and a shape,
//! `[rank]`.

pub(super) mod cross;
pub(super) mod dense;
pub(super) mod grad;
pub(super) mod merge;
pub(super) mod order;
pub(super) mod reduce;
pub(super) mod rows;
pub(super) mod serialize;
pub(super) mod set;

use super::cell::Cell;
use crate::{device::OpCall, error::Result, kernel::Io};
use ferroflow_ir::{DType, Error, Shape, budget};

/// Where a sparse tensor is among the inputs of a call, and its number of elements and rank.
#[derive(Debug, Clone, Copy)]
struct SparseInputs {
    indices: usize,
    values: usize,
    shape: usize,
    n: usize,
    rank: usize,
}

impl SparseInputs {
    /// The sparse tensor in inputs `first`, `first + 1` and `first + 2`.
    fn new(call: &OpCall<'_>, first: usize) -> SparseInputs {
        SparseInputs::at(call, first, first + 1, first + 2)
    }

    /// The sparse tensor in the inputs at these positions.
    fn at(call: &OpCall<'_>, indices: usize, values: usize, shape: usize) -> SparseInputs {
        let (n, rank) = (call.shape(indices)[0], call.shape(indices)[1]);
        SparseInputs { indices, values, shape, n, rank }
    }

    /// The coordinates and the shape.
    fn coordinates<'a>(&self, io: &Io<'a>) -> Coordinates<'a> {
        let (indices, dims) = (io.input(self.indices), io.input(self.shape));
        Coordinates { indices, rank: self.rank, n: self.n, dims }
    }
}

/// The coordinates of each of `n` elements, `rank` integers each: those of a scalar are empty.
fn coordinates_of(indices: &[i64], n: usize, rank: usize) -> impl Iterator<Item = &[i64]> {
    (0..n).map(move |n| &indices[n * rank..][..rank])
}

/// The coordinates of the elements of a sparse tensor, and its shape.
#[derive(Debug, Clone, Copy)]
struct Coordinates<'a> {
    indices: &'a [i64],
    rank: usize,
    n: usize,
    dims: &'a [i64],
}

impl<'a> Coordinates<'a> {
    /// The coordinates of element `n`.
    fn get(&self, n: usize) -> &'a [i64] {
        &self.indices[n * self.rank..][..self.rank]
    }

    /// The coordinates of each element.
    fn iter(self) -> impl Iterator<Item = &'a [i64]> {
        (0..self.n).map(move |n| self.get(n))
    }

    /// The shape of the dense tensor.
    ///
    /// # Errors
    ///
    /// [`Error::Size`] when there is no such tensor.
    fn shape(&self) -> Result<Shape> {
        Ok(Shape::from_i64(self.dims)?)
    }

    /// Checks that all coordinates are inside the shape.
    ///
    /// # Errors
    ///
    /// [`Error::Index`] when one is not.
    fn check(&self) -> Result<()> {
        for (n, place) in self.iter().enumerate() {
            for (&index, &size) in place.iter().zip(self.dims) {
                if !(0..size).contains(&index) {
                    let what = format!("coordinate of element {n}").into();
                    return Err(Error::Index { what, index, low: 0, high: size }.into());
                }
            }
        }
        Ok(())
    }

    /// The elements in row-major order of their coordinates; equal ones stay as they are.
    fn sorted(&self) -> Vec<usize> {
        let mut order: Vec<usize> = (0..self.n).collect();
        if !self.iter().is_sorted() {
            order.sort_by(|&a, &b| {
                budget::tick();
                self.get(a).cmp(self.get(b))
            });
        }
        order
    }
}

/// Sets output `output` to the coordinates of elements in a tensor of this rank.
fn put_coordinates(
    io: &mut Io<'_>,
    output: usize,
    rank: usize,
    indices: &[i64],
    n: usize,
) -> Result<()> {
    i64::write(io, output, DType::I64, &Shape::new([n, rank])?, |out| {
        out.copy_from_slice(indices);
        Ok(())
    })
}

/// Sets output `output` to a vector of integers, such as a shape.
fn put_dims(io: &mut Io<'_>, output: usize, dims: &[i64]) -> Result<()> {
    i64::write(io, output, DType::I64, &Shape::new([dims.len()])?, |out| {
        out.copy_from_slice(dims);
        Ok(())
    })
}

/// Sets output `output` to a vector of elements.
pub(in crate::cpu) fn put_values<T: Cell>(
    io: &mut Io<'_>,
    output: usize,
    dtype: DType,
    values: &[T],
) -> Result<()> {
    T::write(io, output, dtype, &Shape::new([values.len()])?, |out| {
        out.clone_from_slice(values);
        Ok(())
    })
}
