//! Matmuls of a few rows at a time by one right operand.

use super::{
    BlockEpilogue, GemmOutput, GemmSizes, Matrix,
    linear::LinearEpilogue,
    packed::{self, FEW_ROWS_DEPTH, RightOperand},
    rect::Rect,
    tile::InstructionSet,
    weights::{PackedLayout, PackedMatrix, PackedWeights},
};
use crate::threads::Threads;
use ferroflow_ir::HostTensor;
use std::sync::Arc;

/// A right operand `[k, n]` that many blocks of rows are multiplied by, one after the other.
pub(in crate::cpu) struct RowsByWeights {
    machine: InstructionSet,
    k: usize,
    n: usize,
    kept: PackedWeights,
}

impl RowsByWeights {
    /// The operand of these sizes; `None` where the bits of a row would depend on how many there
    /// are, or the processor has no vectors.
    pub(in crate::cpu) fn new(k: usize, n: usize) -> Option<RowsByWeights> {
        let machine = InstructionSet::detect()?;
        let fits = (3..=FEW_ROWS_DEPTH).contains(&k) && n > 1;
        fits.then(|| RowsByWeights { machine, k, n, kept: PackedWeights::default() })
    }

    fn sizes(&self, m: usize) -> GemmSizes {
        GemmSizes { m, k: self.k, n: self.n }
    }

    /// The packed form of `weights`, which are all of a tensor if it is that.
    pub(in crate::cpu) fn packed(
        &self,
        threads: &Threads,
        weights: &[f32],
        tensor: Option<&HostTensor>,
    ) -> Option<Arc<PackedMatrix>> {
        let matrix = Matrix::row_major(weights, self.n);
        let layout = PackedLayout::of_matmul(self.machine, self.sizes(1), matrix);
        self.kept.of(threads, 1, tensor, layout)
    }

    /// Multiplies the rows of `a`, and finishes the results, of which the first has number `row` of
    /// all.
    ///
    /// # Panics
    ///
    /// When `a` or the weights are too few for `out`.
    pub(in crate::cpu) fn multiply(
        &self,
        a: &[f32],
        weights: &[f32],
        packed: Option<&PackedMatrix>,
        out: &mut [f32],
        finish: Option<&dyn BlockEpilogue>,
        row: usize,
    ) {
        let sizes = self.sizes(out.len() / self.n);
        let (a, matrix) = (Matrix::row_major(a, self.k), Matrix::row_major(weights, self.n));
        assert!(a.fits(sizes.m, sizes.k) && matrix.fits(sizes.k, sizes.n), "operands of {sizes:?}");
        let b = RightOperand { matrix, packed };
        let output = GemmOutput::row_major(out, self.n);
        let finish = finish.map(|finish| RowsFrom { finish, row });
        let finish = finish.as_ref().map(|finish| finish as &dyn BlockEpilogue);
        packed::multiply(self.machine, &Threads::single(), sizes, a, b, output, finish);
    }
}

/// The epilogue of results that begin with row `row` of all.
struct RowsFrom<'a> {
    finish: &'a dyn BlockEpilogue,
    row: usize,
}

impl BlockEpilogue for RowsFrom<'_> {
    fn apply(&self, row: usize, col: usize, block: Rect<'_>) {
        self.finish.apply(self.row + row, col, block);
    }

    fn linear(&self) -> Option<(&LinearEpilogue<'_>, usize)> {
        let (linear, first) = self.finish.linear()?;
        Some((linear, first + self.row))
    }
}
