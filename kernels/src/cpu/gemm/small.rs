//! Small products of `f32`, and those of few rows: tiles of sums straight from the operands.

use super::{
    Matrix, Product, Sizes,
    avx2::{Avx2, COLS, Left, ROWS},
    packed::{depth, is_chained},
};

/// Products with more multiplications gain more from packing than it costs, unless they have few
/// rows.
const SMALL: usize = 1 << 15;

/// The most rows that are few: each element of `b` is read for two tiles.
const FEW_ROWS: usize = 2 * ROWS;

/// The most elements of `b` that are read where they lie for few rows: half a megabyte, as the
/// second-level cache holds.
const CACHED: usize = 1 << 17;

/// Whether this is the better way: where rows are contiguous and made of whole vectors.
pub(super) fn serves(sizes: Sizes, a: Matrix<'_, f32>, b: Matrix<'_, f32>) -> bool {
    let contiguous = a.col_stride == 1 && b.col_stride == 1;
    let few_rows = sizes.m <= FEW_ROWS && sizes.k.saturating_mul(sizes.n) <= CACHED;
    contiguous
        && sizes.n.is_multiple_of(8)
        && (few_rows || sizes.work() <= SMALL)
        && is_chained(sizes, a, b)
}

/// Computes a product.
pub(super) fn multiply(
    machine: Avx2,
    sizes: Sizes,
    a: Matrix<'_, f32>,
    b: Matrix<'_, f32>,
    out: Product<'_, f32>,
) {
    let Sizes { m, k, n } = sizes;
    let depth = depth(sizes);
    // Tiles of like heights: those of two rows wait for their sums.
    let height = m.div_ceil(m.div_ceil(ROWS)).max(1);
    for start in (0..k).step_by(depth) {
        let steps = depth.min(k - start);
        let add = out.accumulate || start > 0;
        for col in (0..n).step_by(COLS) {
            let b = (&b.data[start * b.row_stride + col..], b.row_stride);
            for row in (0..m).step_by(height) {
                let a = Left::Rows(&a.data[row * a.row_stride + start..], a.row_stride);
                let size = (height.min(m - row), COLS.min(n - col));
                let place = (&mut out.data[row * out.row_stride + col..], out.row_stride);
                machine.tile(steps, a, b, place, size, add);
            }
        }
    }
}
