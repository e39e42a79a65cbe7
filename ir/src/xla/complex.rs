//! Functions of complex numbers whose values XLA and TensorFlow do not share.
//!
//! Source: XLA's `elemental_ir_emitter.cc`.

use crate::{
    attr::Attrs,
    emit::{Value, call, call_with},
};

/// The power; 0 to the power of 0 is 1, where TensorFlow's `Pow` has NaN.
pub fn power<'e>(x: Value<'e>, y: Value<'e>) -> Value<'e> {
    let [x_is_zero, y_is_zero] = [x, y].map(|z| z.equal(z.like(0.0)));
    call("LogicalAnd", [x_is_zero, y_is_zero]).select(x.like(1.0), call("Pow", [x, y]))
}

/// The reciprocal of the square root. Negative numbers with an imaginary part of -0 are below the cut, where
/// TensorFlow's `Rsqrt` takes them for numbers above it.
pub fn rsqrt(x: Value<'_>) -> Value<'_> {
    let part = |op: &str| call_with(op, Attrs::new().with("Tout", x.dtype().real_type()), [x]);
    let (re, im) = (part("Real"), part("Imag"));
    let zero = re.like(0.0);
    let is_minus_zero = call("LogicalAnd", [im.equal(zero), call("Reciprocal", [im]).less(zero)]);
    let is_below = call("LogicalAnd", [re.less(zero), is_minus_zero]);
    let found = call("Rsqrt", [x]);
    is_below.select(found.adjoint(), found)
}

/// The angle of complex coordinates: `-i log((x + iy) / sqrt(x² + y²))`.
pub fn angle<'e>(y: Value<'e>, x: Value<'e>) -> Value<'e> {
    let parts = [0.0, 1.0].map(|part| x.literal(part).cast(x.dtype().real_type()));
    let i = call_with("Complex", Attrs::new().with("Tout", x.dtype()), parts);
    let distance = call("Sqrt", [x * x + y * y]);
    (i * call("Log", [(x + i * y) / distance])).neg()
}
