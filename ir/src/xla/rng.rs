//! `rng_bit_generator`: bits from a key and a counter, word for word those of XLA.
//!
//! The state is a vector of `u64`: the key, then a counter of one word or two. The layout of the
//! bits in a tensor is XLA's on a CPU, found by comparing with it: Threefry writes its two words
//! into the two halves of an axis of even size (or of the largest axis, cut), Philox writes its
//! four one after the other.

use super::{
    bits::{halves, interleaved, threefry2x32, whole, width},
    size::{Size, broadcast, range, reshape, window},
};
use crate::{
    attr::Attrs,
    dtype::DType,
    emit::{Value, call},
};

/// The ways to make bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BitGenerator {
    /// Threefry-2x32 with 20 rounds.
    Threefry,
    /// Philox-4x32 with 10 rounds.
    Philox,
}

impl BitGenerator {
    /// The numbers of the algorithms, in words.
    pub const NUMBERS: &str = "1 (Philox), 2 (Threefry) or 3 (that of the platform)";

    /// The algorithm of a number of TensorFlow's; that of a CPU is Philox.
    pub fn numbered(number: i64) -> Option<BitGenerator> {
        match number {
            1 | 3 => Some(BitGenerator::Philox),
            2 => Some(BitGenerator::Threefry),
            _ => None,
        }
    }

    /// TensorFlow's number of the algorithm.
    pub fn number(self) -> i32 {
        match self {
            BitGenerator::Philox => 1,
            BitGenerator::Threefry => 2,
        }
    }
}

/// The axis along which a shape of rank 1 or more is made of pairs: the first of even size, else
/// the first of the largest size.
pub(crate) fn paired_axis(dims: &[i64]) -> usize {
    let largest = || {
        let sizes = dims.iter().enumerate().rev();
        sizes.max_by_key(|(_, size)| **size).map_or(0, |(axis, _)| axis)
    };
    dims.iter().position(|size| size % 2 == 0).unwrap_or_else(largest)
}

/// The new state, and a tensor of bits.
pub fn rng_bit_generator<'e>(
    algorithm: BitGenerator,
    state: Value<'e>,
    shape: &[i64],
    dtype: DType,
) -> [Value<'e>; 2] {
    match algorithm {
        BitGenerator::Threefry => threefry(state, shape, dtype),
        BitGenerator::Philox => philox(state, shape, dtype),
    }
}

fn word<'e>(state: Value<'e>, index: usize) -> Value<'e> {
    let part = window(state, &[Size::Known(index as i64)], &[Size::Known(1)]);
    part.reshape(&[])
}

/// `0, 1, 2, …` as `u64` in a shape.
fn counters<'e>(shape: &[Size<'e>], anchor: Value<'e>) -> Value<'e> {
    let n = super::size::product(shape);
    reshape(range(n, anchor).cast(DType::U64), shape)
}

fn known<'e>(sizes: &[i64]) -> Vec<Size<'e>> {
    sizes.iter().map(|&size| Size::Known(size)).collect()
}

fn count(shape: &[i64]) -> i64 {
    shape.iter().fold(1, |a: i64, &b| a.saturating_mul(b))
}

fn threefry<'e>(state: Value<'e>, shape: &[i64], dtype: DType) -> [Value<'e>; 2] {
    let key = halves(word(state, 0));
    let counter = word(state, 1);
    let drawn = |shape: &[i64]| {
        let inputs = halves(counters(&known(shape), state) + counter);
        threefry2x32(key, inputs)
    };
    let next = |used: i64| {
        let counter = counter + counter.literal(used as u64);
        Value::concat(&[word(state, 0).reshape(&[1]), counter.reshape(&[1])], 0)
    };
    if width(dtype) == 64 {
        let [low, high] = drawn(shape);
        return [next(count(shape)), whole(low, high).cast(dtype)];
    }
    let dims = if shape.is_empty() { vec![1] } else { shape.to_vec() };
    let axis = paired_axis(&dims);
    let mut half = dims.clone();
    half[axis] = dims[axis] / 2 + dims[axis] % 2;
    let words = drawn(&half);
    let mut wide = half.clone();
    wide.insert(axis + 1, 1);
    let words = words.map(|word| word.reshape(&wide));
    let mut merged = half.clone();
    merged[axis] *= 2;
    let bits = Value::concat(&words, axis as i64 + 1).reshape(&merged);
    let bits = match dims[axis] % 2 {
        0 => bits,
        _ => bits.slice(&vec![0; dims.len()], &dims),
    };
    [next(count(&half)), narrowed(bits.reshape(shape), dtype)]
}

/// The low bits of 32-bit words.
fn narrowed<'e>(bits: Value<'e>, dtype: DType) -> Value<'e> {
    match width(dtype) {
        32 => super::bits::same_bits(bits, dtype),
        _ => {
            let mask = (1u64 << width(dtype)) - 1;
            let low = call("BitwiseAnd", [bits, bits.literal(mask as u32)]);
            super::bits::same_bits(low.cast(super::bits::unsigned(dtype)), dtype)
        }
    }
}

fn philox<'e>(state: Value<'e>, shape: &[i64], dtype: DType) -> [Value<'e>; 2] {
    let n_words = count(shape).saturating_mul(if width(dtype) == 64 { 2 } else { 1 });
    let n_blocks = n_words / 4 + i64::from(n_words % 4 != 0);
    let long = state.dims().is_some_and(|dims| dims[0] > 2);
    let high = word(state, if long { 2 } else { 0 });
    let counter = counters(&[Size::Known(n_blocks)], state) + word(state, 1);
    let carried = counter.less(word(state, 1)).cast(DType::U64);
    let above = if long { high + carried } else { broadcast(high, &[Size::Known(n_blocks)]) };
    let [a, b] = halves(counter);
    let [c, d] = halves(above);
    let blocks = philox4x32(halves(word(state, 0)), [a, b, c, d]);
    let words = interleaved(&blocks).reshape(&[4 * n_blocks]).slice(&[0], &[n_words]);
    let bits = match width(dtype) {
        64 => {
            let pairs = words.reshape(&[n_words / 2, 2]);
            let part = |at: i64| pairs.slice(&[0, at], &[-1, 1]);
            whole(part(0), part(1)).cast(dtype)
        }
        _ => narrowed(words, dtype),
    };
    let next = word(state, 1) + state.literal(n_blocks as u64);
    let mut words = vec![word(state, 0), next];
    if long {
        words.push(high + next.less(word(state, 1)).cast(DType::U64));
    }
    let words: Vec<Value<'e>> = words.into_iter().map(|word| word.reshape(&[1])).collect();
    [Value::concat(&words, 0), bits.reshape(shape)]
}

fn philox4x32<'e>(key: [Value<'e>; 2], counter: [Value<'e>; 4]) -> [Value<'e>; 4] {
    let xor = |a: Value<'e>, b: Value<'e>| call("BitwiseXor", [a, b]);
    let [mut k0, mut k1] = key;
    let mut words = counter;
    for _ in 0..10 {
        let product = |x: Value<'e>, by: u32| {
            let x = x.cast(DType::U64);
            halves(x * x.literal(u64::from(by)))
        };
        let [low0, high0] = product(words[0], 0xd251_1f53);
        let [low1, high1] = product(words[2], 0xcd9e_8d57);
        words = [xor(xor(high1, words[1]), k0), low1, xor(xor(high0, words[3]), k1), low0];
        k0 = k0 + k0.literal(0x9e37_79b9u32);
        k1 = k1 + k1.literal(0xbb67_ae85u32);
    }
    words
}

/// The attributes of a call of `XlaRngBitGenerator` for elements of a dtype.
pub fn attrs(dtype: DType) -> Attrs {
    Attrs::new().with("dtype", dtype).with("Tshape", DType::I64)
}
