//! Scaled dot-product attention as one call.

use super::sets::FLOATS;
use crate::{
    dtype::DType,
    error::Result,
    infer::OpContext,
    op::*,
    shape::{PartialShape, Shape},
    work,
};
use smallvec::SmallVec;

pub(super) static OPS: &[OpDef] = &[OpDef {
    // `softmax(f(query × keyᵀ, others…)) × value`, where `f` is the scalar expression that the node
    // holds: of the score, input 0, and of `others`, which broadcast to the scores. Without one the
    // scores are as they are.
    //
    // Seen in their orders (dimension `i` is dimension `order[i]` of the tensor; all as they lie where
    // the list is empty), the operands are `[batch…, queries, depth]`, `[batch…, keys, depth]` and
    // `[batch…, keys, width]`, of one rank; sizes of a batch may be 1 and broadcast. The result has
    // dimension `output_order[i]` of `[batch…, queries, width]` at `i`. Where input `keep` of `others`
    // is false, weights are zeros, in sums that count them all.
    //
    // Products and sums are kept in `f32` for 16-bit floats; scores are rounded to `T`, weights are
    // not. A row whose scores are all -inf gives NaN, and so does one with NaN or +inf among them.
    name: "_FusedAttention",
    summary: "Averages values by how well their keys match queries.",
    inputs: &[
        arg("query", "T"),
        arg("key", "T"),
        arg("value", "T"),
        args_list("others", "Tothers"),
    ],
    outputs: &[arg("output", "T")],
    attrs: &[
        ty("T", FLOATS),
        types("Tothers"),
        ints_or("query_order", &[]),
        ints_or("key_order", &[]),
        ints_or("value_order", &[]),
        ints_or("output_order", &[]),
        int_or("keep", -1),
    ],
    infer: attention,
    lowering: Lowering::Kernel,
    multiply_adds: Some(multiply_adds),
    ..OpDef::PURE
}];

/// The sizes of an operand in the order in which it is used.
fn ordered(
    context: &OpContext<'_>,
    index: usize,
    order: &'static str,
) -> Result<SmallVec<[usize; 6]>> {
    let shape = context.known(index)?;
    let order = permutation(context, order, shape.rank())?;
    Ok(order.into_iter().map(|axis| shape[axis]).collect())
}

fn permutation(context: &OpContext<'_>, name: &'static str, rank: usize) -> Result<Vec<usize>> {
    let order = context.attrs.ints(name)?;
    if order.is_empty() {
        return Ok((0..rank).collect());
    }
    let mut sorted = order.to_vec();
    sorted.sort_unstable();
    if !sorted.iter().copied().eq(0..rank as i64) {
        return Err(context.wrong_attr(name, "an order of the dimensions", format!("{order:?}")));
    }
    Ok(order.iter().map(|&axis| axis as usize).collect())
}

/// Each row of the result scores all keys, and sums over their values.
fn multiply_adds(context: &OpContext<'_>) -> Option<u64> {
    let key = ordered(context, 1, "key_order").ok()?;
    let value = ordered(context, 2, "value_order").ok()?;
    let (&[.., keys, depth], &[.., width]) = (&key[..], &value[..]) else { return None };
    let rows = context.output(0).known()?.num_elements().checked_div(width)?;
    Some(work::product([rows, keys, depth + width]))
}

fn attention(context: &mut OpContext<'_>) -> Result<()> {
    let query = ordered(context, 0, "query_order")?;
    let key = ordered(context, 1, "key_order")?;
    let value = ordered(context, 2, "value_order")?;
    let rank = query.len();
    if rank < 2 || key.len() != rank || value.len() != rank {
        let ranks = format!("{rank}, {}, {}", key.len(), value.len());
        return Err(context.wrong(0, "of the rank of keys and values, 2 or more", ranks));
    }
    context.same("depths of queries and keys", Some(query[rank - 1]), Some(key[rank - 1]))?;
    context.same("numbers of keys and values", Some(key[rank - 2]), Some(value[rank - 2]))?;
    let own = |dims: &[usize]| Shape::new(dims[..rank - 2].iter().copied());
    let batch = own(&query)?.broadcast(&own(&key)?)?.broadcast(&own(&value)?)?;
    let matrices = |last: [usize; 2]| Shape::new(batch.iter().copied().chain(last));
    let scores = matrices([query[rank - 2], key[rank - 2]])?;
    for index in 3..context.n_inputs() {
        let shape = context.known(index)?;
        if shape.broadcast(&scores).ok().as_ref() != Some(&scores) {
            return Err(context.wrong(index, format!("one that broadcasts to {scores}"), shape));
        }
    }
    let keep = context.attrs.int("keep")?;
    let is_mask =
        |keep: usize| keep < context.n_inputs() - 3 && context.dtype(3 + keep) == DType::Bool;
    if keep != -1 && !usize::try_from(keep).is_ok_and(is_mask) {
        return Err(context.wrong_attr("keep", "-1 or the number of a mask", keep));
    }
    let averages = matrices([query[rank - 2], value[rank - 1]])?;
    let order = permutation(context, "output_order", rank)?;
    context.set(0, PartialShape::ranked(order.into_iter().map(|axis| Some(averages[axis]))));
    Ok(())
}
