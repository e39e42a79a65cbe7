//! Matmuls of a vector and a matrix whose rows are contiguous: sums of rows.
//!
//! Rows are read once, from end to end, as memory likes best; each element of the product is a
//! chain of fused operations in the order of the rows, however columns are shared among threads.

use super::{
    GemmOutput, GemmSizes, Matrix,
    vector::{InstructionSet, Vector, VectorFunction, compiled},
};
use crate::{simd::unrolled, threads::Threads};

/// Rows that are added at a time.
const ROWS: usize = 8;

/// The fewest columns that are worth a thread.
const COLS: usize = 128;

/// Matmuls of fewer columns are dot products rather.
const FEW_COLS: usize = 16;

/// The sizes and operands by which a matmul is one row of columns, if it is.
pub(super) fn as_row<'a>(
    sizes: GemmSizes,
    a: Matrix<'a, f32>,
    b: Matrix<'a, f32>,
    out: &GemmOutput<'_, f32>,
) -> Option<(GemmSizes, Matrix<'a, f32>, Matrix<'a, f32>)> {
    let GemmSizes { m, k, n } = sizes;
    if m.max(n) < FEW_COLS {
        None
    } else if m == 1 && b.col_stride == 1 {
        Some((sizes, a, b))
    } else if n == 1 && a.row_stride == 1 && out.row_stride == 1 {
        Some((GemmSizes { m: 1, k, n: m }, b.transposed(), a.transposed()))
    } else {
        None
    }
}

/// Computes a matmul of one row; threads share the columns.
///
/// # Panics
///
/// When an operand or the output is too short for the sizes, or rows of `b` are not contiguous.
pub(super) fn multiply(
    machine: InstructionSet,
    threads: &Threads,
    sizes: GemmSizes,
    a: Matrix<'_, f32>,
    b: Matrix<'_, f32>,
    out: GemmOutput<'_, f32>,
) {
    let GemmSizes { m, k, n } = sizes;
    assert!(m == 1 && a.fits(1, k) && b.fits(k, n) && b.col_stride == 1, "a row and a matrix");
    let data = &mut out.data[..n];
    if !out.accumulate {
        data.fill(0.0);
    }
    let share = n.div_ceil(threads.count()).next_multiple_of(COLS);
    threads.for_each_piece(data, share, |first, out| {
        let factor = |row: usize| a.data[row * a.col_stride];
        let cols = out.len();
        let row = |row: usize| &b.data[row * b.row_stride + first..][..cols];
        let whole = k / ROWS * ROWS;
        for start in (0..whole).step_by(ROWS) {
            let rows = std::array::from_fn(|index| (factor(start + index), row(start + index)));
            machine.add_rows::<ROWS>(rows, out);
        }
        for index in whole..k {
            machine.add_rows([(factor(index), row(index))], out);
        }
    });
}

impl InstructionSet {
    /// Adds rows of `out`'s length, each times its factor, in order.
    ///
    /// # Panics
    ///
    /// When a row has another length.
    fn add_rows<const R: usize>(self, rows: [(f32, &[f32]); R], out: &mut [f32]) {
        assert!(rows.iter().all(|(_, row)| row.len() == out.len()), "rows of one length");
        let add = self.choose(&compiled!(AddRows<R>));
        // SAFETY: this value proves that the processor has the features; rows are as long as `out`.
        #[expect(unsafe_code, reason = "the registers are filled through pointers")]
        unsafe {
            add((rows, out));
        }
    }
}

/// [`add`] for any vector.
struct AddRows<const R: usize>;

#[expect(unsafe_code, reason = "the registers are filled through pointers")]
impl<const R: usize> VectorFunction for AddRows<R> {
    type Call<'a> = ([(f32, &'a [f32]); R], &'a mut [f32]);

    #[inline(always)]
    unsafe fn run<X: Vector>((rows, out): Self::Call<'_>) {
        // SAFETY: the caller vouches for it.
        unsafe { add::<X, R>(rows, out) }
    }
}

/// # Safety
///
/// The processor has the features of the vector, and rows are as long as `out`.
#[expect(unsafe_code, reason = "the registers are filled through pointers")]
#[inline(always)]
unsafe fn add<X: Vector, const R: usize>(rows: [(f32, &[f32]); R], out: &mut [f32]) {
    let cols = out.len();
    let (whole, out) = (cols / X::LANES * X::LANES, out.as_mut_ptr());
    // SAFETY: the caller vouches for the features; columns lie inside the rows and `out`.
    unsafe {
        // Not by `map`: a closure has not the features, and its vectors would go through memory.
        let mut factors = [X::zero(); R];
        unrolled!(row < R, 8, {
            factors[row] = X::splat(&rows[row].0);
        });
        let rows = rows.map(|(_, row)| row.as_ptr());
        for col in (0..whole).step_by(X::LANES) {
            let mut sum = X::load(out.add(col));
            unrolled!(row < R, 8, {
                sum = factors[row].times_plus(X::load(rows[row].add(col)), sum);
            });
            sum.store(out.add(col));
        }
        if whole < cols {
            let part = X::part(cols - whole);
            let mut sum = X::load_part(out.add(whole), part);
            unrolled!(row < R, 8, {
                sum = factors[row].times_plus(X::load_part(rows[row].add(whole), part), sum);
            });
            sum.store_part(out.add(whole), part);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{super::vector::times_plus, *};
    use std::num::NonZeroUsize;

    fn numbers(len: usize, seed: usize) -> Vec<f32> {
        (0..len).map(|index| ((index * 7919 + seed) % 1009) as f32 / 64.0 - 7.0).collect()
    }

    #[test]
    fn sums_are_chains_whatever_the_threads() {
        for (k, n, accumulate) in [(1, 16, false), (21, 300, true), (8, 129, false), (0, 40, true)]
        {
            let (a, b, before) = (numbers(3 * k + 1, 1), numbers(k * (n + 2), 5), numbers(n, 9));
            let expected: Vec<f32> = (0..n)
                .map(|col| {
                    let first = if accumulate { before[col] } else { 0.0 };
                    (0..k)
                        .fold(first, |sum, row| times_plus(a[3 * row], b[row * (n + 2) + col], sum))
                })
                .collect();
            let a = Matrix { col_stride: 3, ..Matrix::row_major(&a[..], 3 * k) };
            let b = Matrix::row_major(&b[..], n + 2);
            let machines = InstructionSet::all().into_iter();
            for (machine, count) in machines.flat_map(|machine| [(machine, 1), (machine, 3)]) {
                let threads = Threads::new(NonZeroUsize::new(count).expect("not zero"));
                let mut found = before.clone();
                let out = GemmOutput { accumulate, ..GemmOutput::row_major(&mut found, n) };
                multiply(machine, &threads, GemmSizes { m: 1, k, n }, a, b, out);
                assert_eq!(found, expected, "{machine:?}, {count} threads: {k} rows of {n}");
            }
        }
    }

    #[test]
    fn columns_by_a_matrix_are_rows_too() {
        let (a, b) = (numbers(40 * 3, 1), numbers(3, 5));
        let (a, b) = (Matrix::row_major(&a[..], 40).transposed(), Matrix::row_major(&b[..], 1));
        let mut out = [0.0; 40];
        let out = GemmOutput::row_major(&mut out, 1);
        let (sizes, row, matrix) =
            as_row(GemmSizes { m: 40, k: 3, n: 1 }, a, b, &out).expect("a row");
        assert_eq!(sizes, GemmSizes { m: 1, k: 3, n: 40 });
        assert_eq!((row.col_stride, matrix.row_stride, matrix.col_stride), (1, 40, 1));
        assert!(as_row(GemmSizes { m: 1, k: 40, n: 1 }, a, b, &out).is_none(), "a dot product");
    }
}
