//! Gradients of reductions and running results.

use super::{Backprop, Grads, grads, shapes};
use crate::{
    attr::Attrs,
    dtype::DType,
    emit::{Value, call, call_with},
};

/// A value of the shape of the result, under the shape it has with the reduced axes kept.
fn kept<'e>(b: &Backprop<'e>, value: Value<'e>) -> Value<'e> {
    if b.flag("keep_dims") {
        return value;
    }
    value.reshape_to(shapes::kept_shape(b.x(0), b.x(1)))
}

pub(crate) fn sum<'e>(b: &Backprop<'e>) -> Grads<'e> {
    grads([kept(b, b.dy(0)).broadcast_to_vector(b.x(0).shape_vector())])
}

pub(crate) fn mean<'e>(b: &Backprop<'e>) -> Grads<'e> {
    let (x, y, dy) = b.unary();
    let count = match (x.partial_shape().known(), y.partial_shape().known()) {
        (Some(x), Some(y)) => dy.like((x.num_elements() / y.num_elements().max(1)) as f64),
        _ => {
            let one = x.literal(1i64);
            call("FloorDiv", [shapes::size(x), shapes::size(y).maximum(one)]).cast(dy.dtype())
        }
    };
    let spread = kept(b, dy).broadcast_to_vector(x.shape_vector());
    grads([spread / count])
}

/// Equal extremes share the gradient.
pub(crate) fn extreme<'e>(b: &Backprop<'e>) -> Grads<'e> {
    let (x, y, dy) = b.unary();
    let chosen = x.equal(kept(b, y)).cast(dy.dtype());
    let count = chosen.sum_over(b.x(1), true);
    grads([chosen / count * kept(b, dy)])
}

/// The product of all others, from running products from both ends, so that zeros do no harm.
pub(crate) fn product<'e>(b: &Backprop<'e>) -> Grads<'e> {
    let (x, dy) = (b.x(0), b.dy(0));
    let (Some(rank), Some(axes)) = (x.rank(), shapes::axes(b.x(1), x)) else {
        return b.postponed("its gradient needs a known rank and known axes");
    };
    let spread = kept(b, dy).broadcast_to_vector(x.shape_vector());
    if rank == 0 || axes.is_empty() {
        return grads([spread]);
    }
    let others = (0..rank).filter(|axis| !axes.contains(axis));
    let order: Vec<i64> = axes.iter().copied().chain(others).map(|axis| axis as i64).collect();
    let mut inverse = vec![0i64; rank];
    for (at, &axis) in order.iter().enumerate() {
        inverse[axis as usize] = at as i64;
    }
    let ordered = x.transpose(&order);
    let sizes = ordered.shape_vector();
    let n = axes.len() as i64;
    let count = shapes::product(shapes::part(sizes, 0, n));
    let rest = shapes::product(shapes::part(sizes, n, rank as i64 - n));
    let flat = ordered.reshape_to(shapes::join(&[count.reshape(&[1]), rest.reshape(&[1])]));
    let running = |reverse: bool| {
        let attrs = Attrs::new().with("exclusive", true).with("reverse", reverse);
        call_with("Cumprod", attrs, [flat.adjoint(), flat.literal(0i64)])
    };
    let others = (running(false) * running(true)).reshape_to(sizes).transpose(&inverse);
    grads([spread * others.reshape_like(x)])
}

pub(crate) fn euclidean_norm<'e>(b: &Backprop<'e>) -> Grads<'e> {
    let (x, y, dy) = b.unary();
    grads([x / kept(b, y / dy)])
}

/// The running result from the other end.
fn reversed<'e>(b: &Backprop<'e>, name: &str, value: Value<'e>) -> Value<'e> {
    let attrs =
        Attrs::new().with("exclusive", b.flag("exclusive")).with("reverse", !b.flag("reverse"));
    call_with(name, attrs, [value, b.x(1)])
}

pub(crate) fn running_sum<'e>(b: &Backprop<'e>) -> Grads<'e> {
    grads([reversed(b, "Cumsum", b.dy(0))])
}

pub(crate) fn running_product<'e>(b: &Backprop<'e>) -> Grads<'e> {
    let (x, y, dy) = b.unary();
    let sum = reversed(b, "Cumsum", y * dy);
    grads([call("DivNoNan", [sum, x])])
}

/// In logarithms, for positive and negative gradients apart.
pub(crate) fn running_log_sum_exp<'e>(b: &Backprop<'e>) -> Grads<'e> {
    let (x, y, dy) = b.unary();
    let lowest = dy.like(lowest(dy.dtype()));
    let part = |log: Value<'e>| (reversed(b, "CumulativeLogsumexp", log - y) + x).exp();
    let positive = part(dy.greater(0.0).select(dy.log(), lowest));
    let negative = part(dy.less(0.0).select((-dy).log(), lowest));
    grads([positive - negative])
}

fn lowest(dtype: DType) -> f64 {
    match dtype {
        DType::F16 => -65504.0,
        DType::BF16 => -3.389_531_389_251_535_5e38,
        DType::F64 => f64::MIN,
        _ => f64::from(f32::MIN),
    }
}

/// The elements that equal the one chosen share its gradient.
pub(crate) fn nth_element<'e>(b: &Backprop<'e>) -> Grads<'e> {
    let (x, y, dy) = (b.x(0), b.y(0), b.dy(0));
    let last = x.literal(-1i64);
    let column = |value: Value<'e>| call("ExpandDims", [value, last]);
    let chosen = x.equal(column(y)).cast(dy.dtype());
    grads([chosen / chosen.sum(&[-1], true) * column(dy)])
}

pub(crate) fn all<'e>(b: &Backprop<'e>) -> Grads<'e> {
    let total = sum_all(b.dy(0));
    super::only(1, total)
}

/// The sum of all elements.
pub(crate) fn sum_all(x: Value<'_>) -> Value<'_> {
    match x.rank() {
        Some(rank) => x.sum(&(0..rank as i64).collect::<Vec<_>>(), false),
        None => x.sum_over(shapes::range(shapes::rank(x)), false),
    }
}

/// The gradient of `0.5 * sum(x²)`.
pub(crate) fn half_squares<'e>(b: &Backprop<'e>) -> Grads<'e> {
    b.times(b.x(0))
}
