//! Gradients of elementwise functions that take more than a line.

use super::{Backprop, Grads, grads, only};
use crate::{
    attr::Attrs,
    emit::{Value, call, call_with},
};

impl<'e> Backprop<'e> {
    /// The gradient of a function of one argument with this derivative.
    pub fn times(&self, derivative: Value<'e>) -> Grads<'e> {
        grads([self.dy(0) * derivative.adjoint()])
    }
}

/// `gradient` where `condition` holds, else 0.
pub(crate) fn where_true<'e>(condition: Value<'e>, gradient: Value<'e>) -> Value<'e> {
    condition.select(gradient, gradient.like(0.0))
}

/// `gradient` where `condition` does not hold, else 0.
pub(crate) fn where_false<'e>(condition: Value<'e>, gradient: Value<'e>) -> Value<'e> {
    condition.select(gradient.like(0.0), gradient)
}

/// `1 / x`, and 0 where `x` is 0, as are its derivatives there.
pub(crate) fn reciprocal_or_zero(x: Value<'_>) -> Value<'_> {
    let is_zero = x.equal(0.0);
    let other = is_zero.select(x.ones_like(), x);
    where_false(is_zero, call("Reciprocal", [other]))
}

/// `1/√(1 - x²)`. On the branch cuts the sign of a zero imaginary part decides the side, so the
/// conjugate is taken first, as TensorFlow's gradients do.
pub(crate) fn arc_slope(x: Value<'_>) -> Value<'_> {
    call("Reciprocal", [(1.0 - x.adjoint().square()).sqrt()]).adjoint()
}

/// A complex number of a real part.
fn complex<'e>(real: Value<'e>, imag: Value<'e>) -> Value<'e> {
    call_with("Complex", complex_type(real), [real, imag])
}

fn complex_type(real: Value<'_>) -> Attrs {
    let dtype = match real.dtype() {
        crate::DType::F64 => crate::DType::C128,
        _ => crate::DType::C64,
    };
    Attrs::new().with("Tout", dtype)
}

/// The real part, in the real type that belongs to the complex one.
pub(crate) fn real(x: Value<'_>) -> Value<'_> {
    call_with("Real", Attrs::new().with("Tout", x.dtype().real_type()), [x])
}

/// The imaginary part, in the real type that belongs to the complex one.
pub(crate) fn imag(x: Value<'_>) -> Value<'_> {
    call_with("Imag", Attrs::new().with("Tout", x.dtype().real_type()), [x])
}

pub(crate) fn angle<'e>(b: &Backprop<'e>) -> Grads<'e> {
    let (x, _, dy) = b.unary();
    let turned = complex(imag(x), real(x));
    grads([-(complex(dy, dy.zeros_like()) * call("Reciprocal", [turned]))])
}

/// The direction of a complex number turns: only what is at a right angle to it has a gradient.
/// TensorFlow gives zeros.
pub(crate) fn sign<'e>(b: &Backprop<'e>) -> Grads<'e> {
    let (x, y, dy) = b.unary();
    if !x.dtype().is_complex() {
        return grads([x.zeros_like()]);
    }
    let across = imag(y.conj() * dy);
    let size = call_with("ComplexAbs", Attrs::new().with("Tout", across.dtype()), [x]);
    let turn = call("DivNoNan", [across, size]);
    grads([y * complex(turn.zeros_like(), turn)])
}

pub(crate) fn complex_abs<'e>(b: &Backprop<'e>) -> Grads<'e> {
    let (x, _, dy) = b.unary();
    grads([complex(dy, dy.zeros_like()) * call("Sign", [x])])
}

pub(crate) fn from_real<'e>(b: &Backprop<'e>) -> Grads<'e> {
    if !b.x(0).dtype().is_complex() {
        return grads([b.dy(0)]);
    }
    grads([complex(b.dy(0), b.dy(0).zeros_like())])
}

pub(crate) fn from_imag<'e>(b: &Backprop<'e>) -> Grads<'e> {
    if !b.x(0).dtype().is_complex() {
        return grads([b.dy(0).zeros_like()]);
    }
    grads([complex(b.dy(0).zeros_like(), b.dy(0))])
}

pub(crate) fn parts<'e>(b: &Backprop<'e>) -> Grads<'e> {
    grads([real(b.dy(0)), imag(b.dy(0))])
}

pub(crate) fn bessel_i1<'e>(b: &Backprop<'e>) -> Grads<'e> {
    let (x, y, _) = b.unary();
    b.times(at_zero(x, 1.0, call("BesselI0", [x]) - y / x))
}

pub(crate) fn bessel_i1e<'e>(b: &Backprop<'e>) -> Grads<'e> {
    let (x, y, _) = b.unary();
    let slope = call("BesselI0e", [x]) - y * (call("Sign", [x]) + call("Reciprocal", [x]));
    b.times(at_zero(x, 0.5, slope))
}

pub(crate) fn bessel_j1<'e>(b: &Backprop<'e>) -> Grads<'e> {
    let (x, y, _) = b.unary();
    b.times(at_zero(x, 0.5, call("BesselJ0", [x]) - y / x))
}

/// A derivative with a gap at 0.
fn at_zero<'e>(x: Value<'e>, there: f64, elsewhere: Value<'e>) -> Value<'e> {
    x.equal(0.0).select(x.like(there), elsewhere)
}

pub(crate) fn spence<'e>(b: &Backprop<'e>) -> Grads<'e> {
    let x = b.x(0);
    b.times(x.equal(1.0).select(x.like(-1.0), x.log() / (1.0 - x)))
}

pub(crate) fn pow<'e>(b: &Backprop<'e>) -> Grads<'e> {
    let (x, y, dy) = b.binary();
    let mut found = vec![None, None];
    if b.needs(0) {
        let slope = y.adjoint() * x.adjoint().pow(y.adjoint() - 1.0);
        found[0] = Some((dy * slope).into());
    }
    if b.needs(1) {
        let is_defined = if x.dtype().is_complex() { x.not_equal(0.0) } else { x.greater(0.0) };
        let safe = is_defined.select(x, x.like(1.0));
        let log = is_defined.select(safe.log(), x.like(0.0));
        found[1] = Some((dy * b.y(0).adjoint() * log.adjoint()).into());
    }
    found
}

pub(crate) fn quotient<'e>(b: &Backprop<'e>) -> Grads<'e> {
    quotient_by("RealDiv", b)
}

pub(crate) fn quotient_no_nan<'e>(b: &Backprop<'e>) -> Grads<'e> {
    quotient_by("DivNoNan", b)
}

fn quotient_by<'e>(div: &str, b: &Backprop<'e>) -> Grads<'e> {
    let (x, y, dy) = (b.x(0).adjoint(), b.x(1).adjoint(), b.dy(0));
    b.both(|| call(div, [dy, y]), || dy * call(div, [call(div, [-x, y]), y]))
}

pub(crate) fn floor_mod<'e>(b: &Backprop<'e>) -> Grads<'e> {
    let (x, y, dy) = b.binary();
    b.both(|| dy, || -(dy * call("FloorDiv", [x, y])))
}

pub(crate) fn truncate_mod<'e>(b: &Backprop<'e>) -> Grads<'e> {
    let (x, y, dy) = b.binary();
    b.both(|| dy, || -(dy * call("TruncateDiv", [x, y])))
}

pub(crate) fn atan2<'e>(b: &Backprop<'e>) -> Grads<'e> {
    let (y, x, dy) = b.binary();
    let scaled = dy / (x.square() + y.square());
    b.both(|| x * scaled, || -(y * scaled))
}

pub(crate) fn igamma<'e>(b: &Backprop<'e>) -> Grads<'e> {
    let (a, x, dy) = b.binary();
    let by_x = (-x + (a - 1.0) * x.log() - call("Lgamma", [a])).exp();
    grads([dy * call("IgammaGradA", [a, x]), dy * by_x])
}

pub(crate) fn igammac<'e>(b: &Backprop<'e>) -> Grads<'e> {
    let (a, x, dy) = b.binary();
    let by_x = (-x + (a - 1.0) * x.log() - call("Lgamma", [a])).exp();
    grads([-(dy * call("IgammaGradA", [a, x])), -(dy * by_x)])
}

/// By `x` alone: TensorFlow has none by the parameters.
pub(crate) fn betainc<'e>(b: &Backprop<'e>) -> Grads<'e> {
    let (p, q, x) = (b.x(0), b.x(1), b.x(2));
    let gamma = |x: Value<'e>| call("Lgamma", [x]);
    let log_beta = gamma(p) + gamma(q) - gamma(p + q);
    let log_density = call("Xlog1py", [q - 1.0, -x]) + call("Xlogy", [p - 1.0, x]) - log_beta;
    only(2, b.dy(0) * log_density.exp())
}

pub(crate) fn polygamma<'e>(b: &Backprop<'e>) -> Grads<'e> {
    let (n, x, dy) = b.binary();
    only(1, dy * call("Polygamma", [n + 1.0, x]))
}

pub(crate) fn zeta<'e>(b: &Backprop<'e>) -> Grads<'e> {
    let (x, q, dy) = b.binary();
    only(1, dy * (-x * call("Zeta", [x + 1.0, q])))
}

pub(crate) fn maximum<'e>(b: &Backprop<'e>) -> Grads<'e> {
    let (x, y, dy) = b.binary();
    let first = x.greater_equal(y);
    b.both(|| where_true(first, dy), || where_false(first, dy))
}

pub(crate) fn minimum<'e>(b: &Backprop<'e>) -> Grads<'e> {
    let (x, y, dy) = b.binary();
    let first = x.less_equal(y);
    b.both(|| where_true(first, dy), || where_false(first, dy))
}

pub(crate) fn clip<'e>(b: &Backprop<'e>) -> Grads<'e> {
    let (x, low, high, dy) = (b.x(0), b.x(1), b.x(2), b.dy(0));
    let (below, above) = (x.less(low), x.greater(high));
    let outside = call("LogicalOr", [below, above]);
    grads([where_false(outside, dy), where_true(below, dy), where_true(above, dy)])
}

/// 1 where `x` is not zero, of the dtype of `x`.
fn is_not_zero(x: Value<'_>) -> Value<'_> {
    x.not_equal(0.0).cast(x.dtype())
}

pub(crate) fn xdivy<'e>(b: &Backprop<'e>) -> Grads<'e> {
    let (x, y, dy) = b.binary();
    let (by_x, by_y) = (call("Xdivy", [is_not_zero(x), y]), call("Xdivy", [-x, y.square()]));
    grads([by_x * dy, by_y * dy])
}

pub(crate) fn xlogy<'e>(b: &Backprop<'e>) -> Grads<'e> {
    let (x, y, dy) = b.binary();
    grads([call("Xlogy", [is_not_zero(x), y]) * dy, call("Xdivy", [x, y]) * dy])
}

pub(crate) fn xlog1py<'e>(b: &Backprop<'e>) -> Grads<'e> {
    let (x, y, dy) = b.binary();
    grads([call("Xlog1py", [is_not_zero(x), y]) * dy, call("Xdivy", [x, y + 1.0]) * dy])
}

/// Of `y * -dy * y`, the gradient of `1 / x` from its result.
pub(crate) fn reciprocal_grad<'e>(b: &Backprop<'e>) -> Grads<'e> {
    let (y, inner, dy) = (b.x(0).adjoint(), b.x(1), b.dy(0));
    grads([dy.adjoint() * -2.0 * inner * y, call("ReciprocalGrad", [y, dy])])
}

pub(crate) fn rsqrt_grad<'e>(b: &Backprop<'e>) -> Grads<'e> {
    let (y, inner, dy) = (b.x(0).adjoint(), b.x(1), b.dy(0));
    grads([dy.adjoint() * -1.5 * inner * y.square(), call("RsqrtGrad", [y, dy])])
}

pub(crate) fn sqrt_grad<'e>(b: &Backprop<'e>) -> Grads<'e> {
    let scaled = b.dy(0) / b.x(0);
    grads([-(b.y(0) * scaled.adjoint()), scaled * 0.5])
}

pub(crate) fn sigmoid_grad<'e>(b: &Backprop<'e>) -> Grads<'e> {
    let (y, inner, dy) = (b.x(0).adjoint(), b.x(1).adjoint(), b.dy(0));
    let product = dy * inner;
    grads([product - 2.0 * product * y, call("SigmoidGrad", [y, dy])])
}

pub(crate) fn tanh_grad<'e>(b: &Backprop<'e>) -> Grads<'e> {
    let (y, inner, dy) = (b.x(0).adjoint(), b.x(1).adjoint(), b.dy(0));
    grads([dy * -2.0 * inner * y, call("TanhGrad", [y, dy])])
}

pub(crate) fn softplus_grad<'e>(b: &Backprop<'e>) -> Grads<'e> {
    let (inner, x, dy) = b.binary();
    let by_x = dy * inner / ((-x).exp() + 2.0 + x.exp());
    grads([call("SoftplusGrad", [dy, x]), by_x])
}

pub(crate) fn elu_grad<'e>(b: &Backprop<'e>) -> Grads<'e> {
    let (inner, y, dy) = b.binary();
    grads([call("EluGrad", [dy, y]), where_true(y.less(0.0), dy * inner)])
}

pub(crate) fn selu_grad<'e>(b: &Backprop<'e>) -> Grads<'e> {
    let (inner, y, dy) = b.binary();
    grads([call("SeluGrad", [dy, y]), where_true(y.less(0.0), dy * inner)])
}

/// Of a gradient that is linear in its first argument and flat in the second.
pub(crate) fn piecewise_grad<'e>(b: &Backprop<'e>) -> Grads<'e> {
    let (_, x, dy) = b.binary();
    grads([b.with_attrs(b.op.name, [dy, x]), x.zeros_like()])
}

pub(crate) fn select_rows<'e>(b: &Backprop<'e>) -> Grads<'e> {
    let (condition, dy) = (b.x(0), b.dy(0));
    let zeros = dy.zeros_like();
    vec![
        None,
        Some(call("Select", [condition, dy, zeros]).into()),
        Some(call("Select", [condition, zeros, dy]).into()),
    ]
}

pub(crate) fn select<'e>(b: &Backprop<'e>) -> Grads<'e> {
    let (condition, dy) = (b.x(0), b.dy(0));
    vec![None, Some(where_true(condition, dy).into()), Some(where_false(condition, dy).into())]
}
