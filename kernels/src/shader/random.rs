//! Random numbers of Philox, from a key and a counter: the CPU's numbers, as number `n` depends on
//! key, counter and `n` alone. Normal numbers are those but for the rounding of functions.
//!
//! Another algorithm would be an error, which devices cannot report: only calls are made here whose
//! algorithm is known.

use super::{
    Shader,
    builder::{KernelBuilder, KernelValue},
    scalar_type::{Caps, ScalarType},
};
use crate::{
    device::OpCall,
    error::Result,
    philox::{KEY_STEPS, MULTIPLIERS, ROUNDS, SEED_KEY},
};
use ferroflow_ir::DType;

pub(super) const SHADERS: &[(&str, super::Build)] = &[
    ("StatelessRandomGetKeyCounter", key_counter),
    ("StatelessRandomNormalV2", |call, caps| numbers(call, caps, normal)),
    ("StatelessRandomUniformFullIntV2", |call, caps| numbers(call, caps, bits)),
    ("StatelessRandomUniformV2", |call, caps| numbers(call, caps, uniform)),
];

/// The algorithms that are Philox: itself, and whichever the system likes best.
const KNOWN: [i64; 2] = [1, 3];

/// Makes a block of random bits of the counter in these variables and of a key.
fn scramble<'k>(k: &'k KernelBuilder, counter: [KernelValue<'k>; 4], key: [KernelValue<'k>; 2]) {
    let [w0, w1, w2, w3] = counter;
    let [first, second] = MULTIPLIERS.map(|multiplier| k.index(multiplier as usize));
    k.for_below("i", ROUNDS, |_| {
        let [(high, low), (other_high, other_low)] = [(first, w0), (second, w2)]
            .map(|(by, w)| (k.bind("high", by.function_with("mulhi_", w)), k.bind("low", by * w)));
        w0.set(other_high ^ w1 ^ key[0]);
        w1.set(other_low);
        w2.set(high ^ w3 ^ key[1]);
        w3.set(low);
        for (key, step) in key.iter().zip(KEY_STEPS) {
            key.set(*key + step as usize);
        }
    });
}

/// Variables of the halves of a 64-bit number, the lower one first.
fn halves<'k>(k: &'k KernelBuilder, value: KernelValue<'k>) -> [KernelValue<'k>; 2] {
    let half = |value: KernelValue<'k>| k.variable("half", value.to(ScalarType::U32));
    [half(value & u32::MAX as usize), half(value >> 32)]
}

/// The 64-bit number of two halves.
fn joined<'k>(low: KernelValue<'k>, high: KernelValue<'k>) -> KernelValue<'k> {
    (high.to(ScalarType::U64) << 32) | low.to(ScalarType::U64)
}

/// An element of a dtype from a block of random bits, by its number among those of the block.
type MakeElement =
    for<'k> fn(&'k KernelBuilder, DType, [KernelValue<'k>; 4], KernelValue<'k>) -> KernelValue<'k>;

fn numbers(call: &OpCall<'_>, caps: Caps, element: MakeElement) -> Result<Option<Shader>> {
    let dtype = call.outputs[0].dtype;
    let known = call.inputs[3].value.as_ref().map(|value| value.to_i64s()).transpose()?;
    let per_block = if matches!(dtype, DType::U64 | DType::I64) { 2 } else { 4 };
    let k = KernelBuilder::new(caps);
    k.requires(known.is_some_and(|values| values.iter().all(|value| KNOWN.contains(value))));
    let ([keys, counters], out, n) = (k.inputs(call, [1, 2]), k.result(call), k.element());
    let block = k.bind("block", (n / per_block).to(ScalarType::U64));
    let below = k.bind("below", counters.at(0) + block);
    let above = k.bind("above", counters.at(1) + below.lt(block).to(ScalarType::U64));
    let key = halves(&k, k.bind("key", keys.at(0)));
    let ([w0, w1], [w2, w3]) = (halves(&k, below), halves(&k, above));
    let block = [w0, w1, w2, w3];
    scramble(&k, block, key);
    out.set(n, element(&k, dtype, block, k.bind("number", n % per_block)));
    k.finish(call.output_shape(0)?.num_elements())
}

/// The `u32` of an element, of four in a block.
fn element_bits<'k>(
    k: &'k KernelBuilder,
    [w0, w1, w2, w3]: [KernelValue<'k>; 4],
    number: KernelValue<'k>,
) -> KernelValue<'k> {
    let (low, high) = (number.eq(1).select(w1, w0), number.eq(3).select(w3, w2));
    k.bind("bits", number.ge(2).select(high, low))
}

/// The float in [0, 1) of random bits.
fn unit(bits: KernelValue<'_>) -> KernelValue<'_> {
    let one = (bits & 0x7f_ffff_usize) | 0x3f80_0000_usize;
    one.function_to("of_bits", ScalarType::F32) - 1.0
}

fn uniform<'k>(
    k: &'k KernelBuilder,
    dtype: DType,
    block: [KernelValue<'k>; 4],
    number: KernelValue<'k>,
) -> KernelValue<'k> {
    let bits = element_bits(k, block, number);
    match dtype {
        DType::F16 => (bits & 0x3ff_usize).to(ScalarType::F32) * 0.000_976_562_5,
        DType::BF16 => (bits & 0x7f_usize).to(ScalarType::F32) * 0.007_812_5,
        _ => {
            k.requires(dtype == DType::F32);
            unit(bits)
        }
    }
}

/// Box and Muller's method, with the angle in quarters of a turn: those are exact.
fn normal<'k>(
    k: &'k KernelBuilder,
    dtype: DType,
    [w0, w1, w2, w3]: [KernelValue<'k>; 4],
    number: KernelValue<'k>,
) -> KernelValue<'k> {
    k.requires(matches!(dtype, DType::F32 | DType::F16 | DType::BF16));
    let second_pair = number.ge(2);
    let share = k.bind("share", unit(second_pair.select(w2, w0)).function_with("max", 1.0e-7));
    let radius = k.bind("radius", (-2.0 * share.function("log_")).function("sqrt"));
    let turn = k.bind("turn", 4.0 * unit(second_pair.select(w3, w1)));
    let whole = k.bind("whole", turn.function("round"));
    let part = k.bind("part", (turn - whole) * std::f32::consts::FRAC_PI_2);
    let int = ScalarType::I32;
    let quarter = k.bind("quarter", (whole.to(int) + (number % 2).to(int)) & 3);
    let is_odd = (quarter & 1).eq(1);
    let size = is_odd.select(part.function("cos_part_"), part.function("sin_part_"));
    let size = k.bind("size", size);
    (quarter.ge(2).select(-size, size) * radius).rounded(dtype)
}

fn bits<'k>(
    k: &'k KernelBuilder,
    dtype: DType,
    block: [KernelValue<'k>; 4],
    number: KernelValue<'k>,
) -> KernelValue<'k> {
    let [w0, w1, w2, w3] = block;
    let pair = || joined(number.eq(1).select(w2, w0), number.eq(1).select(w3, w1));
    match dtype {
        DType::I32 => element_bits(k, block, number).to(ScalarType::I32),
        DType::U64 => pair(),
        DType::I64 => pair().to(ScalarType::I64),
        _ => {
            k.requires(dtype == DType::U32);
            element_bits(k, block, number)
        }
    }
}

/// The position that a seed of two parts stands for.
fn key_counter(call: &OpCall<'_>, caps: Caps) -> Result<Option<Shader>> {
    let k = KernelBuilder::new(caps);
    let ([seeds], keys) = (k.inputs(call, [0]), k.output(DType::U64));
    let counters = k.output(DType::U64);
    let seed = |part: usize| seeds.at(part).to(ScalarType::I64).to(ScalarType::U64);
    let [[w0, w1], [w2, w3]] = [0, 1].map(|part| halves(&k, k.bind("seed", seed(part))));
    let key = [SEED_KEY as u32, (SEED_KEY >> 32) as u32];
    let key = key.map(|half| k.variable("half", k.index(half as usize)));
    scramble(&k, [w0, w1, w2, w3], key);
    keys.set(0, joined(w0, w1));
    counters.set(0, 0);
    counters.set(1, joined(w2, w3));
    k.finish(1)
}
