//! Attention of a block of queries over all keys.

use super::{
    super::{
        exp::Exp,
        gemm::{GemmElement, GemmOutput, GemmSizes, Matrix, gemm_in},
        lanes::{LANES, pairwise, settled},
        softmax::{Largest, Scale},
    },
    Plan,
};
use crate::{
    error::Result,
    kernel::{Io, Operand, Target},
    number::Number,
    plan::attention::Matrices,
    scratch::Scratch,
    simd::{Vectorized, vectorize},
    threads::Threads,
    wide::WideElement,
};
use std::borrow::Cow;

/// A block of queries, and the rows of the output that are theirs.
pub(super) struct QueryBlock<'a, T> {
    /// The matrix.
    pub(super) matrix: usize,
    /// The first query.
    pub(super) first: usize,
    pub(super) rows: Vec<&'a mut [T]>,
}

/// The elements at hand.
pub(super) struct AttentionInputs<'a, T> {
    pub(super) plan: &'a Plan,
    pub(super) query: &'a [T],
    pub(super) key: &'a [T],
    pub(super) value: &'a [T],
    pub(super) others: Vec<&'a [u8]>,
}

/// State of the rows of a block after some keys.
struct Running<A> {
    largest: Vec<A>,
    sum: Vec<A>,
    /// Whether a weight counted.
    kept: Vec<bool>,
}

impl<T: WideElement<Acc: Exp + GemmElement>> AttentionInputs<'_, T> {
    /// Computes the rows of a block.
    pub(super) fn block(&self, block: &mut QueryBlock<'_, T>) -> Result<()> {
        let (plan, attention) = (self.plan, &self.plan.attention);
        let (n, width) = (block.rows.len(), attention.width);
        let single = Threads::single();
        let mut scores: Scratch<T::Acc> = Scratch::new(n * plan.keys)?;
        let mut sums: Scratch<T::Acc> = Scratch::new(n * width)?;
        sums.fill(T::Acc::ZERO);
        let mut running = Running {
            largest: vec![T::Acc::least(); n],
            sum: vec![T::Acc::ZERO; n],
            kept: vec![attention.keep.is_none() && attention.keys > 0; n],
        };
        let (matrix, depth) = (block.matrix, attention.depth);
        let query = part(self.query, &attention.query, matrix, block.first, [n, depth]);
        for first in (0..attention.keys).step_by(plan.keys) {
            let keys = plan.keys.min(attention.keys - first);
            let key = part(self.key, &attention.key, matrix, first, [keys, depth]);
            let value = part(self.value, &attention.value, matrix, first, [keys, width]);
            let scores = &mut scores[..n * keys];
            let sizes = GemmSizes { m: n, k: depth, n: keys };
            let output = GemmOutput::row_major(&mut *scores, keys);
            gemm_in(
                plan.precision,
                &single,
                sizes,
                query.matrix(),
                key.matrix().transposed(),
                output,
            );
            self.map(block, first, scores)?;
            for (row, scores) in scores.chunks_mut(keys).enumerate() {
                let sums = &mut sums[row * width..][..width];
                Self::weigh(&mut running, row, scores, sums);
                self.drop_some(&mut running, row, block, first, scores);
            }
            let sizes = GemmSizes { m: n, k: keys, n: width };
            let weights = Matrix::row_major(&*scores, keys);
            let output = GemmOutput { data: &mut sums, row_stride: width, accumulate: first > 0 };
            gemm_in(plan.precision, &single, sizes, weights, value.matrix(), output);
        }
        for (row, out) in block.rows.iter_mut().enumerate() {
            // Rows of which no weight counts are sums of nothing, whatever the weights are.
            let scale = match running.kept[row] {
                true => T::Acc::ONE.over(running.sum[row]),
                false => T::Acc::ONE,
            };
            let sums = &sums[row * width..][..width];
            out.iter_mut().zip(sums).for_each(|(out, sum)| *out = T::from_acc(sum.times(scale)));
        }
        Ok(())
    }

    /// Applies the expression to the scores of a block.
    fn map(&self, block: &QueryBlock<'_, T>, key: usize, scores: &mut [T::Acc]) -> Result<()> {
        let rows = block.rows.len();
        let sizes = [rows, scores.len() / rows];
        let mapped = self.plan.mapped.iter().find(|(mapped, _)| *mapped == sizes);
        let Some((_, kernel)) = mapped else { return Ok(()) };
        let single = Threads::single();
        let mut io = Io::empty(&single, usize::MAX);
        io.read(Operand::InPlace);
        let matrices = self.plan.attention.others.iter().zip(&self.plan.others);
        for (bytes, (matrices, other)) in self.others.iter().zip(matrices) {
            let at = matrices.at(block.matrix, block.first, key) * other.width;
            let end = if other.is_single { at + other.width } else { bytes.len() };
            io.read(Operand::Plain(&bytes[at..end]));
        }
        io.write(Target::Plain(bytemuck::cast_slice_mut(scores)));
        kernel.run(&mut io)
    }

    /// Makes weights of a row of scores, and counts them.
    fn weigh(
        running: &mut Running<T::Acc>,
        row: usize,
        scores: &mut [T::Acc],
        sums: &mut [T::Acc],
    ) {
        let (old, found) = (running.largest[row], vectorize(Largest(scores)));
        if found > old {
            running.largest[row] = found;
            if running.sum[row] != T::Acc::ZERO {
                let shrink = old.minus(found).exp();
                running.sum[row] = running.sum[row].times(shrink);
                vectorize(Scale(sums, shrink));
            }
        }
        let sum = vectorize(Weights { scores, largest: running.largest[row] });
        running.sum[row] = running.sum[row].plus(sum);
    }

    /// Makes zeros of the weights of a row that do not count.
    fn drop_some(
        &self,
        running: &mut Running<T::Acc>,
        row: usize,
        block: &QueryBlock<'_, T>,
        key: usize,
        weights: &mut [T::Acc],
    ) {
        let Some(keep) = self.plan.attention.keep else { return };
        let matrices = &self.plan.attention.others[keep];
        let first = matrices.at(block.matrix, block.first + row, key);
        for (index, weight) in weights.iter_mut().enumerate() {
            match self.others[keep][first + index * matrices.col_step] {
                0 => *weight = T::Acc::ZERO,
                _ => running.kept[row] = true,
            }
        }
    }
}

/// Exponentials instead of scores, and their sum.
struct Weights<'a, A> {
    scores: &'a mut [A],
    largest: A,
}

impl<A: Exp> Vectorized for Weights<'_, A> {
    type Output = A;

    #[inline(always)]
    fn run(self) -> A {
        let mut lanes = [A::ZERO; LANES];
        let (chunks, rest) = self.scores.as_chunks_mut::<LANES>();
        for chunk in chunks {
            for (lane, score) in lanes.iter_mut().zip(chunk) {
                *score = score.minus(self.largest).exp();
                *lane = lane.plus(*score);
            }
        }
        let mut lanes = settled(lanes);
        for (lane, score) in lanes.iter_mut().zip(rest) {
            *score = score.minus(self.largest).exp();
            *lane = lane.plus(*score);
        }
        pairwise(lanes, A::plus)
    }
}

/// Rows of a matrix in the type of sums.
struct Part<'a, A: Clone> {
    data: Cow<'a, [A]>,
    row_step: usize,
    col_step: usize,
}

impl<A: Number> Part<'_, A> {
    fn matrix(&self) -> Matrix<'_, A> {
        let Part { row_step, col_step, .. } = *self;
        Matrix { data: &self.data, row_stride: row_step, col_stride: col_step, conjugate: false }
    }
}

/// The rows from `first` on of matrix `n`: without a copy, or as copies where they must be widened.
fn part<'a, T: WideElement>(
    data: &'a [T],
    matrices: &Matrices,
    n: usize,
    first: usize,
    [rows, cols]: [usize; 2],
) -> Part<'a, T::Acc> {
    let Matrices { row_step, col_step, .. } = *matrices;
    let data = &data[matrices.at(n, first, 0)..];
    if T::ROUND.is_none() {
        return Part { data: T::widen(data), row_step, col_step };
    }
    // The dimension whose elements are neighbours stays so.
    let by_rows = col_step == 1 || row_step != 1;
    let (lines, len, step, next) = match by_rows {
        true => (rows, cols, row_step, col_step),
        false => (cols, rows, col_step, row_step),
    };
    let mut wide = Vec::with_capacity(rows * cols);
    for line in 0..lines {
        let line = &data[line * step..];
        match next {
            1 => wide.extend_from_slice(&T::widen(&line[..len])),
            _ => wide.extend((0..len).map(|at| line[at * next].to_acc())),
        }
    }
    let (row_step, col_step) = if by_rows { (cols, 1) } else { (1, rows) };
    Part { data: Cow::Owned(wide), row_step, col_step }
}
