//! Attention without a matrix of scores: blocks of queries meet blocks of keys.
//!
//! For each block of queries the running maximum of its scores, the sum of their exponentials and the
//! sum of the values so weighted are kept, and scaled down whenever a larger score turns up (Dao et
//! al., "FlashAttention", 2022, algorithm 1; the sums are divided once, at the end). Scores, weights and
//! sums are `f32` for 16-bit floats. Rows that have no score above -inf give NaN.

use super::{
    Build,
    dispatch::with_float,
    exp::Exp,
    gemm::{Factor, Matrix, Product, Sizes, gemm},
    softmax::{LANES, Largest, Scale, total},
};
use crate::{
    device::OpCall,
    elementwise,
    error::Result,
    kernel::{Io, Kernel, Operand, Target},
    number::Number,
    plan::{
        attention::{Attention, Matrices},
        broadcast::Access,
    },
    scratch::Scratch,
    simd::{Vectorized, vectorize},
    threads::Threads,
    wide::Wide,
};
use ferroflow_ir::{StridedView, view::ViewDim};
use std::{
    borrow::Cow,
    sync::{Arc, Mutex, PoisonError},
};

pub(super) const KERNELS: &[(&str, Build)] = &[("_FusedAttention", attention)];

/// Queries of a block, at most. Keys and values are packed anew for each block.
const QUERIES: usize = 128;

/// Queries of a block, at least, where there are as many.
const FEW_QUERIES: usize = 32;

/// Multiplications per piece of work.
const PIECE: usize = 1 << 21;

/// Blocks that are enough for threads to share.
const BLOCKS: usize = 32;

/// Keys of a block, at most.
const KEYS: usize = 512;

fn attention(call: &OpCall<'_>) -> Result<Option<Arc<dyn Kernel>>> {
    let Some(plan) = Plan::new(call)? else { return Ok(None) };
    Ok(with_float!(call.dtype(0), T => kernel::<T>(plan)))
}

/// Whether a call is no slower than the calls it stands for. Measured with AVX-512, it takes half the
/// time where scores are too many for the second-level cache, and is faster where it saves
/// transpositions; small products of rows that lie well gain nothing.
pub(super) fn gains(call: &OpCall<'_>) -> Result<bool> {
    let plan = Attention::new(call)?;
    let Attention { queries, keys, depth, width, .. } = plan;
    let scores = [plan.count(), queries, keys].into_iter().fold(1, usize::saturating_mul);
    let blocks = plan.count().saturating_mul(queries.div_ceil(rows(&plan)));
    let moved = plan.key.row_step > depth && plan.value.row_step > width;
    let enough = scores >= MANY_SCORES || (moved && scores.saturating_mul(depth) >= LEAST_WORK);
    Ok(blocks >= LEAST_BLOCKS && enough)
}

/// Fewer blocks leave threads without work that they would have in the products.
const LEAST_BLOCKS: usize = 8;

/// The multiplications of the first product from which on setting up is not what counts.
const LEAST_WORK: usize = 1 << 15;

/// Scores that no second-level cache holds.
const MANY_SCORES: usize = 1 << 20;

/// Queries of a block: by sizes alone, so that results do not depend on threads.
fn rows(attention: &Attention) -> usize {
    let queries = attention.queries.max(1);
    let most = (attention.count() * queries / BLOCKS).clamp(FEW_QUERIES, QUERIES);
    queries.div_ceil(queries.div_ceil(most))
}

struct Plan {
    attention: Attention,
    /// Queries of a block.
    rows: usize,
    /// Keys of a block.
    keys: usize,
    /// What happens to the scores of a block of so many rows and columns.
    mapped: Vec<([usize; 2], Arc<dyn Kernel>)>,
    /// The matrices whose rows follow each other in the output, for each position before them.
    matrices: Vec<usize>,
    others: Vec<Other>,
}

/// How elements beside the scores are handed on.
struct Other {
    /// Bytes of an element.
    width: usize,
    /// Whether a block needs only one.
    is_single: bool,
}

impl Plan {
    /// `None` where the expression has no code.
    fn new(call: &OpCall<'_>) -> Result<Option<Plan>> {
        let attention = Attention::new(call)?;
        if attention.output.col_step != 1 && attention.width != 1 {
            return Ok(None);
        }
        let others = call.inputs[3..].iter().zip(&attention.others).map(|(input, matrices)| {
            let is_single = matrices.row_step == 0 && matrices.col_step == 0;
            Some(Other { width: input.dtype.size()?, is_single })
        });
        let Some(others) = others.collect::<Option<Vec<Other>>>() else { return Ok(None) };
        let keys = attention.keys.div_ceil(attention.keys.div_ceil(KEYS).max(1)).max(1);
        let (n, inner) = (attention.count(), inner(&attention));
        // Where the first query of each is, among those.
        let place = |matrix: usize| {
            let row = attention.output.at(matrix, 0, 0) / attention.width.max(1);
            row / (attention.queries * inner) * inner + row % inner
        };
        let mut matrices = vec![0; n];
        if attention.queries > 0 {
            (0..n).for_each(|matrix| matrices[place(matrix)] = matrix);
        }
        let (rows, mut mapped) = (rows(&attention), Vec::new());
        if let Some(expr) = &attention.expr {
            let mut dtypes = vec![expr.dtype()];
            dtypes.extend(call.inputs[3..].iter().map(|input| input.dtype));
            let sizes = |all: usize, most: usize| [all.min(most), all % most];
            for rows in sizes(attention.queries, rows).into_iter().filter(|&n| n > 0) {
                for cols in sizes(attention.keys, keys).into_iter().filter(|&n| n > 0) {
                    let mut accesses = vec![Access::Contiguous];
                    accesses.extend(attention.others.iter().map(|other| access(other, rows, cols)));
                    let kernel = elementwise::of_expr(expr, &dtypes, accesses);
                    let Some(kernel) = kernel else { return Ok(None) };
                    mapped.push(([rows, cols], kernel));
                }
            }
        }
        Ok(Some(Plan { attention, rows, keys, mapped, matrices, others }))
    }
}

/// How a block of a matrix is read, from its first element on.
fn access(matrices: &Matrices, rows: usize, cols: usize) -> Access {
    let dim = |size: usize, step: usize| ViewDim { size, stride: step as isize };
    let dims = [dim(rows, matrices.row_step), dim(cols, matrices.col_step)];
    let view = StridedView { offset: 0, dims: dims.into_iter().collect() }.simplified();
    match view.dims.as_slice() {
        _ if matrices.row_step == 0 && matrices.col_step == 0 => Access::Scalar,
        [] => Access::Contiguous,
        [dim] if dim.stride == 1 => Access::Contiguous,
        _ => Access::Strided(view),
    }
}

/// A block of queries, and the rows of the output that are theirs.
struct Block<'a, T> {
    /// The matrix.
    matrix: usize,
    /// The first query.
    first: usize,
    rows: Vec<&'a mut [T]>,
}

/// The number of matrices whose rows of one query follow each other in the output.
fn inner(attention: &Attention) -> usize {
    (attention.output.row_step / attention.width.max(1)).max(1)
}

/// The blocks of an output.
fn blocks<'a, T>(plan: &Plan, out: &'a mut [T]) -> Vec<Block<'a, T>> {
    let Attention { queries, width, .. } = plan.attention;
    let inner = inner(&plan.attention);
    let mut rows = out.chunks_mut(width);
    let mut blocks: Vec<Block<'a, T>> = Vec::new();
    for matrices in plan.matrices.chunks(inner) {
        for first in (0..queries).step_by(plan.rows) {
            let (base, n) = (blocks.len(), plan.rows.min(queries - first));
            let block = |&matrix| Block { matrix, first, rows: Vec::with_capacity(n) };
            blocks.extend(matrices.iter().map(block));
            for _ in 0..n {
                let places = blocks[base..].iter_mut();
                places.zip(&mut rows).for_each(|(block, row)| block.rows.push(row));
            }
        }
    }
    blocks
}

fn kernel<T: Wide<Acc: Exp + Factor>>(plan: Plan) -> Arc<dyn Kernel> {
    Arc::new(move |io: &mut Io<'_>| {
        let out: &mut [T] = io.output(0);
        if out.is_empty() {
            return Ok(());
        }
        let call = Call::<T> {
            plan: &plan,
            query: io.input(0),
            key: io.input(1),
            value: io.input(2),
            others: (3..io.n_inputs()).map(|index| io.bytes(index)).collect(),
        };
        let failed = Mutex::new(None);
        let mut blocks = blocks(&plan, out);
        let work = plan.rows * plan.attention.keys * (plan.attention.depth + plan.attention.width);
        let pieces = blocks.chunks_mut((PIECE / work.max(1)).max(1));
        io.threads().for_each(pieces, |piece| {
            if let Err(error) = piece.iter_mut().try_for_each(|block| call.block(block)) {
                failed.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
            }
        });
        failed.into_inner().unwrap_or_else(PoisonError::into_inner).map_or(Ok(()), Err)
    })
}

/// The elements at hand.
struct Call<'a, T> {
    plan: &'a Plan,
    query: &'a [T],
    key: &'a [T],
    value: &'a [T],
    others: Vec<&'a [u8]>,
}

/// What is known of the rows of a block after some keys.
struct Running<A> {
    largest: Vec<A>,
    sum: Vec<A>,
    /// Whether a weight counted.
    kept: Vec<bool>,
}

impl<T: Wide<Acc: Exp + Factor>> Call<'_, T> {
    fn block(&self, block: &mut Block<'_, T>) -> Result<()> {
        let (plan, attention) = (self.plan, &self.plan.attention);
        let (n, width) = (block.rows.len(), attention.width);
        let single = Threads::single();
        let mut scores: Scratch<T::Acc> = Scratch::new(n * plan.keys)?;
        let mut sums: Scratch<T::Acc> = Scratch::new(n * width)?;
        sums.fill(T::Acc::ZERO);
        let mut running = Running {
            largest: vec![T::Acc::least(); n],
            sum: vec![T::Acc::ZERO; n],
            kept: vec![attention.keep.is_none(); n],
        };
        let (matrix, depth) = (block.matrix, attention.depth);
        let query = part(self.query, &attention.query, matrix, block.first, [n, depth]);
        for first in (0..attention.keys).step_by(plan.keys) {
            let keys = plan.keys.min(attention.keys - first);
            let key = part(self.key, &attention.key, matrix, first, [keys, depth]);
            let value = part(self.value, &attention.value, matrix, first, [keys, width]);
            let scores = &mut scores[..n * keys];
            let sizes = Sizes { m: n, k: depth, n: keys };
            let place = Product::row_major(&mut *scores, keys);
            gemm(&single, sizes, query.matrix(), key.matrix().transposed(), place);
            self.map(block, first, scores)?;
            for (row, scores) in scores.chunks_mut(keys).enumerate() {
                let sums = &mut sums[row * width..][..width];
                Self::weigh(&mut running, row, scores, sums);
                self.drop_some(&mut running, row, block, first, scores);
            }
            let sizes = Sizes { m: n, k: keys, n: width };
            let weights = Matrix::row_major(&*scores, keys);
            let place = Product { data: &mut *sums, row_stride: width, accumulate: first > 0 };
            gemm(&single, sizes, weights, value.matrix(), place);
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
    fn map(&self, block: &Block<'_, T>, key: usize, scores: &mut [T::Acc]) -> Result<()> {
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
        block: &Block<'_, T>,
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

/// Exponentials in the place of scores, and their sum.
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
        for (lane, score) in lanes.iter_mut().zip(rest) {
            *score = score.minus(self.largest).exp();
            *lane = lane.plus(*score);
        }
        total(lanes)
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

/// The rows from `first` on of matrix `n`: where they lie, or as copies where they must be widened.
fn part<'a, T: Wide>(
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
