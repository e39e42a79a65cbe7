//! Matmuls in tile registers where the architecture has none: never.

use super::{
    BlockEpilogue, GemmOutput, GemmSizes, Matrix, packed::RightOperand, vector::InstructionSet,
};
use crate::threads::Threads;
use std::ops::Range;

/// Tile registers, and magnitudes of split numbers, of which there are none.
pub(in crate::cpu) use std::convert::{Infallible as TileUnit, Infallible as Magnitudes};

/// Columns of a panel.
pub(in crate::cpu) const BLOCK: usize = 32;

/// The unit for matmuls of these sizes: none.
pub(in crate::cpu) fn unit_for(_: GemmSizes) -> Option<TileUnit> {
    None
}

pub(in crate::cpu) fn panel_len(depth: usize) -> usize {
    depth
}

pub(in crate::cpu) fn pack_panels(
    (unit, _): (TileUnit, &Threads),
    _: Matrix<'_, f32>,
    _: Range<usize>,
    _: Range<usize>,
    _: usize,
    _: &mut [u32],
) -> Vec<Magnitudes> {
    match unit {}
}

pub(super) fn multiply(
    (unit, _): (TileUnit, InstructionSet),
    _: &Threads,
    _: GemmSizes,
    _: Matrix<'_, f32>,
    _: RightOperand<'_>,
    _: GemmOutput<'_, f32>,
    _: Option<&dyn BlockEpilogue>,
) {
    match unit {}
}
