//! Gradients of pooling.

use super::{Backprop, Grads, grads, only, shapes};
use crate::{
    dtype::DType,
    emit::{call, calls_with},
};

pub(crate) fn avg_pool<'e>(b: &Backprop<'e>) -> Grads<'e> {
    grads([b.with_attrs("AvgPoolGrad", [shapes::shape_i32(b.x(0)), b.dy(0)])])
}

pub(crate) fn avg_pool_grad<'e>(b: &Backprop<'e>) -> Grads<'e> {
    only(1, b.with_attrs("AvgPool", [b.dy(0)]))
}

pub(crate) fn avg_pool_3d<'e>(b: &Backprop<'e>) -> Grads<'e> {
    grads([b.with_attrs("AvgPool3DGrad", [shapes::shape_i32(b.x(0)), b.dy(0)])])
}

pub(crate) fn avg_pool_3d_grad<'e>(b: &Backprop<'e>) -> Grads<'e> {
    only(1, b.with_attrs("AvgPool3D", [b.dy(0)]))
}

pub(crate) fn max_pool<'e>(b: &Backprop<'e>) -> Grads<'e> {
    grads([b.with_attrs("MaxPoolGrad", [b.x(0), b.y(0), b.dy(0)])])
}

pub(crate) fn max_pool_v2<'e>(b: &Backprop<'e>) -> Grads<'e> {
    grads([b.with_attrs("MaxPoolGradV2", [b.x(0), b.y(0), b.dy(0), b.x(1), b.x(2)])])
}

pub(crate) fn max_pool_3d<'e>(b: &Backprop<'e>) -> Grads<'e> {
    grads([b.with_attrs("MaxPool3DGrad", [b.x(0), b.y(0), b.dy(0)])])
}

/// Of the gradient of a pool: linear in the gradient it takes, flat in what the pool saw and gave.
fn linear<'e>(b: &Backprop<'e>, other: &str) -> Grads<'e> {
    let mut inputs = b.xs().to_vec();
    inputs[2] = b.dy(0);
    let by_inner = calls_with(other, b.own_attrs(), &inputs).at(0);
    grads([b.x(0).zeros_like(), b.x(1).zeros_like(), by_inner])
}

pub(crate) fn max_pool_grad<'e>(b: &Backprop<'e>) -> Grads<'e> {
    linear(b, "MaxPoolGradGrad")
}

pub(crate) fn max_pool_grad_grad<'e>(b: &Backprop<'e>) -> Grads<'e> {
    linear(b, "MaxPoolGrad")
}

pub(crate) fn max_pool_grad_v2<'e>(b: &Backprop<'e>) -> Grads<'e> {
    linear(b, "MaxPoolGradGradV2")
}

pub(crate) fn max_pool_grad_grad_v2<'e>(b: &Backprop<'e>) -> Grads<'e> {
    linear(b, "MaxPoolGradV2")
}

pub(crate) fn max_pool_3d_grad<'e>(b: &Backprop<'e>) -> Grads<'e> {
    linear(b, "MaxPool3DGradGrad")
}

pub(crate) fn max_pool_3d_grad_grad<'e>(b: &Backprop<'e>) -> Grads<'e> {
    linear(b, "MaxPool3DGrad")
}

/// The places of the maxima are known: numbers within one image, or within the batch.
pub(crate) fn max_pool_with_argmax<'e>(b: &Backprop<'e>) -> Grads<'e> {
    let (x, places, dy) = (b.x(0), b.y(1).cast(DType::I64), b.dy(0));
    let batch = shapes::dim(x, 0);
    let size = shapes::size(x);
    let places = if b.flag("include_batch_in_index") {
        places
    } else {
        let per_image = call("FloorDiv", [size, batch.maximum(x.literal(1i64))]);
        places + (shapes::range(batch) * per_image).reshape(&[-1, 1, 1, 1])
    };
    let sum = call("UnsortedSegmentSum", [dy.reshape(&[-1]), places.reshape(&[-1]), size]);
    grads([sum.reshape_like(x)])
}
