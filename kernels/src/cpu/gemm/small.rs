//! Small products of `f32`, and those of few rows: tiles of sums straight from the operands.

use super::{
    Matrix, Product, Sizes,
    packed::depth,
    rect::Rect,
    tile::{Left, Machine, Right, Span},
};

/// Products with more multiplications gain more from packing than it costs, unless they have few
/// rows.
const SMALL: usize = 1 << 15;

/// The most elements of `b` that are read where they lie for few rows: half a megabyte, as the
/// second-level cache holds.
const CACHED: usize = 1 << 17;

/// Whether this is the better way: where rows are contiguous.
pub(super) fn serves(
    machine: Machine,
    sizes: Sizes,
    a: Matrix<'_, f32>,
    b: Matrix<'_, f32>,
) -> bool {
    // Each element of `b` is read for two tiles.
    let few = sizes.m <= 2 * machine.rows() && sizes.k.saturating_mul(sizes.n) <= CACHED;
    a.col_stride == 1 && b.col_stride == 1 && (few || sizes.work() <= SMALL)
}

/// Computes a product.
pub(super) fn multiply(
    machine: Machine,
    sizes: Sizes,
    a: Matrix<'_, f32>,
    b: Matrix<'_, f32>,
    out: Product<'_, f32>,
) {
    let Sizes { m, k, n } = sizes;
    let depth = depth(k);
    // Tiles of like heights: those of two rows wait for their sums.
    let height = m.div_ceil(m.div_ceil(machine.strided_rows())).max(1);
    let Product { data, row_stride, accumulate } = out;
    let mut out = Rect::new(data, m, n, row_stride);
    for start in (0..k).step_by(depth) {
        let add = accumulate || start > 0;
        let spans = [Span { left: 0, right: 0, len: depth.min(k - start) }];
        let mut part = out.reborrow();
        for col in (0..n).step_by(machine.cols()) {
            let mut column = part.take_cols(machine.cols());
            let b =
                Right { data: &b.data[start * b.row_stride + col..], step_stride: b.row_stride };
            for row in (0..m).step_by(height) {
                let data = &a.data[row * a.row_stride + start..];
                let a = Left { data, row_stride: a.row_stride, step_stride: 1 };
                machine.tile(a, b, &spans, column.take_rows(height), add);
            }
        }
    }
}
