//! Functions of matrices through their Schur form: `MatrixLogarithm`, `MatrixSquareRoot`.

use super::{
    Field, Stack,
    schur::{Square, schur},
    try_each, with_field,
};
use crate::{
    cpu::Build,
    device::OpCall,
    error::Result,
    kernel::{Io, Kernel},
};
use num_complex::Complex;
use std::sync::Arc;

pub(crate) const KERNELS: &[(&str, Build)] = &[
    ("MatrixLogarithm", |call| build(call, logarithm)),
    ("MatrixSquareRoot", |call| build(call, square_root)),
];

type C = Complex<f64>;

/// A function of upper triangular matrices.
type OfTriangle = fn(&Square) -> Square;

fn build(call: &OpCall<'_>, function: OfTriangle) -> Result<Option<Arc<dyn Kernel>>> {
    fn kernel<T: Field>(stack: Stack, function: OfTriangle, real: bool) -> Arc<dyn Kernel> {
        Arc::new(move |io: &mut Io<'_>| {
            let n = stack.rows;
            let (matrices, out) = (stack.input::<T>(io, 0), stack.output(io, 0, n * n));
            try_each(io.threads(), matrices.into_iter().zip(out), |(a, out)| {
                let matrix = Square { n, data: a.iter().map(|x| x.to_complex()).collect() };
                match schur(matrix).filter(|(t, _)| !real || has_real_root(t)) {
                    Some((t, z)) => {
                        let result = z.similar(&function(&t));
                        let result = result.data.into_iter().map(T::from_complex);
                        out.iter_mut().zip(result).for_each(|(out, x)| *out = x);
                    }
                    None => out.fill(T::from_complex(f64::NAN.into())),
                }
                Ok(())
            })
        })
    }
    let (stack, real) = (Stack::new(call.shape(0)), !call.dtype(0).is_complex());
    Ok(with_field!(call.dtype(0), T => kernel::<T>(stack, function, real)))
}

/// Whether the root of a real matrix with these eigenvalues is real: none is negative.
fn has_real_root(t: &Square) -> bool {
    let largest = t.data.iter().map(|x| x.norm()).fold(0.0, f64::max);
    let noise = largest * t.n as f64 * f64::EPSILON;
    (0..t.n).map(|k| t.at(k, k)).all(|x| x.re >= -noise || x.im.abs() > noise)
}

/// The square root of a triangle (Björck and Hammarling 1983).
fn square_root(t: &Square) -> Square {
    let n = t.n;
    let mut root = Square::from_fn(n, |_, _| C::ZERO);
    for column in 0..n {
        root.set(column, column, t.at(column, column).sqrt());
        for row in (0..column).rev() {
            let sum: C = (row + 1..column).map(|k| root.at(row, k) * root.at(k, column)).sum();
            let scale = root.at(row, row) + root.at(column, column);
            root.set(row, column, (t.at(row, column) - sum) / scale);
        }
    }
    root
}

/// Nodes in [0, 1] and weights of Gauss-Legendre quadrature with 7 points (Abramowitz and Stegun,
/// table 25.4): the poles and residues of the Padé approximant of degree 7 to `log(1 + x)`.
const QUADRATURE: [(f64, f64); 7] = [
    (0.025_446_043_828_620_757, 0.064_742_483_084_434_85),
    (0.129_234_407_200_302_77, 0.139_852_695_744_638_34),
    (0.297_077_424_311_301_4, 0.190_915_025_252_559_46),
    (0.5, 0.208_979_591_836_734_7),
    (0.702_922_575_688_698_6, 0.190_915_025_252_559_46),
    (0.870_765_592_799_697_2, 0.139_852_695_744_638_34),
    (0.974_553_956_171_379_3, 0.064_742_483_084_434_85),
];

/// Up to this norm of `x` the approximant to `log(1 + x)` is exact in double precision (Higham,
/// "Functions of Matrices", table 11.1).
const LARGEST_NORM: f64 = 0.264;

/// More roots than this bring no finite matrix nearer to 1.
const MOST_ROOTS: i32 = 64;

/// The logarithm of a triangle, by inverse scaling and squaring (Higham, algorithm 11.9).
fn logarithm(t: &Square) -> Square {
    let n = t.n;
    let less_one = |t: &Square| {
        Square::from_fn(n, |row, column| match row == column {
            true => t.at(row, column) - 1.0,
            false => t.at(row, column),
        })
    };
    let (mut root, mut roots) = (t.clone(), 0);
    let mut x = less_one(&root);
    while norm(&x) > LARGEST_NORM && roots < MOST_ROOTS {
        root = square_root(&root);
        x = less_one(&root);
        roots += 1;
    }
    let mut sum = Square::from_fn(n, |_, _| C::ZERO);
    for (node, weight) in QUADRATURE {
        let term = over_one_plus(&x, node);
        sum.data.iter_mut().zip(term.data).for_each(|(sum, term)| *sum += term * weight);
    }
    let scale = 2f64.powi(roots);
    Square::from_fn(n, |row, column| match row == column {
        true => t.at(row, row).ln(),
        false => sum.at(row, column) * scale,
    })
}

/// `x (1 + node x)⁻¹` of a triangle.
fn over_one_plus(x: &Square, node: f64) -> Square {
    let n = x.n;
    let mut y = x.clone();
    for column in 0..n {
        for row in (0..=column).rev() {
            let sum: C = (row + 1..=column).map(|k| x.at(row, k) * node * y.at(k, column)).sum();
            y.set(row, column, (x.at(row, column) - sum) / (1.0 + node * x.at(row, row)));
        }
    }
    y
}

/// The largest sum of the magnitudes of a column.
fn norm(x: &Square) -> f64 {
    let column = |column: usize| (0..x.n).map(|row| x.at(row, column).norm()).sum();
    (0..x.n).map(column).fold(0.0, f64::max)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_logarithm_of_a_defective_matrix() {
        // log [[e, e], [0, e]] = [[1, 1], [0, 1]]
        let e = std::f64::consts::E;
        let t = Square { n: 2, data: [e, e, 0.0, e].map(C::from).to_vec() };
        let expected = [1.0, 1.0, 0.0, 1.0];
        let found = logarithm(&t);
        assert!(found.data.iter().zip(expected).all(|(x, y)| (x - y).norm() < 1e-13));
    }
}
