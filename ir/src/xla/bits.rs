//! Primitives that look at bits: shifts, counts, the order and the precision of floats.

use super::{
    carrier::carrier,
    size::{Size, rank, reshape, sizes},
};
use crate::{
    attr::Attrs,
    dtype::DType,
    emit::{Value, call, call_with},
};

/// The bits of an element.
pub fn width(dtype: DType) -> i64 {
    match dtype {
        DType::Bool => 1,
        DType::F4E2M1FN => 4,
        dtype => match dtype.narrow_bits() {
            Some(bits) => bits.into(),
            None => dtype.size().unwrap_or(1) as i64 * 8,
        },
    }
}

/// The signed integer type as wide as another type.
pub fn signed(dtype: DType) -> DType {
    match dtype.size() {
        Some(1) => DType::I8,
        Some(2) => DType::I16,
        Some(4) => DType::I32,
        _ => DType::I64,
    }
}

/// The unsigned integer type as wide as another type.
pub fn unsigned(dtype: DType) -> DType {
    match dtype.size() {
        Some(1) => DType::U8,
        Some(2) => DType::U16,
        Some(4) => DType::U32,
        _ => DType::U64,
    }
}

/// The same bits as another type of the same width.
pub fn same_bits<'e>(x: Value<'e>, dtype: DType) -> Value<'e> {
    if x.dtype() == dtype {
        return x;
    }
    // TensorFlow's has no floats that are narrower than 16 bits.
    let is_narrow = |dtype: DType| carrier(dtype) == Some(DType::F32);
    let op = if is_narrow(x.dtype()) || is_narrow(dtype) { "_Bitcast" } else { "Bitcast" };
    call_with(op, Attrs::new().with("type", dtype), [x])
}

/// Integers in the total order of floats: -NaN, -inf, …, -0, +0, …, inf, NaN.
pub fn total_order<'e>(x: Value<'e>) -> Value<'e> {
    let bits = same_bits(x, signed(x.dtype()));
    let one = bits.like(1.0);
    let sign = call("RightShift", [bits, bits.like((width(bits.dtype()) - 1) as f64)]);
    // All bits but the sign, for negative numbers.
    let mask =
        call("Invert", [call("LeftShift", [one, bits.like((width(bits.dtype()) - 1) as f64)])]);
    call("BitwiseXor", [bits, call("BitwiseAnd", [sign, mask])])
}

/// The directions of shifts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shift {
    /// To the left.
    Left,
    /// To the right, zeros coming in.
    RightLogical,
    /// To the right, the sign coming in.
    RightArithmetic,
}

/// The bits of elements narrower than a byte as bytes, zeros above them; `None` for wider elements.
fn narrow_bits(x: Value<'_>) -> Option<Value<'_>> {
    if x.dtype() == DType::F4E2M1FN {
        return Some(same_bits(x, DType::U8));
    }
    let bits = x.dtype().narrow_bits()?;
    Some(call("BitwiseAnd", [x.cast(DType::U8), x.literal((1u8 << bits) - 1)]))
}

/// The lowest bits of bytes as signed numbers.
fn sign_extended(bits: Value<'_>, width: i64) -> Value<'_> {
    let above = bits.like((8 - width) as f64);
    let signed = same_bits(shift(bits, above, Shift::Left), DType::I8);
    shift(signed, same_bits(above, DType::I8), Shift::RightArithmetic)
}

/// Elements narrower than a byte of the lowest bits of bytes. What is converted is in the range of
/// `dtype`, so that no compiler that a graph is written for has to take bits away.
fn of_bits(bytes: Value<'_>, dtype: DType) -> Value<'_> {
    let width = width(dtype);
    if dtype == DType::F4E2M1FN {
        return same_bits(call("BitwiseAnd", [bytes, bytes.literal((1u8 << width) - 1)]), dtype);
    }
    let numbers = match dtype.is_signed_integer() {
        true => sign_extended(bytes, width),
        false => call("BitwiseAnd", [bytes, bytes.literal((1u8 << width) - 1)]),
    };
    numbers.cast(dtype)
}

/// Shifted bits. An amount that is negative or not below the width moves all bits out.
pub fn shift<'e>(x: Value<'e>, amount: Value<'e>, direction: Shift) -> Value<'e> {
    let dtype = x.dtype();
    if let (Some(bits), Some(by)) = (narrow_bits(x), narrow_bits(amount)) {
        let shifted = match direction {
            Shift::Left | Shift::RightLogical => shift(bits, by, direction),
            Shift::RightArithmetic => {
                let whole = sign_extended(bits, width(dtype));
                same_bits(shift(whole, same_bits(by, DType::I8), direction), DType::U8)
            }
        };
        return of_bits(shifted, dtype);
    }
    let plain = unsigned(dtype);
    let bits = same_bits(x, plain);
    let by = same_bits(amount, plain);
    if direction == Shift::RightArithmetic {
        let x = same_bits(x, signed(dtype));
        let by = by.minimum(by.like((width(dtype) - 1) as f64));
        return same_bits(call("RightShift", [x, same_bits(by, signed(dtype))]), dtype);
    }
    let op = if direction == Shift::Left { "LeftShift" } else { "RightShift" };
    let shifted = call(op, [bits, by]);
    let all_within = by
        .known()
        .and_then(|by| by.to_i64s().ok())
        .is_some_and(|by| by.iter().all(|&by| (0..width(dtype)).contains(&by)));
    let shifted = match all_within {
        true => shifted,
        false => by.less(by.like(width(dtype) as f64)).select(shifted, bits.like(0.0)),
    };
    same_bits(shifted, dtype)
}

/// The number of one bits.
pub fn population_count<'e>(x: Value<'e>) -> Value<'e> {
    call("PopulationCount", [narrow_bits(x).unwrap_or(x)]).cast(x.dtype())
}

/// The number of zero bits before the first one.
pub fn leading_zeros<'e>(x: Value<'e>) -> Value<'e> {
    let dtype = x.dtype();
    if let Some(bits) = narrow_bits(x) {
        let zeros = leading_zeros(bits);
        return (zeros - zeros.like((8 - width(dtype)) as f64)).cast(dtype);
    }
    let mut bits = same_bits(x, unsigned(dtype));
    let mut step = 1;
    while step < width(dtype) {
        let below = call("RightShift", [bits, bits.like(step as f64)]);
        bits = call("BitwiseOr", [bits, below]);
        step *= 2;
    }
    let ones = call("PopulationCount", [bits]).cast(dtype);
    ones.like(width(dtype) as f64) - ones
}

/// The same bits under another type. Where one type is wider, the last axis of the other counts
/// its parts.
pub fn bitcast_convert<'e>(x: Value<'e>, dtype: DType) -> Value<'e> {
    let (from, to) = (x.dtype(), dtype);
    if from == to {
        return x;
    }
    if from == DType::Bool || to == DType::Bool {
        return x.cast(to);
    }
    match (width(from) < 8, width(to) < 8) {
        (false, false) => same_bits(x, to),
        (true, true) if width(from) == width(to) => of_bits(narrow_bits(x).unwrap_or(x), to),
        (true, true) => bitcast_convert(bitcast_convert(x, DType::U8), to),
        (true, false) => joined(x, to),
        (false, true) => parted(x, to),
    }
}

/// Elements narrower than a byte, of which the last axis counts the parts of an element of `to`, the
/// lowest first.
fn joined<'e>(x: Value<'e>, to: DType) -> Value<'e> {
    let Some(bits) = narrow_bits(x) else { return x };
    let parts = 8 / width(x.dtype());
    let n_bytes = width(to) / 8;
    let mut shape = sizes(bits);
    shape.pop();
    let whole = shape.clone();
    shape.extend([Size::Known(n_bytes), Size::Known(parts)]);
    let bits = reshape(bits, &shape);
    let n = shape.len();
    let part = |at: i64| {
        let mut begin = vec![Size::Known(0); n];
        begin[n - 1] = Size::Known(at);
        let mut size = shape.clone();
        size[n - 1] = Size::Known(1);
        let part = reshape(super::size::window(bits, &begin, &size), &shape[..n - 1]);
        shift(part, part.like((at * width(x.dtype())) as f64), Shift::Left)
    };
    let bytes = (1..parts).fold(part(0), |bytes, at| call("BitwiseOr", [bytes, part(at)]));
    let bytes = if n_bytes == 1 { reshape(bytes, &whole) } else { bytes };
    same_bits(bytes, to)
}

/// The parts of elements in a new last axis, the lowest first.
fn parted<'e>(x: Value<'e>, to: DType) -> Value<'e> {
    let bytes = same_bits(x, DType::U8);
    let part = |at: i64| shift(bytes, bytes.like((at * width(to)) as f64), Shift::RightLogical);
    let parts: Vec<Value<'e>> = (0..8 / width(to)).map(part).collect();
    let mut shape = sizes(x);
    shape.push(Size::Known(width(x.dtype()) / width(to)));
    reshape(of_bits(interleaved(&parts), to), &shape)
}

/// Floats with fewer bits of exponent and fraction, rounded to the nearest, halves to even.
pub fn reduce_precision<'e>(x: Value<'e>, exponent: i64, mantissa: i64) -> Value<'e> {
    let dtype = x.dtype();
    let (exponent, mantissa) = (exponent.max(1), mantissa.max(0));
    if matches!(dtype, DType::F16 | DType::BF16) {
        let own = if dtype == DType::F16 { 5 } else { 8 };
        let wide = reduce_precision(x.cast(DType::F32), exponent.min(own), mantissa);
        return wide.cast(dtype);
    }
    let (own_exponent, own_mantissa) = if dtype == DType::F64 { (11, 52) } else { (8, 23) };
    let bits = same_bits(x, unsigned(dtype));
    let number = |value: u64| match dtype {
        DType::F64 => bits.literal(value),
        _ => bits.literal(value as u32),
    };
    let and = |a: Value<'e>, b: u64| call("BitwiseAnd", [a, number(b)]);
    let mut result = bits;
    if mantissa < own_mantissa {
        let dropped = (own_mantissa - mantissa) as u64;
        let lowest = 1u64 << dropped;
        let odd = call("RightShift", [and(bits, lowest), number(dropped)]);
        result = result + (odd + number((lowest >> 1) - 1));
        result = and(result, !(lowest - 1));
    }
    if exponent < own_exponent {
        let bias = |bits: i64| (1u64 << (bits - 1)) - 1;
        let (own, reduced) = (bias(own_exponent), bias(exponent));
        let mask = ((1u64 << own_exponent) - 1) << own_mantissa;
        let sign = 1u64 << (own_exponent + own_mantissa);
        let found = and(result, mask);
        let signs = and(bits, sign);
        let infinite = call("BitwiseOr", [signs, number(mask)]);
        let over = found.greater(number((own + reduced) << own_mantissa));
        let under = found.less_equal(number((own - reduced) << own_mantissa));
        result = over.select(infinite, under.select(signs, result));
    }
    let result = same_bits(result, dtype);
    call("IsNan", [x]).select(x, result)
}

/// The two words of a round of Threefry-2x32, twenty of which encrypt a counter.
pub fn threefry2x32<'e>(key: [Value<'e>; 2], counter: [Value<'e>; 2]) -> [Value<'e>; 2] {
    const ROTATIONS: [[u32; 4]; 2] = [[13, 15, 26, 6], [17, 29, 16, 24]];
    const PARITY: u32 = 0x1bd1_1bda;
    let xor = |a: Value<'e>, b: Value<'e>| call("BitwiseXor", [a, b]);
    let third = xor(xor(key[0], key[1]), key[0].literal(PARITY));
    let keys = [key[0], key[1], third];
    let [mut x, mut y] = [counter[0] + keys[0], counter[1] + keys[1]];
    for round in 0..5u32 {
        for by in ROTATIONS[round as usize % 2] {
            x = x + y;
            let left = call("LeftShift", [y, y.literal(by)]);
            let right = call("RightShift", [y, y.literal(32 - by)]);
            y = xor(call("BitwiseOr", [left, right]), x);
        }
        x = x + keys[(round as usize + 1) % 3];
        y = y + (keys[(round as usize + 2) % 3] + y.literal(round + 1));
    }
    [x, y]
}

/// The low and the high half of 64-bit words.
pub fn halves<'e>(x: Value<'e>) -> [Value<'e>; 2] {
    let high = call("RightShift", [x, x.literal(32u64)]);
    let low = call("BitwiseAnd", [x, x.literal(0xffff_ffffu64)]);
    [low.cast(DType::U32), high.cast(DType::U32)]
}

/// 64-bit words of low and high halves.
pub fn whole<'e>(low: Value<'e>, high: Value<'e>) -> Value<'e> {
    let high = high.cast(DType::U64);
    let high = call("LeftShift", [high, high.literal(32u64)]);
    call("BitwiseOr", [high, low.cast(DType::U64)])
}

/// The tensors side by side in a new last axis.
pub fn interleaved<'e>(parts: &[Value<'e>]) -> Value<'e> {
    let mut shape = sizes(parts[0]);
    shape.push(Size::Known(1));
    let parts: Vec<Value<'e>> = parts.iter().map(|&x| reshape(x, &shape)).collect();
    Value::concat(&parts, rank(parts[0]) as i64 - 1)
}
