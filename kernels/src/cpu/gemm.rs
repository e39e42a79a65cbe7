//! Matrix products of strided operands: the one place that multiplies matrices.
//!
//! Products of `f32`, `f64` and complex numbers go through the `gemm` crate, 16-bit floats are
//! widened to `f32` and rounded once at the end, integers wrap.
//!
//! Work is cut into panels of rows or columns. The crate blocks the summed dimension by its length
//! alone once a panel has more than 64 rows or columns, so a product cut into such panels has the
//! same bits as the whole; results do not depend on the number of threads.

use crate::{
    number::Number,
    simd::{Vectorized, vectorize},
    threads::Threads,
    wide::Wide,
};
use gemm::Parallelism;
use half::{bf16, f16};
use num_complex::Complex;

/// The sizes of a product `[m, k] × [k, n] → [m, n]`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Sizes {
    pub(crate) m: usize,
    pub(crate) k: usize,
    pub(crate) n: usize,
}

impl Sizes {
    /// The number of multiplications.
    pub(crate) fn work(self) -> usize {
        self.m.saturating_mul(self.n).saturating_mul(self.k)
    }
}

/// A matrix in memory, read at `row * row_stride + column * col_stride`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Matrix<'a, T> {
    pub(crate) data: &'a [T],
    pub(crate) row_stride: usize,
    pub(crate) col_stride: usize,
    /// Whether the complex conjugates of the elements are meant.
    pub(crate) conjugate: bool,
}

impl<'a, T> Matrix<'a, T> {
    /// A matrix whose rows of `cols` elements follow each other.
    pub(crate) fn row_major(data: &'a [T], cols: usize) -> Matrix<'a, T> {
        Matrix { data, row_stride: cols, col_stride: 1, conjugate: false }
    }

    /// Rows and columns exchanged.
    pub(crate) fn transposed(self) -> Matrix<'a, T> {
        Matrix { row_stride: self.col_stride, col_stride: self.row_stride, ..self }
    }

    /// The matrix without its first rows.
    fn below(self, row: usize) -> Matrix<'a, T> {
        Matrix { data: &self.data[row * self.row_stride..], ..self }
    }

    /// The matrix without its first columns.
    fn right_of(self, col: usize) -> Matrix<'a, T> {
        self.transposed().below(col).transposed()
    }

    /// The same places in other data.
    fn with_data<U>(self, data: &[U]) -> Matrix<'_, U> {
        let Matrix { row_stride, col_stride, conjugate, .. } = self;
        Matrix { data, row_stride, col_stride, conjugate }
    }

    fn fits(&self, rows: usize, cols: usize) -> bool {
        let last = |n: usize, stride: usize| (n - 1).checked_mul(stride);
        rows == 0
            || cols == 0
            || last(rows, self.row_stride)
                .zip(last(cols, self.col_stride))
                .and_then(|(row, col)| row.checked_add(col))
                .is_some_and(|last| last < self.data.len())
    }
}

/// Where a product goes: rows `row_stride` elements apart.
#[derive(Debug)]
pub(crate) struct Product<'a, T> {
    pub(crate) data: &'a mut [T],
    pub(crate) row_stride: usize,
    /// Whether the product is added to what is there.
    pub(crate) accumulate: bool,
}

impl<'a, T> Product<'a, T> {
    /// A place whose rows of `cols` elements follow each other.
    pub(crate) fn row_major(data: &'a mut [T], cols: usize) -> Product<'a, T> {
        Product { data, row_stride: cols, accumulate: false }
    }
}

/// An element type with matrix products.
pub(crate) trait Factor: Wide {
    /// Computes a product on the calling thread.
    fn multiply(sizes: Sizes, a: Matrix<'_, Self>, b: Matrix<'_, Self>, out: Product<'_, Self>);
}

/// Computes `a × b`.
///
/// # Panics
///
/// When an operand or the output is too short for the sizes.
pub(crate) fn gemm<T: Factor>(
    threads: &Threads,
    sizes: Sizes,
    a: Matrix<'_, T>,
    b: Matrix<'_, T>,
    out: Product<'_, T>,
) {
    let Sizes { m, k, n } = sizes;
    assert!(a.fits(m, k) && b.fits(k, n), "the operands of a product of sizes {sizes:?}");
    let place = Matrix::row_major(&*out.data, out.row_stride);
    assert!(place.fits(m, n) && (m < 2 || n <= out.row_stride), "the place of a product {sizes:?}");
    if threads.count() == 1 || sizes.work() < PARALLEL_WORK {
        return T::multiply(sizes, a, b, out);
    }
    if m >= n {
        by_rows(threads, sizes, a, b, out);
    } else {
        by_columns(threads, sizes, a, b, out);
    }
}

/// Products with less multiplications than this stay on the calling thread.
const PARALLEL_WORK: usize = 1 << 20;

/// The fewest rows or columns of a panel.
const PANEL: usize = 128;

/// The most panels of a product.
const MAX_PANELS: usize = 16;

/// The sizes of the panels that `len` rows or columns are cut into. All but the last are multiples
/// of [`PANEL`], and the last is no smaller.
fn panels(len: usize) -> impl Iterator<Item = usize> {
    let size = len.div_ceil(MAX_PANELS).next_multiple_of(PANEL);
    let count = (len / size).max(1);
    (0..count).map(move |index| if index + 1 < count { size } else { len - index * size })
}

fn by_rows<T: Factor>(
    threads: &Threads,
    sizes: Sizes,
    a: Matrix<'_, T>,
    b: Matrix<'_, T>,
    out: Product<'_, T>,
) {
    let Product { data, row_stride, accumulate } = out;
    let (mut rest, mut first) = (data, 0);
    let mut pieces = Vec::new();
    for rows in panels(sizes.m) {
        let end = if first + rows < sizes.m { rows * row_stride } else { rest.len() };
        let (own, later) = rest.split_at_mut(end);
        pieces.push((first, rows, own));
        (rest, first) = (later, first + rows);
    }
    threads.for_each(pieces.into_iter(), |(first, rows, data)| {
        let sizes = Sizes { m: rows, ..sizes };
        T::multiply(sizes, a.below(first), b, Product { data, row_stride, accumulate });
    });
}

/// Panels of columns are not slices of the output: each is computed aside and copied into its
/// place row by row.
fn by_columns<T: Factor>(
    threads: &Threads,
    sizes: Sizes,
    a: Matrix<'_, T>,
    b: Matrix<'_, T>,
    out: Product<'_, T>,
) {
    let mut pieces: Vec<(usize, Vec<&mut [T]>)> = Vec::new();
    let mut first = 0;
    for cols in panels(sizes.n) {
        pieces.push((first, Vec::with_capacity(sizes.m)));
        first += cols;
    }
    for row in out.data.chunks_mut(out.row_stride).take(sizes.m) {
        let mut rest = &mut row[..sizes.n];
        for ((_, rows), cols) in pieces.iter_mut().zip(panels(sizes.n)) {
            let (own, later) = rest.split_at_mut(cols);
            rows.push(own);
            rest = later;
        }
    }
    threads.for_each(pieces.into_iter(), |(first, rows)| {
        let cols = rows.first().map_or(0, |row| row.len());
        let mut aside = vec![T::ZERO; sizes.m * cols];
        if out.accumulate {
            aside.chunks_mut(cols).zip(&rows).for_each(|(aside, row)| aside.copy_from_slice(row));
        }
        let place = Product { accumulate: out.accumulate, ..Product::row_major(&mut aside, cols) };
        T::multiply(Sizes { n: cols, ..sizes }, a, b.right_of(first), place);
        rows.into_iter()
            .zip(aside.chunks(cols))
            .for_each(|(row, aside)| row.copy_from_slice(aside));
    });
}

macro_rules! by_the_crate {
    ($($type:ty)*) => {$(
        impl Factor for $type {
            fn multiply(
                sizes: Sizes,
                a: Matrix<'_, Self>,
                b: Matrix<'_, Self>,
                out: Product<'_, Self>,
            ) {
                let Sizes { m, k, n } = sizes;
                assert!(a.fits(m, k) && b.fits(k, n), "the operands of a product {sizes:?}");
                let place = Matrix::row_major(&*out.data, out.row_stride);
                assert!(
                    place.fits(m, n) && (m < 2 || n <= out.row_stride),
                    "the place of a product {sizes:?}"
                );
                let (one, stride) = (Self::ONE, |stride: usize| stride as isize);
                // SAFETY: every element the call reads or writes lies inside the slices, as the
                // assertions above say; `out` is borrowed exclusively, its rows do not overlap,
                // and all three are initialised memory of the same plain type.
                #[expect(unsafe_code, reason = "the crate takes pointers")]
                unsafe {
                    gemm::gemm(
                        m,
                        n,
                        k,
                        out.data.as_mut_ptr(),
                        1,
                        stride(out.row_stride),
                        out.accumulate,
                        a.data.as_ptr(),
                        stride(a.col_stride),
                        stride(a.row_stride),
                        b.data.as_ptr(),
                        stride(b.col_stride),
                        stride(b.row_stride),
                        one,
                        one,
                        false,
                        a.conjugate,
                        b.conjugate,
                        Parallelism::None,
                    );
                }
            }
        }
    )*};
}

by_the_crate! { f32 f64 Complex<f32> Complex<f64> }

macro_rules! by_widening {
    ($($type:ty)*) => {$(
        impl Factor for $type {
            fn multiply(
                sizes: Sizes,
                a: Matrix<'_, Self>,
                b: Matrix<'_, Self>,
                out: Product<'_, Self>,
            ) {
                let (wide_a, wide_b) = (Self::widen(a.data), Self::widen(b.data));
                let (a, b) = (a.with_data(&wide_a), b.with_data(&wide_b));
                let Product { data, row_stride, accumulate } = out;
                Self::through_acc(data, |data| {
                    f32::multiply(sizes, a, b, Product { data, row_stride, accumulate });
                });
            }
        }
    )*};
}

by_widening! { f16 bf16 }

macro_rules! by_rows_of_b {
    ($($type:ty)*) => {$(
        impl Factor for $type {
            fn multiply(
                sizes: Sizes,
                a: Matrix<'_, Self>,
                b: Matrix<'_, Self>,
                out: Product<'_, Self>,
            ) {
                multiply_integers(sizes, a, b, out);
            }
        }
    )*};
}

by_rows_of_b! { i8 i16 i32 i64 u8 u16 u32 u64 }

/// Adds multiples of the rows of `b` to the rows of the output, block by block of `b`.
fn multiply_integers<T: Number>(
    sizes: Sizes,
    a: Matrix<'_, T>,
    b: Matrix<'_, T>,
    out: Product<'_, T>,
) {
    const DEPTH: usize = 128;
    const WIDTH: usize = 512;
    let Sizes { m, k, n } = sizes;
    if m == 0 || n == 0 {
        return;
    }
    if !out.accumulate {
        out.data.chunks_mut(out.row_stride).take(m).for_each(|row| row[..n].fill(T::ZERO));
    }
    let mut block = vec![T::ZERO; DEPTH.min(k) * WIDTH.min(n)];
    for depth in (0..k).step_by(DEPTH) {
        let rows = DEPTH.min(k - depth);
        for first in (0..n).step_by(WIDTH) {
            let cols = WIDTH.min(n - first);
            for (row, packed) in block.chunks_mut(cols).take(rows).enumerate() {
                let source = &b.data[(depth + row) * b.row_stride + first * b.col_stride..];
                let source = source.iter().step_by(b.col_stride.max(1));
                packed.iter_mut().zip(source).for_each(|(packed, &element)| *packed = element);
            }
            for (row, out) in out.data.chunks_mut(out.row_stride).take(m).enumerate() {
                let factors = &a.data[row * a.row_stride + depth * a.col_stride..];
                vectorize(AddRows {
                    factors,
                    step: a.col_stride,
                    rows: &block[..rows * cols],
                    out: &mut out[first..first + cols],
                });
            }
        }
    }
}

/// Adds multiples of rows, each `step` factors apart, to `out`.
struct AddRows<'a, T> {
    factors: &'a [T],
    step: usize,
    rows: &'a [T],
    out: &'a mut [T],
}

impl<T: Number> Vectorized for AddRows<'_, T> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        for (index, row) in self.rows.chunks(self.out.len()).enumerate() {
            let factor = self.factors[index * self.step];
            for (out, &element) in self.out.iter_mut().zip(row) {
                *out = out.plus(factor.times(element));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::num::NonZeroUsize;

    /// Numbers of no pattern.
    fn numbers<T: Number>(n: usize, convert: impl Fn(i64) -> T) -> Vec<T> {
        let mut state = 1u64;
        let mut next = || {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            (state >> 33) as i64 % 1000 - 500
        };
        (0..n).map(|_| convert(next())).collect()
    }

    fn check<T: Factor>(sizes: Sizes, tolerance: f64, make: fn(i64) -> T, value: fn(T) -> f64) {
        let Sizes { m, k, n } = sizes;
        let (a, b) = (numbers(m * k, make), numbers(k * n, make));
        let threads = Threads::new(NonZeroUsize::new(3).unwrap());
        for (by_columns_a, by_columns_b) in [(false, false), (true, false), (false, true)] {
            let view = |data, rows, cols, by_columns| match by_columns {
                true => Matrix::row_major(data, rows).transposed(),
                false => Matrix::row_major(data, cols),
            };
            let (a, b) = (view(&a[..], m, k, by_columns_a), view(&b[..], k, n, by_columns_b));
            let product = |threads: &Threads| {
                let mut out = vec![T::ONE; m * n];
                gemm(threads, sizes, a, b, Product::row_major(&mut out, n));
                out
            };
            let whole = product(&Threads::single());
            assert_eq!(product(&threads), whole, "{sizes:?}: the same bits in panels");
            for row in (0..m).step_by(7) {
                for col in (0..n).step_by(5) {
                    let at = |x: &Matrix<'_, T>, row: usize, col: usize| {
                        value(x.data[row * x.row_stride + col * x.col_stride])
                    };
                    let expected: f64 = (0..k).map(|p| at(&a, row, p) * at(&b, p, col)).sum();
                    let found = value(whole[row * n + col]);
                    let near = tolerance * (expected.abs() + 1e4);
                    assert!((found - expected).abs() <= near, "{found} instead of {expected}");
                }
            }
        }
    }

    #[test]
    fn products_are_right_and_do_not_depend_on_threads() {
        for (m, k, n) in [(3, 5, 4), (700, 601, 40), (1, 1100, 1300), (1037, 1025, 1), (40, 2, 999)]
        {
            let sizes = Sizes { m, k, n };
            check::<f32>(sizes, 1e-4, |x| x as f32 / 64.0, f64::from);
            check::<i32>(sizes, 0.0, |x| x as i32, f64::from);
            check::<bf16>(sizes, 1e-2, |x| bf16::from_f32((x % 16) as f32), bf16::to_f64);
        }
        check::<f64>(Sizes { m: 300, k: 600, n: 64 }, 1e-12, |x| x as f64 / 7.0, |x| x);
    }

    #[test]
    fn products_accumulate_and_conjugate() {
        let i = Complex::new(0.0f64, 1.0);
        let (a, b) = ([i, i], [i, i]);
        let mut out = [Complex::new(5.0, 0.0)];
        let sizes = Sizes { m: 1, k: 2, n: 1 };
        let a = Matrix { conjugate: true, ..Matrix::row_major(&a, 2) };
        let place = Product { accumulate: true, ..Product::row_major(&mut out, 1) };
        gemm(&Threads::single(), sizes, a, Matrix::row_major(&b, 1), place);
        assert_eq!(out[0], Complex::new(7.0, 0.0));
    }

    #[test]
    #[should_panic(expected = "the operands")]
    fn operands_that_are_too_short_are_refused() {
        let sizes = Sizes { m: 2, k: 2, n: 2 };
        let mut out = [0.0f32; 4];
        let a = Matrix::row_major(&[1.0f32; 3][..], 2);
        gemm(&Threads::single(), sizes, a, a, Product::row_major(&mut out, 2));
    }
}
