//! Gradients of collective ops.
//!
//! Every member differentiates the sum of all members' losses, so that what a member has sent to others
//! gets gradients back from them: a sum goes back as a sum, a gather as a reduce-scatter, an exchange as
//! the inverse exchange. The call back has the keys of the call; members meet by key and by how often
//! they have used it.

use super::{Backprop, Grads, grads, only};
use crate::{
    attr::Attrs,
    emit::{Value, call, calls_with},
};

/// The inputs of the call with `dy` in place of the tensor.
fn with_cotangent<'e>(b: &Backprop<'e>) -> Vec<Value<'e>> {
    std::iter::once(b.dy(0)).chain(b.xs().iter().skip(1).copied()).collect()
}

/// The call itself, of the cotangent.
fn again<'e>(b: &Backprop<'e>) -> Value<'e> {
    calls_with(b.op.name, b.own_attrs(), &with_cotangent(b)).at(0)
}

pub(crate) fn all_to_all<'e>(b: &Backprop<'e>) -> Grads<'e> {
    grads([again(b)])
}

pub(crate) fn reduce<'e>(b: &Backprop<'e>) -> Grads<'e> {
    match b.string("merge_op") {
        "Add" => grads([again(b)]),
        _ => b.unsupported("its gradient for other reductions than sums and means"),
    }
}

pub(crate) fn reduce_communicator<'e>(b: &Backprop<'e>) -> Grads<'e> {
    match b.string("reduction") {
        "Add" => grads([again(b)]),
        _ => b.unsupported("its gradient for other reductions than sums"),
    }
}

/// The attributes that gather and reduce-scatter share.
fn shared_attrs(b: &Backprop<'_>) -> Attrs {
    let is_shared = |name: &str| {
        matches!(
            name,
            "communication_hint" | "timeout_seconds" | "is_stateless" | "Nordering_token"
        )
    };
    b.own_attrs().iter().filter(|(name, _)| is_shared(name)).map(owned).collect()
}

fn owned<'a>(
    (name, value): (&'a str, &crate::attr::AttrValue),
) -> (&'a str, crate::attr::AttrValue) {
    (name, value.clone())
}

/// The tensors that say which group and which call, of ops that hold them as attributes or inputs.
fn keys<'e>(b: &Backprop<'e>) -> Vec<Value<'e>> {
    match b.xs() {
        [_] => ["group_size", "group_key", "instance_key"]
            .map(|name| b.x(0).literal(i32::try_from(b.int(name)).unwrap_or(i32::MAX)))
            .to_vec(),
        [_, keys @ ..] => keys.to_vec(),
        [] => Vec::new(),
    }
}

pub(crate) fn gather<'e>(b: &Backprop<'e>) -> Grads<'e> {
    let attrs = shared_attrs(b).with("merge_op", "Add").with("final_op", "Id");
    let inputs: Vec<Value<'e>> = std::iter::once(b.dy(0)).chain(keys(b)).collect();
    grads([calls_with("CollectiveReduceScatterV2", attrs, &inputs).at(0)])
}

pub(crate) fn reduce_scatter<'e>(b: &Backprop<'e>) -> Grads<'e> {
    if b.string("merge_op") != "Add" {
        return b.unsupported("its gradient for other reductions than sums and means");
    }
    let all = calls_with("CollectiveGatherV2", shared_attrs(b), &with_cotangent(b)).at(0);
    match b.string("final_op") {
        "Div" => grads([call("RealDiv", [all, b.x(1).cast(all.dtype())])]),
        _ => grads([all]),
    }
}

pub(crate) fn permute<'e>(b: &Backprop<'e>) -> Grads<'e> {
    let axis = b.vector(&[1i32]);
    let back = call("ReverseV2", [b.x(1), axis]);
    only(0, call("CollectivePermute", [b.dy(0), back]))
}

pub(crate) fn cross_replica_sum<'e>(b: &Backprop<'e>) -> Grads<'e> {
    only(0, again(b))
}

/// The name of the call back is one of its own, as in TensorFlow.
pub(crate) fn nccl_all_reduce<'e>(b: &Backprop<'e>) -> Grads<'e> {
    if b.string("reduction") != "sum" {
        return b.unsupported("its gradient for other reductions than sums");
    }
    let name = format!("{}_grad", b.string("shared_name"));
    let attrs = b.own_attrs().with("shared_name", name.as_str());
    grads([calls_with("NcclAllReduce", attrs, &[b.dy(0)]).at(0)])
}

pub(crate) fn nccl_reduce<'e>(b: &Backprop<'e>) -> Grads<'e> {
    if b.string("reduction") != "sum" {
        return b.unsupported("its gradient for other reductions than sums");
    }
    b.xs().iter().map(|_| Some(b.dy(0).into())).collect()
}
