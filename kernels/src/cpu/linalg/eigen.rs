//! `SelfAdjointEigV2`: eigenvalues, smallest first, and eigenvectors, in double precision.
//!
//! Reflections make the matrix tridiagonal, implicit QR steps with Wilkinson's shift make it
//! diagonal (Golub and Van Loan, "Matrix Computations", section 8.3).

use super::{
    Field, Stack,
    reflection::{Exact, Reflection},
    try_each, with_field,
};
use crate::{
    cpu::Build,
    device::OpCall,
    error::Result,
    kernel::{Io, Kernel},
};
use ferroflow_ir::Error;
use std::sync::Arc;

pub(crate) const KERNELS: &[(&str, Build)] = &[("SelfAdjointEigV2", self_adjoint)];

fn self_adjoint(call: &OpCall<'_>) -> Result<Option<Arc<dyn Kernel>>> {
    fn kernel<T: Field>(op: &'static str, stack: Stack, with_vectors: bool) -> Arc<dyn Kernel> {
        Arc::new(move |io: &mut Io<'_>| {
            let n = stack.rows;
            let (matrices, values) = (stack.input::<T>(io, 0), stack.output::<T>(io, 0, n));
            let vectors = match with_vectors {
                true => stack.output::<T>(io, 1, n * n),
                false => {
                    io.output::<T>(1).fill(T::ZERO);
                    matrices.iter().map(|_| <&mut [T]>::default()).collect()
                }
            };
            let items = matrices.into_iter().zip(values).zip(vectors);
            try_each(io.threads(), items, |((a, values), vectors)| {
                let found = eigen(lower_triangle(a, n), n, with_vectors).ok_or_else(|| {
                    let found = "a matrix whose eigenvalues are not found";
                    Error::argument(op, "input", "finite", found)
                })?;
                let mut order: Vec<usize> = (0..n).collect();
                order.sort_by(|&a, &b| found.values[a].total_cmp(&found.values[b]));
                for (place, &index) in order.iter().enumerate() {
                    values[place] = T::from_exact(found.values[index].into());
                    let own = found.adjoint.chunks(n).nth(index).unwrap_or_default();
                    for (row, &x) in own.iter().enumerate() {
                        vectors[row * n + place] = T::from_exact(x).conj();
                    }
                }
                Ok(())
            })
        })
    }
    let (op, stack) = (call.op.name, Stack::new(call.shape(0)));
    let with_vectors = call.attrs.bool("compute_v")?;
    Ok(with_field!(call.dtype(0), T => kernel::<T>(op, stack, with_vectors)))
}

/// The matrix whose lower triangle this is; the upper one is not read.
fn lower_triangle<T: Field>(a: &[T], n: usize) -> Vec<T::Exact> {
    let element = |index: usize| match (index / n, index % n) {
        (row, column) if column <= row => a[index].to_exact(),
        (row, column) => a[column * n + row].conj().to_exact(),
    };
    (0..n * n).map(element).collect()
}

struct Eigen<E> {
    values: Vec<f64>,
    /// The conjugates of the eigenvectors, one after the other; empty if they were not asked for.
    adjoint: Vec<E>,
}

/// `None` where the iteration does not converge, as for elements that are not finite.
fn eigen<E: Exact>(mut a: Vec<E>, n: usize, with_vectors: bool) -> Option<Eigen<E>> {
    let mut adjoint = vec![E::zero(); if with_vectors { n * n } else { 0 }];
    adjoint.iter_mut().step_by(n + 1).for_each(|x| *x = E::one());
    for k in 0..n.saturating_sub(1) {
        let reflection = Reflection::new((k + 1..n).map(|row| a[row * n + k]));
        reflection.apply(&mut a, n, k + 1);
        reflection.apply_right(&mut a, n, k + 1);
        if with_vectors {
            reflection.apply(&mut adjoint, n, k + 1);
        }
    }
    let mut values: Vec<f64> = (0..n).map(|k| a[k * n + k].re()).collect();
    let mut beside: Vec<f64> = (1..n).map(|k| a[k * n + k - 1].re()).collect();
    let finite = values.iter().chain(&beside).all(|x| x.is_finite());
    let converged = finite
        && diagonalize(&mut values, &mut beside, |k, cosine, sine| {
            if with_vectors {
                let (above, below) = adjoint.split_at_mut((k + 1) * n);
                for (x, y) in above[k * n..].iter_mut().zip(below) {
                    let (old, other) = (*x, *y);
                    *x = old * cosine.into() + other * sine.into();
                    *y = other * cosine.into() - old * sine.into();
                }
            }
        });
    converged.then_some(Eigen { values, adjoint })
}

/// Makes a symmetric tridiagonal matrix diagonal; `rotate` hears of each rotation of two
/// neighbouring axes. Gives whether that worked.
fn diagonalize(
    diagonal: &mut [f64],
    beside: &mut [f64],
    mut rotate: impl FnMut(usize, f64, f64),
) -> bool {
    let (mut end, mut steps) = (diagonal.len(), 0);
    while end > 1 {
        let small = |k: usize| {
            let scale = diagonal[k].abs() + diagonal[k + 1].abs();
            beside[k].abs() <= f64::EPSILON * scale.max(f64::MIN_POSITIVE)
        };
        let first = (0..end - 1).rev().find(|&k| small(k)).map_or(0, |k| k + 1);
        if first + 1 == end {
            (end, steps) = (end - 1, 0);
            continue;
        }
        steps += 1;
        if steps > 60 {
            return false;
        }
        let (last, corner) = (diagonal[end - 1], beside[end - 2]);
        let half = (diagonal[end - 2] - last) / 2.0;
        let shift = last - corner * corner / (half + half.hypot(corner).copysign(half));
        let (mut x, mut z) = (diagonal[first] - shift, beside[first]);
        for k in first..end - 1 {
            let norm = x.hypot(z);
            let (cosine, sine) = if norm == 0.0 { (1.0, 0.0) } else { (x / norm, z / norm) };
            if k > first {
                beside[k - 1] = norm;
            }
            let (a, b, c) = (diagonal[k], beside[k], diagonal[k + 1]);
            let mixed = 2.0 * cosine * sine * b;
            diagonal[k] = cosine * cosine * a + mixed + sine * sine * c;
            diagonal[k + 1] = sine * sine * a - mixed + cosine * cosine * c;
            beside[k] = cosine * sine * (c - a) + (cosine * cosine - sine * sine) * b;
            if k + 2 < end {
                (x, z) = (beside[k], sine * beside[k + 1]);
                beside[k + 1] *= cosine;
            }
            rotate(k, cosine, sine);
        }
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;
    use num_complex::Complex;

    #[test]
    fn vectors_are_stretched_by_their_values() {
        let n = 7;
        let element = |row: usize, column: usize| {
            let x = Complex::new(((row + column) * 3 % 5) as f64, row as f64 - column as f64);
            if row == column { Complex::from(x.re) } else { x }
        };
        let a: Vec<Complex<f64>> = (0..n * n).map(|index| element(index / n, index % n)).collect();
        let found = eigen(a.clone(), n, true).unwrap();
        for (value, adjoint) in found.values.iter().zip(found.adjoint.chunks(n)) {
            for row in a.chunks(n).zip(adjoint) {
                let product: Complex<f64> =
                    row.0.iter().zip(adjoint).map(|(a, v)| a * v.conj()).sum();
                assert!((product - row.1.conj() * value).norm() < 1e-12);
            }
        }
        assert!(eigen(vec![f64::NAN; 4], 2, false).is_none());
    }
}
