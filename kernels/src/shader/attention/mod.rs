//! Attention without a matrix of scores: the largest score so far, the sum of exponentials and the
//! sum of the values so weighted stay in registers while keys go by.
//!
//! Where groups share memory, a group takes 64 queries, and as many keys at a time: products of
//! both go through tiles of shared memory, and so do weights on their way to the values. Elsewhere
//! an invocation takes a block of queries and of columns. Sums are those of
//! `kernels/src/cpu/attention/`, in another order.

mod matrices;
mod plain;
mod tiled;

use super::{
    Shader,
    builder::{KernelBuffer, KernelBuilder, KernelValue},
    dialect::WORKGROUP,
    expr,
    index::position,
    matmul::BLOCK,
    scalar_type::Caps,
    tiles::TILE,
};
use crate::{
    device::OpCall,
    error::Result,
    plan::attention::{Attention, Matrices},
};
use ferroflow_ir::DType;

pub(super) const SHADERS: &[(&str, super::Build)] = &[(OP, attention)];

/// The op, whose calls hold expressions.
pub(super) const OP: &str = "_FusedAttention";

/// Columns of values that a group can keep in registers.
const MOST_COLUMNS: usize = 128;

/// Columns that an invocation by itself does.
const COLUMNS: usize = 32;

/// Fewer queries or keys leave most of a group without work.
const LEAST: usize = 16;

/// Longer expressions, written out for each score of a block, are long to compile.
const MOST_NODES: usize = 64;

/// Neighbours of a group along one side of its tile.
const SIDE: usize = TILE / BLOCK;

fn attention(call: &OpCall<'_>, caps: Caps) -> Result<Option<Shader>> {
    let attention = Attention::new(call)?;
    let too_long = attention.expr.as_ref().is_some_and(|expr| expr.nodes().len() > MOST_NODES);
    if too_long || attention.keys == 0 {
        return Ok(None);
    }
    let Attention { queries, keys, width, .. } = attention;
    let k = KernelBuilder::new(caps);
    let kernel = AttentionKernel::new(&k, call, &attention);
    if !caps.tiles {
        let count = attention.count() * queries.div_ceil(BLOCK) * width.div_ceil(COLUMNS);
        let written = kernel.write_plain(k.element());
        return written.map_or(Ok(None), |()| k.finish(count));
    }
    if is_of_matrices(call, &attention, caps) {
        return matrices::kernel(call, &attention, caps);
    }
    if queries < LEAST || keys < LEAST || width > MOST_COLUMNS {
        return Ok(None);
    }
    let count = attention.count() * queries.div_ceil(TILE) * WORKGROUP;
    kernel.write_tiled().map_or(Ok(None), |()| k.finish(count))
}

/// Whether warps compute a call of the op by multiplying matrices.
///
/// # Errors
///
/// When the call's attributes do not fit its op.
#[cfg(feature = "cuda")]
pub(crate) fn attends_by_matrices(call: &OpCall<'_>, caps: Caps) -> Result<bool> {
    Ok(is_of_matrices(call, &Attention::new(call)?, caps))
}

fn is_of_matrices(call: &OpCall<'_>, attention: &Attention, caps: Caps) -> bool {
    let fits = attention.queries >= LEAST && attention.keys >= LEAST;
    caps.matrices && fits && matrices::fits(call, attention)
}

/// The parts of a kernel that all ways have.
struct AttentionKernel<'a, 'k> {
    k: &'k KernelBuilder,
    attention: &'a Attention,
    dtype: DType,
    inputs: Vec<KernelBuffer<'k>>,
    out: KernelBuffer<'k>,
}

/// Positions at which the matrices of a kernel begin.
struct MatrixStarts<'k> {
    query: KernelValue<'k>,
    key: KernelValue<'k>,
    value: KernelValue<'k>,
    output: KernelValue<'k>,
    others: Vec<KernelValue<'k>>,
}

impl<'a, 'k> AttentionKernel<'a, 'k> {
    fn new(k: &'k KernelBuilder, call: &OpCall<'_>, attention: &'a Attention) -> Self {
        let inputs = call.inputs.iter().enumerate();
        let inputs = inputs.map(|(position, input)| k.input(position, input.dtype)).collect();
        AttentionKernel { k, attention, dtype: call.dtype(0), inputs, out: k.result(call) }
    }

    /// The positions at which the matrices of a number begin.
    fn starts(&self, matrix: KernelValue<'k>) -> MatrixStarts<'k> {
        let Attention { query, key, value, output, others, .. } = self.attention;
        let start = |name: &str, matrices: &Matrices| {
            self.k.bind(name, position(self.k, &matrices.first, matrix))
        };
        MatrixStarts {
            query: start("q", query),
            key: start("k", key),
            value: start("v", value),
            output: start("o", output),
            others: others.iter().map(|matrices| start("other", matrices)).collect(),
        }
    }

    /// An element of an operand of the expression.
    fn other(
        &self,
        starts: &MatrixStarts<'k>,
        at: usize,
        (row, col): (KernelValue<'k>, KernelValue<'k>),
    ) -> KernelValue<'k> {
        let Matrices { row_step, col_step, .. } = self.attention.others[at];
        self.inputs[3 + at].at(starts.others[at] + row * row_step + col * col_step)
    }

    /// Makes of a score at a position what the softmax is taken of, or -inf beyond the last key.
    /// `None` where the expression cannot be written.
    fn map(
        &self,
        starts: &MatrixStarts<'k>,
        score: KernelValue<'k>,
        (row, col): (KernelValue<'k>, KernelValue<'k>),
    ) -> Option<()> {
        let (k, keys) = (self.k, self.attention.keys);
        let mut value = score;
        if let Some(expr) = &self.attention.expr {
            let at = (k.bind("row", row), k.bind("col", col.min(keys - 1)));
            let mut inputs = vec![score];
            let others = 0..self.attention.others.len();
            inputs.extend(others.map(|other| self.other(starts, other, at)));
            value = expr::value(k, expr, &inputs)?;
        }
        if !keys.is_multiple_of(TILE) {
            value = col.lt(keys).select(value, k.float(f32::NEG_INFINITY));
        }
        if !value.is(score) {
            score.set(value);
        }
        Some(())
    }

    /// Makes a zero of a weight that does not count, and notes that others do.
    fn keep(
        &self,
        starts: &MatrixStarts<'k>,
        (weight, counts): (KernelValue<'k>, KernelValue<'k>),
        (row, col): (KernelValue<'k>, KernelValue<'k>),
    ) {
        let Some(keep) = self.attention.keep else { return };
        let is_kept = self.other(starts, keep, (row, col.min(self.attention.keys - 1)));
        self.k.when_else(is_kept, || counts.set(1.0), || weight.set(0.0));
    }

    /// Stores a sum of values as an element of the result, if it has such an element.
    fn store(
        &self,
        starts: &MatrixStarts<'k>,
        (row, col): (KernelValue<'k>, KernelValue<'k>),
        (sum, total, counts): (KernelValue<'k>, KernelValue<'k>, KernelValue<'k>),
    ) {
        let Attention { queries, width, output, .. } = self.attention;
        let quotient = sum / total;
        let value = match self.attention.keep {
            None => quotient,
            // Rows of which no weight counts are sums of nothing, whatever the weights are.
            Some(_) => counts.gt(0.0).select(quotient, sum),
        };
        self.k.when(row.lt(*queries).and(col.lt(*width)), || {
            let at = starts.output + row * output.row_step + col * output.col_step;
            self.out.set(at, value.rounded(self.dtype));
        });
    }
}

/// A query of a block: the largest score so far, the sums of exponentials and of weighted values
/// under it, and whether any weight counts.
struct QueryState<'k> {
    largest: KernelValue<'k>,
    total: KernelValue<'k>,
    counts: KernelValue<'k>,
    sums: Vec<KernelValue<'k>>,
}

impl<'k> QueryState<'k> {
    fn new(k: &'k KernelBuilder, columns: usize) -> QueryState<'k> {
        let zero = |name: &str| k.variable(name, k.float(0.0));
        QueryState {
            largest: k.variable("largest", k.float(f32::MIN)),
            total: zero("total"),
            counts: zero("counts"),
            sums: (0..columns).map(|_| zero("value")).collect(),
        }
    }

    /// Makes the sums those under a largest score that is a new one's at least.
    fn shrink(&self, k: &'k KernelBuilder, new: KernelValue<'k>) {
        let high = k.bind("high", self.largest.max(new));
        let shrink = k.bind("shrink", (self.largest - high).function("exp_"));
        self.largest.set(high);
        for sum in self.sums.iter().chain([&self.total]) {
            sum.set(*sum * shrink);
        }
    }

    /// Makes a weight of a score, and counts it.
    fn weigh(&self, score: KernelValue<'k>) {
        score.set((score - self.largest).function("exp_"));
        self.total.set(self.total + score);
    }
}

/// The largest score of a row of a block.
fn largest_of<'k>(scores: &[KernelValue<'k>]) -> KernelValue<'k> {
    scores[0].max(scores[1]).max(scores[2].max(scores[3]))
}
