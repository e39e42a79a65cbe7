//! `MatrixExponential`, by scaling, a Padé approximant of degree 13, and squaring (Higham, "The
//! scaling and squaring method for the matrix exponential revisited", 2005).

use super::{Field, Stack, schur::Square, try_each, with_field};
use crate::{
    cpu::Build,
    device::OpCall,
    error::Result,
    kernel::{Io, Kernel},
};
use num_complex::Complex;
use std::sync::Arc;

pub(crate) const KERNELS: &[(&str, Build)] = &[("MatrixExponential", build)];

type C = Complex<f64>;

fn build(call: &OpCall<'_>) -> Result<Option<Arc<dyn Kernel>>> {
    fn kernel<T: Field>(stack: Stack) -> Arc<dyn Kernel> {
        Arc::new(move |io: &mut Io<'_>| {
            let n = stack.rows;
            let (matrices, out) = (stack.input::<T>(io, 0), stack.output(io, 0, n * n));
            try_each(io.threads(), matrices.into_iter().zip(out), |(a, out)| {
                let found =
                    exponential(Square { n, data: a.iter().map(|x| x.to_complex()).collect() });
                let elements = out.iter_mut().zip(found.data);
                elements.for_each(|(out, x)| *out = T::from_complex(x));
                Ok(())
            })
        })
    }
    let stack = Stack::new(call.shape(0));
    Ok(with_field!(call.dtype(0), T => kernel::<T>(stack)))
}

/// The coefficients of the approximant.
const PADE: [f64; 14] = [
    64_764_752_532_480_000.0,
    32_382_376_266_240_000.0,
    7_771_770_303_897_600.0,
    1_187_353_796_428_800.0,
    129_060_195_264_000.0,
    10_559_470_521_600.0,
    670_442_572_800.0,
    33_522_128_640.0,
    1_323_241_920.0,
    40_840_800.0,
    960_960.0,
    16_380.0,
    182.0,
    1.0,
];

/// Up to this norm the approximant is exact in double precision.
const LARGEST_NORM: f64 = 5.371_920_351_148_152;

fn exponential(a: Square) -> Square {
    let norm = norm(&a);
    if !norm.is_finite() {
        return Square::from_fn(a.n, |_, _| C::from(f64::NAN));
    }
    let halvings = (norm / LARGEST_NORM).log2().ceil().max(0.0) as i32;
    let scale = 0.5f64.powi(halvings);
    let a = Square::from_fn(a.n, |row, column| a.at(row, column) * scale);
    (0..halvings).fold(approximant(&a), |root, _| matmul(&root, &root))
}

/// Odd powers are in `u`, even ones in `v`: the approximant is `(v - u)⁻¹ (v + u)`.
fn approximant(a: &Square) -> Square {
    let second = matmul(a, a);
    let fourth = matmul(&second, &second);
    let sixth = matmul(&fourth, &second);
    let one = Square::identity(a.n);
    let sum = |terms: &[(f64, &Square)]| {
        Square::from_fn(a.n, |row, column| {
            terms.iter().map(|(factor, x)| x.at(row, column) * *factor).sum()
        })
    };
    let half = |odd: usize| {
        let high =
            sum(&[(PADE[12 + odd], &sixth), (PADE[10 + odd], &fourth), (PADE[8 + odd], &second)]);
        let low = sum(&[
            (PADE[6 + odd], &sixth),
            (PADE[4 + odd], &fourth),
            (PADE[2 + odd], &second),
            (PADE[odd], &one),
        ]);
        sum(&[(1.0, &matmul(&sixth, &high)), (1.0, &low)])
    };
    let (u, v) = (matmul(a, &half(1)), half(0));
    solve(sum(&[(1.0, &v), (-1.0, &u)]), sum(&[(1.0, &v), (1.0, &u)]))
}

fn matmul(a: &Square, b: &Square) -> Square {
    Square::from_fn(a.n, |row, column| (0..a.n).map(|k| a.at(row, k) * b.at(k, column)).sum())
}

/// `a⁻¹ b`, by elimination with row exchanges.
fn solve(mut a: Square, mut b: Square) -> Square {
    let n = a.n;
    for k in 0..n {
        let size = |row: usize| a.at(row, k).norm();
        let pivot = (k..n).max_by(|&x, &y| size(x).total_cmp(&size(y))).unwrap_or(k);
        for column in 0..n {
            for x in [&mut a, &mut b] {
                x.data.swap(k * n + column, pivot * n + column);
            }
        }
        for row in (0..n).filter(|&row| row != k) {
            let factor = a.at(row, k) / a.at(k, k);
            for column in 0..n {
                for x in [&mut a, &mut b] {
                    x.set(row, column, x.at(row, column) - factor * x.at(k, column));
                }
            }
        }
    }
    Square::from_fn(n, |row, column| b.at(row, column) / a.at(row, row))
}

/// The largest sum of the magnitudes of a column.
fn norm(a: &Square) -> f64 {
    let column = |column: usize| (0..a.n).map(|row| a.at(row, column).norm()).sum::<f64>();
    let sums: Vec<f64> = (0..a.n).map(column).collect();
    match sums.iter().all(|sum| sum.is_finite()) {
        true => sums.into_iter().fold(0.0, f64::max),
        false => f64::NAN,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(elements: [f64; 4], expected: [f64; 4]) {
        let found = exponential(Square { n: 2, data: elements.map(C::from).to_vec() });
        let near = |(x, y): (&C, f64)| (x - y).norm() < 1e-12 * y.abs().max(1.0);
        assert!(found.data.iter().zip(expected).all(near), "{found:?}");
    }

    #[test]
    fn exponentials_of_small_and_large_matrices() {
        let e = std::f64::consts::E;
        check([0.0; 4], [1.0, 0.0, 0.0, 1.0]);
        check([0.0, 1.0, 0.0, 0.0], [1.0, 1.0, 0.0, 1.0]);
        check([1.0, 1.0, 0.0, 1.0], [e, e, 0.0, e]);
        check([0.0, -20.0, 20.0, 0.0], [20f64.cos(), -20f64.sin(), 20f64.sin(), 20f64.cos()]);
        assert!(exponential(Square { n: 0, data: Vec::new() }).data.is_empty());
    }
}
