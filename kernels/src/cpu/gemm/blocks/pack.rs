//! Packing operands into the groups that tiles hold.

use super::{
    super::{
        Matrix,
        group_order::{GroupOrder, transpose},
        grouped::Grouped,
    },
    GROUPS, ROWS, STEP,
};
use crate::simd::{Vectorized, vectorize};
use std::ops::Range;

/// A tile: 16 rows of 16 groups.
type Tile = [u32; ROWS * GROUPS];

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
        for (step, tiles) in packed.chunks_exact_mut(STEP).enumerate() {
            let depths = step * GROUPS * T::GROUP..depth.min((step + 1) * GROUPS * T::GROUP);
            for (half, tile) in tiles.chunks_exact_mut(ROWS * GROUPS).enumerate() {
                let Ok(tile) = <&mut Tile>::try_from(tile) else { continue };
                let first = lines.start + half * ROWS;
                let lines = first..lines.end.min(first + ROWS);
                let is_whole = lines.len() == ROWS && depths.len() == GROUPS * T::GROUP;
                let natural = match (matrix.row_stride, matrix.col_stride) {
                    (_, 1) if is_whole => by_lines(matrix, first, depths.start, tile),
                    (1, _) if is_whole => by_groups(matrix, first, depths.start, tile),
                    _ => one_by_one(matrix, lines, depths.clone(), tile),
                };
                if natural != order {
                    transpose(tile);
                }
                if flip != 0 {
                    tile.iter_mut().for_each(|group| *group ^= flip);
                }
            }
        }
    }
}

/// Fills a tile from lines of contiguous elements.
#[inline(always)]
fn by_lines<T: Grouped>(
    matrix: Matrix<'_, T>,
    first: usize,
    depth: usize,
    tile: &mut Tile,
) -> GroupOrder {
    for (line, groups) in tile.chunks_exact_mut(GROUPS).enumerate() {
        let start = (first + line) * matrix.row_stride + depth;
        let elements = &matrix.data[start..start + GROUPS * T::GROUP];
        bytemuck::cast_slice_mut::<u32, u8>(groups)
            .copy_from_slice(bytemuck::cast_slice::<T, u8>(elements));
    }
    GroupOrder::ByLines
}

/// Fills a tile from contiguous lines of each depth.
#[inline(always)]
fn by_groups<T: Grouped>(
    matrix: Matrix<'_, T>,
    first: usize,
    depth: usize,
    tile: &mut Tile,
) -> GroupOrder {
    for (group, lines) in tile.chunks_exact_mut(ROWS).enumerate() {
        lines.fill(0);
        for part in 0..T::GROUP {
            let start = (depth + group * T::GROUP + part) * matrix.col_stride + first;
            let elements = &matrix.data[start..start + ROWS];
            for (line, &element) in lines.iter_mut().zip(elements) {
                *line |= element.bits() << (32 / T::GROUP * part);
            }
        }
    }
    GroupOrder::ByGroups
}

/// Fills a tile element by element, and with zeros where the matrix ends.
#[inline(always)]
fn one_by_one<T: Grouped>(
    matrix: Matrix<'_, T>,
    lines: Range<usize>,
    depths: Range<usize>,
    tile: &mut Tile,
) -> GroupOrder {
    tile.fill(0);
    for (line, groups) in lines.zip(tile.chunks_exact_mut(GROUPS)) {
        for (index, depth) in depths.clone().enumerate() {
            let element = matrix.data[line * matrix.row_stride + depth * matrix.col_stride];
            groups[index / T::GROUP] |= element.bits() << (32 / T::GROUP * (index % T::GROUP));
        }
    }
    GroupOrder::ByLines
}
