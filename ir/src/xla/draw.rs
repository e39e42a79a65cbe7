//! Random ops as XLA compiles them: other numbers of the same bits as those of TensorFlow's
//! kernels.
//!
//! The bits are those of [`rng_bit_generator`]. Floats are made of their high bits, normal numbers
//! of pairs along an axis (Box and Muller, 1958), truncated normal numbers by the inverse of the
//! cumulative distribution, classes by the largest of Gumbel-perturbed logits. Sources: TensorFlow's
//! `tf2xla/kernels/stateless_random_ops*.cc` and `categorical_op.cc`, XLA's `builder/lib/prng.cc`.

use super::{
    bits::{unsigned, width},
    rng::{BitGenerator, paired_axis, rng_bit_generator},
};
use crate::{
    attr::Attrs,
    dtype::DType,
    emit::{Composite, Value, call, call_with},
    error::Error,
};
use std::f64::consts::{FRAC_1_SQRT_2, SQRT_2, TAU};

/// Uniform numbers below it are taken for it, so that their logarithm is finite.
const SMALLEST: f64 = 1e-7;

/// Truncated normal numbers are closer to 0.
const LIMIT: f64 = 2.0;

/// Random bits of a shape, from the key in input `index`, the counter and the algorithm after it.
fn bits<'e>(c: &Composite<'e>, index: usize, shape: &[i64], dtype: DType) -> Value<'e> {
    let found = c.ints(index + 2);
    let Some(algorithm) = found.first().and_then(|&number| BitGenerator::numbered(number)) else {
        return c.fail(Error::argument(
            c.op.name,
            "alg",
            BitGenerator::NUMBERS,
            format!("{found:?}"),
        ));
    };
    let state = Value::concat(&[c.x(index), c.x(index + 1)], 0);
    let [_, bits] = rng_bit_generator(algorithm, state, shape, dtype);
    bits
}

/// Floats of [0, 1) of a shape; `bfloat16` is computed as `float32`.
fn unit<'e>(c: &Composite<'e>, index: usize, shape: &[i64], dtype: DType) -> Value<'e> {
    let word = unsigned(dtype);
    let bits = bits(c, index, shape, word);
    let fraction: u32 = match dtype {
        DType::F64 => 52,
        DType::F16 => 10,
        _ => 23,
    };
    // Halves are made of their low bits, as TensorFlow's kernels make them.
    let kept = match dtype {
        DType::F16 => call("BitwiseAnd", [bits, bits.like(1023.0)]),
        _ => call("RightShift", [bits, bits.like((width(word) - i64::from(fraction)) as f64)]),
    };
    kept.cast(dtype) * (-f64::from(fraction)).exp2()
}

/// The type in which numbers of a dtype are computed.
fn computed(dtype: DType) -> DType {
    if dtype == DType::BF16 { DType::F32 } else { dtype }
}

/// Numbers as the dtype of a call. `bfloat16` loses the low bits, so that no number becomes its
/// upper limit.
fn given<'e>(c: &Composite<'e>, x: Value<'e>) -> Vec<Value<'e>> {
    let dtype = c.dtype_attr("dtype");
    if dtype != DType::BF16 {
        return vec![x.cast(dtype)];
    }
    let bits = call_with("Bitcast", Attrs::new().with("type", DType::U32), [x]);
    let high = call("BitwiseAnd", [bits, bits.literal(0xffff_0000u32)]);
    let x = call_with("Bitcast", Attrs::new().with("type", DType::F32), [high]);
    vec![x.cast(dtype)]
}

/// The key that scrambles seeds.
const SEED_KEY: u64 = 0x0246_1e29_3ec8_f720;

/// `StatelessRandomGetKeyCounter`: of each part of the seed, the low 32 bits without a sign.
pub(crate) fn key_counter<'e>(c: &Composite<'e>) -> Vec<Value<'e>> {
    let seed = c.x(0).cast(DType::I64);
    let low = call("BitwiseAnd", [seed, seed.literal(0xffff_ffffi64)]).cast(DType::U64);
    let state = Value::concat(&[c.vector(&[SEED_KEY]), low], 0);
    let [_, words] = rng_bit_generator(BitGenerator::Philox, state, &[2], DType::U64);
    let key = words.slice(&[0], &[1]);
    let counter = Value::concat(&[c.vector(&[0u64]), words.slice(&[1], &[1])], 0);
    vec![key, counter]
}

/// `StatelessRandomUniformV2`.
pub(crate) fn uniform<'e>(c: &Composite<'e>) -> Vec<Value<'e>> {
    given(c, unit(c, 1, &c.ints(0), computed(c.dtype_attr("dtype"))))
}

/// `StatelessRandomNormalV2`: sines and cosines of pairs along an axis.
pub(crate) fn normal<'e>(c: &Composite<'e>) -> Vec<Value<'e>> {
    let shape = c.ints(0);
    let dims = if shape.is_empty() { vec![1] } else { shape.clone() };
    let axis = paired_axis(&dims);
    let mut pairs = dims.clone();
    pairs[axis] = dims[axis] / 2 + dims[axis] % 2;
    pairs.insert(axis + 1, 2);
    let numbers = unit(c, 1, &pairs, computed(c.dtype_attr("dtype")));
    let of_pairs = |index: i64| {
        let (mut begin, mut size) = (vec![0; pairs.len()], pairs.clone());
        (begin[axis + 1], size[axis + 1]) = (index, 1);
        numbers.slice(&begin, &size)
    };
    let (first, angle) = (of_pairs(0), of_pairs(1) * TAU);
    let radius = (first.maximum(first.like(SMALLEST)).log() * -2.0).sqrt();
    let both = [call("Sin", [angle]) * radius, call("Cos", [angle]) * radius];
    let mut whole = dims.clone();
    whole[axis] += dims[axis] % 2;
    let numbers = Value::concat(&both, axis as i64 + 1).reshape(&whole);
    given(c, numbers.slice(&vec![0; dims.len()], &dims).reshape(&shape))
}

/// `StatelessTruncatedNormalV2`.
pub(crate) fn truncated_normal<'e>(c: &Composite<'e>) -> Vec<Value<'e>> {
    let x = unit(c, 1, &c.ints(0), computed(c.dtype_attr("dtype")));
    let limits = [-LIMIT, LIMIT].map(|limit| cumulative(x.like(limit)));
    given(c, between(x, limits))
}

/// `_StatelessParameterizedTruncatedNormalV2`: means, deviations and limits are inputs 4 to 7.
pub(crate) fn parameterized<'e>(c: &Composite<'e>) -> Vec<Value<'e>> {
    let x = unit(c, 1, &c.ints(0), computed(c.dtype_attr("dtype")));
    let [mean, deviation, low, high] = [4, 5, 6, 7].map(|index| c.x(index).cast(x.dtype()));
    let limits = [low, high].map(|limit| cumulative((limit - mean) / deviation));
    given(c, mean + deviation * between(x, limits))
}

/// The cumulative standard normal distribution.
fn cumulative<'e>(x: Value<'e>) -> Value<'e> {
    (call("Erf", [x * FRAC_1_SQRT_2]) + 1.0) * 0.5
}

/// Normal numbers whose cumulative distribution is between two values, of uniform numbers.
fn between<'e>(uniform: Value<'e>, [low, high]: [Value<'e>; 2]) -> Value<'e> {
    let signed = (low + (high - low) * uniform) * 2.0 - 1.0;
    let inside = match uniform.dtype() {
        DType::F64 => 1.0 - f64::EPSILON / 2.0,
        DType::F16 => 1.0 - (-11f64).exp2(),
        _ => f64::from(1.0 - f32::EPSILON / 2.0),
    };
    let bounded = signed.maximum(signed.like(-inside)).minimum(signed.like(inside));
    call("Erfinv", [bounded]) * SQRT_2
}

/// `StatelessRandomUniformIntV2`: the limits are inputs 4 and 5.
pub(crate) fn uniform_int<'e>(c: &Composite<'e>) -> Vec<Value<'e>> {
    let dtype = c.dtype_attr("dtype");
    let word = unsigned(dtype);
    let as_word = |x| super::bits::same_bits(x, word);
    let bits = bits(c, 1, &c.ints(0), word);
    let [low, high] = [4, 5].map(|index| as_word(c.x(index)));
    let number = low + call("FloorMod", [bits, high - low]);
    vec![super::bits::same_bits(number, dtype)]
}

/// `StatelessRandomUniformFullIntV2`.
pub(crate) fn full_int<'e>(c: &Composite<'e>) -> Vec<Value<'e>> {
    vec![bits(c, 1, &c.ints(0), c.dtype_attr("dtype"))]
}

/// `_StatelessMultinomialV2`: of `[rows, classes]` logits, the class whose logit and Gumbel noise
/// add up to the most, in `[rows, samples]`.
pub(crate) fn multinomial<'e>(c: &Composite<'e>) -> Vec<Value<'e>> {
    let logits = c.x(0);
    let dtype = if logits.dtype() == DType::F64 { DType::F64 } else { DType::F32 };
    let (dims, n_samples) = (logits.dims(), c.ints(1));
    let (Some([rows, classes]), Some(&n_samples)) = (dims.as_deref(), n_samples.first()) else {
        return vec![c.fail(Error::argument(
            c.op.name,
            "logits",
            "a matrix",
            logits.partial_shape(),
        ))];
    };
    let uniform = unit(c, 2, &[*rows, n_samples, *classes], dtype);
    let smallest =
        if dtype == DType::F64 { f64::MIN_POSITIVE } else { f64::from(f32::MIN_POSITIVE) };
    let noise = (-(uniform.maximum(uniform.like(smallest)).log())).log();
    let scores = logits.cast(dtype).reshape(&[*rows, 1, *classes]) - noise;
    let attrs = Attrs::new().with("output_type", c.dtype_attr("output_dtype"));
    vec![call_with("ArgMax", attrs, [scores, scores.literal(2i32)])]
}
