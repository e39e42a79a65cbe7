//! A workgroup for a tile of queries.

use super::{
    super::{
        builder::{KernelBuffer, KernelValue},
        dialect::WORKGROUP,
        matmul::{BLOCK, SumBlock, bind_each},
        tiles::{DEPTH, PITCH, TILE, TileBlock, TileOperand},
        workgroup::Fold,
    },
    AttentionKernel, MatrixStarts, QueryState, SIDE, largest_of,
};
use crate::plan::attention::{Attention, Matrices};

impl<'k> AttentionKernel<'_, 'k> {
    /// Writes the kernel of a tile of queries.
    pub(super) fn write_tiled(&self) -> Option<()> {
        let Attention { queries, keys, depth, width, query, key, .. } = self.attention;
        let (k, down, columns) = (self.k, queries.div_ceil(TILE), width.div_ceil(SIDE));
        k.shared("tile_a", DEPTH * PITCH);
        k.shared("tile_b", (DEPTH * columns * SIDE).max(DEPTH * PITCH));
        let block = TileBlock::new(k);
        let row = k.bind("row", k.workgroup() % down * TILE);
        let starts = self.starts(k.bind("matrix", k.workgroup() / down));
        let near = k.bind("near", k.local() % SIDE);
        let rows = bind_each(k, "row", BLOCK, |i| (row + block.below + i).min(queries - 1));
        let states: Vec<QueryState<'_>> = (0..BLOCK).map(|_| QueryState::new(k, columns)).collect();
        let read = |buffer: KernelBuffer<'k>, start: KernelValue<'k>, matrices: &Matrices| {
            let (row_step, col_step) = (matrices.row_step, matrices.col_step);
            move |along: KernelValue<'k>, deep: KernelValue<'k>, x: KernelValue<'k>| {
                x.set(buffer.at(start + along * row_step + deep * col_step));
            }
        };
        let read_queries = read(self.inputs[0], starts.query, query);
        let read_keys = read(self.inputs[1], starts.key, key);
        let read_queries = TileOperand { read: &read_queries, is_deep: query.col_step == 1 };
        let read_keys = TileOperand { read: &read_keys, is_deep: key.col_step == 1 };
        let mut written = Some(());
        k.for_range("start", (0, *keys, TILE), |start| {
            let scores = SumBlock::new(k, (BLOCK, BLOCK), k.float(0.0));
            block.add_matmul(
                &scores,
                (&read_queries, row, *queries),
                (&read_keys, start, *keys),
                *depth,
            );
            let col = k.bind("col", start + block.right);
            scores.each(|i, j, score| {
                let mapped = self.map(&starts, score, (rows[i], col + j));
                written = written.and(mapped);
            });
            let largest = bind_each(k, "part", BLOCK, |i| largest_of(&scores.rows[i]));
            let largest = self.across(&block, near, Fold::Function("max"), &largest);
            for (i, state) in states.iter().enumerate() {
                state.shrink(k, largest[i]);
                for (j, &score) in scores.rows[i].iter().enumerate() {
                    state.weigh(score);
                    self.keep(&starts, (score, state.counts), (rows[i], col + j));
                }
            }
            self.add_values(&block, (near, start), &starts, (&scores, &states));
        });
        let totals: Vec<KernelValue<'_>> = states.iter().map(|state| state.total).collect();
        let totals = self.across(&block, near, Fold::Sum, &totals);
        let counts: Vec<KernelValue<'_>> = states.iter().map(|state| state.counts).collect();
        let counts = match self.attention.keep {
            Some(_) => self.across(&block, near, Fold::Function("max"), &counts),
            None => counts,
        };
        let first = k.bind("first", row + block.below);
        for (i, state) in states.iter().enumerate() {
            for (j, &sum) in state.sums.iter().enumerate() {
                self.store(&starts, (first + i, near + j * SIDE), (sum, totals[i], counts[i]));
            }
        }
        written
    }

    /// Combines the parts that the neighbours of each row have.
    fn across(
        &self,
        block: &TileBlock<'k>,
        near: KernelValue<'k>,
        fold: Fold,
        parts: &[KernelValue<'k>],
    ) -> Vec<KernelValue<'k>> {
        let (k, tile) = (self.k, block.tiles[0]);
        let line = |i: usize| (block.below + i) * SIDE;
        for (i, &part) in parts.iter().enumerate() {
            tile.set(line(i) + near, part);
        }
        k.barrier();
        let wholes = (0..parts.len()).map(|i| k.variable("whole", tile.at(line(i))));
        let wholes: Vec<KernelValue<'_>> = wholes.collect();
        k.for_range("i", (1, SIDE, 1), |other| {
            for (i, whole) in wholes.iter().enumerate() {
                whole.set(fold.combine(*whole, tile.at(line(i) + other)));
            }
        });
        k.barrier();
        wholes
    }

    /// Adds weighted values, some keys at a time.
    fn add_values(
        &self,
        block: &TileBlock<'k>,
        (near, start): (KernelValue<'k>, KernelValue<'k>),
        starts: &MatrixStarts<'k>,
        (weights, states): (&SumBlock<'k>, &[QueryState<'k>]),
    ) {
        let Attention { keys, width, value, .. } = self.attention;
        let (k, [tile_a, tile_b], right) = (self.k, block.tiles, block.right);
        let wide = states[0].sums.len() * SIDE;
        k.for_range("some", (0, TILE, DEPTH), |some| {
            k.when(right.ge(some).and(right.lt(some + DEPTH)), || {
                weights.each(|i, j, weight| {
                    tile_a.set((right - some + j) * PITCH + block.below + i, weight);
                });
            });
            k.for_range("s", (k.local(), DEPTH * wide, WORKGROUP), |s| {
                let key = k.bind("key", start + some + s / wide);
                let col = k.bind("col", s % wide);
                let x = k.variable("x", k.float(0.0));
                k.when(key.lt(*keys).and(col.lt(*width)), || {
                    let at = starts.value + key * value.row_step + col * value.col_step;
                    x.set(self.inputs[2].at(at));
                });
                tile_b.set(s, x);
            });
            k.barrier();
            k.for_below("i", DEPTH, |i| {
                let x = bind_each(k, "x", BLOCK, |at| tile_a.at(i * PITCH + block.below + at));
                for j in 0..states[0].sums.len() {
                    let y = k.bind("y", tile_b.at(i * wide + near + j * SIDE));
                    for (state, &x) in states.iter().zip(&x) {
                        state.sums[j].set(state.sums[j] + x * y);
                    }
                }
            });
            k.barrier();
        });
    }
}
