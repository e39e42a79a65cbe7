//! Rules of elementwise ops, reductions, matmuls and what works row by row.

use super::{Dims, Factors, RuleCall, all_but, each, same};
use crate::{
    op::ReduceKind,
    pass::spmd::sharding::{TermMerge, to_merge},
    shape::Shape,
};

/// The factors of an operand that broadcasts to a result, which has a factor for each dimension.
fn broadcast(operand: &Shape, result: &Shape) -> Option<Dims> {
    let before = result.rank().checked_sub(operand.rank())?;
    let factor =
        |(axis, &size): (usize, &usize)| (size == result[before + axis]).then_some(before + axis);
    Some(operand.iter().enumerate().map(factor).collect())
}

pub(super) fn elementwise(call: &RuleCall<'_>) -> Option<Factors> {
    let result = call.result(0)?;
    let operand = |index| broadcast(&call.shape(index)?, &result).map(Some);
    let operands: Option<Vec<Option<Dims>>> = (0..call.node.inputs().len()).map(operand).collect();
    let results = vec![each(0, result.rank())];
    Some(Factors { operands: operands?, results, ..Factors::default() })
}

pub(super) fn reduction(call: &RuleCall<'_>, kind: ReduceKind) -> Option<Factors> {
    let (shape, dtype) = (call.shape(0)?, call.result_dtype()?);
    let reduced = crate::infer::reduced_axes(&call.ints(1)?, shape.rank()).ok()?;
    let merge = match kind {
        ReduceKind::Sum => Some(TermMerge::Sum),
        ReduceKind::Mean => Some(TermMerge::Mean).filter(|_| shape.num_elements() > 0),
        ReduceKind::Prod => Some(TermMerge::Prod),
        ReduceKind::Max | ReduceKind::Any => Some(TermMerge::Max),
        ReduceKind::Min | ReduceKind::All => Some(TermMerge::Min),
        ReduceKind::EuclideanNorm => None,
    };
    let merge = merge.filter(|&merge| to_merge(dtype, merge).is_some());
    let operand = all_but(shape.rank(), |axis| reduced[axis] && merge.is_none());
    let keep = call.flag("keep_dims");
    let kept = reduced.iter().enumerate().filter(|(_, reduced)| keep || !**reduced);
    let result = kept.map(|(axis, &reduced)| (!reduced).then_some(axis)).collect();
    let axes = (0..shape.rank()).filter(|&axis| reduced[axis]);
    let merges = merge.map_or_else(Vec::new, |merge| axes.map(|axis| (axis, merge)).collect());
    Some(Factors {
        operands: vec![Some(operand), None],
        results: vec![result],
        merges,
        sizes: Vec::new(),
    })
}

/// The merge of a contraction, as a list for a factor.
fn contraction(call: &RuleCall<'_>, factor: usize) -> Vec<(usize, TermMerge)> {
    let can = call.result_dtype().and_then(|dtype| to_merge(dtype, TermMerge::Sum)).is_some();
    if can { vec![(factor, TermMerge::Sum)] } else { Vec::new() }
}

const ROWS: usize = 0;
const COLUMNS: usize = 1;
const INNER: usize = 2;

pub(super) fn matmul(call: &RuleCall<'_>) -> Option<Factors> {
    let order = |swapped, a, b| if swapped { [Some(b), Some(a)] } else { [Some(a), Some(b)] };
    let lhs = order(call.flag("transpose_a"), ROWS, INNER);
    let rhs = order(call.flag("transpose_b"), INNER, COLUMNS);
    let (lhs, rhs): (Dims, Dims) = (lhs.into_iter().collect(), rhs.into_iter().collect());
    let results = vec![[Some(ROWS), Some(COLUMNS)].into_iter().collect()];
    let merges = contraction(call, INNER);
    Some(Factors { operands: vec![Some(lhs), Some(rhs)], results, merges, sizes: Vec::new() })
}

pub(super) fn batch_matmul(call: &RuleCall<'_>) -> Option<Factors> {
    let (lhs, rhs, result) = (call.shape(0)?, call.shape(1)?, call.result(0)?);
    let n_batch = result.rank().checked_sub(2)?;
    let batch = Shape::new(result[..n_batch].iter().copied()).ok()?;
    let operand = |shape: &Shape, swapped: bool, [a, b]: [usize; 2]| {
        let own = Shape::new(shape[..shape.rank().checked_sub(2)?].iter().copied()).ok()?;
        let last = if swapped { [b, a] } else { [a, b] };
        let mut dims = broadcast(&own, &batch)?;
        dims.extend(last.map(|factor| Some(n_batch + factor)));
        Some(dims)
    };
    let lhs = operand(&lhs, call.flag("adj_x"), [ROWS, INNER])?;
    let rhs = operand(&rhs, call.flag("adj_y"), [INNER, COLUMNS])?;
    let results = vec![each(0, n_batch + 2)];
    let merges = contraction(call, n_batch + INNER);
    Some(Factors { operands: vec![Some(lhs), Some(rhs)], results, merges, sizes: Vec::new() })
}

pub(super) fn unchanged(call: &RuleCall<'_>) -> Option<Factors> {
    same(each(0, call.shape(0)?.rank()))
}

/// Each row of the last dimension by itself.
pub(super) fn rows(call: &RuleCall<'_>) -> Option<Factors> {
    let rank = call.shape(0)?.rank();
    same(all_but(rank, |axis| axis + 1 == rank))
}

pub(super) fn cross_entropy(call: &RuleCall<'_>) -> Option<Factors> {
    let (features, labels) = (call.shape(0)?, call.shape(1)?);
    if features != labels || features.rank() != 2 {
        return None;
    }
    let matrix: Dims = [Some(0), None].into_iter().collect();
    let operands = vec![Some(matrix.clone()), Some(matrix.clone())];
    Some(Factors { operands, results: vec![each(0, 1), matrix], ..Factors::default() })
}

pub(super) fn sparse_cross_entropy(call: &RuleCall<'_>) -> Option<Factors> {
    let rank = call.shape(1)?.rank();
    if call.shape(0)?.rank() != rank + 1 {
        return None;
    }
    let rows = all_but(rank + 1, |axis| axis == rank);
    let operands = vec![Some(rows.clone()), Some(each(0, rank))];
    Some(Factors { operands, results: vec![each(0, rank), rows], ..Factors::default() })
}

pub(super) fn top_k(call: &RuleCall<'_>) -> Option<Factors> {
    let rank = call.shape(0)?.rank();
    let dims = all_but(rank, |axis| axis + 1 == rank);
    let results = vec![dims.clone(), dims.clone()];
    Some(Factors { operands: vec![Some(dims), None], results, ..Factors::default() })
}
