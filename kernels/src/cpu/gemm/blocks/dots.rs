//! Blocks of sums of `bfloat16` in the registers of AVX-512.

use super::{
    super::{
        dots::{DotCols, DotRows, DotUnit},
        rect::Rect,
    },
    BLOCK, BlockUnit, GROUPS, ROWS, STEP, Sums,
};

/// Bytes of a row of a tile.
const ROW: usize = GROUPS * size_of::<u32>();

/// Steps of a chunk.
const CHUNK: usize = 8;

/// Where steps begin, in bytes.
static STEPS: [usize; CHUNK] = {
    let mut steps = [0; CHUNK];
    let mut index = 0;
    while index < CHUNK {
        steps[index] = index * STEP * size_of::<u32>();
        index += 1;
    }
    steps
};

impl BlockUnit for DotUnit {
    type Kind = ();
    type Ready = DotUnit;

    /// As tile registers have it: columns stay in the first-level cache while rows pass.
    const CHUNK: usize = CHUNK;

    fn configure(self) -> DotUnit {
        self
    }

    fn multiply(unit: &DotUnit, _: (), rows: usize, a: &[u32], b: &[u32], sums: &mut Sums) {
        assert!(!a.is_empty() && a.len() == b.len() && a.len().is_multiple_of(STEP), "whole steps");
        let sums = bytemuck::cast_slice_mut(&mut sums[..]);
        let rows = rows.clamp(1, BLOCK);
        for (data, cols) in a.chunks(CHUNK * STEP).zip(b.chunks(CHUNK * STEP)) {
            let steps = &STEPS[..data.len() / STEP];
            let rows_of = DotRows { data, steps, row: ROW, tile: ROWS * ROW };
            let cols = DotCols { data: cols, ahead: cols.as_ptr_range().end };
            unit.multiply(rows_of, cols, Rect::new(sums, rows, BLOCK, BLOCK), true);
        }
    }
}
