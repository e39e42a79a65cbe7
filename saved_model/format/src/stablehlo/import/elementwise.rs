//! Operations on elements, which may be applied to tensors instead of scalars.

use super::{
    super::{
        constant::{Elements, dtype, elements, malformed, unsupported},
        module::{Attr, HloOp},
    },
    HloOperands, ImportScope, exactly,
};
use ferroflow_ir::{
    Attrs, DType, Result,
    emit::{Value, call, call_with},
    xla::{
        bits::{self, Shift},
        carrier::{carrier, widened},
        complex,
        convert::convert,
        size,
    },
};

/// The result of an elementwise operation; `None` for another one. Elements narrower than what ops
/// compute with are computed with as their carriers.
pub(super) fn elementwise<'e>(
    scope: ImportScope<'e>,
    op: &HloOp,
    x: &[Value<'e>],
) -> Result<Option<Value<'e>>> {
    let is_narrow = x.iter().any(|value| carrier(value.dtype()).is_some());
    if !is_narrow || moves(op) || counts_bits(op) {
        return plain(scope, op, x);
    }
    let wide: Vec<Value<'e>> = x.iter().map(|&value| widened(value)).collect();
    let Some(result) = plain(scope, op, &wide)? else { return Ok(None) };
    Ok(Some(result.cast(dtype(op.result_type(0)?.element)?)))
}

/// Whether an operation leaves elements as they are, or is told both dtypes.
fn moves(op: &HloOp) -> bool {
    matches!(
        &*op.name,
        "convert" | "select" | "bitcast_convert" | "reshape" | "broadcast_in_dim" | "transpose"
    )
}

/// Whether a result depends on the number of bits of an element.
fn counts_bits(op: &HloOp) -> bool {
    let name = &*op.name;
    matches!(name, "count_leading_zeros" | "popcnt") || name.starts_with("shift_")
}

fn plain<'e>(scope: ImportScope<'e>, op: &HloOp, x: &[Value<'e>]) -> Result<Option<Value<'e>>> {
    if let Some(name) = unary_op(&op.name) {
        let [x] = *exactly(op, x)?;
        return Ok(Some(call(name, [x])));
    }
    Ok(Some(match (&*op.name, x) {
        ("constant", []) => constant(scope, op)?,
        ("add", &[a, b]) => logical(a, "LogicalOr", "AddV2", b),
        ("subtract", &[a, b]) => logical(a, "NotEqual", "Sub", b),
        ("multiply", &[a, b]) => logical(a, "LogicalAnd", "Mul", b),
        ("maximum", &[a, b]) => ordered(op, a, "LogicalOr", "Maximum", b)?,
        ("minimum", &[a, b]) => ordered(op, a, "LogicalAnd", "Minimum", b)?,
        ("and", &[a, b]) => logical(a, "LogicalAnd", "BitwiseAnd", b),
        ("or", &[a, b]) => logical(a, "LogicalOr", "BitwiseOr", b),
        ("xor", &[a, b]) => logical(a, "NotEqual", "BitwiseXor", b),
        ("not", &[a]) if a.dtype() == DType::Bool => a.logical_not(),
        ("not", &[a]) => call("Invert", [a]),
        ("divide", &[a, b]) => divide(a, b),
        ("remainder", &[a, b]) => remainder(a, b),
        ("power", &[a, b]) => power(a, b),
        ("atan2", &[a, b]) if a.dtype().is_complex() => complex::angle(a, b),
        ("atan2", &[a, b]) => call("Atan2", [a, b]),
        ("rsqrt", &[a]) if a.dtype().is_complex() => complex::rsqrt(a),
        ("rsqrt", &[a]) => call("Rsqrt", [a]),
        ("negate", &[a]) if a.dtype().is_unsigned_integer() => a.like(0.0) - a,
        ("negate", &[a]) => a.neg(),
        ("abs", &[a]) if a.dtype().is_complex() => {
            call_with("ComplexAbs", Attrs::new().with("Tout", a.dtype().real_type()), [a])
        }
        ("abs", &[a]) if a.dtype().is_unsigned_integer() => a,
        ("abs", &[a]) => a.abs(),
        ("sign", &[a]) if a.dtype().is_unsigned_integer() => a.minimum(a.like(1.0)),
        ("sign", &[a]) => call("Sign", [a]),
        ("cbrt", &[a]) => cube_root(a),
        ("round_nearest_afz", &[a]) => round_away(a),
        ("popcnt", &[a]) => bits::population_count(a),
        ("count_leading_zeros", &[a]) => bits::leading_zeros(a),
        ("shift_left", &[a, b]) => bits::shift(a, b, Shift::Left),
        ("shift_right_logical", &[a, b]) => bits::shift(a, b, Shift::RightLogical),
        ("shift_right_arithmetic", &[a, b]) => bits::shift(a, b, Shift::RightArithmetic),
        ("real", &[a]) => part(a, "Real"),
        ("imag", &[a]) if a.dtype().is_complex() => part(a, "Imag"),
        ("imag", &[a]) => a.zeros_like(),
        ("complex", &[a, b]) => {
            let whole = if a.dtype() == DType::F64 { DType::C128 } else { DType::C64 };
            call_with("Complex", Attrs::new().with("Tout", whole), [a, b])
        }
        ("compare", &[a, b]) => compare(op, a, b)?,
        ("select", &[p, a, b]) => p.select(a, b),
        ("clamp", &[low, a, high]) => {
            let raised = ordered(op, a, "LogicalOr", "Maximum", low)?;
            ordered(op, raised, "LogicalAnd", "Minimum", high)?
        }
        ("convert", &[a]) => convert(a, dtype(op.result_type(0)?.element)?),
        ("bitcast_convert", &[a]) => bitcast(scope, op, a)?,
        ("reduce_precision", &[a]) => {
            let attrs = Attrs::new()
                .with("exponent_bits", op.int("exponent_bits")?)
                .with("mantissa_bits", op.int("mantissa_bits")?);
            call_with("XlaReducePrecision", attrs, [a])
        }
        ("reshape" | "broadcast_in_dim" | "transpose" | "broadcast", &[a])
            if scope.operands == HloOperands::Elements =>
        {
            match op.result_type(0)?.dims.is_empty() {
                true => a,
                false => return Err(unsupported(op, "in a function of scalars")),
            }
        }
        _ => return Ok(None),
    }))
}

/// The op that does the same as an operation with one operand.
fn unary_op(name: &str) -> Option<&'static str> {
    Some(match name {
        "ceil" => "Ceil",
        "cosine" => "Cos",
        "exponential" => "Exp",
        "exponential_minus_one" => "Expm1",
        "floor" => "Floor",
        "is_finite" => "IsFinite",
        "log" => "Log",
        "log_plus_one" => "Log1p",
        "logistic" => "Sigmoid",
        "round_nearest_even" => "Rint",
        "sine" => "Sin",
        "sqrt" => "Sqrt",
        "tan" => "Tan",
        "tanh" => "Tanh",
        _ => return None,
    })
}

/// An op for bools, or another for numbers.
fn logical<'e>(a: Value<'e>, bools: &str, numbers: &str, b: Value<'e>) -> Value<'e> {
    call(if a.dtype() == DType::Bool { bools } else { numbers }, [a, b])
}

fn ordered<'e>(
    op: &HloOp,
    a: Value<'e>,
    bools: &str,
    numbers: &str,
    b: Value<'e>,
) -> Result<Value<'e>> {
    match a.dtype().is_complex() {
        true => Err(unsupported(op, "the order of complex numbers")),
        false => Ok(logical(a, bools, numbers, b)),
    }
}

/// A constant; where all elements are the same, a fill.
fn constant<'e>(scope: ImportScope<'e>, op: &HloOp) -> Result<Value<'e>> {
    let Some(Attr::Tensor(ty, data)) = op.attr("value") else {
        return Err(malformed(op, "it has a value"));
    };
    Ok(match elements(op, ty, data)? {
        Elements::All(tensor) => scope.constant(tensor),
        Elements::Same(one, shape) => {
            let one = scope.constant(one);
            call("Fill", [one.int_vector(&shape.to_i64()), one])
        }
    })
}

/// Whether a value is known to have no element 0.
fn is_nonzero(x: Value<'_>) -> bool {
    let known = x.known().and_then(|value| value.to_i64s().ok());
    known.is_some_and(|elements| elements.iter().all(|&element| element != 0))
}

/// Quotients; of integers, rounded towards zero, and by zero all bits.
fn divide<'e>(a: Value<'e>, b: Value<'e>) -> Value<'e> {
    if !a.dtype().is_integer() {
        return a / b;
    }
    if is_nonzero(b) {
        return call("TruncateDiv", [a, b]);
    }
    let zero = b.equal(b.like(0.0));
    let quotient = call("TruncateDiv", [a, zero.select(b.like(1.0), b)]);
    let ones = call("Invert", [a.like(0.0)]);
    zero.select(ones, quotient)
}

/// Remainders with the sign of the dividend; of integers by zero, the dividend.
fn remainder<'e>(a: Value<'e>, b: Value<'e>) -> Value<'e> {
    if !a.dtype().is_integer() {
        return call("TruncateMod", [a, b]);
    }
    let direct = matches!(a.dtype(), DType::I32 | DType::I64);
    let of = |b: Value<'e>| match direct {
        true => call("TruncateMod", [a, b]),
        false => a - call("TruncateDiv", [a, b]) * b,
    };
    if is_nonzero(b) {
        return of(b);
    }
    let zero = b.equal(b.like(0.0));
    zero.select(a, of(zero.select(b.like(1.0), b)))
}

/// Powers; of integers, those with a negative exponent are 0 but for 1 and -1.
fn power<'e>(a: Value<'e>, b: Value<'e>) -> Value<'e> {
    let dtype = a.dtype();
    if dtype.is_complex() {
        return complex::power(a, b);
    }
    if !dtype.is_integer() {
        return call("Pow", [a, b]);
    }
    if dtype.is_unsigned_integer() {
        return call("Pow", [a.cast(DType::I64), b.cast(DType::I64)]).cast(dtype);
    }
    let (zero, one) = (b.like(0.0), b.like(1.0));
    let plain = call("Pow", [a, b.maximum(zero)]);
    let odd = call("BitwiseAnd", [b, one]).equal(one);
    let minus = odd.select(a, one);
    let reciprocal = a.equal(one).select(one, a.equal(b.like(-1.0)).select(minus, zero));
    b.less(zero).select(reciprocal, plain)
}

/// Cube roots: a power, made exact by a step of Newton's method.
fn cube_root<'e>(x: Value<'e>) -> Value<'e> {
    let dtype = x.dtype();
    if matches!(dtype, DType::F16 | DType::BF16) {
        return cube_root(x.cast(DType::F32)).cast(dtype);
    }
    let size = x.abs();
    let third = call("Pow", [size, size.like(1.0 / 3.0)]);
    let square = third * third;
    let better = third - (square * third - size) / (square * 3.0);
    let usual = call("LogicalAnd", [size.greater(0.0), call("IsFinite", [size])]);
    let root = usual.select(better, size);
    x.less(0.0).select(root.neg(), root)
}

/// To the nearest integer, halves away from zero.
fn round_away<'e>(x: Value<'e>) -> Value<'e> {
    let size = x.abs();
    let below = call("Floor", [size]);
    let up = (size - below).greater_equal(0.5);
    let rounded = up.select(below + 1.0, below);
    let signed = x.less(0.0).select(rounded.neg(), rounded);
    call("IsFinite", [x]).select(signed, x)
}

pub(super) fn part<'e>(x: Value<'e>, op: &str) -> Value<'e> {
    match x.dtype().is_complex() {
        true => call_with(op, Attrs::new().with("Tout", x.dtype().real_type()), [x]),
        false => x,
    }
}

fn compare<'e>(op: &HloOp, a: Value<'e>, b: Value<'e>) -> Result<Value<'e>> {
    const TOTAL_ORDER: u64 = 2;
    let kind = op.case("compare_type").unwrap_or(0);
    let comparable = |x: Value<'e>| match x.dtype() {
        DType::Bool => x.cast(DType::U8),
        dtype if dtype.is_float() && kind == TOTAL_ORDER => bits::total_order(x),
        dtype if dtype.is_float() || dtype.is_integer() || dtype.is_complex() => x,
        _ => x.cast(DType::F32),
    };
    let direction = op.case("comparison_direction")?;
    let name = match direction {
        0 => "Equal",
        1 => "NotEqual",
        2 => "GreaterEqual",
        3 => "Greater",
        4 => "LessEqual",
        5 => "Less",
        _ => return Err(malformed(op, "a comparison has a direction")),
    };
    if a.dtype().is_complex() && direction > 1 {
        return Err(unsupported(op, "the order of complex numbers"));
    }
    Ok(call(name, [comparable(a), comparable(b)]))
}

/// The same bits as another type, perhaps with another number of elements in the last axis.
fn bitcast<'e>(scope: ImportScope<'e>, op: &HloOp, x: Value<'e>) -> Result<Value<'e>> {
    let to = dtype(op.result_type(0)?.element)?;
    let same = bits::width(x.dtype()) == bits::width(to);
    if scope.operands == HloOperands::Elements && !same {
        return Err(unsupported(op, "parts of elements in a function of scalars"));
    }
    Ok(bits::bitcast_convert(x, to))
}

/// A scalar as a vector of one element.
pub(super) fn as_vector<'e>(x: Value<'e>) -> Value<'e> {
    size::reshape(x, &[size::Size::Known(1)])
}
