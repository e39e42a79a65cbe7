//! Small matmuls of `f32`, and those of few rows: tiles of sums straight from the operands.

use super::{
    GemmOutput, GemmSizes, Matrix,
    packed::depth,
    rect::Rect,
    tile::{LeftOperand, Right, Span},
    vector::InstructionSet,
};
use crate::threads::Threads;

/// Matmuls with more multiplications profit more from packing than it costs, unless they have few
/// rows.
const SMALL: u64 = 1 << 15;

/// Whether this is the better way: where rows are contiguous.
pub(super) fn serves(
    machine: InstructionSet,
    sizes: GemmSizes,
    a: Matrix<'_, f32>,
    b: Matrix<'_, f32>,
) -> bool {
    let GemmSizes { m, k, n } = sizes;
    // Each element of `b` is read for one tile, or for two.
    let few =
        m <= machine.rows() || (m <= 2 * machine.rows() && k.saturating_mul(n) <= machine.cached());
    a.col_stride == 1 && b.col_stride == 1 && (few || sizes.work() <= SMALL)
}

/// Computes a matmul; threads share the columns.
pub(super) fn multiply(
    machine: InstructionSet,
    threads: &Threads,
    sizes: GemmSizes,
    a: Matrix<'_, f32>,
    b: Matrix<'_, f32>,
    out: GemmOutput<'_, f32>,
) {
    let GemmSizes { m, k, n } = sizes;
    let depth = depth(sizes);
    let GemmOutput { data, row_stride, accumulate } = out;
    let mut out = Rect::new(data, m, n, row_stride);
    for start in (0..k).step_by(depth) {
        let add = accumulate || start > 0;
        let a = Matrix { data: &a.data[start..], ..a };
        let part = Part { machine, a, b: b.below(start), len: depth.min(k - start), add };
        if threads.count() == 1 {
            part.multiply(0, out.reborrow());
            continue;
        }
        let pieces = out.reborrow().even_panels(threads, machine.cols(), usize::MAX);
        threads.for_each(pieces, |(first, out)| part.multiply(first, out));
    }
}

/// A matmul over a part of the summed dimension.
struct Part<'a> {
    machine: InstructionSet,
    a: Matrix<'a, f32>,
    b: Matrix<'a, f32>,
    /// Steps of the summed dimension.
    len: usize,
    /// Whether the matmuls are added to what is there.
    add: bool,
}

impl Part<'_> {
    /// Multiplies all rows by the columns from `first` on that fill `out`.
    fn multiply(&self, first: usize, mut out: Rect<'_>) {
        let Part { machine, a, b, len, add } = *self;
        let rows = out.rows();
        // Tiles of like heights: those of two rows wait for their sums.
        let height = rows.div_ceil(rows.div_ceil(machine.rows())).max(1);
        let spans = [Span { left: 0, right: 0, len }];
        let cols = out.cols();
        for col in (0..cols).step_by(machine.cols()) {
            let mut column = out.take_cols(machine.cols());
            let right = Right::new(&b.data[first + col..], b.row_stride);
            for row in (0..rows).step_by(height) {
                let data = &a.data[row * a.row_stride..];
                let left = LeftOperand { data, row_stride: a.row_stride, step_stride: 1 };
                machine.tile(left, right, &spans, column.take_rows(height), add, None);
            }
        }
    }
}
