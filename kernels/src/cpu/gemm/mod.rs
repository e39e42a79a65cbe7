//! Matmuls of strided operands: the one module that multiplies matrices.
//!
//! Products of `f32`, `f64` and complex numbers go through the `gemm` crate, 16-bit floats are
//! widened to `f32` and rounded once at the end, integers wrap. With AVX2 or AVX-512, products of
//! `f32` go ways of their own: by tiles of sums in registers. Products of bytes and of `bfloat16` are
//! summed in the tile registers of AMX, or in registers of AVX-512 with dot products of them, and
//! large ones of `f32` in tile registers as well, by operands that are split.
//!
//! Work for the crate is cut into panels of rows or columns. The order of a sum is that of its
//! length alone once a panel has more than 64 rows or columns and more than 256 elements, so a
//! product cut into such panels has the same bits as the whole; results do not depend on the number
//! of threads.

#[cfg(target_arch = "x86_64")]
pub(super) mod amx;
#[cfg(target_arch = "x86_64")]
mod blocks;
mod bytes;
#[cfg(target_arch = "x86_64")]
mod dots;
mod factor;
#[cfg(target_arch = "x86_64")]
mod group_order;
mod grouped;
mod integer;
mod interleave;
mod line;
pub(super) mod linear;
pub(super) mod pack;
mod packed;
mod panels;
pub(super) mod rect;
pub(super) mod rows;
mod small;
#[cfg_attr(not(target_arch = "x86_64"), path = "split/absent.rs")]
pub(super) mod split;
pub(super) mod tile;
pub(super) mod vector;
pub(super) mod weights;

use crate::{Precision, threads::Threads, wide::WideElement};
pub(super) use bytes::{Byte, gemm_of_bytes};
use panels::by_panels;
use {ferroflow_ir::HostTensor, std::sync::Arc};

/// The sizes of a matmul `[m, k] × [k, n] → [m, n]`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct GemmSizes {
    pub(crate) m: usize,
    pub(crate) k: usize,
    pub(crate) n: usize,
}

impl GemmSizes {
    /// The number of multiplications.
    pub(crate) fn work(self) -> u64 {
        (self.m as u64).saturating_mul(self.n as u64).saturating_mul(self.k as u64)
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
    /// A matrix whose rows of `cols` elements are contiguous.
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

    /// The same positions in other data.
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

/// Where a matmul goes: rows `row_stride` elements apart.
#[derive(Debug)]
pub(crate) struct GemmOutput<'a, T> {
    pub(crate) data: &'a mut [T],
    pub(crate) row_stride: usize,
    /// Whether the matmul is added to what is there.
    pub(crate) accumulate: bool,
}

impl<'a, T> GemmOutput<'a, T> {
    /// A position whose rows of `cols` elements are contiguous.
    pub(crate) fn row_major(data: &'a mut [T], cols: usize) -> GemmOutput<'a, T> {
        GemmOutput { data, row_stride: cols, accumulate: false }
    }
}

/// An element type with matmuls.
pub(crate) trait GemmElement: WideElement {
    /// The elements as `f32`, where that is what they are.
    fn floats(_: &[Self]) -> Option<&[f32]> {
        None
    }

    /// As [`floats`](Factor::floats), to be written.
    fn floats_mut(_: &mut [Self]) -> Option<&mut [f32]> {
        None
    }

    /// Computes a matmul on the calling thread.
    fn multiply(
        sizes: GemmSizes,
        a: Matrix<'_, Self>,
        b: Matrix<'_, Self>,
        out: GemmOutput<'_, Self>,
    );

    /// Computes a matmul on many threads.
    fn multiply_on(
        threads: &Threads,
        sizes: GemmSizes,
        a: Matrix<'_, Self>,
        b: Matrix<'_, Self>,
        out: GemmOutput<'_, Self>,
    ) {
        by_panels(threads, sizes, a, b, out);
    }
}

impl<'a, T: GemmElement> Matrix<'a, T> {
    /// The matrix with elements of `f32`, if that is what they are.
    fn floats(self) -> Option<Matrix<'a, f32>> {
        let Matrix { data, row_stride, col_stride, conjugate } = self;
        Some(Matrix { data: T::floats(data)?, row_stride, col_stride, conjugate })
    }
}

/// Computes `a × b`.
///
/// # Panics
///
/// When an operand or the output is too short for the sizes.
pub(crate) fn gemm<T: GemmElement>(
    threads: &Threads,
    sizes: GemmSizes,
    a: Matrix<'_, T>,
    b: Matrix<'_, T>,
    out: GemmOutput<'_, T>,
) {
    let GemmSizes { m, k, n } = sizes;
    assert!(a.fits(m, k) && b.fits(k, n), "the operands of a product of sizes {sizes:?}");
    let output = Matrix::row_major(&*out.data, out.row_stride);
    assert!(
        output.fits(m, n) && (m < 2 || n <= out.row_stride),
        "the place of a product {sizes:?}"
    );
    let least = if threads.count() == 1 { LONG_WORK } else { parallel_work(sizes) };
    if sizes.work() < least {
        T::multiply(sizes, a, b, out);
    } else {
        T::multiply_on(threads, sizes, a, b, out);
    }
}

/// As [`gemm`], with the factors of `f32` rounded where that is asked for.
///
/// # Panics
///
/// As [`gemm`].
pub(crate) fn gemm_in<T: GemmElement>(
    precision: Precision,
    threads: &Threads,
    sizes: GemmSizes,
    a: Matrix<'_, T>,
    b: Matrix<'_, T>,
    out: GemmOutput<'_, T>,
) {
    if precision == Precision::BFloat16
        && let Some(unit) = split::unit_for(sizes, precision).zip(vector::InstructionSet::detect())
        && let Some((a, b)) = a.floats().zip(b.floats())
    {
        let GemmOutput { data, row_stride, accumulate } = out;
        let GemmSizes { m, k, n } = sizes;
        assert!(a.fits(m, k) && b.fits(k, n), "the operands of a product of sizes {sizes:?}");
        let data = T::floats_mut(data).expect("of the same type as the operands");
        let out = GemmOutput { data, row_stride, accumulate };
        return split::multiply(unit, threads, sizes, a, b.into(), out, None);
    }
    gemm(threads, sizes, a, b, out);
}

/// Epilogue of a block of results.
pub(crate) trait BlockEpilogue: Sync {
    /// Finishes a block, whose first element is at this row and column of all results.
    fn apply(&self, row: usize, col: usize, block: rect::Rect<'_>);

    /// The same as steps on tiles, if it is that, and the row of all results that is the first
    /// here.
    fn linear(&self) -> Option<(&linear::LinearEpilogue<'_>, usize)> {
        None
    }
}

/// Finishes all rows of `cols` results; threads share them.
pub(crate) fn apply_all(
    threads: &Threads,
    finish: &dyn BlockEpilogue,
    out: &mut [f32],
    cols: usize,
) {
    if out.is_empty() {
        return;
    }
    let rows = (FINISHED_PIECE / cols).max(1);
    let linear = finish.linear().zip(vector::InstructionSet::detect());
    threads.for_each_piece(out, rows * cols, |start, out| {
        let (first, rows) = (start / cols, out.len() / cols);
        let block = rect::Rect::new(out, rows, cols, cols);
        match linear {
            Some(((linear, before), machine)) => {
                linear.tile(before + first, 0, 1).run(machine, block);
            }
            None => finish.apply(first, 0, block),
        }
    });
}

/// Results that a thread finishes at a time.
const FINISHED_PIECE: usize = 1 << 15;

/// Computes `a × b` into contiguous rows, and finishes blocks of them while they are in the cache.
/// Where `weights` may be packed, `b` is their elements.
///
/// # Panics
///
/// As [`gemm`].
pub(crate) fn gemm_by_weights(
    threads: &Threads,
    sizes: GemmSizes,
    a: Matrix<'_, f32>,
    b: Matrix<'_, f32>,
    weights: GemmWeights<'_>,
    out: &mut [f32],
    finish: Option<&dyn BlockEpilogue>,
) {
    let GemmSizes { m, k, n } = sizes;
    let out = &mut out[..m * n];
    let few = weights.tensor.and(split::unit_for_few_rows(sizes, weights.precision));
    if let Some(machine) = vector::InstructionSet::detect()
        && (few.is_some() || factor::in_tiles(sizes, a, b))
    {
        let single = Threads::single();
        let threads = if sizes.work() < parallel_work(sizes) { &single } else { threads };
        let packed = weights.packed(threads, machine, sizes, b);
        let unit = few.or_else(|| split::unit_for(sizes, weights.precision));
        let small = unit.is_none() && small::serves(machine, sizes, a, b);
        if packed.is_some() || unit.is_some() || (finish.is_some() && !small) {
            assert!(a.fits(m, k) && b.fits(k, n), "the operands of a product of sizes {sizes:?}");
            let b = packed::RightOperand { matrix: b, packed: packed.as_deref() };
            let output = GemmOutput::row_major(out, n);
            return match unit {
                Some(unit) => {
                    split::multiply((unit, machine), threads, sizes, a, b, output, finish);
                }
                None => packed::multiply(machine, threads, sizes, a, b, output, finish),
            };
        }
    }
    gemm(threads, sizes, a, b, GemmOutput::row_major(out, n));
    if let Some(finish) = finish {
        apply_all(threads, finish, out, n);
    }
}

/// The right operand of a kernel's matmuls, if it is one tensor, and where its packed form is kept.
#[derive(Clone, Copy)]
pub(crate) struct GemmWeights<'a> {
    pub(crate) tensor: Option<&'a HostTensor>,
    pub(crate) kept: &'a weights::PackedWeights,
    pub(crate) precision: Precision,
}

impl GemmWeights<'_> {
    fn packed(
        &self,
        threads: &Threads,
        machine: vector::InstructionSet,
        sizes: GemmSizes,
        b: Matrix<'_, f32>,
    ) -> Option<Arc<weights::PackedMatrix>> {
        let layout = weights::PackedLayout::of_matmul(machine, (sizes, self.precision), b);
        self.kept.of(threads, sizes.m, self.tensor, layout)
    }
}

/// Whether threads had better share the rows than the columns: what they read of the left operand and write of
/// the results comes from one another's caches then, and goes there, and is more than the right operand, which
/// each of them reads.
fn shares_rows(threads: &Threads, sizes: GemmSizes) -> bool {
    let GemmSizes { m, k, n } = sizes;
    let exchanged = m.saturating_mul(k.saturating_add(n));
    threads.count() > 1
        && m >= FEWEST_SHARED_ROWS.saturating_mul(threads.count())
        && exchanged > k.saturating_mul(n)
}

/// The fewest rows of a thread, where threads share them.
const FEWEST_SHARED_ROWS: usize = 48;

/// Matmuls with less multiplications than this stay on the calling thread: some microseconds, against nearly two
/// for the call of another thread. Those of one row wait for memory, which each thread has its own way to.
fn parallel_work(sizes: GemmSizes) -> u64 {
    if sizes.m == 1 { 1 << 18 } else { 1 << 19 }
}

/// Matmuls with more multiplications than this are cut, if for one thread alone, so that a call can
/// end between two parts: some tenths of a second, with the lanes that there are.
const LONG_WORK: u64 = if cfg!(target_arch = "wasm32") { 1 << 30 } else { 1 << 34 };

#[cfg(test)]
mod tests {
    use super::*;
    use crate::number::Number;
    use half::bf16;
    use num_complex::Complex;
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

    fn check<T: GemmElement>(
        sizes: GemmSizes,
        tolerance: f64,
        make: fn(i64) -> T,
        value: fn(T) -> f64,
    ) {
        let GemmSizes { m, k, n } = sizes;
        let (a, b) = (numbers(m * k, make), numbers(k * n, make));
        let threads = Threads::new(NonZeroUsize::new(3).unwrap());
        for (by_columns_a, by_columns_b) in [(false, false), (true, false), (false, true)] {
            let view = |data, rows, cols, by_columns| match by_columns {
                true => Matrix::row_major(data, rows).transposed(),
                false => Matrix::row_major(data, cols),
            };
            let (a, b) = (view(&a[..], m, k, by_columns_a), view(&b[..], k, n, by_columns_b));
            let multiplied = |threads: &Threads| {
                let mut out = vec![T::ONE; m * n];
                gemm(threads, sizes, a, b, GemmOutput::row_major(&mut out, n));
                out
            };
            let whole = multiplied(&Threads::single());
            assert_eq!(multiplied(&threads), whole, "{sizes:?}: the same bits in panels");
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
    fn matmuls_are_right_and_do_not_depend_on_threads() {
        for (m, k, n) in [(3, 5, 4), (700, 601, 40), (1, 1100, 1300), (1037, 1025, 1), (40, 2, 999)]
        {
            let sizes = GemmSizes { m, k, n };
            check::<f32>(sizes, 1e-4, |x| x as f32 / 64.0, f64::from);
            check::<i32>(sizes, 0.0, |x| x as i32, f64::from);
            check::<bf16>(sizes, 1e-2, |x| bf16::from_f32((x % 16) as f32), bf16::to_f64);
        }
        check::<f64>(GemmSizes { m: 300, k: 600, n: 64 }, 1e-12, |x| x as f64 / 7.0, |x| x);
    }

    #[test]
    fn matmuls_accumulate_and_conjugate() {
        let i = Complex::new(0.0f64, 1.0);
        let (a, b) = ([i, i], [i, i]);
        let mut out = [Complex::new(5.0, 0.0)];
        let sizes = GemmSizes { m: 1, k: 2, n: 1 };
        let a = Matrix { conjugate: true, ..Matrix::row_major(&a, 2) };
        let output = GemmOutput { accumulate: true, ..GemmOutput::row_major(&mut out, 1) };
        gemm(&Threads::single(), sizes, a, Matrix::row_major(&b, 1), output);
        assert_eq!(out[0], Complex::new(7.0, 0.0));
    }

    #[test]
    #[should_panic(expected = "the operands")]
    fn operands_that_are_too_short_are_refused() {
        let sizes = GemmSizes { m: 2, k: 2, n: 2 };
        let mut out = [0.0f32; 4];
        let a = Matrix::row_major(&[1.0f32; 3][..], 2);
        gemm(&Threads::single(), sizes, a, a, GemmOutput::row_major(&mut out, 2));
    }
}
