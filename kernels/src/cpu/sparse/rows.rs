//! Rows of sparse tensors: `SparseFillEmptyRows` and its gradient, `SparseSoftmax`.

use super::{SparseInputs, put_coordinates, put_values};
use crate::{
    cpu::{
        Build,
        cell::Cell,
        dispatch::{with_cell, with_float, with_number},
        index::{Bad, checked_indices},
    },
    device::OpCall,
    error::Result,
    kernel::{Io, Kernel},
    number::{Number, Ordered},
};
use ferroflow_ir::{DType, Error, Shape, workspace};
use std::sync::Arc;

pub(crate) const KERNELS: &[(&str, Build)] = &[
    ("SparseFillEmptyRows", fill_empty_rows),
    ("SparseFillEmptyRowsGrad", fill_empty_rows_grad),
    ("SparseSoftmax", softmax),
];

fn fill_empty_rows(call: &OpCall<'_>) -> Result<Option<Arc<dyn Kernel>>> {
    fn kernel<T: Cell>(form: SparseInputs, dtype: DType) -> Arc<dyn Kernel> {
        Arc::new(move |io: &mut Io<'_>| {
            let (coordinates, values) = (form.coordinates(io), T::read(io, form.values)?);
            let default = &T::read(io, 3)?[0];
            let n_rows = coordinates.shape()?[0];
            io.check_size(DType::I64, &Shape::new([n_rows])?)?;
            let mut counts = workspace::filled(0usize, n_rows)?;
            for place in coordinates.iter() {
                let row = usize::try_from(place[0]).ok().and_then(|row| counts.get_mut(row));
                let Some(row) = row else {
                    let (what, high) = ("row".into(), n_rows as i64);
                    return Err(Error::Index { what, index: place[0], low: 0, high }.into());
                };
                *row += 1;
            }
            // Where the next element of each row goes.
            let mut next = workspace::reserve(n_rows)?;
            let mut total = 0;
            for &count in &counts {
                next.push(total);
                total += count.max(1);
            }
            let mut indices = workspace::filled(0i64, total * form.rank)?;
            let mut filled = workspace::filled(default.clone(), total)?;
            for (row, _) in counts.iter().enumerate().filter(|(_, count)| **count == 0) {
                indices[next[row] * form.rank] = row as i64;
            }
            let mut moved = workspace::reserve(form.n)?;
            for (place, value) in coordinates.iter().zip(values) {
                let at = &mut next[place[0] as usize];
                indices[*at * form.rank..][..form.rank].copy_from_slice(place);
                filled[*at].clone_from(value);
                moved.push(*at as i64);
                *at += 1;
            }
            let empty: Vec<u8> = counts.iter().map(|&count| u8::from(count == 0)).collect();
            put_coordinates(io, 0, form.rank, &indices, total)?;
            put_values(io, 1, dtype, &filled)?;
            put_values(io, 2, DType::Bool, &empty)?;
            put_values(io, 3, DType::I64, &moved)
        })
    }
    let (sparse, dtype) = (SparseInputs::new(call, 0), call.dtype(1));
    Ok(with_cell!(dtype, T => kernel::<T>(sparse, dtype)))
}

pub(in crate::cpu) fn fill_empty_rows_grad(call: &OpCall<'_>) -> Result<Option<Arc<dyn Kernel>>> {
    fn kernel<T: Number + Cell>(n: usize, n_grads: usize, dtype: DType) -> Arc<dyn Kernel> {
        Arc::new(move |io: &mut Io<'_>| {
            let from = checked_indices(io, 0, DType::I64, n, &[n_grads], Bad::Fail)?;
            let grads: &[T] = io.input(1);
            let mut rest = workspace::filled(true, n_grads)?;
            from.iter().for_each(|&from| rest[from] = false);
            let values: Vec<T> = from.iter().map(|&from| grads[from]).collect();
            put_values(io, 0, dtype, &values)?;
            let own = grads.iter().zip(rest).filter(|(_, rest)| *rest).map(|(dy, _)| dy.to_acc());
            let sum = T::from_acc(own.fold(T::Acc::ZERO, |sum, dy| sum.plus(dy)));
            T::write(io, 1, dtype, &Shape::scalar(), |out| {
                out[0] = sum;
                Ok(())
            })
        })
    }
    let (n, n_grads, dtype) = (call.shape(0)[0], call.shape(1)[0], call.dtype(1));
    Ok(with_number!(dtype, T => kernel::<T>(n, n_grads, dtype)))
}

/// A type in which exponentials are computed.
trait Exponential: Ordered {
    fn exponential(self) -> Self;
}

macro_rules! exponentials {
    ($($type:ty)*) => {$(
        impl Exponential for $type {
            fn exponential(self) -> $type {
                self.exp()
            }
        }
    )*};
}

exponentials! { f32 f64 }

/// The results come in row-major order of the coordinates.
fn softmax(call: &OpCall<'_>) -> Result<Option<Arc<dyn Kernel>>> {
    fn kernel<T: Number<Acc: Exponential>>(form: SparseInputs) -> Arc<dyn Kernel> {
        Arc::new(move |io: &mut Io<'_>| {
            let (coordinates, values): (_, &[T]) = (form.coordinates(io), io.input(form.values));
            let order = coordinates.sorted();
            let row = |n: usize| &coordinates.get(n)[..form.rank - 1];
            let mut softened = workspace::reserve(form.n)?;
            for run in order.chunk_by(|&a, &b| row(a) == row(b)) {
                let own = || run.iter().map(|&n| values[n].to_acc());
                let largest = own().fold(T::Acc::LOWEST, T::Acc::larger);
                let exponential = |x: T::Acc| x.minus(largest).exponential();
                let sum = own().map(exponential).fold(T::Acc::ZERO, T::Acc::plus);
                softened.extend(own().map(|x| T::from_acc(exponential(x).over(sum))));
            }
            io.output::<T>(0).copy_from_slice(&softened);
            Ok(())
        })
    }
    let sparse = SparseInputs::new(call, 0);
    if sparse.rank < 2 {
        return Err(call.wrong("sp_shape", "of rank 2 or more", sparse.rank));
    }
    Ok(with_float!(call.dtype(1), T => kernel::<T>(sparse)))
}
