//! Matmuls of a few rows at a time by one right operand.

use super::{
    BlockEpilogue, GemmOutput, GemmSizes, Matrix,
    factor::in_tiles,
    linear::LinearEpilogue,
    packed::{RightOperand, depth, multiply_by_depths},
    rect::Rect,
    split,
    vector::InstructionSet,
    weights::{PackedLayout, PackedMatrix, PackedWeights},
};
use crate::{Precision, threads::Threads};
use ferroflow_ir::HostTensor;
use std::sync::Arc;

/// A right operand that blocks of rows of one matmul are multiplied by, one after the other.
pub(in crate::cpu) struct RowsByWeights {
    machine: InstructionSet,
    /// Those of the whole matmul, by which its sums are cut.
    sizes: GemmSizes,
    precision: Precision,
    kept: PackedWeights,
}

impl RowsByWeights {
    /// The operand of a matmul; `None` where it is none for tiles.
    pub(in crate::cpu) fn new(sizes: GemmSizes, precision: Precision) -> Option<RowsByWeights> {
        let machine = InstructionSet::detect()?;
        let (a, b) = (Matrix::row_major(&[], sizes.k), Matrix::row_major(&[], sizes.n));
        in_tiles(sizes, a, b).then(|| RowsByWeights {
            machine,
            sizes,
            precision,
            kept: PackedWeights::default(),
        })
    }

    /// The packed form of `weights`, which are all of a tensor if it is that.
    pub(in crate::cpu) fn packed(
        &self,
        threads: &Threads,
        weights: &[f32],
        tensor: Option<&HostTensor>,
    ) -> Option<Arc<PackedMatrix>> {
        let matrix = Matrix::row_major(weights, self.sizes.n);
        let layout = PackedLayout::of_matmul(self.machine, (self.sizes, self.precision), matrix);
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
        let GemmSizes { k, n, .. } = self.sizes;
        let sizes = GemmSizes { m: out.len() / n, k, n };
        let (a, matrix) = (Matrix::row_major(a, k), Matrix::row_major(weights, n));
        assert!(a.fits(sizes.m, sizes.k) && matrix.fits(sizes.k, sizes.n), "operands of {sizes:?}");
        let b = RightOperand { matrix, packed };
        let output = GemmOutput::row_major(out, n);
        let finish = finish.map(|finish| RowsFrom { finish, row });
        let finish = finish.as_ref().map(|finish| finish as &dyn BlockEpilogue);
        let single = Threads::single();
        if let Some(unit) = split::unit_for(self.sizes, self.precision) {
            return split::multiply((unit, self.machine), &single, sizes, a, b, output, finish);
        }
        let sizes = (sizes, depth(self.sizes));
        multiply_by_depths(self.machine, &single, sizes, a, b, output, finish);
    }
}

/// The epilogue of results that begin with row `row` of all.
pub(in crate::cpu) struct RowsFrom<'a> {
    pub(in crate::cpu) finish: &'a dyn BlockEpilogue,
    pub(in crate::cpu) row: usize,
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
