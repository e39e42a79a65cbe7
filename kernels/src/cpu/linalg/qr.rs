//! `Qr`: orthonormal columns and an upper triangle, in double precision; and the same as reflections, as
//! LAPACK's `geqrf` leaves them, and their product (`orgqr`).

use super::{
    Field, Stack,
    reflection::{Reflection, product, triangulate},
    try_each, with_field,
};
use crate::{
    cpu::Build,
    device::OpCall,
    error::Result,
    kernel::{Io, Kernel},
};
use std::sync::Arc;

pub(crate) const KERNELS: &[(&str, Build)] =
    &[("Qr", qr), ("_HouseholderProduct", householder_product), ("_HouseholderQr", householder_qr)];

fn qr(call: &OpCall<'_>) -> Result<Option<Arc<dyn Kernel>>> {
    fn kernel<T: Field>(stack: Stack, inner: usize) -> Arc<dyn Kernel> {
        Arc::new(move |io: &mut Io<'_>| {
            let Stack { rows, columns, .. } = stack;
            let matrices = stack.input::<T>(io, 0);
            let q = stack.output::<T>(io, 0, rows * inner);
            let r = stack.output::<T>(io, 1, inner * columns);
            try_each(io.threads(), matrices.into_iter().zip(q).zip(r), |((a, q), r)| {
                let mut triangle: Vec<T::Exact> = a.iter().map(|x| x.to_exact()).collect();
                let reflections = triangulate(&mut triangle, rows, columns);
                T::write(r, triangle);
                T::write(q, product(&reflections, rows, inner));
                Ok(())
            })
        })
    }
    let stack = Stack::new(call.shape(0));
    let inner = call.output_shape(0)?.last().copied().unwrap_or(0);
    Ok(with_field!(call.dtype(0), T => kernel::<T>(stack, inner)))
}

/// The triangle with the vectors of the reflections below it, and their factors.
fn householder_qr(call: &OpCall<'_>) -> Result<Option<Arc<dyn Kernel>>> {
    fn kernel<T: Field>(stack: Stack) -> Arc<dyn Kernel> {
        Arc::new(move |io: &mut Io<'_>| {
            let Stack { rows, columns, .. } = stack;
            let matrices = stack.input::<T>(io, 0);
            let packed = stack.output::<T>(io, 0, rows * columns);
            let factors = stack.output::<T>(io, 1, rows.min(columns));
            try_each(io.threads(), matrices.into_iter().zip(packed).zip(factors), |parts| {
                let ((a, packed), factors) = parts;
                let mut triangle: Vec<T::Exact> = a.iter().map(|x| x.to_exact()).collect();
                let reflections = triangulate(&mut triangle, rows, columns);
                for (k, reflection) in reflections.iter().enumerate() {
                    for (row, &v) in (k + 1..rows).zip(reflection.below()) {
                        triangle[row * columns + k] = v;
                    }
                }
                T::write(packed, triangle);
                T::write(factors, reflections.iter().map(Reflection::tau));
                Ok(())
            })
        })
    }
    let stack = Stack::new(call.shape(0));
    Ok(with_field!(call.dtype(0), T => kernel::<T>(stack)))
}

/// The first columns of the product of reflections, as many as the matrix of their vectors has.
fn householder_product(call: &OpCall<'_>) -> Result<Option<Arc<dyn Kernel>>> {
    fn kernel<T: Field>(stack: Stack, n: usize) -> Arc<dyn Kernel> {
        Arc::new(move |io: &mut Io<'_>| {
            let Stack { rows, columns, .. } = stack;
            let packed = stack.input::<T>(io, 0);
            let factors: Vec<&[T]> = io.input::<T>(1).chunks(n.max(1)).collect();
            let q = stack.output::<T>(io, 0, rows * columns);
            try_each(io.threads(), packed.into_iter().zip(factors).zip(q), |((a, tau), q)| {
                let reflection = |(k, tau): (usize, &T)| {
                    let below = (k + 1..rows).map(|row| a[row * columns + k].to_exact());
                    Reflection::of_parts(below, num_complex::ComplexFloat::conj(tau.to_exact()))
                };
                let reflections: Vec<_> = tau.iter().enumerate().map(reflection).collect();
                T::write(q, product(&reflections, rows, columns));
                Ok(())
            })
        })
    }
    let stack = Stack::new(call.shape(0));
    let n = call.shape(1).last().copied().unwrap_or(0);
    Ok(with_field!(call.dtype(0), T => kernel::<T>(stack, n)))
}
