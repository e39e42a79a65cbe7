//! `convert`: elements as another type.

use super::{
    bits::{Shift, shift, width},
    carrier::carrier,
};
use crate::{
    attr::Attrs,
    dtype::DType,
    emit::{Value, call, call_with},
};

/// Elements as another type. Floats become integers by dropping the fraction; those out of range
/// become the nearest one, NaN 0.
pub fn convert<'e>(x: Value<'e>, dtype: DType) -> Value<'e> {
    let from = x.dtype();
    if from == dtype {
        return x;
    }
    if from.is_complex() && !dtype.is_complex() {
        return convert(call_with("Real", Attrs::new().with("Tout", from.real_type()), [x]), dtype);
    }
    if dtype == DType::Bool {
        return x.not_equal(x.zeros_like());
    }
    if !(from.is_float() || carrier(from) == Some(DType::F32)) || !dtype.is_integer() {
        return x.cast(dtype);
    }
    let x = if matches!(from, DType::F32 | DType::F64) { x } else { x.cast(DType::F32) };
    let width = width(dtype);
    let (low, high) = match dtype.is_signed_integer() {
        true => (-(2f64.powi(width as i32 - 1)), 2f64.powi(width as i32 - 1)),
        false => (0.0, 2f64.powi(width as i32)),
    };
    let (smallest, largest) = extremes(x, dtype, low, high);
    // Where `low - 1` is rounded to `low`, this leaves `low` out, which is the smallest integer.
    let inside = call("LogicalAnd", [x.greater(low - 1.0), x.less(high)]);
    let cast = inside.select(x, x.like(0.0)).cast(dtype);
    let cast = x.greater_equal(high).select(largest, cast);
    let below = call("LogicalAnd", [x.less(0.0), inside.logical_not()]);
    below.select(smallest, cast)
}

/// The smallest and the largest integer of a dtype, of which the largest is below `high`.
fn extremes<'e>(x: Value<'e>, dtype: DType, low: f64, high: f64) -> (Value<'e>, Value<'e>) {
    if let Some(wide) = carrier(dtype) {
        let literal = |value: f64| x.literal(value as i64).cast(wide).cast(dtype);
        return (literal(low), literal(high - 1.0));
    }
    // An integer of all ones, shifted for the sign: the largest one.
    let zero = x.literal(0i64).cast(dtype);
    let ones = call("Invert", [zero]);
    if !dtype.is_signed_integer() {
        return (zero, ones);
    }
    let largest = shift(ones, ones.like(1.0), Shift::RightLogical);
    (call("Invert", [largest]), largest)
}
