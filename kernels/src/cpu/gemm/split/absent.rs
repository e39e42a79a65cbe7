//! Matmuls in tile registers where the architecture has none: never.

use super::{
    BlockEpilogue, GemmOutput, GemmSizes, Matrix, packed::RightOperand, vector::InstructionSet,
};
use crate::{Precision, threads::Threads};
use std::ops::Range;

/// Tile registers, and magnitudes of split numbers, of which there are none.
pub(in crate::cpu) use std::convert::{Infallible as SplitUnit, Infallible as Magnitudes};

/// Columns of a panel.
pub(in crate::cpu) const BLOCK: usize = 32;

/// The unit for matmuls of these sizes: none.
pub(in crate::cpu) fn unit_for(_: GemmSizes, _: Precision) -> Option<SplitUnit> {
    None
}

/// As [`unit_for`].
pub(super) fn unit_for_few_rows(_: GemmSizes, _: Precision) -> Option<SplitUnit> {
    None
}

/// As [`unit_for`].
pub(super) fn packing_unit(_: GemmSizes, _: Precision) -> Option<SplitUnit> {
    None
}

pub(in crate::cpu) fn panel_len(unit: SplitUnit, _: usize) -> usize {
    match unit {}
}

pub(in crate::cpu) fn pack_panels(
    (unit, _): (SplitUnit, &Threads),
    _: Matrix<'_, f32>,
    _: Range<usize>,
    _: Range<usize>,
    _: usize,
    _: &mut [u32],
) -> Vec<Magnitudes> {
    match unit {}
}

pub(super) fn multiply(
    (unit, _): (SplitUnit, InstructionSet),
    _: &Threads,
    _: GemmSizes,
    _: Matrix<'_, f32>,
    _: RightOperand<'_>,
    _: GemmOutput<'_, f32>,
    _: Option<&dyn BlockEpilogue>,
) {
    match unit {}
}
