//! Gradients of products of matrices.

use super::{Backprop, Grads, grads};
use crate::{
    attr::Attrs,
    emit::{Value, call_with},
};

pub(crate) fn matmul<'e>(b: &Backprop<'e>) -> Grads<'e> {
    let (x, y, dy) = (b.x(0).adjoint(), b.x(1).adjoint(), b.dy(0));
    let product = |a: Value<'e>, b: Value<'e>, ta: bool, tb: bool| a.matmul(b, ta, tb);
    both(b.flag("transpose_a"), b.flag("transpose_b"), x, y, dy, product)
}

pub(crate) fn batch_matmul<'e>(b: &Backprop<'e>) -> Grads<'e> {
    let (x, y, dy) = (b.x(0), b.x(1), b.dy(0));
    let product = |a: Value<'e>, b: Value<'e>, ta: bool, tb: bool| a.batch_matmul(b, ta, tb);
    both(b.flag("adj_x"), b.flag("adj_y"), x, y, dy, product)
}

/// Both gradients of `op(x) · op(y)`, where `op` transposes as the flags say.
fn both<'e>(
    x_turned: bool,
    y_turned: bool,
    x: Value<'e>,
    y: Value<'e>,
    dy: Value<'e>,
    product: impl Fn(Value<'e>, Value<'e>, bool, bool) -> Value<'e>,
) -> Grads<'e> {
    let by_x = match x_turned {
        false => product(dy, y, false, !y_turned),
        true => product(y, dy, y_turned, true),
    };
    let by_y = match y_turned {
        false => product(x, dy, !x_turned, false),
        true => product(dy, x, true, x_turned),
    };
    grads([by_x, by_y])
}

pub(crate) fn bias_add<'e>(b: &Backprop<'e>) -> Grads<'e> {
    grads([b.dy(0), b.with_attrs("BiasAddGrad", [b.dy(0)])])
}

pub(crate) fn bias_add_v1<'e>(b: &Backprop<'e>) -> Grads<'e> {
    let format = Attrs::new().with("data_format", "NHWC");
    grads([b.dy(0), call_with("BiasAddGrad", format, [b.dy(0)])])
}
