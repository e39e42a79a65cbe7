//! Rules: how the dimensions of an op's results follow from those of its operands.
//!
//! A rule gives each dimension of operands and results a *factor*: dimensions of one factor are split
//! together, in one way. A factor that is in operands and in no result is contracted: if it is split, the
//! result of a device is a term, to be merged. A dimension without a factor must be whole. This is the notion of
//! the sharding rules of Shardy (OpenXLA).
//!
//! Elementwise ops and reductions follow from their lowering; records of other ops state their rule
//! ([`ShardingRule`]). An op without a rule needs its operands whole.

mod arithmetic;
mod image;
mod index;
mod movement;

use crate::{
    dtype::DType,
    graph::{Graph, NodeDef, Outlet},
    infer::{InputFacts, OpContext, normalize_axis},
    op::{Lowering, OpDef, ShardingRule},
    pass::execution::constant,
    shape::Shape,
};
use smallvec::SmallVec;

use super::sharding::TermMerge;

/// The factor of each dimension of a tensor; `None` is a dimension that must be whole.
pub(super) type Dims = SmallVec<[Option<usize>; 6]>;

/// A shape operand that is another one where factors are split: its entries, each with the factor whose
/// parts it counts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct SizesOperand {
    pub(super) input: usize,
    pub(super) entries: Vec<(i64, Option<usize>)>,
}

/// The factors of a node.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Factors {
    /// Of each operand; one that is whole has none.
    pub(super) operands: Vec<Option<Dims>>,
    /// Of each result.
    pub(super) results: Vec<Dims>,
    /// The reductions that merge terms, for factors that are contracted.
    pub(super) merges: Vec<(usize, TermMerge)>,
    /// Shape operands that change.
    pub(super) sizes: Vec<SizesOperand>,
}

/// A node, with what rules ask of it.
pub(super) struct RuleCall<'a> {
    pub(super) graph: &'a Graph,
    pub(super) node: &'a NodeDef,
    pub(super) op: &'static OpDef,
}

impl<'a> RuleCall<'a> {
    fn input(&self, index: usize) -> Option<Outlet> {
        self.node.inputs().get(index).copied()
    }

    /// The shape of an operand, if it is known.
    fn shape(&self, index: usize) -> Option<Shape> {
        self.graph.ty(self.input(index)?)?.shape.known()
    }

    /// The shape of a result, if it is known.
    fn result(&self, index: usize) -> Option<Shape> {
        self.node.outputs().get(index)?.shape.known()
    }

    /// The dtype of a result.
    fn result_dtype(&self) -> Option<DType> {
        self.node.outputs().first().map(|ty| ty.dtype)
    }

    /// The integers of a constant operand.
    fn ints(&self, index: usize) -> Option<Vec<i64>> {
        constant(self.graph, self.input(index)?)?.to_i64s().ok()
    }

    /// The axis that a constant operand names, of a tensor of this rank.
    fn axis(&self, index: usize, rank: usize) -> Option<usize> {
        let &[axis] = self.ints(index)?.as_slice() else { return None };
        normalize_axis(axis, rank).ok()
    }

    fn int(&self, attr: &str) -> Option<i64> {
        self.node.attrs.int(attr).ok()
    }

    fn flag(&self, attr: &str) -> bool {
        self.node.attrs.bool(attr).unwrap_or(false)
    }

    /// Runs `look` with the call as shape functions see it.
    fn with_context<R>(&self, look: impl FnOnce(&OpContext<'_>) -> Option<R>) -> Option<R> {
        let mut facts: SmallVec<[InputFacts<'_>; 4]> = SmallVec::new();
        for &input in self.node.inputs() {
            let ty = self.graph.ty(input)?;
            facts.push(InputFacts { ty, value: constant(self.graph, input) });
        }
        look(&OpContext::new(self.op, &self.node.attrs, &facts).ok()?)
    }
}

/// The factors of a node; `None` where there is no rule, or shapes are not known.
pub(super) fn factors(call: &RuleCall<'_>) -> Option<Factors> {
    let n_inputs = call.node.inputs().len();
    match call.op.lowering {
        Lowering::Elementwise(_) | Lowering::Fused => arithmetic::elementwise(call),
        Lowering::Reduce(kind) => arithmetic::reduction(call, kind),
        Lowering::Alias(_)
        | Lowering::View(_)
        | Lowering::Composite(_)
        | Lowering::Kernel
        | Lowering::HostKernel(_)
        | Lowering::Runtime
        | Lowering::Interface => {
            let mut factors = stated(call, call.op.sharding?)?;
            factors.operands.resize(n_inputs, None);
            Some(factors)
        }
    }
}

/// The factors by the rule that a record states.
fn stated(call: &RuleCall<'_>, rule: ShardingRule) -> Option<Factors> {
    match rule {
        ShardingRule::Unchanged => arithmetic::unchanged(call),
        ShardingRule::Rows => arithmetic::rows(call),
        ShardingRule::MatMul => arithmetic::matmul(call),
        ShardingRule::BatchMatMul => arithmetic::batch_matmul(call),
        ShardingRule::CrossEntropy => arithmetic::cross_entropy(call),
        ShardingRule::SparseCrossEntropy => arithmetic::sparse_cross_entropy(call),
        ShardingRule::TopK => arithmetic::top_k(call),
        ShardingRule::ArgExtreme => index::arg_extreme(call),
        ShardingRule::Scan => index::scan(call),
        ShardingRule::Gather => index::gather(call),
        ShardingRule::InTopK => index::in_top_k(call),
        ShardingRule::Matrices => index::matrices(call),
        ShardingRule::OneHot => index::one_hot(call),
        ShardingRule::Scatter => index::scatter(call),
        ShardingRule::SegmentSum => index::segment_sum(call),
        ShardingRule::Batch => image::batch(call),
        ShardingRule::BatchOfAll => image::batch_of_all(call),
        ShardingRule::PoolGrad => image::pool_grad(call),
        ShardingRule::Conv => image::conv(call),
        ShardingRule::FilterGrad => image::filter_grad(call),
        ShardingRule::InputGrad => image::input_grad(call),
        ShardingRule::BroadcastTo => movement::broadcast_to(call),
        ShardingRule::Concat => movement::concat(call),
        ShardingRule::Pad => movement::pad(call),
        ShardingRule::Pack => movement::pack(call),
        ShardingRule::Unpack => movement::unpack(call),
        ShardingRule::Reverse => movement::reverse(call),
        ShardingRule::Slice => movement::slice(call),
        ShardingRule::Split => movement::split(call),
        ShardingRule::StridedSlice => movement::strided_slice(call),
        ShardingRule::StridedSliceGrad => movement::strided_slice_grad(call),
        ShardingRule::Tile => movement::tile(call),
        ShardingRule::Transpose => movement::transpose(call),
    }
}

/// A factor for each of `rank` dimensions, the first of number `first`.
fn each(first: usize, rank: usize) -> Dims {
    (first..first + rank).map(Some).collect()
}

/// A factor for each dimension but those of `whole`.
fn all_but(rank: usize, whole: impl Fn(usize) -> bool) -> Dims {
    (0..rank).map(|axis| (!whole(axis)).then_some(axis)).collect()
}

/// Operand 0 and the only result have these factors.
fn same(dims: Dims) -> Option<Factors> {
    Some(Factors { operands: vec![Some(dims.clone())], results: vec![dims], ..Factors::default() })
}

#[cfg(test)]
mod tests;
