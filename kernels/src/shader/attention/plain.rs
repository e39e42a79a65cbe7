//! An invocation for a block of queries and some columns of values.

use super::{
    super::{
        builder::KernelValue,
        matmul::{BLOCK, SumBlock, bind_each},
    },
    AttentionKernel, COLUMNS, QueryState, largest_of,
};
use crate::plan::attention::Attention;

impl<'k> AttentionKernel<'_, 'k> {
    /// Writes the kernel of a block of queries and some columns, by its number.
    pub(super) fn write_plain(&self, number: KernelValue<'k>) -> Option<()> {
        let Attention { queries, keys, depth, width, query, key, value, .. } = self.attention;
        let (down, across) = (queries.div_ceil(BLOCK), width.div_ceil(COLUMNS));
        let (k, inputs) = (self.k, &self.inputs);
        let column = k.bind("column", number % across * COLUMNS);
        let first = k.bind("first", number / across % down * BLOCK);
        let starts = self.starts(k.bind("matrix", number / (across * down)));
        let rows = bind_each(k, "row", BLOCK, |i| (first + i).min(queries - 1));
        let query_rows = bind_each(k, "query", BLOCK, |i| starts.query + rows[i] * query.row_step);
        let columns = COLUMNS.min(*width);
        let states: Vec<QueryState<'_>> = (0..BLOCK).map(|_| QueryState::new(k, columns)).collect();
        let mut written = Some(());
        k.for_range("start", (0, *keys, BLOCK), |start| {
            let key_rows = bind_each(k, "key", BLOCK, |j| (start + j).min(keys - 1));
            let scores = SumBlock::new(k, (BLOCK, BLOCK), k.float(0.0));
            let at = bind_each(k, "at", BLOCK, |j| starts.key + key_rows[j] * key.row_step);
            k.for_below("i", *depth, |i| {
                let x = bind_each(k, "x", BLOCK, |row| {
                    inputs[0].at(query_rows[row] + i * query.col_step)
                });
                let y = bind_each(k, "y", BLOCK, |col| inputs[1].at(at[col] + i * key.col_step));
                scores.add_outer(&x, &y);
            });
            scores.each(|i, j, score| {
                let mapped = self.map(&starts, score, (rows[i], start + j));
                written = written.and(mapped);
            });
            for (state, (row, scores)) in states.iter().zip(rows.iter().zip(&scores.rows)) {
                state.shrink(k, largest_of(scores));
                for (j, &score) in scores.iter().enumerate() {
                    state.weigh(score);
                    self.keep(&starts, (score, state.counts), (*row, start + j));
                }
            }
            let at = bind_each(k, "at", BLOCK, |j| starts.value + key_rows[j] * value.row_step);
            for col in 0..columns {
                let offset = k.bind("offset", (column + col).min(width - 1) * value.col_step);
                let y = bind_each(k, "y", BLOCK, |j| inputs[2].at(at[j] + offset));
                for (state, weights) in states.iter().zip(&scores.rows) {
                    let terms = weights.iter().zip(&y);
                    let sum = terms.fold(state.sums[col], |sum, (&weight, &y)| sum + weight * y);
                    state.sums[col].set(sum);
                }
            }
        });
        for (i, state) in states.iter().enumerate() {
            for (j, &sum) in state.sums.iter().enumerate() {
                self.store(&starts, (first + i, column + j), (sum, state.total, state.counts));
            }
        }
        written
    }
}
