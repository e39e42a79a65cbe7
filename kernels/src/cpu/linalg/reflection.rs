//! Householder reflections, with the signs of LAPACK and Eigen.

use num_complex::ComplexFloat;

/// A number in double precision, real or complex.
pub(super) trait Exact: ComplexFloat<Real = f64> + From<f64> + Send + Sync {}

impl<E: ComplexFloat<Real = f64> + From<f64> + Send + Sync> Exact for E {}

/// `h = 1 - factor v vᴴ`, whose `v` begins at some row.
#[derive(Debug)]
pub(super) struct Reflection<E> {
    v: Vec<E>,
    factor: E,
    /// First element of the image of the vector that the reflection is made for; the others become
    /// 0.
    pub(super) first: f64,
}

impl<E: Exact> Reflection<E> {
    /// The reflection of a vector onto the first axis: to the other side of zero, or not at all if
    /// it lies there.
    pub(super) fn new(x: impl Iterator<Item = E>) -> Reflection<E> {
        let mut v: Vec<E> = x.collect();
        let Some((&first, rest)) = v.split_first() else {
            return Reflection { v, factor: E::zero(), first: 0.0 };
        };
        let rest: f64 = rest.iter().map(|&x| square(x)).sum();
        if rest <= f64::MIN_POSITIVE && first.im() * first.im() <= f64::MIN_POSITIVE {
            v.fill(E::zero());
            return Reflection { v, factor: E::zero(), first: first.re() };
        }
        let norm = (square(first) + rest).sqrt();
        let target = if first.re() >= 0.0 { -norm } else { norm };
        let scale = first - target.into();
        v.iter_mut().for_each(|x| *x = *x / scale);
        v[0] = E::one();
        let factor = ((Into::<E>::into(target) - first) / target.into()).conj();
        Reflection { v, factor, first: target }
    }

    /// The reflection of this vector below its first element, which is 1, and this factor.
    pub(super) fn of_parts(below: impl Iterator<Item = E>, factor: E) -> Reflection<E> {
        Reflection { v: std::iter::once(E::one()).chain(below).collect(), factor, first: 0.0 }
    }

    /// The vector below its first element.
    pub(super) fn below(&self) -> &[E] {
        self.v.get(1..).unwrap_or_default()
    }

    /// The factor as LAPACK has it: of the adjoint.
    pub(super) fn tau(&self) -> E {
        self.factor.conj()
    }

    /// Multiplies rows from `first` on, of `columns` elements, by `h`.
    pub(super) fn apply(&self, matrix: &mut [E], columns: usize, first: usize) {
        self.multiply(matrix, columns, first, self.factor);
    }

    /// Multiplies rows from `first` on by the adjoint of `h`.
    pub(super) fn apply_adjoint(&self, matrix: &mut [E], columns: usize, first: usize) {
        self.multiply(matrix, columns, first, self.factor.conj());
    }

    fn multiply(&self, matrix: &mut [E], columns: usize, first: usize, factor: E) {
        let rows = &mut matrix[first * columns..];
        let mut sums = vec![E::zero(); columns];
        for (row, &v) in rows.chunks(columns).zip(&self.v) {
            sums.iter_mut().zip(row).for_each(|(sum, &x)| *sum = *sum + v.conj() * x);
        }
        for (row, &v) in rows.chunks_mut(columns).zip(&self.v) {
            let factor = factor * v;
            row.iter_mut().zip(&sums).for_each(|(x, &sum)| *x = *x - factor * sum);
        }
    }

    /// Multiplies a matrix by the adjoint of `h` from the right; its columns from `first` on change.
    pub(super) fn apply_right(&self, matrix: &mut [E], columns: usize, first: usize) {
        for row in matrix.chunks_mut(columns) {
            let row = &mut row[first..];
            let sum = row.iter().zip(&self.v).fold(E::zero(), |sum, (&x, &v)| sum + x * v);
            let factor = self.factor.conj() * sum;
            row.iter_mut().zip(&self.v).for_each(|(x, v)| *x = *x - factor * v.conj());
        }
    }
}

/// The squared magnitude.
pub(super) fn square<E: Exact>(x: E) -> f64 {
    x.re() * x.re() + x.im() * x.im()
}

/// Turns a matrix into an upper triangle by one reflection per column.
pub(super) fn triangulate<E: Exact>(
    matrix: &mut [E],
    rows: usize,
    columns: usize,
) -> Vec<Reflection<E>> {
    let mut reflections = Vec::with_capacity(rows.min(columns));
    for k in 0..rows.min(columns) {
        let reflection = Reflection::new((k..rows).map(|row| matrix[row * columns + k]));
        reflection.apply(matrix, columns, k);
        for row in k..rows {
            let value = if row == k { reflection.first } else { 0.0 };
            matrix[row * columns + k] = value.into();
        }
        reflections.push(reflection);
    }
    reflections
}

/// Makes the first columns of a square matrix vanish below the diagonal under the main one, by a reflection from
/// both sides for each. What vanishes is not written, nor are the images of the first elements.
pub(super) fn condense<E: Exact>(a: &mut [E], n: usize, columns: usize) -> Vec<Reflection<E>> {
    let column = |k: usize| {
        let reflection = Reflection::new((k + 1..n).map(|row| a[row * n + k]));
        reflection.apply(a, n, k + 1);
        reflection.apply_right(a, n, k + 1);
        reflection
    };
    (0..columns).map(column).collect()
}

/// The first `columns` columns of the product of the adjoints of reflections of vectors of `rows`
/// elements, of which number `k` begins at row `k`.
pub(super) fn product<E: Exact>(
    reflections: &[Reflection<E>],
    rows: usize,
    columns: usize,
) -> Vec<E> {
    let mut q = vec![E::zero(); rows * columns];
    (0..rows.min(columns)).for_each(|k| q[k * columns + k] = E::one());
    for (k, reflection) in reflections.iter().enumerate().rev() {
        reflection.apply_adjoint(&mut q, columns.max(1), k);
    }
    q
}
