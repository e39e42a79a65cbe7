//! Factors of rows in another order: `Lu`, determinants, inverses and systems of equations.
//!
//! The pivot is the first element of the largest magnitude, as in Eigen's `PartialPivLU`.

use super::{Field, Stack, adjoint, not_invertible, subtract, try_each, with_field};
use crate::{
    cpu::{
        Build,
        dispatch::with_index,
        gemm::{GemmOutput, GemmSizes, Matrix, gemm},
    },
    device::OpCall,
    error::Result,
    kernel::{Io, Kernel},
    number::Number,
    threads::Threads,
};
use num_complex::Complex;
use std::{ops::Range, sync::Arc};

pub(crate) const KERNELS: &[(&str, Build)] = &[
    ("LogMatrixDeterminant", log_determinant),
    ("Lu", lu),
    ("MatrixDeterminant", determinant),
    ("MatrixInverse", inverse),
    ("MatrixSolve", solve),
    ("_LuFactors", lu_factors),
];

/// Columns that are factored at a time.
const PANEL: usize = 64;

/// The size of an element, by which a pivot is chosen.
type Measure<T> = fn(T) -> f64;

/// Permutation of the rows.
struct Order {
    /// The row of the matrix that each row of the factors comes from.
    rows: Vec<usize>,
    /// The row that each row of the upper triangle was exchanged with.
    exchanged: Vec<usize>,
}

impl Order {
    /// Whether the number of exchanges is odd.
    fn is_odd(&self) -> bool {
        self.exchanged.iter().enumerate().filter(|(row, with)| row != *with).count() % 2 == 1
    }
}

/// Factors a matrix of `n` columns in place: below the diagonal the lower triangle, whose diagonal
/// is 1, and the upper one elsewhere.
fn factor<T: Field>(a: &mut [T], rows: usize, n: usize, size: Measure<T>) -> Order {
    let mut order = Order { rows: (0..rows).collect(), exchanged: Vec::new() };
    let least = rows.min(n);
    for first in (0..least).step_by(PANEL) {
        let end = least.min(first + PANEL);
        panel(a, n, first..end, size, &mut order);
        if end == n {
            break;
        }
        for row in first + 1..end {
            let (above, below) = a.split_at_mut(row * n);
            for k in first..row {
                let factor = below[k];
                subtract(&mut below[end..n], factor, &above[k * n..][end..n]);
            }
        }
        if end == rows {
            break;
        }
        update(a, n, first..end);
    }
    order
}

/// Subtracts from what is left the product of the new parts of the triangles.
fn update<T: Field>(a: &mut [T], n: usize, panel: Range<usize>) {
    let (rest, width) = (a.len() / n - panel.end, panel.len());
    let (above, below) = a.split_at_mut(panel.end * n);
    let lower: Vec<T> = below
        .chunks(n)
        .flat_map(|row| row[panel.clone()].iter().map(|&x| T::ZERO.minus(x)))
        .collect();
    let upper = Matrix::row_major(&above[panel.start * n + panel.end..], n);
    let output = GemmOutput { data: &mut below[panel.end..], row_stride: n, accumulate: true };
    let sizes = GemmSizes { m: rest, k: width, n: n - panel.end };
    gemm(&Threads::single(), sizes, Matrix::row_major(&lower, width), upper, output);
}

/// Factors the columns of a panel, below the rows that are done.
fn panel<T: Field>(
    a: &mut [T],
    n: usize,
    columns: Range<usize>,
    size: Measure<T>,
    order: &mut Order,
) {
    for k in columns.clone() {
        let (mut pivot, mut largest) = (k, size(a[k * n + k]));
        for row in k + 1..a.len() / n {
            let magnitude = size(a[row * n + k]);
            if magnitude > largest {
                (pivot, largest) = (row, magnitude);
            }
        }
        order.exchanged.push(pivot);
        if pivot != k {
            let (above, below) = a.split_at_mut(pivot * n);
            above[k * n..][..n].swap_with_slice(&mut below[..n]);
            order.rows.swap(k, pivot);
        }
        let (above, below) = a.split_at_mut((k + 1) * n);
        let row = &above[k * n..];
        for other in below.chunks_mut(n) {
            // Below a pivot of 0 all is 0, but 0 times what is not finite is not.
            if largest != 0.0 {
                other[k] = other[k].over(row[k]);
            }
            let factor = other[k];
            subtract(&mut other[k + 1..columns.end], factor, &row[k + 1..columns.end]);
        }
    }
}

/// Whether the least pivot is not 0. As Eigen finds it, NaN counts only if it is the first.
fn is_invertible<T: Field>(factors: &[T], n: usize) -> bool {
    let pivots = factors.iter().step_by(n + 1).map(|x| x.magnitude());
    pivots.reduce(|least, x| if x < least { x } else { least }).is_none_or(|least| least > 0.0)
}

/// Solves for `columns` right sides, which are passed and replaced row by row.
fn substitute<T: Field>(factors: &[T], n: usize, x: &mut [T], columns: usize) {
    for row in 1..n {
        let (above, below) = x.split_at_mut(row * columns);
        for k in 0..row {
            subtract(&mut below[..columns], factors[row * n + k], &above[k * columns..][..columns]);
        }
    }
    for row in (0..n).rev() {
        let (above, below) = x.split_at_mut((row + 1) * columns);
        let result = &mut above[row * columns..];
        for k in row + 1..n {
            let known = &below[(k - row - 1) * columns..][..columns];
            subtract(result, factors[row * n + k], known);
        }
        let diagonal = factors[row * n + row];
        result.iter_mut().for_each(|x| *x = x.over(diagonal));
    }
}

/// The factors of a matrix, or of its adjoint, which must be invertible.
fn factors<T: Field>(
    op: &'static str,
    a: &[T],
    n: usize,
    adjointed: bool,
) -> Result<(Vec<T>, Order)> {
    let mut factors = if adjointed { adjoint(a, n) } else { a.to_vec() };
    let order = factor(&mut factors, n, n, T::magnitude);
    match is_invertible(&factors, n) {
        true => Ok((factors, order)),
        false => Err(not_invertible(op)),
    }
}

fn lu(call: &OpCall<'_>) -> Result<Option<Arc<dyn Kernel>>> {
    fn kernel<T: Field, I: Number>(op: &'static str, stack: Stack) -> Arc<dyn Kernel> {
        Arc::new(move |io: &mut Io<'_>| {
            let n = stack.rows;
            let (matrices, out) = (stack.input::<T>(io, 0), stack.output(io, 0, n * n));
            let orders = stack.output::<I>(io, 1, n);
            let items = matrices.into_iter().zip(out).zip(orders);
            try_each(io.threads(), items, |((a, out), rows)| {
                let (factors, order) = factors(op, a, n, false)?;
                out.copy_from_slice(&factors);
                rows.iter_mut().zip(order.rows).for_each(|(to, row)| *to = I::count(row));
                Ok(())
            })
        })
    }
    let (op, stack) = (call.op.name, Stack::new(call.shape(0)));
    let index = call.outputs[1].dtype;
    Ok(with_field!(call.dtype(0), T => with_index!(index, I => kernel::<T, I>(op, stack)))
        .flatten())
}

/// The determinant as a number of magnitude 1, or 0, and the logarithm of the magnitude.
fn sign_and_log<T: Field>(a: &[T], n: usize) -> (Complex<f64>, f64) {
    let mut factors = a.to_vec();
    let order = factor(&mut factors, n, n, T::magnitude);
    let mut sign = Complex::new(if order.is_odd() { -1.0 } else { 1.0 }, 0.0);
    let mut log = 0.0;
    for x in factors.iter().step_by(n + 1) {
        let (x, magnitude) = (x.to_complex(), x.magnitude());
        sign *= match x {
            x if magnitude == 0.0 => x,
            x if x.im == 0.0 && magnitude.is_infinite() => x.re.signum().into(),
            x => x / magnitude,
        };
        log += magnitude.ln();
    }
    (sign, log)
}

fn log_determinant(call: &OpCall<'_>) -> Result<Option<Arc<dyn Kernel>>> {
    fn kernel<T: Field>(stack: Stack) -> Arc<dyn Kernel> {
        Arc::new(move |io: &mut Io<'_>| {
            let matrices = stack.input::<T>(io, 0);
            let (signs, logs): (&mut [T], &mut [T]) = (io.output(0), io.output(1));
            let items = matrices.into_iter().zip(signs).zip(logs);
            try_each(io.threads(), items, |((a, sign), log)| {
                let (phase, magnitude) = sign_and_log(a, stack.rows);
                **sign = T::from_complex(phase);
                **log = T::from_complex(magnitude.into());
                Ok(())
            })
        })
    }
    let stack = Stack::new(call.shape(0));
    Ok(with_field!(call.dtype(0), T => kernel::<T>(stack)))
}

fn determinant(call: &OpCall<'_>) -> Result<Option<Arc<dyn Kernel>>> {
    fn kernel<T: Field>(stack: Stack) -> Arc<dyn Kernel> {
        Arc::new(move |io: &mut Io<'_>| {
            let matrices = stack.input::<T>(io, 0);
            let out: &mut [T] = io.output(0);
            try_each(io.threads(), matrices.into_iter().zip(out), |(a, out)| {
                let (sign, log) = sign_and_log(a, stack.rows);
                **out = T::from_complex(sign * log.exp());
                Ok(())
            })
        })
    }
    let stack = Stack::new(call.shape(0));
    Ok(with_field!(call.dtype(0), T => kernel::<T>(stack)))
}

fn inverse(call: &OpCall<'_>) -> Result<Option<Arc<dyn Kernel>>> {
    fn kernel<T: Field>(op: &'static str, stack: Stack, adjointed: bool) -> Arc<dyn Kernel> {
        Arc::new(move |io: &mut Io<'_>| {
            let n = stack.rows;
            let (matrices, out) = (stack.input::<T>(io, 0), stack.output(io, 0, n * n));
            try_each(io.threads(), matrices.into_iter().zip(out), |(a, out)| {
                let (factors, order) = factors(op, a, n, adjointed)?;
                out.fill(T::ZERO);
                order.rows.iter().enumerate().for_each(|(row, &from)| out[row * n + from] = T::ONE);
                substitute(&factors, n, out, n);
                Ok(())
            })
        })
    }
    let (op, stack) = (call.op.name, Stack::new(call.shape(0)));
    let adjointed = call.attrs.bool("adjoint")?;
    Ok(with_field!(call.dtype(0), T => kernel::<T>(op, stack, adjointed)))
}

fn solve(call: &OpCall<'_>) -> Result<Option<Arc<dyn Kernel>>> {
    fn kernel<T: Field>(
        op: &'static str,
        stack: Stack,
        right: Stack,
        adjointed: bool,
    ) -> Arc<dyn Kernel> {
        Arc::new(move |io: &mut Io<'_>| {
            let (n, columns) = (stack.rows, right.columns);
            let (matrices, right) = (stack.input::<T>(io, 0), right.input::<T>(io, 1));
            let out = stack.output(io, 0, n * columns);
            let items = matrices.into_iter().zip(right).zip(out);
            try_each(io.threads(), items, |((a, right), out)| {
                if out.is_empty() {
                    return Ok(());
                }
                let (factors, order) = factors(op, a, n, adjointed)?;
                for (out, row) in out.chunks_mut(columns).zip(order.rows) {
                    out.copy_from_slice(&right[row * columns..][..columns]);
                }
                substitute(&factors, n, out, columns);
                Ok(())
            })
        })
    }
    let (op, adjointed) = (call.op.name, call.attrs.bool("adjoint")?);
    let (stack, right) = (Stack::new(call.shape(0)), Stack::new(call.shape(1)));
    Ok(with_field!(call.dtype(0), T => kernel::<T>(op, stack, right, adjointed)))
}

/// The factors of matrices of any shape, as LAPACK's `getrf` leaves them: the triangles, the row that
/// each row was exchanged with, counted from 1, and the number of the first pivot that is 0, or 0. Pivots are
/// chosen by the sum of the magnitudes of both parts, as there.
fn lu_factors(call: &OpCall<'_>) -> Result<Option<Arc<dyn Kernel>>> {
    fn kernel<T: Field>(stack: Stack) -> Arc<dyn Kernel> {
        Arc::new(move |io: &mut Io<'_>| {
            let Stack { rows, columns, .. } = stack;
            let matrices = stack.input::<T>(io, 0);
            let factors = stack.output::<T>(io, 0, rows * columns);
            let pivots = stack.output::<i32>(io, 1, rows.min(columns));
            let status: &mut [i32] = io.output(2);
            let items = matrices.into_iter().zip(factors).zip(pivots).zip(status);
            try_each(io.threads(), items, |(((a, factors), pivots), status)| {
                factors.copy_from_slice(a);
                let order = factor(factors, rows, columns, |x| x.to_complex().l1_norm());
                for (pivot, with) in pivots.iter_mut().zip(order.exchanged) {
                    *pivot = with as i32 + 1;
                }
                let diagonal = factors.iter().step_by(columns + 1).take(pivots.len());
                let zero = diagonal.map(|x| x.magnitude()).position(|x| x == 0.0);
                **status = zero.map_or(0, |at| at as i32 + 1);
                Ok(())
            })
        })
    }
    let stack = Stack::new(call.shape(0));
    Ok(with_field!(call.dtype(0), T => kernel::<T>(stack)))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The results of TensorFlow 2.21.
    #[test]
    fn numbers_that_are_not_finite_go_through() {
        let invertible = |a: [f64; 4]| factors("MatrixInverse", &a, 2, false).is_ok();
        assert!(invertible([1.0, 2.0, 3.0, f64::NAN]));
        assert!(invertible([f64::INFINITY, 1.0, 1.0, 2.0]));
        assert!(!invertible([f64::NAN, 1.0, 1.0, 2.0]));
        assert!(!invertible([0.0, f64::NAN, 0.0, 1.0]));
        assert!(!invertible([1.0, 2.0, 2.0, 4.0]));
        let (sign, log) = sign_and_log(&[f64::INFINITY, 1.0, 1.0, 2.0], 2);
        assert_eq!((sign.re, log), (1.0, f64::INFINITY));
        for a in [[0.0, f64::NAN, 0.0, 1.0], [0.0, f64::INFINITY, 0.0, 1.0]] {
            assert!(sign_and_log(&a, 2).1.is_nan(), "{a:?}");
        }
    }

    #[test]
    fn the_factors_of_many_panels_multiply_to_the_rows() {
        let n = 2 * PANEL + 5;
        let a: Vec<f64> = (0..n * n).map(|index| ((index * index + 7) % 101) as f64).collect();
        let mut factors = a.clone();
        let order = factor(&mut factors, n, n, Field::magnitude);
        for row in 0..n {
            for column in 0..n {
                let lower = |k: usize| if k == row { 1.0 } else { factors[row * n + k] };
                let product: f64 =
                    (0..=row.min(column)).map(|k| lower(k) * factors[k * n + column]).sum();
                assert!((product - a[order.rows[row] * n + column]).abs() < 1e-9);
            }
        }
    }

    #[test]
    fn matrices_of_any_shape_have_factors() {
        for (rows, columns) in [(3, 2), (2, 3), (PANEL + 9, PANEL + 2), (PANEL + 1, 2 * PANEL)] {
            let a: Vec<f64> =
                (0..rows * columns).map(|index| ((index * index + 3) % 97) as f64).collect();
            let mut factors = a.clone();
            let order = factor(&mut factors, rows, columns, Field::magnitude);
            for row in 0..rows {
                for column in 0..columns {
                    let lower = |k: usize| if k == row { 1.0 } else { factors[row * columns + k] };
                    let product: f64 = (0..=row.min(column))
                        .map(|k| lower(k) * factors[k * columns + column])
                        .sum();
                    assert!((product - a[order.rows[row] * columns + column]).abs() < 1e-8);
                }
            }
        }
    }
}
