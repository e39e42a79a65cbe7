//! Gradients of samples by the parameters of their distribution: by implicit reparameterization,
//! the sample moves so that its place in the distribution stays.
//!
//! M. Figurnov, S. Mohamed and A. Mnih, "Implicit reparameterization gradients" (2018).

use super::{Backprop, Grads, only, shapes};
use crate::emit::{Value, call};

/// By the shape of the distribution: minus what the distribution function changes by, over the
/// density.
pub(crate) fn gamma<'e>(b: &Backprop<'e>) -> Grads<'e> {
    let (alpha, y, dy) = (b.x(4), b.y(0), b.dy(0));
    let one_by_density = (y - (alpha - 1.0) * y.log() + call("Lgamma", [alpha])).exp();
    let moved = -(call("IgammaGradA", [alpha, y]) * one_by_density);
    only(4, shapes::sum_to_shape_of(dy * moved, alpha))
}

/// The standard normal distribution function.
fn distribution(x: Value<'_>) -> Value<'_> {
    0.5 * call("Erfc", [x * -std::f64::consts::FRAC_1_SQRT_2])
}

/// As in TensorFlow (`tensorflow/python/ops/random_grad.py`), the limits count in standard
/// deviations from the mean: they move with it.
pub(crate) fn truncated_normal<'e>(b: &Backprop<'e>) -> Grads<'e> {
    let (mean, deviation, y, dy) = (b.x(4), b.x(5), b.y(0), b.dy(0));
    let standard = |x: Value<'e>| (x - mean) / deviation;
    let (low, high, sample) = (standard(b.x(6)), standard(b.x(7)), standard(y));
    let below = distribution(low);
    let quantile = (distribution(sample) - below) / (distribution(high) - below);
    let by_limit = |limit: Value<'e>, share: Value<'e>| {
        share * (0.5 * (sample.square() - limit.square())).exp()
    };
    let sum =
        |by: Value<'e>, index: usize| Some(shapes::sum_to_shape_of(dy * by, b.x(index)).into());
    vec![
        None,
        None,
        None,
        None,
        sum(sample.ones_like(), 4),
        sum(sample, 5),
        sum(by_limit(low, 1.0 - quantile), 6),
        sum(by_limit(high, quantile), 7),
    ]
}
