//! Rules of ops that move elements: dimensions that they leave whole may be split.

use super::{Dims, Factors, RuleCall, SizesOperand, all_but, each, same};
use crate::{
    infer::normalize_axis,
    strided_slice::{SliceAxis, slice_axes},
};

pub(super) fn broadcast_to(call: &RuleCall<'_>) -> Option<Factors> {
    let (operand, result) = (call.shape(0)?, call.result(0)?);
    let before = result.rank().checked_sub(operand.rank())?;
    let kept = |axis: usize| axis >= before && operand[axis - before] == result[axis];
    let dims = all_but(result.rank(), |axis| !kept(axis));
    let entries = result.iter().zip(&dims).map(|(&size, &factor)| (size as i64, factor)).collect();
    let operands = vec![Some(dims[before..].into())];
    let sizes = vec![SizesOperand { input: 1, entries }];
    Some(Factors { operands, results: vec![dims], sizes, ..Factors::default() })
}

pub(super) fn concat(call: &RuleCall<'_>) -> Option<Factors> {
    let n = call.node.inputs().len().checked_sub(1)?;
    let rank = call.result(0)?.rank();
    let axis = call.axis(n, rank)?;
    let dims = all_but(rank, |own| own == axis);
    Some(Factors {
        operands: vec![Some(dims.clone()); n],
        results: vec![dims],
        ..Factors::default()
    })
}

pub(super) fn pack(call: &RuleCall<'_>) -> Option<Factors> {
    let rank = call.shape(0)?.rank();
    let axis = normalize_axis(call.int("axis")?, rank + 1).ok()?;
    let mut result = each(0, rank);
    result.insert(axis, None);
    let operands = vec![Some(each(0, rank)); call.node.inputs().len()];
    Some(Factors { operands, results: vec![result], ..Factors::default() })
}

pub(super) fn unpack(call: &RuleCall<'_>) -> Option<Factors> {
    let rank = call.shape(0)?.rank();
    let axis = normalize_axis(call.int("axis")?, rank).ok()?;
    let operand = all_but(rank, |own| own == axis);
    let mut result = operand.clone();
    result.remove(axis);
    let results = vec![result; call.node.outputs().len()];
    Some(Factors { operands: vec![Some(operand)], results, ..Factors::default() })
}

pub(super) fn pad(call: &RuleCall<'_>) -> Option<Factors> {
    let (rank, paddings) = (call.shape(0)?.rank(), call.ints(1)?);
    if paddings.len() != 2 * rank {
        return None;
    }
    same(all_but(rank, |axis| paddings[2 * axis..2 * axis + 2] != [0, 0]))
}

pub(super) fn reverse(call: &RuleCall<'_>) -> Option<Factors> {
    let rank = call.shape(0)?.rank();
    let axes: Result<Vec<usize>, _> =
        call.ints(1)?.into_iter().map(|axis| normalize_axis(axis, rank)).collect();
    let axes = axes.ok()?;
    same(all_but(rank, |axis| axes.contains(&axis)))
}

pub(super) fn slice(call: &RuleCall<'_>) -> Option<Factors> {
    let (operand, result) = (call.shape(0)?, call.result(0)?);
    let dims = all_but(operand.rank(), |axis| operand[axis] != result[axis]);
    let entries = result.iter().zip(&dims).map(|(&size, &factor)| (size as i64, factor)).collect();
    let mut factors = same(dims)?;
    factors.sizes.push(SizesOperand { input: 2, entries });
    Some(factors)
}

pub(super) fn split(call: &RuleCall<'_>) -> Option<Factors> {
    let rank = call.shape(0)?.rank();
    let axis = call.axis(2, rank)?;
    let dims = all_but(rank, |own| own == axis);
    let results = vec![dims.clone(); call.node.outputs().len()];
    Some(Factors { operands: vec![Some(dims)], results, ..Factors::default() })
}

/// The factors of the operand and the result of a strided slice of a tensor, and the ends of its ranges.
fn sliced(
    axes: &[SliceAxis],
    ends: &[i64],
    rank: usize,
) -> (Dims, Dims, Vec<(i64, Option<usize>)>) {
    let (mut operand, mut result) = (all_but(rank, |_| true), Dims::new());
    let mut entries: Vec<(i64, Option<usize>)> = ends.iter().map(|&end| (end, None)).collect();
    for part in axes {
        match part {
            SliceAxis::New => result.push(None),
            SliceAxis::Whole { axis, size, position } => {
                operand[*axis] = Some(*axis);
                result.push(Some(*axis));
                if let Some(position) = position {
                    entries[*position] = (*size as i64, Some(*axis));
                }
            }
            SliceAxis::Part => result.push(None),
            SliceAxis::Gone => {}
        }
    }
    (operand, result, entries)
}

pub(super) fn strided_slice(call: &RuleCall<'_>) -> Option<Factors> {
    let (shape, ends) = (call.shape(0)?, call.ints(2)?);
    let axes = call.with_context(|context| slice_axes(context, &shape).ok())?;
    let (operand, result, entries) = sliced(&axes, &ends, shape.rank());
    let sizes = vec![SizesOperand { input: 2, entries }];
    Some(Factors {
        operands: vec![Some(operand)],
        results: vec![result],
        sizes,
        ..Factors::default()
    })
}

pub(super) fn strided_slice_grad(call: &RuleCall<'_>) -> Option<Factors> {
    let (shape, ends) = (call.result(0)?, call.ints(2)?);
    let axes = call.with_context(|context| slice_axes(context, &shape).ok())?;
    let (whole, part, entries) = sliced(&axes, &ends, shape.rank());
    let dims = shape.iter().zip(&whole).map(|(&size, &factor)| (size as i64, factor)).collect();
    let sizes = vec![SizesOperand { input: 0, entries: dims }, SizesOperand { input: 2, entries }];
    let operands = vec![None, None, None, None, Some(part)];
    Some(Factors { operands, results: vec![whole], sizes, ..Factors::default() })
}

pub(super) fn tile(call: &RuleCall<'_>) -> Option<Factors> {
    let (rank, multiples) = (call.shape(0)?.rank(), call.ints(1)?);
    if multiples.len() != rank {
        return None;
    }
    same(all_but(rank, |axis| multiples[axis] != 1))
}

pub(super) fn transpose(call: &RuleCall<'_>) -> Option<Factors> {
    let rank = call.shape(0)?.rank();
    let order: Option<Vec<usize>> =
        call.ints(1)?.into_iter().map(|axis| normalize_axis(axis, rank).ok()).collect();
    let result = order?.into_iter().map(Some).collect();
    Some(Factors {
        operands: vec![Some(each(0, rank))],
        results: vec![result],
        ..Factors::default()
    })
}
