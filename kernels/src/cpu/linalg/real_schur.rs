//! The Schur form of a real matrix: `a = z t zᵀ` with orthogonal `z`, and `t` with blocks of one or two rows on
//! its diagonal, of which the latter have two complex eigenvalues and equal elements on the diagonal.
//!
//! The iteration is the implicit double-shift QR algorithm (Golub and Van Loan, "Matrix Computations",
//! section 7.5). Shifts, tests for small elements and the form of blocks are those that LAPACK documents for
//! `dlahqr` and `dlanv2`, as the order of eigenvalues depends on them.

use super::reflection::{Reflection, condense};

/// Rounds without an eigenvalue after which the shifts are exceptional.
const PATIENCE: usize = 10;

/// A matrix that is being factored.
struct Iteration {
    n: usize,
    /// Relative size of elements that vanish.
    ulp: f64,
    t: Vec<f64>,
    z: Vec<f64>,
}

/// A pair of shifts: the real parts, and the imaginary part of the first one.
#[derive(Clone, Copy)]
struct Shifts {
    real: [f64; 2],
    imaginary: f64,
}

/// A rotation in a plane.
#[derive(Clone, Copy)]
struct PlaneRotation {
    cosine: f64,
    sine: f64,
}

/// Returns `(t, z)`; `None` where the iteration does not converge. `ulp` is the precision of the elements: it decides
/// how many rounds there are, and with them signs and order.
pub(super) fn real_schur(a: Vec<f64>, n: usize, ulp: f64) -> Option<(Vec<f64>, Vec<f64>)> {
    let mut z = vec![0.0; n * n];
    (0..n).for_each(|k| z[k * n + k] = 1.0);
    let mut iteration = Iteration { n, ulp, t: a, z };
    iteration.isolate();
    for (k, reflection) in condense(&mut iteration.t, n, n.saturating_sub(2)).iter().enumerate() {
        reflection.apply_right(&mut iteration.z, n, k + 1);
        iteration.set(k + 1, k, reflection.first);
        (k + 2..n).for_each(|row| iteration.set(row, k, 0.0));
    }
    iteration.run().then_some((iteration.t, iteration.z))
}

/// The imaginary parts of the eigenvalues of a Schur form.
pub(super) fn imaginary_parts(t: &[f64], n: usize) -> Vec<f64> {
    let mut parts = vec![0.0; n];
    for k in 0..n.saturating_sub(1) {
        let (above, below) = (t[k * n + k + 1], t[(k + 1) * n + k]);
        if below != 0.0 {
            parts[k] = above.abs().sqrt() * below.abs().sqrt();
            parts[k + 1] = -parts[k];
        }
    }
    parts
}

impl Iteration {
    fn at(&self, row: usize, column: usize) -> f64 {
        self.t[row * self.n + column]
    }

    fn set(&mut self, row: usize, column: usize, value: f64) {
        self.t[row * self.n + column] = value;
    }

    /// Exchanges rows and columns, so that eigenvalues that rows or columns tell by themselves come last or first
    /// (LAPACK's `dgebal`, with permutations alone).
    fn isolate(&mut self) {
        let (mut low, mut high, mut is_changed) = (0, self.n, true);
        while std::mem::take(&mut is_changed) {
            for row in (0..high).rev() {
                if (0..high).all(|column| column == row || self.at(row, column) == 0.0) {
                    high -= 1;
                    self.exchange(row, high);
                    is_changed = true;
                }
            }
        }
        is_changed = true;
        while std::mem::take(&mut is_changed) {
            let columns = low..high;
            for column in columns {
                if (low..high).all(|row| row == column || self.at(row, column) == 0.0) {
                    self.exchange(column, low);
                    low += 1;
                    is_changed = true;
                }
            }
        }
    }

    /// Exchanges two axes.
    fn exchange(&mut self, one: usize, other: usize) {
        let n = self.n;
        for row in self.t.chunks_mut(n).chain(self.z.chunks_mut(n)) {
            row.swap(one, other);
        }
        (0..n).for_each(|column| self.t.swap(one * n + column, other * n + column));
    }

    /// Finds the eigenvalues from the last one on; whether all are found.
    fn run(&mut self) -> bool {
        let (mut end, mut rounds) = (self.n, 0);
        let mut left = 30 * self.n.max(10);
        while end > 0 {
            let first = self.first_of_block(end);
            if first > 0 {
                self.set(first, first - 1, 0.0);
            }
            if first + 2 >= end {
                if first + 2 == end {
                    self.standardize(first);
                }
                (end, rounds) = (first, 0);
                left = 30 * self.n.max(10);
                continue;
            }
            if left == 0 {
                return false;
            }
            (left, rounds) = (left - 1, rounds + 1);
            let shifts = self.shifts(first, end, rounds);
            self.sweep(first, end, shifts);
        }
        true
    }

    /// The first row of the block before `end` that no small element divides.
    fn first_of_block(&self, end: usize) -> usize {
        let smallest = f64::MIN_POSITIVE * (self.n as f64 / self.ulp);
        let is_small = |k: usize| {
            let (below, above) = (self.at(k, k - 1).abs(), self.at(k - 1, k).abs());
            if below <= smallest {
                return true;
            }
            let (before, own) = (self.at(k - 1, k - 1), self.at(k, k));
            let mut scale = before.abs() + own.abs();
            if scale == 0.0 {
                scale += if k >= 2 { self.at(k - 1, k - 2).abs() } else { 0.0 };
                scale += if k + 1 < self.n { self.at(k + 1, k).abs() } else { 0.0 };
            }
            if below > self.ulp * scale {
                return false;
            }
            let gap = (before - own).abs();
            let (larger, smaller) = (own.abs().max(gap), own.abs().min(gap));
            let sum = larger + below.max(above);
            let product = below.min(above) * (below.max(above) / sum);
            product <= smallest.max(self.ulp * (smaller * (larger / sum)))
        };
        (1..end).rev().find(|&k| is_small(k)).unwrap_or(0)
    }

    fn shifts(&self, first: usize, end: usize, round: usize) -> Shifts {
        let last = end - 1;
        let exceptional = |sum: f64, own: f64| {
            let h = 0.75 * sum + own;
            [h, -0.4375 * sum, sum, h]
        };
        let [a, b, c, d] = match (round % (2 * PATIENCE), round % PATIENCE) {
            (0, _) => {
                let sum = self.at(last, last - 1).abs() + self.at(last - 1, last - 2).abs();
                exceptional(sum, self.at(last, last))
            }
            (_, 0) => {
                let sum = self.at(first + 1, first).abs() + self.at(first + 2, first + 1).abs();
                exceptional(sum, self.at(first, first))
            }
            _ => [
                self.at(last - 1, last - 1),
                self.at(last - 1, last),
                self.at(last, last - 1),
                self.at(last, last),
            ],
        };
        let scale = a.abs() + b.abs() + c.abs() + d.abs();
        if scale == 0.0 {
            return Shifts { real: [0.0; 2], imaginary: 0.0 };
        }
        let [a, b, c, d] = [a, b, c, d].map(|x| x / scale);
        let mean = (a + d) / 2.0;
        let determinant = (a - mean) * (d - mean) - b * c;
        let root = determinant.abs().sqrt();
        if determinant >= 0.0 {
            return Shifts { real: [mean * scale; 2], imaginary: root * scale };
        }
        let (upper, lower) = (mean + root, mean - root);
        let nearest = if (upper - d).abs() <= (lower - d).abs() { upper } else { lower };
        Shifts { real: [nearest * scale; 2], imaginary: 0.0 }
    }

    /// The row that a sweep begins in, and the first column of the product of both shifted matrices there.
    fn begin(&self, first: usize, end: usize, shifts: Shifts) -> (usize, [f64; 3]) {
        let Shifts { real: [one, two], imaginary } = shifts;
        let mut m = end - 3;
        loop {
            let (own, next, below) = (self.at(m, m), self.at(m + 1, m + 1), self.at(m + 1, m));
            let sum = (own - two).abs() + imaginary.abs() + below.abs();
            let scaled = below / sum;
            let v = [
                scaled * self.at(m, m + 1)
                    + (own - one) * ((own - two) / sum)
                    + imaginary * (imaginary / sum),
                scaled * (own + next - one - two),
                scaled * self.at(m + 2, m + 1),
            ];
            let sum: f64 = v.iter().map(|x| x.abs()).sum();
            let v = v.map(|x| x / sum);
            if m == first {
                return (m, v);
            }
            let around = self.at(m - 1, m - 1).abs() + own.abs() + next.abs();
            if self.at(m, m - 1).abs() * (v[1].abs() + v[2].abs()) <= self.ulp * v[0].abs() * around
            {
                return (m, v);
            }
            m -= 1;
        }
    }

    /// Chases a bulge down the block.
    fn sweep(&mut self, first: usize, end: usize, shifts: Shifts) {
        let (start, v) = self.begin(first, end, shifts);
        let n = self.n;
        for k in start..end - 1 {
            let rows = 3.min(end - k);
            let before = if k > first { self.at(k, k - 1) } else { 0.0 };
            let reflection = match k == start {
                true => Reflection::new(v[..rows].iter().copied()),
                false => Reflection::new((k..k + rows).map(|row| self.at(row, k - 1))),
            };
            reflection.apply(&mut self.t, n, k);
            reflection.apply_right(&mut self.t[..end.min(k + 4) * n], n, k);
            reflection.apply_right(&mut self.z, n, k);
            if k > first {
                // Other elements of the column before the first are negligible.
                let image = before * (1.0 - reflection.tau());
                self.set(k, k - 1, if k == start { image } else { reflection.first });
                (k + 1..k + rows).for_each(|row| self.set(row, k - 1, 0.0));
            }
        }
    }

    /// Brings the block of rows `k` and `k + 1` into its form.
    fn standardize(&mut self, k: usize) {
        let n = self.n;
        let block = [self.at(k, k), self.at(k, k + 1), self.at(k + 1, k), self.at(k + 1, k + 1)];
        let ([a, b, c, d], PlaneRotation { cosine, sine }) = standard_form(block, self.ulp);
        let turned = |x: f64, y: f64| (cosine * x + sine * y, cosine * y - sine * x);
        for column in k + 2..n {
            let (x, y) = turned(self.at(k, column), self.at(k + 1, column));
            self.set(k, column, x);
            self.set(k + 1, column, y);
        }
        for (matrix, rows) in [(&mut self.t, k), (&mut self.z, n)] {
            for row in matrix.chunks_mut(n).take(rows) {
                (row[k], row[k + 1]) = turned(row[k], row[k + 1]);
            }
        }
        for (index, value) in [a, b, c, d].into_iter().enumerate() {
            self.set(k + index / 2, k + index % 2, value);
        }
    }
}

/// The Schur form of a block of two rows, and the rotation that brings it there.
fn standard_form([a, b, c, d]: [f64; 4], ulp: f64) -> ([f64; 4], PlaneRotation) {
    let none = PlaneRotation { cosine: 1.0, sine: 0.0 };
    let differ = |x: f64, y: f64| x.is_sign_negative() != y.is_sign_negative();
    if c == 0.0 {
        return ([a, b, c, d], none);
    }
    if b == 0.0 {
        return ([d, -c, 0.0, a], PlaneRotation { cosine: 0.0, sine: 1.0 });
    }
    if a == d && differ(b, c) {
        return ([a, b, c, d], none);
    }
    let half = 0.5 * (a - d);
    let larger = b.abs().max(c.abs());
    let smaller = b.abs().min(c.abs()) * 1f64.copysign(b) * 1f64.copysign(c);
    let scale = half.abs().max(larger);
    let radicand = half / scale * half + larger / scale * smaller;
    if radicand >= 4.0 * ulp {
        // Two real eigenvalues.
        let root = half + (scale.sqrt() * radicand.sqrt()).copysign(half);
        let norm = c.hypot(root);
        let rotation = PlaneRotation { cosine: root / norm, sine: c / norm };
        return ([d + root, b - c, 0.0, d - larger / root * smaller], rotation);
    }
    // Two complex or nearly equal ones: the elements of the diagonal become equal.
    let sum = b + c;
    let norm = sum.hypot(a - d);
    let cosine = (0.5 * (1.0 + sum.abs() / norm)).sqrt();
    let sine = -(half / (norm * cosine)) * 1f64.copysign(sum);
    let right = [
        a * cosine + b * sine,
        b * cosine - a * sine,
        c * cosine + d * sine,
        d * cosine - c * sine,
    ];
    let [aa, bb, cc, dd] = right;
    let (b, c) = (bb * cosine + dd * sine, cc * cosine - aa * sine);
    let mean = 0.5 * ((aa * cosine + cc * sine) + (dd * cosine - bb * sine));
    let rotation = PlaneRotation { cosine, sine };
    if c == 0.0 {
        return ([mean, b, c, mean], rotation);
    }
    if b == 0.0 {
        let rotation = PlaneRotation { cosine: -sine, sine: cosine };
        return ([mean, -c, 0.0, mean], rotation);
    }
    if differ(b, c) {
        return ([mean, b, c, mean], rotation);
    }
    // Real ones after all.
    let (above, below) = (b.abs().sqrt(), c.abs().sqrt());
    let offset = (above * below).copysign(c);
    let length = 1.0 / (b + c).abs().sqrt();
    let (cosine_after, sine_after) = (above * length, below * length);
    let rotation = PlaneRotation {
        cosine: cosine * cosine_after - sine * sine_after,
        sine: cosine * sine_after + sine * cosine_after,
    };
    ([mean + offset, b - c, 0.0, mean - offset], rotation)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn similar(t: &[f64], z: &[f64], n: usize) -> Vec<f64> {
        let product =
            |x: &dyn Fn(usize, usize) -> f64, y: &dyn Fn(usize, usize) -> f64| -> Vec<f64> {
                (0..n * n).map(|at| (0..n).map(|k| x(at / n, k) * y(k, at % n)).sum()).collect()
            };
        let left = product(&|row, k| z[row * n + k], &|k, column| t[k * n + column]);
        product(&|row, k| left[row * n + k], &|k, column| z[column * n + k])
    }

    fn check(a: &[f64], n: usize) {
        let (t, z) = real_schur(a.to_vec(), n, f64::EPSILON).unwrap();
        let identity: Vec<f64> =
            (0..n * n).map(|at| f64::from(u8::from(at / n == at % n))).collect();
        let size = a.iter().fold(1.0, |size: f64, x| size.max(x.abs()));
        let near =
            |x: &[f64], y: &[f64]| x.iter().zip(y).all(|(x, y)| (x - y).abs() < 1e-11 * size);
        assert!(near(&similar(&t, &z, n), a), "{a:?}");
        assert!(near(&similar(&identity, &z, n), &identity), "{a:?}");
        for row in 1..n {
            for column in 0..row {
                let value = t[row * n + column];
                if column + 1 < row {
                    assert_eq!(value, 0.0);
                } else if value != 0.0 {
                    // A block: equal elements on the diagonal, others of different signs.
                    assert_eq!(t[column * n + column], t[row * n + row]);
                    assert!(value * t[column * n + row] < 0.0);
                    assert!(row + 1 == n || t[(row + 1) * n + row] == 0.0);
                }
            }
        }
    }

    #[test]
    fn special_matrices_have_a_form() {
        check(&[], 0);
        check(&[3.0], 1);
        check(&[0.0, 1.0, -1.0, 0.0], 2);
        check(&[1.0, 1.0, 0.0, 1.0], 2);
        check(&[1.0, 0.0, 5.0, 2.0], 2);
        // A rotation of all axes, and one that is not diagonalizable.
        let n = 6;
        let shifted = |by: usize| -> Vec<f64> {
            (0..n * n).map(|at| f64::from(u8::from((at / n + by) % n == at % n))).collect()
        };
        check(&shifted(1), n);
        check(&shifted(n - 1), n);
        let chained: Vec<f64> =
            (0..n * n).map(|at| f64::from(u8::from(at / n == at % n + 1))).collect();
        check(&chained, n);
        assert_eq!(imaginary_parts(&[0.0, 4.0, -1.0, 0.0], 2), [2.0, -2.0]);
    }

    proptest! {
        #[test]
        fn matrices_are_similar_to_their_forms(
            n in 0usize..9,
            values in proptest::collection::vec(-4i8..5, 64),
            part in 1u8..8,
        ) {
            let a: Vec<f64> = values[..n * n].iter().map(|&x| f64::from(x) / f64::from(part)).collect();
            check(&a, n);
        }
    }
}
