//! `Eig`: eigenvalues and eigenvectors of matrices of any kind, in double precision, through their
//! Schur form (Golub and Van Loan, "Matrix Computations", section 7.6); and that form itself.

use super::{
    Field, Stack,
    real_schur::{imaginary_parts, real_schur},
    schur::{Square, schur},
    try_each, with_field,
};
use crate::{
    cpu::{Build, dispatch::with_complex},
    device::OpCall,
    error::Result,
    kernel::{Io, Kernel},
};
use ferroflow_ir::{DType, Error};
use num_complex::Complex;
use std::sync::Arc;

pub(crate) const KERNELS: &[(&str, Build)] =
    &[("Eig", eig), ("_RealSchur", real_schur_form), ("_Schur", schur_form)];

type C = Complex<f64>;

fn eig(call: &OpCall<'_>) -> Result<Option<Arc<dyn Kernel>>> {
    fn kernel<T: Field, O: Field>(stack: Stack, with_vectors: bool) -> Arc<dyn Kernel> {
        Arc::new(move |io: &mut Io<'_>| {
            let n = stack.rows;
            let (matrices, values) = (stack.input::<T>(io, 0), stack.output::<O>(io, 0, n));
            let vectors = match with_vectors {
                true => stack.output::<O>(io, 1, n * n),
                false => {
                    io.output::<O>(1).fill(O::ZERO);
                    matrices.iter().map(|_| <&mut [O]>::default()).collect()
                }
            };
            let items = matrices.into_iter().zip(values).zip(vectors);
            try_each(io.threads(), items, |((a, values), vectors)| {
                let a = Square { n, data: a.iter().map(|x| x.to_complex()).collect() };
                let found = eigen(a, with_vectors).ok_or_else(|| {
                    let found = "a matrix whose eigenvalues are not found";
                    Error::argument("Eig", "input", "finite", found)
                })?;
                let (own_values, own_vectors) = found;
                values.iter_mut().zip(own_values).for_each(|(out, x)| *out = O::from_complex(x));
                let elements = vectors.iter_mut().zip(own_vectors.data);
                elements.for_each(|(out, x)| *out = O::from_complex(x));
                Ok(())
            })
        })
    }
    let (stack, with_vectors) = (Stack::new(call.shape(0)), call.attrs.bool("compute_v")?);
    let out = call.attrs.dtype("Tout")?;
    let kernel = with_field!(call.dtype(0), T => {
        with_complex!(out, O => kernel::<T, O>(stack, with_vectors))
    });
    Ok(kernel.flatten())
}

fn schur_form(call: &OpCall<'_>) -> Result<Option<Arc<dyn Kernel>>> {
    fn kernel<T: Field>(stack: Stack) -> Arc<dyn Kernel> {
        Arc::new(move |io: &mut Io<'_>| {
            let n = stack.rows;
            let matrices = stack.input::<T>(io, 0);
            let (t, z) = (stack.output::<T>(io, 0, n * n), stack.output::<T>(io, 1, n * n));
            try_each(io.threads(), matrices.into_iter().zip(t).zip(z), |((a, t), z)| {
                let a = Square { n, data: a.iter().map(|x| x.to_complex()).collect() };
                let finite = a.data.iter().all(|x| x.is_finite());
                // LAPACK has NaN in what it cannot factor.
                let nan = || Square::from_fn(n, |_, _| C::new(f64::NAN, f64::NAN));
                let found = if finite { schur(a) } else { None };
                let (own_t, own_z) = found.unwrap_or_else(|| (nan(), nan()));
                for (out, own) in [(t, own_t), (z, own_z)] {
                    let elements = out.iter_mut().zip(own.data);
                    elements.for_each(|(out, x)| *out = T::from_complex(x));
                }
                Ok(())
            })
        })
    }
    let stack = Stack::new(call.shape(0));
    Ok(with_field!(call.dtype(0), T => kernel::<T>(stack)))
}

fn real_schur_form(call: &OpCall<'_>) -> Result<Option<Arc<dyn Kernel>>> {
    fn kernel<T: Field>(stack: Stack, ulp: f64) -> Arc<dyn Kernel> {
        Arc::new(move |io: &mut Io<'_>| {
            let n = stack.rows;
            let matrices = stack.input::<T>(io, 0);
            let (t, z) = (stack.output::<T>(io, 0, n * n), stack.output::<T>(io, 1, n * n));
            let imaginary = stack.output::<T>(io, 2, n);
            let items = matrices.into_iter().zip(t).zip(z).zip(imaginary);
            try_each(io.threads(), items, |(((a, t), z), imaginary)| {
                let a: Vec<f64> = a.iter().map(|x| x.to_complex().re).collect();
                let found =
                    if a.iter().all(|x| x.is_finite()) { real_schur(a, n, ulp) } else { None };
                // LAPACK has NaN in what it cannot factor.
                let nan = || vec![f64::NAN; n * n];
                let (own_t, own_z) = found.unwrap_or_else(|| (nan(), nan()));
                let parts = [(imaginary, imaginary_parts(&own_t, n)), (t, own_t), (z, own_z)];
                for (out, own) in parts {
                    let elements = out.iter_mut().zip(own);
                    elements.for_each(|(out, x)| *out = T::from_complex(x.into()));
                }
                Ok(())
            })
        })
    }
    let stack = Stack::new(call.shape(0));
    Ok(match call.dtype(0) {
        DType::F32 => Some(kernel::<f32>(stack, f32::EPSILON.into())),
        DType::F64 => Some(kernel::<f64>(stack, f64::EPSILON)),
        _ => None,
    })
}

/// The eigenvalues, and the eigenvectors of length 1 as columns if they are asked for; `None` where
/// the iteration does not converge, as for elements that are not finite.
fn eigen(a: Square, with_vectors: bool) -> Option<(Vec<C>, Square)> {
    if a.data.iter().any(|x| !x.is_finite()) {
        return None;
    }
    let (t, z) = schur(a)?;
    let values = (0..t.n).map(|k| t.at(k, k)).collect();
    let vectors = if with_vectors { vectors(&t, &z) } else { Square { n: 0, data: Vec::new() } };
    Some((values, vectors))
}

/// The eigenvectors of a matrix with this Schur form.
fn vectors(t: &Square, z: &Square) -> Square {
    let n = t.n;
    let largest = t.data.iter().map(|x| x.norm()).fold(f64::MIN_POSITIVE, f64::max);
    let mut found = Square::from_fn(n, |_, _| C::ZERO);
    for column in 0..n {
        let own = of_triangle(t, column, largest * f64::EPSILON);
        let product = |row: usize| -> C { (0..=column).map(|k| z.at(row, k) * own[k]).sum() };
        let whole: Vec<C> = (0..n).map(product).collect();
        let norm = whole.iter().map(|x| x.norm_sqr()).sum::<f64>().sqrt();
        whole.iter().enumerate().for_each(|(row, x)| found.set(row, column, x / norm));
    }
    found
}

/// The first elements of the eigenvector of eigenvalue `k` of a triangle, of which the last is 1.
/// Where eigenvalues are equal, they are taken to differ by `least`.
fn of_triangle(t: &Square, k: usize, least: f64) -> Vec<C> {
    let mut x = vec![C::ZERO; k + 1];
    x[k] = C::ONE;
    for row in (0..k).rev() {
        let sum: C = (row + 1..=k).map(|column| t.at(row, column) * x[column]).sum();
        let gap = t.at(row, row) - t.at(k, k);
        x[row] = -sum / if gap.norm() < least { C::from(least) } else { gap };
    }
    x
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn vectors_are_stretched_by_their_values() {
        let n = 6;
        let a = Square::from_fn(n, |row, column| {
            C::new((row * 5 % 7) as f64 - column as f64, (row * column % 3) as f64)
        });
        let (values, vectors) = eigen(a.clone(), true).unwrap();
        for (k, value) in values.into_iter().enumerate() {
            let length: f64 = (0..n).map(|row| vectors.at(row, k).norm_sqr()).sum();
            assert!((length - 1.0).abs() < 1e-12);
            for row in 0..n {
                let product: C = (0..n).map(|at| a.at(row, at) * vectors.at(at, k)).sum();
                assert!((product - vectors.at(row, k) * value).norm() < 1e-11);
            }
        }
    }

    #[test]
    fn equal_eigenvalues_have_vectors() {
        let a = Square { n: 2, data: [1.0, 1.0, 0.0, 1.0].map(C::from).to_vec() };
        let (values, vectors) = eigen(a, true).unwrap();
        assert_eq!(values, [C::ONE; 2]);
        assert!(vectors.data.iter().all(|x| x.is_finite()));
        assert!(eigen(Square { n: 1, data: vec![C::new(f64::NAN, 0.0)] }, true).is_none());
    }
}
