//! Rules of convolutions and pools: images of a batch are apart, and so are channels where each result has
//! its own.

use super::{Dims, Factors, RuleCall, SizesOperand, all_but};
use crate::pass::spmd::sharding::{TermMerge, to_merge};

/// The batch dimension of a tensor of images.
fn images(rank: usize) -> Dims {
    all_but(rank, |axis| axis > 0)
}

pub(super) fn batch(call: &RuleCall<'_>) -> Option<Factors> {
    super::same(images(call.shape(0)?.rank()))
}

pub(super) fn batch_of_all(call: &RuleCall<'_>) -> Option<Factors> {
    let dims = images(call.shape(0)?.rank());
    let operands = vec![Some(dims.clone()); call.node.inputs().len()];
    Some(Factors { operands, results: vec![dims], ..Factors::default() })
}

pub(super) fn conv(call: &RuleCall<'_>) -> Option<Factors> {
    let explicit = call.node.attrs.string("padding").ok()? == "EXPLICIT";
    let dims = images(call.shape(0)?.rank());
    let results = vec![images(call.result(0)?.rank())];
    (!explicit).then(|| Factors { operands: vec![Some(dims), None], results, ..Factors::default() })
}

/// The sizes of images, of which devices have some.
fn image_sizes(call: &RuleCall<'_>, input: usize) -> Option<SizesOperand> {
    let mut entries: Vec<(i64, Option<usize>)> =
        call.ints(input)?.into_iter().map(|size| (size, None)).collect();
    let rank = call.result(0)?.rank();
    // Some callers name the spatial sizes only.
    if entries.len() == rank {
        entries[0].1 = Some(0);
    }
    Some(SizesOperand { input, entries })
}

pub(super) fn input_grad(call: &RuleCall<'_>) -> Option<Factors> {
    let (dy, result) = (images(call.shape(2)?.rank()), images(call.result(0)?.rank()));
    let sizes = vec![image_sizes(call, 0)?];
    let operands = vec![None, None, Some(dy)];
    Some(Factors { operands, results: vec![result], sizes, ..Factors::default() })
}

pub(super) fn pool_grad(call: &RuleCall<'_>) -> Option<Factors> {
    let (dy, result) = (images(call.shape(1)?.rank()), images(call.result(0)?.rank()));
    let sizes = vec![image_sizes(call, 0)?];
    Some(Factors {
        operands: vec![None, Some(dy)],
        results: vec![result],
        sizes,
        ..Factors::default()
    })
}

pub(super) fn filter_grad(call: &RuleCall<'_>) -> Option<Factors> {
    let (x, dy) = (images(call.shape(0)?.rank()), images(call.shape(2)?.rank()));
    let merges = match to_merge(call.result_dtype()?, TermMerge::Sum) {
        Some(_) => vec![(0, TermMerge::Sum)],
        None => Vec::new(),
    };
    let results = vec![all_but(call.result(0)?.rank(), |_| true)];
    Some(Factors { operands: vec![Some(x), None, Some(dy)], results, merges, sizes: Vec::new() })
}
