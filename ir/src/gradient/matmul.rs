//! Gradients of products of matrices.

use super::{Backprop, Grads};
use crate::{
    attr::Attrs,
    emit::{Value, call_with},
};

pub(crate) fn matmul<'e>(b: &Backprop<'e>) -> Grads<'e> {
    let factors = [b.x(0).adjoint(), b.x(1).adjoint()];
    let matmul = |a: Value<'e>, b: Value<'e>, ta: bool, tb: bool| a.matmul(b, ta, tb);
    both(b, factors, [b.flag("transpose_a"), b.flag("transpose_b")], matmul)
}

pub(crate) fn batch_matmul<'e>(b: &Backprop<'e>) -> Grads<'e> {
    let matmul = |a: Value<'e>, b: Value<'e>, ta: bool, tb: bool| a.batch_matmul(b, ta, tb);
    both(b, [b.x(0), b.x(1)], [b.flag("adj_x"), b.flag("adj_y")], matmul)
}

/// Both gradients of `op(x) · op(y)`, where `op` transposes as the flags say.
fn both<'e>(
    b: &Backprop<'e>,
    [x, y]: [Value<'e>; 2],
    [x_turned, y_turned]: [bool; 2],
    product: impl Fn(Value<'e>, Value<'e>, bool, bool) -> Value<'e>,
) -> Grads<'e> {
    let dy = b.dy(0);
    b.both(
        || match x_turned {
            false => product(dy, y, false, !y_turned),
            true => product(y, dy, y_turned, true),
        },
        || match y_turned {
            false => product(x, dy, !x_turned, false),
            true => product(dy, x, true, x_turned),
        },
    )
}

pub(crate) fn bias_add<'e>(b: &Backprop<'e>) -> Grads<'e> {
    b.both(|| b.dy(0), || b.with_attrs("BiasAddGrad", [b.dy(0)]))
}

pub(crate) fn bias_add_v1<'e>(b: &Backprop<'e>) -> Grads<'e> {
    let format = Attrs::new().with("data_format", "NHWC");
    b.both(|| b.dy(0), || call_with("BiasAddGrad", format, [b.dy(0)]))
}
