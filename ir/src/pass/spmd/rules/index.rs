//! Rules of ops that work with indices.

use super::{Dims, Factors, RuleCall, SizesOperand, all_but, each, same};
use crate::{
    infer::normalize_axis,
    pass::spmd::sharding::{TermMerge, to_merge},
};

pub(super) fn arg_extreme(call: &RuleCall<'_>) -> Option<Factors> {
    let rank = call.shape(0)?.rank();
    let axis = call.axis(1, rank)?;
    let operand = all_but(rank, |own| own == axis);
    let mut result = operand.clone();
    result.remove(axis);
    Some(Factors { operands: vec![Some(operand)], results: vec![result], ..Factors::default() })
}

pub(super) fn scan(call: &RuleCall<'_>) -> Option<Factors> {
    let rank = call.shape(0)?.rank();
    let axis = call.axis(1, rank)?;
    same(all_but(rank, |own| own == axis))
}

pub(super) fn gather(call: &RuleCall<'_>) -> Option<Factors> {
    let (params, indices) = (call.shape(0)?, call.shape(1)?);
    let axis = call.axis(2, params.rank())?;
    let n_batch = call.int("batch_dims")?;
    let n_batch = if n_batch < 0 { n_batch + indices.rank() as i64 } else { n_batch };
    let n_batch = usize::try_from(n_batch).ok().filter(|&n| n <= axis && n <= indices.rank())?;
    let operand = all_but(params.rank(), |own| own == axis);
    let own = each(params.rank(), indices.rank() - n_batch);
    let mut indices_dims = each(0, n_batch);
    indices_dims.extend(own.iter().copied());
    let mut result: Dims = operand[..axis].into();
    result.extend(own);
    result.extend_from_slice(&operand[axis + 1..]);
    let operands = vec![Some(operand), Some(indices_dims)];
    Some(Factors { operands, results: vec![result], ..Factors::default() })
}

pub(super) fn in_top_k(call: &RuleCall<'_>) -> Option<Factors> {
    let rows = all_but(call.shape(0)?.rank(), |axis| axis == 1);
    let operands = vec![Some(rows), Some(each(0, 1))];
    Some(Factors { operands, results: vec![each(0, 1)], ..Factors::default() })
}

/// Each matrix of the last two dimensions by itself.
pub(super) fn matrices(call: &RuleCall<'_>) -> Option<Factors> {
    let rank = call.shape(0)?.rank();
    same(all_but(rank, |axis| axis + 2 >= rank))
}

pub(super) fn one_hot(call: &RuleCall<'_>) -> Option<Factors> {
    let rank = call.shape(0)?.rank();
    let axis = normalize_axis(call.int("axis")?, rank + 1).ok()?;
    let mut result = each(0, rank);
    result.insert(axis, None);
    Some(Factors {
        operands: vec![Some(each(0, rank))],
        results: vec![result],
        ..Factors::default()
    })
}

/// The reductions that add up what devices scatter along these factors.
fn sums(call: &RuleCall<'_>, factors: std::ops::Range<usize>) -> Option<Vec<(usize, TermMerge)>> {
    let can = to_merge(call.result_dtype()?, TermMerge::Sum).is_some();
    Some(if can { factors.map(|factor| (factor, TermMerge::Sum)).collect() } else { Vec::new() })
}

pub(super) fn scatter(call: &RuleCall<'_>) -> Option<Factors> {
    let (indices, result) = (call.shape(0)?, call.result(0)?);
    let (&depth, outer) = indices.split_last()?;
    let n_outer = outer.len();
    let rest = each(n_outer, result.rank().checked_sub(depth)?);
    let mut indices_dims = each(0, n_outer);
    let mut updates = indices_dims.clone();
    indices_dims.push(None);
    updates.extend(rest.iter().copied());
    let mut dims = all_but(depth, |_| true);
    dims.extend(rest);
    let entries = result.iter().zip(&dims).map(|(&size, &factor)| (size as i64, factor)).collect();
    Some(Factors {
        operands: vec![Some(indices_dims), Some(updates)],
        results: vec![dims],
        merges: sums(call, 0..n_outer)?,
        sizes: vec![SizesOperand { input: 2, entries }],
    })
}

pub(super) fn segment_sum(call: &RuleCall<'_>) -> Option<Factors> {
    let (data, ids) = (call.shape(0)?, call.shape(1)?);
    let (n_ids, operand) = (ids.rank(), each(0, data.rank()));
    let mut result = all_but(1, |_| true);
    result.extend_from_slice(operand.get(n_ids..)?);
    Some(Factors {
        operands: vec![Some(operand), Some(each(0, n_ids))],
        results: vec![result],
        merges: sums(call, 0..n_ids)?,
        sizes: Vec::new(),
    })
}
