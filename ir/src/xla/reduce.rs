//! `reduce`: elements along axes combined by a function.

use super::{
    bits::width,
    carrier::widened,
    region::Monoid,
    size::{Size, product, rank, reshape, sizes, transpose},
};
use crate::{
    attr::Attrs,
    dtype::DType,
    emit::{Value, call, call_with},
};
use half::{bf16, f16};

/// The reduction of a kind that an op has, started from `initial`; `None` if none does.
pub fn reduce_by<'e>(
    x: Value<'e>,
    initial: Value<'e>,
    axes: &[usize],
    monoid: Monoid,
) -> Option<Value<'e>> {
    let dtype = x.dtype();
    let op = match (monoid, dtype) {
        (Monoid::And | Monoid::Min | Monoid::Mul, DType::Bool) => "All",
        (Monoid::Or | Monoid::Max | Monoid::Add, DType::Bool) => "Any",
        (Monoid::Add, _) => "Sum",
        (Monoid::Mul, _) => "Prod",
        (Monoid::Min, _) if !dtype.is_complex() => "Min",
        (Monoid::Max, _) if !dtype.is_complex() => "Max",
        _ => return None,
    };
    let listed: Vec<i64> = axes.iter().map(|&axis| axis as i64).collect();
    let reduced = call_with(op, Attrs::new(), [widened(x), x.int_vector(&listed)]).cast(dtype);
    Some(match is_identity(monoid, initial) {
        true => reduced,
        false => combine(monoid, reduced, initial),
    })
}

/// The op that combines two tensors.
pub fn combine<'e>(monoid: Monoid, a: Value<'e>, b: Value<'e>) -> Value<'e> {
    let is_bool = a.dtype() == DType::Bool;
    let op = match (monoid, is_bool) {
        (Monoid::And | Monoid::Min | Monoid::Mul, true) => "LogicalAnd",
        (Monoid::Or | Monoid::Max | Monoid::Add, true) => "LogicalOr",
        (Monoid::Add, _) => "AddV2",
        (Monoid::Mul, _) => "Mul",
        (Monoid::Min, _) => "Minimum",
        (Monoid::Max, _) => "Maximum",
        (Monoid::And, _) => "BitwiseAnd",
        (Monoid::Or, _) => "BitwiseOr",
        (Monoid::First, _) => return a,
        (Monoid::Second, _) => return b,
    };
    call(op, [widened(a), widened(b)]).cast(a.dtype())
}

/// Whether combining with a value changes nothing; false if that is not known.
pub fn is_identity(monoid: Monoid, initial: Value<'_>) -> bool {
    let Some(known) = initial.known() else { return false };
    let dtype = known.dtype();
    if dtype == DType::Bool {
        let wanted = matches!(monoid, Monoid::And | Monoid::Min | Monoid::Mul);
        return known.as_bool().is_ok_and(|value| value == wanted);
    }
    let number = match dtype {
        DType::F16 => known.as_scalar::<f16>().map(f64::from).ok(),
        DType::BF16 => known.as_scalar::<bf16>().map(f64::from).ok(),
        DType::F32 => known.as_scalar::<f32>().map(f64::from).ok(),
        DType::F64 => known.as_scalar::<f64>().ok(),
        _ => None,
    };
    let integer = known.to_i64s().ok().and_then(|ints| ints.first().copied());
    let bits = width(dtype);
    // None for 64 bits without a sign, which are no `i64`.
    let range = match dtype.is_signed_integer() {
        true => Some((i64::MIN >> (64 - bits), i64::MAX >> (64 - bits))),
        false => (bits < 64).then(|| (0, (1 << bits) - 1)),
    };
    match (monoid, number, integer) {
        (Monoid::Add, Some(x), _) => x == 0.0,
        (Monoid::Mul, Some(x), _) => x == 1.0,
        (Monoid::Max, Some(x), _) => x == f64::NEG_INFINITY,
        (Monoid::Min, Some(x), _) => x == f64::INFINITY,
        (Monoid::Add, _, Some(x)) => x == 0,
        (Monoid::Mul, _, Some(x)) => x == 1,
        (Monoid::Max, _, Some(x)) => range.is_some_and(|(least, _)| x == least),
        (Monoid::Min, _, Some(x)) => range.is_some_and(|(_, most)| x == most),
        _ => false,
    }
}

/// Whether combining with initial values changes nothing; false if that is not known.
pub fn are_identities(monoid: Option<Monoid>, initial: &[Value<'_>]) -> bool {
    let is_one = |monoid: Monoid| initial.iter().all(|&value| is_identity(monoid, value));
    monoid.is_some_and(is_one)
}

/// A function of the elements of two lists of tensors.
pub type Pairwise<'f, 'e> = &'f dyn Fn(&[Value<'e>], &[Value<'e>]) -> Vec<Value<'e>>;

/// Combines all elements along axes pairwise, halves with halves, and what results with the
/// initial values. Neighbours stay in their order. Shapes are known.
pub fn reduce_tree<'e>(
    xs: &[Value<'e>],
    initial: &[Value<'e>],
    axes: &[usize],
    function: Pairwise<'_, 'e>,
) -> Vec<Value<'e>> {
    let Some(&first) = xs.first() else { return Vec::new() };
    let all = sizes(first);
    let kept: Vec<usize> = (0..rank(first)).filter(|axis| !axes.contains(axis)).collect();
    let size_of =
        |axes: &[usize]| -> Vec<Size<'e>> { axes.iter().map(|&axis| all[axis]).collect() };
    let order: Vec<usize> = axes.iter().chain(&kept).copied().collect();
    let result = size_of(&kept);
    let mut rows = vec![product(&size_of(axes))];
    rows.extend(&result);
    let mut n = rows[0].known().unwrap_or(0);
    let like_result = |values: Vec<Value<'e>>| -> Vec<Value<'e>> {
        values.into_iter().map(|value| super::size::broadcast(value, &result)).collect()
    };
    if n == 0 {
        return like_result(initial.to_vec());
    }
    let mut rows: Vec<Value<'e>> =
        xs.iter().map(|&x| reshape(transpose(x, &order), &rows)).collect();
    while n > 1 {
        let half = n / 2;
        let pairs = |start: i64| -> Vec<Value<'e>> {
            rows.iter().map(|&x| every_other(x, start, 2 * half)).collect()
        };
        let combined = function(&pairs(0), &pairs(1));
        let mut shape = vec![Size::Known(half)];
        shape.extend(&result);
        rows = combined
            .into_iter()
            .zip(&rows)
            .map(|(new, &old)| {
                let new = super::size::broadcast(new, &shape);
                if n % 2 == 0 { new } else { Value::concat(&[new, row(old, n - 1)], 0) }
            })
            .collect();
        n = half + n % 2;
    }
    let rows: Vec<Value<'e>> = rows.into_iter().map(|x| reshape(x, &result)).collect();
    like_result(function(initial, &rows))
}

/// Every second row from `start` up to `end`.
fn every_other<'e>(x: Value<'e>, start: i64, end: i64) -> Value<'e> {
    super::slice::strided(x, &[start.into()], &[end.into()], &[2.into()])
}

fn row<'e>(x: Value<'e>, index: i64) -> Value<'e> {
    let next = index + 1;
    super::slice::strided(x, &[index.into()], &[next.into()], &[1.into()])
}
