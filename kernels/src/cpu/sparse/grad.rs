//! Gradients of elements of sparse tensors: `SparseAddGrad`, `SparseSliceGrad`; and the sum of a
//! sparse tensor and a dense one, `SparseTensorDenseAdd`.

use super::{coordinates_of, put_values};
use crate::{
    cpu::{
        Build,
        cell::Cell,
        dispatch::{with_cell, with_number},
        index::{Bad, checked_indices, integers},
    },
    device::OpCall,
    error::Result,
    kernel::{Io, Kernel},
    number::Number,
};
use ferroflow_ir::{DType, Error};
use std::{collections::HashMap, sync::Arc};

pub(crate) const KERNELS: &[(&str, Build)] = &[
    ("SparseAddGrad", add_grad),
    ("SparseSliceGrad", slice_grad),
    ("SparseTensorDenseAdd", dense_add),
];

/// Elements by their coordinates, which are `rank` integers each.
fn by_coordinates(indices: &[i64], n: usize, rank: usize) -> HashMap<&[i64], usize> {
    coordinates_of(indices, n, rank).enumerate().map(|(n, place)| (place, n)).collect()
}

/// Each element of `a` and `b` gets the gradient of the sum at its coordinates; 0 where there is
/// none.
fn add_grad(call: &OpCall<'_>) -> Result<Option<Arc<dyn Kernel>>> {
    fn kernel<T: Cell>(dtype: DType, n: [usize; 2], rank: usize, n_sums: usize) -> Arc<dyn Kernel> {
        Arc::new(move |io: &mut Io<'_>| {
            let (grads, sums): (&[T], &[i64]) = (T::read(io, 0)?, io.input(3));
            if grads.len() != n_sums {
                let (op, argument) = ("SparseAddGrad", "backprop_val_grad");
                let expected = format!("of {n_sums} elements");
                return Err(Error::argument(op, argument, expected, grads.len()).into());
            }
            let sums = by_coordinates(sums, n_sums, rank);
            for (output, n) in n.into_iter().enumerate() {
                let own: Vec<T> = coordinates_of(io.input(output + 1), n, rank)
                    .map(|place| sums.get(place).map_or_else(T::blank, |&n| grads[n].clone()))
                    .collect();
                put_values(io, output, dtype, &own)?;
            }
            Ok(())
        })
    }
    let (rank, n_sums) = (call.shape(3)[1], call.shape(3)[0]);
    let (dtype, n) = (call.dtype(0), [call.shape(1)[0], call.shape(2)[0]]);
    Ok(with_cell!(dtype, T => kernel::<T>(dtype, n, rank, n_sums)))
}

/// Each element of the input gets the gradient of the element it became in the window; 0 if it is
/// outside.
fn slice_grad(call: &OpCall<'_>) -> Result<Option<Arc<dyn Kernel>>> {
    fn kernel<T: Cell>(dtype: DType, n: usize, rank: usize, n_out: usize) -> Arc<dyn Kernel> {
        Arc::new(move |io: &mut Io<'_>| {
            let (grads, start): (&[T], &[i64]) = (T::read(io, 0)?, io.input(2));
            if grads.len() != n_out {
                let (op, argument) = ("SparseSliceGrad", "backprop_val_grad");
                let expected = format!("of {n_out} elements");
                return Err(Error::argument(op, argument, expected, grads.len()).into());
            }
            let kept = by_coordinates(io.input(3), n_out, rank);
            let own: Vec<T> = coordinates_of(io.input(1), n, rank)
                .map(|place| {
                    let moved = place.iter().zip(start).map(|(at, start)| at.wrapping_sub(*start));
                    let moved: Vec<i64> = moved.collect();
                    kept.get(&moved[..]).map_or_else(T::blank, |&n| grads[n].clone())
                })
                .collect();
            put_values(io, 0, dtype, &own)
        })
    }
    let (dtype, n_out) = (call.dtype(0), call.shape(3)[0]);
    let (n, rank) = (call.shape(1)[0], call.shape(1)[1]);
    Ok(with_cell!(dtype, T => kernel::<T>(dtype, n, rank, n_out)))
}

fn dense_add(call: &OpCall<'_>) -> Result<Option<Arc<dyn Kernel>>> {
    fn kernel<T: Number>(index_dtype: DType, n: usize, dims: Vec<usize>) -> Arc<dyn Kernel> {
        Arc::new(move |io: &mut Io<'_>| {
            let a_shape_found = integers(io, 2, index_dtype);
            if a_shape_found.iter().ne(dims
                .iter()
                .map(|&size| size as i64)
                .collect::<Vec<_>>()
                .iter())
            {
                let (expected, found) =
                    (format!("{dims:?}, as that of `b`"), format!("{a_shape_found:?}"));
                return Err(
                    Error::argument("SparseTensorDenseAdd", "a_shape", expected, found).into()
                );
            }
            let rows = checked_indices(io, 0, index_dtype, n, &dims, Bad::Fail)?;
            let (values, dense): (&[T], &[T]) = (io.input(1), io.input(3));
            let out: &mut [T] = io.output(0);
            out.copy_from_slice(dense);
            for (&place, &value) in rows.iter().zip(values) {
                out[place] = out[place].plus(value);
            }
            Ok(())
        })
    }
    let (index_dtype, n, dims) = (call.dtype(0), call.shape(1)[0], call.shape(3).to_vec());
    Ok(with_number!(call.dtype(1), T => kernel::<T>(index_dtype, n, dims)))
}
