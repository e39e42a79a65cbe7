//! `Svd`: singular values, largest first, and singular vectors, in double precision.
//!
//! Rotations make the columns orthogonal, pair by pair (Hestenes 1958). Tall matrices are made
//! square first.

use super::{
    Field, Stack,
    reflection::{Exact, product, square, triangulate},
    try_each, with_field,
};
use crate::{
    cpu::Build,
    device::OpCall,
    error::Result,
    kernel::{Io, Kernel},
};
use std::sync::Arc;

pub(crate) const KERNELS: &[(&str, Build)] = &[("Svd", svd)];

/// Vectors to compute besides the values.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Vectors {
    None,
    /// As many as there are values.
    Thin,
    /// A whole basis.
    Full,
}

fn svd(call: &OpCall<'_>) -> Result<Option<Arc<dyn Kernel>>> {
    fn kernel<T: Field>(stack: Stack, vectors: Vectors) -> Arc<dyn Kernel> {
        Arc::new(move |io: &mut Io<'_>| {
            let Stack { rows, columns, .. } = stack;
            let inner = rows.min(columns);
            let (matrices, values) = (stack.input::<T>(io, 0), stack.output::<T>(io, 0, inner));
            let mut side = |index: usize, rows: usize| match vectors {
                Vectors::None => {
                    io.output::<T>(index).fill(T::ZERO);
                    matrices.iter().map(|_| <&mut [T]>::default()).collect::<Vec<_>>()
                }
                Vectors::Thin => stack.output::<T>(io, index, rows * inner),
                Vectors::Full => stack.output::<T>(io, index, rows * rows),
            };
            let (u, v) = (side(1, rows), side(2, columns));
            let items = matrices.into_iter().zip(values).zip(u).zip(v);
            try_each(io.threads(), items, |(((a, values), u), v)| {
                let finite = a.iter().all(|x| x.magnitude().is_finite());
                if !finite {
                    let nan = T::from_exact(f64::NAN.into());
                    [values, u, v].into_iter().for_each(|out| out.fill(nan));
                    return Ok(());
                }
                let a: Vec<T::Exact> = a.iter().map(|x| x.to_exact()).collect();
                let parts = match rows >= columns {
                    true => decompose(a, rows, columns, vectors),
                    false => {
                        let other = decompose(adjoint(&a, rows, columns), columns, rows, vectors);
                        Parts { u: other.v, v: other.u, ..other }
                    }
                };
                T::write(values, parts.values.into_iter().map(Into::into));
                T::write(u, parts.u);
                T::write(v, parts.v);
                Ok(())
            })
        })
    }
    let stack = Stack::new(call.shape(0));
    let vectors = match (call.attrs.bool("compute_uv")?, call.attrs.bool("full_matrices")?) {
        (false, _) => Vectors::None,
        (true, false) => Vectors::Thin,
        (true, true) => Vectors::Full,
    };
    Ok(with_field!(call.dtype(0), T => kernel::<T>(stack, vectors)))
}

/// Rows and columns exchanged and conjugated.
fn adjoint<E: Exact>(a: &[E], rows: usize, columns: usize) -> Vec<E> {
    (0..rows * columns).map(|index| a[index % rows * columns + index / rows].conj()).collect()
}

/// `a = u diag(values) vᴴ`
struct Parts<E> {
    values: Vec<f64>,
    u: Vec<E>,
    v: Vec<E>,
}

/// Decomposes a matrix that is not wider than it is high.
fn decompose<E: Exact>(mut a: Vec<E>, rows: usize, columns: usize, vectors: Vectors) -> Parts<E> {
    let reflections = triangulate(&mut a, rows, columns);
    a.truncate(columns * columns);
    // Columns as rows, so that they lie next to each other.
    let mut own: Vec<E> = adjoint(&a, columns, columns).into_iter().map(E::conj).collect();
    let with_vectors = vectors != Vectors::None;
    let mut v = vec![E::zero(); if with_vectors { own.len() } else { 0 }];
    v.iter_mut().step_by(columns + 1).for_each(|x| *x = E::one());
    orthogonalize(&mut own, &mut v, columns);
    let norms: Vec<f64> = own
        .chunks(columns.max(1))
        .map(|x| x.iter().map(|&x| square(x)).sum::<f64>().sqrt())
        .collect();
    let mut order: Vec<usize> = (0..columns).collect();
    order.sort_by(|&a, &b| norms[b].total_cmp(&norms[a]));
    let values: Vec<f64> = order.iter().map(|&index| norms[index]).collect();
    if !with_vectors {
        return Parts { values, u: Vec::new(), v };
    }
    let in_order = |rows: &[E], row: usize, place: usize| rows[order[place] * columns + row];
    let by_columns = |of: &dyn Fn(usize, usize) -> E| -> Vec<E> {
        (0..columns * columns).map(|index| of(index / columns, index % columns)).collect()
    };
    let sorted_v = by_columns(&|row, place| in_order(&v, row, place));
    let directions = by_columns(&|row, place| match values[place] > 0.0 {
        true => in_order(&own, row, place) / values[place].into(),
        false => E::zero(),
    });
    let width = if vectors == Vectors::Full { rows } else { columns };
    let mut u = vec![E::zero(); rows * width];
    for (row, from) in directions.chunks(columns.max(1)).enumerate() {
        u[row * width..][..columns].copy_from_slice(from);
    }
    complete(&mut u, columns, width, &values);
    (columns..width).for_each(|k| u[k * width + k] = E::one());
    for (k, reflection) in reflections.iter().enumerate().rev() {
        reflection.apply_adjoint(&mut u, width, k);
    }
    Parts { values, u, v: sorted_v }
}

/// Sets the columns to directions of length 1 whose value is 0, orthogonal to the others.
fn complete<E: Exact>(u: &mut [E], n: usize, width: usize, values: &[f64]) {
    let known = values.iter().take_while(|&&value| value > 0.0).count();
    if known == n {
        return;
    }
    let mut basis: Vec<E> = (0..n).flat_map(|row| u[row * width..][..known].to_vec()).collect();
    let q = product(&triangulate(&mut basis, n, known), n, n);
    for row in 0..n {
        u[row * width + known..][..n - known].copy_from_slice(&q[row * n + known..][..n - known]);
    }
}

/// More sweeps than this are not needed: convergence is quadratic.
const MOST_SWEEPS: usize = 60;

/// Rotates rows until they are orthogonal; `v` takes part.
fn orthogonalize<E: Exact>(rows: &mut [E], v: &mut [E], n: usize) {
    for _ in 0..MOST_SWEEPS {
        let mut changed = false;
        for p in 0..n {
            for q in p + 1..n {
                changed |= rotate(rows, v, n, p, q);
            }
        }
        if !changed {
            return;
        }
    }
}

/// Makes two rows orthogonal; returns whether they were not.
fn rotate<E: Exact>(rows: &mut [E], v: &mut [E], n: usize, p: usize, q: usize) -> bool {
    let (before, after) = rows.split_at_mut(q * n);
    let (x, y) = (&mut before[p * n..][..n], &mut after[..n]);
    let (mut a, mut b, mut mixed) = (0.0, 0.0, E::zero());
    for (&x, &y) in x.iter().zip(&*y) {
        a += square(x);
        b += square(y);
        mixed = mixed + x.conj() * y;
    }
    let size = mixed.abs();
    if size <= f64::EPSILON * (a * b).sqrt() || size == 0.0 {
        return false;
    }
    let phase = mixed / size.into();
    let zeta = (b - a) / (2.0 * size);
    let tan = zeta.signum() / (zeta.abs() + zeta.hypot(1.0));
    let cosine = 1.0 / tan.hypot(1.0);
    let sine = cosine * tan;
    let turn = |x: &mut [E], y: &mut [E]| {
        for (x, y) in x.iter_mut().zip(y) {
            let (old, other) = (*x, *y * phase.conj());
            *x = old * cosine.into() - other * sine.into();
            *y = old * sine.into() + other * cosine.into();
        }
    };
    turn(x, y);
    if !v.is_empty() {
        let (before, after) = v.split_at_mut(q * n);
        turn(&mut before[p * n..][..n], &mut after[..n]);
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;
    use num_complex::Complex;

    fn check(rows: usize, columns: usize, element: impl Fn(usize, usize) -> Complex<f64>) {
        let a: Vec<_> =
            (0..rows * columns).map(|index| element(index / columns, index % columns)).collect();
        let Parts { values, u, v } = decompose(a.clone(), rows, columns, Vectors::Full);
        assert!(values.is_sorted_by(|a, b| a >= b));
        for row in 0..rows {
            for column in 0..columns {
                let product: Complex<f64> = (0..columns)
                    .map(|k| u[row * rows + k] * values[k] * v[column * columns + k].conj())
                    .sum();
                assert!((product - a[row * columns + column]).norm() < 1e-12);
            }
            for other in 0..rows {
                let dot: Complex<f64> =
                    (0..rows).map(|k| u[k * rows + row].conj() * u[k * rows + other]).sum();
                let expected = if row == other { 1.0 } else { 0.0 };
                assert!((dot - expected).norm() < 1e-12);
            }
        }
    }

    #[test]
    fn the_parts_multiply_to_the_matrix() {
        check(5, 3, |row, column| Complex::new((row * 7 % 4) as f64, column as f64 - 1.0));
        check(4, 4, |row, column| Complex::from((row * column) as f64));
        check(3, 2, |_, _| Complex::ZERO);
        check(2, 2, |row, column| Complex::from((2 * row + column + 1) as f64));
    }
}
