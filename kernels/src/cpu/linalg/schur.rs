//! The Schur decomposition of a complex matrix: `a = z t zᴴ` with unitary `z` and upper triangular
//! `t` (Golub and Van Loan, "Matrix Computations", chapter 7).

use super::reflection::condense;
use num_complex::Complex;

type C = Complex<f64>;

/// A square matrix.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Square {
    pub(super) n: usize,
    pub(super) data: Vec<C>,
}

impl Square {
    pub(super) fn identity(n: usize) -> Square {
        Square::from_fn(n, |row, column| if row == column { C::ONE } else { C::ZERO })
    }

    pub(super) fn from_fn(n: usize, element: impl Fn(usize, usize) -> C) -> Square {
        Square { n, data: (0..n * n).map(|index| element(index / n, index % n)).collect() }
    }

    pub(super) fn at(&self, row: usize, column: usize) -> C {
        self.data[row * self.n + column]
    }

    pub(super) fn set(&mut self, row: usize, column: usize, value: C) {
        self.data[row * self.n + column] = value;
    }

    /// `z t zᴴ` for this `z`.
    pub(super) fn similar(&self, t: &Square) -> Square {
        let n = self.n;
        let product =
            |row: usize, column: usize| (0..n).map(|k| self.at(row, k) * t.at(k, column)).sum();
        let left = Square::from_fn(n, product);
        Square::from_fn(n, |row, column| {
            (0..n).map(|k| left.at(row, k) * self.at(column, k).conj()).sum()
        })
    }

    /// Multiplies rows `row` and `row + 1` by a rotation, in the columns from `first` on.
    fn rotate_rows(&mut self, rotation: Rotation, row: usize, first: usize) {
        for column in first..self.n {
            let (x, y) = (self.at(row, column), self.at(row + 1, column));
            self.set(row, column, x * rotation.cosine + rotation.sine * y);
            self.set(row + 1, column, y * rotation.cosine - rotation.sine.conj() * x);
        }
    }

    /// Multiplies columns `column` and `column + 1` by the adjoint of a rotation, in the first
    /// rows.
    fn rotate_columns(&mut self, rotation: Rotation, column: usize, rows: usize) {
        for row in 0..rows {
            let (x, y) = (self.at(row, column), self.at(row, column + 1));
            self.set(row, column, x * rotation.cosine + rotation.sine.conj() * y);
            self.set(row, column + 1, y * rotation.cosine - rotation.sine * x);
        }
    }
}

/// Rotation of a pair that makes its second element vanish.
#[derive(Debug, Clone, Copy)]
struct Rotation {
    cosine: f64,
    sine: C,
}

impl Rotation {
    fn new(x: C, y: C) -> Rotation {
        let norm = x.norm().hypot(y.norm());
        if norm == 0.0 {
            return Rotation { cosine: 1.0, sine: C::ZERO };
        }
        let phase = if x.norm() == 0.0 { C::ONE } else { x / x.norm() };
        Rotation { cosine: x.norm() / norm, sine: phase * y.conj() / norm }
    }
}

/// Returns `(t, z)`; `None` where the iteration does not converge.
pub(super) fn schur(a: Square) -> Option<(Square, Square)> {
    let (mut t, mut z) = hessenberg(a);
    let (n, mut end, mut iterations) = (t.n, t.n, 0);
    while end > 1 {
        let small = |k: usize| {
            let scale = t.at(k, k).norm() + t.at(k - 1, k - 1).norm();
            t.at(k, k - 1).norm() <= f64::EPSILON * scale.max(f64::MIN_POSITIVE)
        };
        let first = (1..end).rev().find(|&k| small(k)).unwrap_or(0);
        if first > 0 {
            t.set(first, first - 1, C::ZERO);
        }
        if first + 1 == end {
            (end, iterations) = (end - 1, 0);
            continue;
        }
        iterations += 1;
        if iterations > 60 {
            return None;
        }
        let shift = match iterations % 10 {
            0 => t.at(end - 1, end - 2) + t.at(end - 1, end - 1),
            _ => nearest_eigenvalue(&t, end),
        };
        let (mut x, mut y) = (t.at(first, first) - shift, t.at(first + 1, first));
        for k in first..end - 1 {
            let rotation = Rotation::new(x, y);
            t.rotate_rows(rotation, k, k.saturating_sub(1));
            t.rotate_columns(rotation, k, end.min(k + 3));
            z.rotate_columns(rotation, k, n);
            if k + 2 < end {
                (x, y) = (t.at(k + 1, k), t.at(k + 2, k));
            }
        }
    }
    for row in 1..n {
        t.data[row * n..][..row].fill(C::ZERO);
    }
    Some((t, z))
}

/// Of the last two rows and columns before `end`, the eigenvalue nearest to the last element.
fn nearest_eigenvalue(t: &Square, end: usize) -> C {
    let (a, b) = (t.at(end - 2, end - 2), t.at(end - 2, end - 1));
    let (c, d) = (t.at(end - 1, end - 2), t.at(end - 1, end - 1));
    let half = (a - d) / 2.0;
    let root = (half * half + b * c).sqrt();
    let far = if (half + root).norm() > (half - root).norm() { half + root } else { half - root };
    if far.norm() == 0.0 { d } else { d - b * c / far }
}

/// Returns `(h, z)` with `a = z h zᴴ`, in which `h` has one diagonal below the main one.
fn hessenberg(mut a: Square) -> (Square, Square) {
    let n = a.n;
    let mut z = Square::identity(n);
    for (k, reflection) in condense(&mut a.data, n, n.saturating_sub(2)).iter().enumerate() {
        reflection.apply_right(&mut z.data, n, k + 1);
    }
    (a, z)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(n: usize, element: impl Fn(usize, usize) -> C) {
        let a = Square::from_fn(n, element);
        let (t, z) = schur(a.clone()).unwrap();
        let near = |a: &Square, b: &Square| {
            a.data.iter().zip(&b.data).all(|(a, b)| (a - b).norm() < 1e-11)
        };
        assert!(near(&z.similar(&t), &a));
        assert!(near(&z.similar(&Square::identity(n)), &Square::identity(n)));
        assert!((0..n * n).all(|index| index / n <= index % n || t.data[index] == C::ZERO));
    }

    #[test]
    fn matrices_are_similar_to_triangles() {
        check(0, |_, _| C::ZERO);
        check(1, |_, _| C::I);
        check(6, |row, column| {
            C::new((row * 5 % 7) as f64 - column as f64, (row * column % 3) as f64)
        });
        check(4, |row, column| if (row + 1) % 4 == column { C::ONE } else { C::ZERO });
        check(5, |row, column| if row == column + 1 { C::ONE } else { C::ZERO });
    }
}
