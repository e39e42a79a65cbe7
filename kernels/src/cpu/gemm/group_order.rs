//! The order of 32-bit groups in a tile of 16 rows of 16.

/// Rows of a tile, and groups of a row.
const SIDE: usize = 16;

/// The order of groups in a tile.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum GroupOrder {
    /// The groups of a line are contiguous, as the left operand has them.
    ByLines,
    /// The lines of a group are contiguous, as the right operand has them.
    ByGroups,
}

/// Exchanges rows and columns.
#[inline(always)]
pub(super) fn transpose(tile: &mut [u32; SIDE * SIDE]) {
    let source = *tile;
    for (row, out) in tile.chunks_exact_mut(SIDE).enumerate() {
        for (col, out) in out.iter_mut().enumerate() {
            *out = source[col * SIDE + row];
        }
    }
}
