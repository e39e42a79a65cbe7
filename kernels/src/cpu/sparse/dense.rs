//! Sparse tensors and dense ones: `SparseToDense`, `SparseDenseCwise…`, `SparseTensorDenseMatMul`.

use super::{SparseInputs, coordinates_of};
use crate::{
    cpu::{
        Build,
        cell::Cell,
        dispatch::{with_cell, with_number},
        index::integers,
    },
    device::OpCall,
    error::Result,
    kernel::{Io, Kernel},
    number::Number,
    plan::broadcast,
};
use ferroflow_ir::{DType, Error, Shape, workspace};
use std::sync::Arc;

pub(crate) const KERNELS: &[(&str, Build)] = &[
    ("SparseDenseCwiseAdd", add),
    ("SparseDenseCwiseDiv", divide),
    ("SparseDenseCwiseMul", multiply),
    ("SparseTensorDenseMatMul", matmul),
    ("SparseToDense", to_dense),
];

fn to_dense(call: &OpCall<'_>) -> Result<Option<Arc<dyn Kernel>>> {
    fn kernel<T: Cell>(
        dtype: DType,
        index_dtype: DType,
        n: usize,
        shape: Shape,
        ordered: bool,
    ) -> Arc<dyn Kernel> {
        Arc::new(move |io: &mut Io<'_>| {
            let indices = integers(io, 0, index_dtype);
            let coordinates = positions(&indices, n, &shape, ordered)?;
            let (values, default) = (T::read(io, 2)?, &T::read(io, 3)?[0]);
            T::write(io, 0, dtype, &shape, |out| {
                out.fill(default.clone());
                for (n, &place) in coordinates.iter().enumerate() {
                    // One value stands for all.
                    out[place].clone_from(values.get(n).unwrap_or(&values[0]));
                }
                Ok(())
            })
        })
    }
    let (dtype, shape) = (call.dtype(2), call.output_shape(0)?);
    let (index_dtype, ordered) = (call.dtype(0), call.attrs.bool("validate_indices")?);
    let n = call.shape(0).first().copied().unwrap_or(1);
    Ok(with_cell!(dtype, T => kernel::<T>(dtype, index_dtype, n, shape, ordered)))
}

/// The positions of elements in a tensor of this shape. If asked for, each must come after the one
/// before it.
fn positions(indices: &[i64], n: usize, shape: &Shape, ordered: bool) -> Result<Vec<usize>> {
    let mut positions: Vec<usize> = Vec::new();
    for place in coordinates_of(indices, n, shape.rank()) {
        let mut position = 0;
        for (&index, &size) in place.iter().zip(shape.iter()) {
            if usize::try_from(index).is_ok_and(|index| index < size) {
                position = position * size + index as usize;
            } else {
                let (what, high) = ("coordinate".into(), size as i64);
                return Err(Error::Index { what, index, low: 0, high }.into());
            }
        }
        if ordered && positions.last().is_some_and(|&last| last >= position) {
            let (expected, found) = ("in order, without repetitions", format!("{place:?}"));
            return Err(Error::argument("SparseToDense", "sparse_indices", expected, found).into());
        }
        positions.push(position);
    }
    Ok(positions)
}

fn add(call: &OpCall<'_>) -> Result<Option<Arc<dyn Kernel>>> {
    let sparse = SparseInputs::new(call, 0);
    Ok(with_number!(call.dtype(1), T => {
        elementwise::<T>(sparse, call.shape(3).clone(), false, T::plus)
    }))
}

fn divide(call: &OpCall<'_>) -> Result<Option<Arc<dyn Kernel>>> {
    let sparse = SparseInputs::new(call, 0);
    Ok(with_number!(call.dtype(1), T => {
        elementwise::<T>(sparse, call.shape(3).clone(), true, T::over)
    }))
}

fn multiply(call: &OpCall<'_>) -> Result<Option<Arc<dyn Kernel>>> {
    let sparse = SparseInputs::new(call, 0);
    Ok(with_number!(call.dtype(1), T => {
        elementwise::<T>(sparse, call.shape(3).clone(), false, T::times)
    }))
}

/// The dense tensor broadcasts to the sparse one, never the other way round. Zeros in it are
/// refused as divisors, wherever they are.
fn elementwise<T: Number>(
    form: SparseInputs,
    dense: Shape,
    divides: bool,
    combine: fn(T, T) -> T,
) -> Arc<dyn Kernel> {
    Arc::new(move |io: &mut Io<'_>| {
        let coordinates = form.coordinates(io);
        let (values, other): (&[T], &[T]) = (io.input(form.values), io.input(3));
        let shape = coordinates.shape()?;
        if !dense.broadcast(&shape).is_ok_and(|joined| joined == shape) {
            return Err(Error::broadcast(&shape, &dense).into());
        }
        if divides && other.contains(&T::ZERO) {
            let (op, expected) = ("SparseDenseCwiseDiv", "without zeros");
            return Err(Error::argument(op, "dense", expected, "a zero").into());
        }
        coordinates.check()?;
        let strides = broadcast::strides(&dense, &shape);
        let out: &mut [T] = io.output(0);
        for ((out, &value), place) in out.iter_mut().zip(values).zip(coordinates.iter()) {
            let steps = place.iter().zip(&strides);
            let at: usize = steps.map(|(&index, &stride)| index as usize * stride).sum();
            *out = combine(value, other[at]);
        }
        Ok(())
    })
}

/// A product of matrices, each passed as it is or as its adjoint.
#[derive(Debug, Clone, Copy)]
struct SparseDenseMatmul {
    index_dtype: DType,
    adjoint_a: bool,
    adjoint_b: bool,
    /// Rows and columns of `b` as it is passed.
    b_rows: usize,
    b_columns: usize,
}

/// `[rows, inner] × [inner, columns] → [rows, columns]`, kept in the type of sums.
fn matmul(call: &OpCall<'_>) -> Result<Option<Arc<dyn Kernel>>> {
    let matmul = SparseDenseMatmul {
        index_dtype: call.dtype(0),
        adjoint_a: call.attrs.bool("adjoint_a")?,
        adjoint_b: call.attrs.bool("adjoint_b")?,
        b_rows: call.shape(3)[0],
        b_columns: call.shape(3)[1],
    };
    let dtype = call.dtype(1);
    Ok(with_number!(dtype, T => matmul_kernel::<T>(matmul, dtype)))
}

fn matmul_kernel<T: Number + Cell>(product: SparseDenseMatmul, dtype: DType) -> Arc<dyn Kernel> {
    Arc::new(move |io: &mut Io<'_>| {
        let SparseDenseMatmul { index_dtype, adjoint_a, adjoint_b, b_rows, b_columns } = product;
        let (inner, columns) = if adjoint_b { (b_columns, b_rows) } else { (b_rows, b_columns) };
        let mut dims = Shape::from_i64(io.input(2))?.to_vec();
        if adjoint_a {
            dims.reverse();
        }
        let (rows, own_inner) = (dims[0], dims[1]);
        if own_inner != inner {
            let (op, expected) = ("SparseTensorDenseMatMul", format!("{own_inner} rows"));
            return Err(Error::argument(op, "b", expected, inner).into());
        }
        let indices = integers(io, 0, index_dtype);
        let (values, b): (&[T], &[T]) = (io.input(1), io.input(3));
        let shape = Shape::new([rows, columns])?;
        io.check_size(dtype, &shape)?;
        let mut sums = workspace::filled(T::Acc::ZERO, rows * columns)?;
        for (place, &value) in indices.as_chunks::<2>().0.iter().zip(values) {
            let [first, second] = *place;
            let (row, step) = if adjoint_a { (second, first) } else { (first, second) };
            let value = if adjoint_a { value.conjugate() } else { value };
            let row = inside("row", row, rows)?;
            let step = inside("column", step, inner)?;
            for (column, sum) in sums[row * columns..][..columns].iter_mut().enumerate() {
                let x = match adjoint_b {
                    true => b[column * b_columns + step].conjugate(),
                    false => b[step * b_columns + column],
                };
                *sum = sum.plus(value.to_acc().times(x.to_acc()));
            }
        }
        T::write(io, 0, dtype, &shape, |out| {
            out.iter_mut().zip(&sums).for_each(|(out, &sum)| *out = T::from_acc(sum));
            Ok(())
        })
    })
}

fn inside(what: &'static str, index: i64, size: usize) -> Result<usize> {
    let inside = usize::try_from(index).ok().filter(|&index| index < size);
    inside
        .ok_or_else(|| Error::Index { what: what.into(), index, low: 0, high: size as i64 }.into())
}
