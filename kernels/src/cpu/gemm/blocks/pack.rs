//! Packing operands into the groups that tiles hold.

use super::{
    super::{
        Matrix,
        group_order::{GroupOrder, transpose},
        grouped::Grouped,
    },
    BLOCK, GROUPS, ROWS, STEP,
};
use crate::simd::{Vectorized, vectorize};
use std::ops::Range;

/// The two tiles of a step, each of 16 rows of 16 groups.
type Tiles = [u32; STEP];

/// Packs some rows of a matrix, called lines, whose first `depth` elements are summed, with these
/// bits of each group flipped. There are two tiles of lines for each step.
pub(super) fn pack<T: Grouped>(
    matrix: Matrix<'_, T>,
    lines: Range<usize>,
    depth: usize,
    order: GroupOrder,
    flip: u32,
    packed: &mut [u32],
) {
    vectorize(PackedLines { matrix, lines, depth, order, flip, packed });
}

struct PackedLines<'a, T> {
    matrix: Matrix<'a, T>,
    lines: Range<usize>,
    depth: usize,
    order: GroupOrder,
    flip: u32,
    packed: &'a mut [u32],
}

impl<T: Grouped> Vectorized for PackedLines<'_, T> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let PackedLines { matrix, lines, depth, order, flip, packed } = self;
        let (steps, is_block) = (packed.chunks_exact_mut(STEP), lines.len() == BLOCK);
        for (step, tiles) in steps.enumerate() {
            let Ok(tiles) = <&mut Tiles>::try_from(tiles) else { continue };
            let depths = step * GROUPS * T::GROUP..depth.min((step + 1) * GROUPS * T::GROUP);
            let is_whole = is_block && depths.len() == GROUPS * T::GROUP;
            let natural = match (matrix.row_stride, matrix.col_stride) {
                (_, 1) if is_whole => by_lines(matrix, lines.start, depths.start, tiles),
                (1, _) if is_whole => by_groups(matrix, lines.start, depths.start, tiles),
                _ => one_by_one(matrix, lines.clone(), depths, tiles),
            };
            for tile in tiles.as_chunks_mut().0 {
                if natural != order {
                    transpose(tile);
                }
            }
            if flip != 0 {
                tiles.iter_mut().for_each(|group| *group ^= flip);
            }
        }
    }
}

/// Fills the tiles from lines of contiguous elements.
#[inline(always)]
fn by_lines<T: Grouped>(
    matrix: Matrix<'_, T>,
    first: usize,
    depth: usize,
    tiles: &mut Tiles,
) -> GroupOrder {
    for (line, groups) in tiles.chunks_exact_mut(GROUPS).enumerate() {
        let start = (first + line) * matrix.row_stride + depth;
        let elements = &matrix.data[start..start + GROUPS * T::GROUP];
        bytemuck::cast_slice_mut::<u32, u8>(groups)
            .copy_from_slice(bytemuck::cast_slice::<T, u8>(elements));
    }
    GroupOrder::ByLines
}

/// Fills the tiles from contiguous lines of each depth, both at a time: where lines are far apart, caches keep
/// none of them for the second.
#[inline(always)]
fn by_groups<T: Grouped>(
    matrix: Matrix<'_, T>,
    first: usize,
    depth: usize,
    tiles: &mut Tiles,
) -> GroupOrder {
    let (left, right) = tiles.split_at_mut(ROWS * GROUPS);
    let rows = left.chunks_exact_mut(ROWS).zip(right.chunks_exact_mut(ROWS));
    for (group, (left, right)) in rows.enumerate() {
        let mut lines = [0; BLOCK];
        for part in 0..T::GROUP {
            let start = (depth + group * T::GROUP + part) * matrix.col_stride + first;
            let elements = &matrix.data[start..start + BLOCK];
            for (line, &element) in lines.iter_mut().zip(elements) {
                *line |= element.bits() << (32 / T::GROUP * part);
            }
        }
        left.copy_from_slice(&lines[..ROWS]);
        right.copy_from_slice(&lines[ROWS..]);
    }
    GroupOrder::ByGroups
}

/// Fills the tiles element by element, and with zeros where the matrix ends.
#[inline(always)]
fn one_by_one<T: Grouped>(
    matrix: Matrix<'_, T>,
    lines: Range<usize>,
    depths: Range<usize>,
    tiles: &mut Tiles,
) -> GroupOrder {
    tiles.fill(0);
    for (line, groups) in lines.zip(tiles.chunks_exact_mut(GROUPS)) {
        for (index, depth) in depths.clone().enumerate() {
            let element = matrix.data[line * matrix.row_stride + depth * matrix.col_stride];
            groups[index / T::GROUP] |= element.bits() << (32 / T::GROUP * (index % T::GROUP));
        }
    }
    GroupOrder::ByLines
}
