//! Attention without a matrix of scores: blocks of queries meet blocks of keys.
//!
//! For each block of queries the running maximum of its scores, the sum of their exponentials and
//! the sum of the values so weighted are kept, and scaled down whenever a larger score turns up
//! (Dao et al., "FlashAttention", 2022, algorithm 1; the sums are divided once, at the end).
//! Scores, weights and sums are `f32` for 16-bit floats. Rows that have no score above -inf give
//! NaN.

mod block;

use super::{Build, dispatch::with_float, exp::Exp, gemm::GemmElement};
use crate::{
    Precision,
    device::OpCall,
    elementwise,
    error::Result,
    kernel::{Io, Kernel},
    plan::{
        attention::{Attention, Matrices},
        broadcast::InputAccess,
    },
    wide::WideElement,
};
use block::{AttentionInputs, QueryBlock};
use ferroflow_ir::{DType, StridedView, view::ViewDim};
use std::sync::{Arc, Mutex, PoisonError};

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

/// Whether a call is no slower than the calls it stands for. Measured with AVX-512, it takes half
/// the time where scores are too many for the second-level cache, and is faster where it saves
/// transpositions; small products of rows that lie well gain nothing.
pub(super) fn pays(call: &OpCall<'_>) -> Result<bool> {
    let plan = Attention::new(call)?;
    let (Attention { queries, depth, width, .. }, scores) = (&plan, plan.scores());
    let blocks = plan.count().saturating_mul(queries.div_ceil(rows(&plan)));
    let moved = plan.key.row_step > *depth && plan.value.row_step > *width;
    let enough = scores >= MANY_SCORES || (moved && scores.saturating_mul(*depth) >= LEAST_WORK);
    Ok(blocks >= LEAST_BLOCKS && enough)
}

/// Fewer blocks leave threads without work that they would have in the matmuls.
const LEAST_BLOCKS: usize = 8;

/// The multiplications of the first matmul from which on setting up is not what counts.
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
    precision: Precision,
    /// Queries of a block.
    rows: usize,
    /// Keys of a block.
    keys: usize,
    /// Kernel of the scores for a block of so many rows and columns.
    mapped: Vec<([usize; 2], Arc<dyn Kernel>)>,
    /// The matrices whose rows are contiguous in the output, for each position before them.
    matrices: Vec<usize>,
    others: Vec<Other>,
}

/// Operand beside the scores.
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
        let output_index = |matrix: usize| {
            let row = attention.output.at(matrix, 0, 0) / attention.width.max(1);
            row / (attention.queries * inner) * inner + row % inner
        };
        let mut matrices = vec![0; n];
        if attention.queries > 0 {
            (0..n).for_each(|matrix| matrices[output_index(matrix)] = matrix);
        }
        let (rows, mut mapped) = (rows(&attention), Vec::new());
        if let Some(expr) = &attention.expr {
            let mut dtypes = vec![expr.dtype()];
            dtypes.extend(call.inputs[3..].iter().map(|input| input.dtype));
            let sizes = |all: usize, most: usize| [all.min(most), all % most];
            for rows in sizes(attention.queries, rows).into_iter().filter(|&n| n > 0) {
                for cols in sizes(attention.keys, keys).into_iter().filter(|&n| n > 0) {
                    let mut accesses = vec![InputAccess::Contiguous];
                    accesses.extend(attention.others.iter().map(|other| access(other, rows, cols)));
                    let kernel = elementwise::of_expr(expr, &dtypes, accesses);
                    let Some(kernel) = kernel else { return Ok(None) };
                    mapped.push(([rows, cols], kernel));
                }
            }
        }
        // Weights of 16-bit floats are not theirs.
        let is_whole = call.dtype(0) == DType::F32;
        let precision = if is_whole { call.precision } else { Precision::Full };
        Ok(Some(Plan { attention, precision, rows, keys, mapped, matrices, others }))
    }
}

/// Access to a block of a matrix, from its first element on.
fn access(matrices: &Matrices, rows: usize, cols: usize) -> InputAccess {
    let dim = |size: usize, step: usize| ViewDim { size, stride: step as isize };
    let dims = [dim(rows, matrices.row_step), dim(cols, matrices.col_step)];
    let view = StridedView { offset: 0, dims: dims.into_iter().collect() }.simplified();
    match view.dims.as_slice() {
        _ if matrices.row_step == 0 && matrices.col_step == 0 => InputAccess::Scalar,
        [] => InputAccess::Contiguous,
        [dim] if dim.stride == 1 => InputAccess::Contiguous,
        _ => InputAccess::Strided(view),
    }
}

/// The number of matrices whose rows of one query are contiguous in the output.
fn inner(attention: &Attention) -> usize {
    (attention.output.row_step / attention.width.max(1)).max(1)
}

/// The blocks of an output.
fn blocks<'a, T>(plan: &Plan, out: &'a mut [T]) -> Vec<QueryBlock<'a, T>> {
    let Attention { queries, width, .. } = plan.attention;
    let inner = inner(&plan.attention);
    let mut rows = out.chunks_mut(width);
    let mut blocks: Vec<QueryBlock<'a, T>> = Vec::new();
    for matrices in plan.matrices.chunks(inner) {
        for first in (0..queries).step_by(plan.rows) {
            let (base, n) = (blocks.len(), plan.rows.min(queries - first));
            let block = |&matrix| QueryBlock { matrix, first, rows: Vec::with_capacity(n) };
            blocks.extend(matrices.iter().map(block));
            for _ in 0..n {
                let outputs = blocks[base..].iter_mut();
                outputs.zip(&mut rows).for_each(|(block, row)| block.rows.push(row));
            }
        }
    }
    blocks
}

fn kernel<T: WideElement<Acc: Exp + GemmElement>>(plan: Plan) -> Arc<dyn Kernel> {
    Arc::new(move |io: &mut Io<'_>| {
        let out: &mut [T] = io.output(0);
        if out.is_empty() {
            return Ok(());
        }
        let call = AttentionInputs::<T> {
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
