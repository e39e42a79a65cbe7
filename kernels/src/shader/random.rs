//! Random numbers of Philox, from a key and a counter: the CPU's numbers, as number `n` depends on
//! key, counter and `n` alone. Normal numbers are those but for the rounding of functions.
//!
//! Another algorithm would be an error, which devices cannot report: only calls are made here whose
//! algorithm is known.

use super::{
    Shader,
    scalar_type::{Caps, ScalarType, cut},
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

/// The statements that make a block, `w0` to `w3`, of the counter they hold before and a key, `k0`
/// and `k1`.
fn rounds() -> String {
    let [first, second] = MULTIPLIERS;
    let [step, other_step] = KEY_STEPS;
    format!(
        "for (var i = 0u; i < {ROUNDS}u; i++) {{\n\
         let high = mulhi_({first}u, w0);\nlet low = {first}u * w0;\n\
         let other_high = mulhi_({second}u, w2);\nlet other_low = {second}u * w2;\n\
         w0 = other_high ^ w1 ^ k0;\nw1 = other_low;\nw2 = high ^ w3 ^ k1;\nw3 = low;\n\
         k0 = k0 + {step}u;\nk1 = k1 + {other_step}u;\n}}\n"
    )
}

/// The statements that declare the halves of a 64-bit number.
fn halves(low: &str, high: &str, value: &str) -> String {
    format!("var {low} = u32({value} & u64(0xffffffffu));\nvar {high} = u32({value} >> 32u);\n")
}

/// Source of an element from the block of random bits that it is made of: the `u32` values per
/// element, and the value.
type Element = fn(DType) -> Option<(usize, String)>;

fn numbers(call: &OpCall<'_>, caps: Caps, element: Element) -> Result<Option<Shader>> {
    let dtype = call.outputs[0].dtype;
    let known = call.inputs[3].value.as_ref().map(|value| value.to_i64s()).transpose()?;
    let is_known = known.is_some_and(|values| values.iter().all(|value| KNOWN.contains(value)));
    let (Some(word), Some(place)) = (ScalarType::of(dtype, caps), ScalarType::of(DType::U64, caps))
    else {
        return Ok(None);
    };
    let Some((words, value)) = element(dtype).filter(|_| is_known) else { return Ok(None) };
    let per_block = 4 / words;
    let mut body = format!(
        "let lane = n % {per_block}u;\nlet block = u64(n / {per_block}u);\nlet key = in0[0];\n\
         let below = in1[0] + block;\nlet above = in1[1] + select(u64(0), u64(1), below < block);\n"
    );
    body += &halves("k0", "k1", "key");
    body += &halves("w0", "w1", "below");
    body += &halves("w2", "w3", "above");
    body += &rounds();
    body += &value;
    body += "out0[n] = number;\n";
    let count = call.output_shape(0)?.num_elements();
    Ok(Some(Shader::plain(vec![(1, place), (2, place)], vec![word], body, count)))
}

/// The `u32` of an element, of four in a block.
const WORD: &str =
    "let word = select(select(w0, w1, lane == 1u), select(w2, w3, lane == 3u), lane >= 2u);\n";

fn uniform(dtype: DType) -> Option<(usize, String)> {
    let value = match dtype {
        DType::F32 => "of_bits(0x3f800000u | (word & 0x7fffffu)) - 1.0f",
        DType::F16 => "f32(word & 0x3ffu) * 0.0009765625f",
        DType::BF16 => "f32(word & 0x7fu) * 0.0078125f",
        _ => return None,
    };
    Some((1, format!("{WORD}let number = {value};\n")))
}

/// Box and Muller's method, with the angle in quarters of a turn: those are exact.
fn normal(dtype: DType) -> Option<(usize, String)> {
    if !matches!(dtype, DType::F32 | DType::F16 | DType::BF16) {
        return None;
    }
    let value = cut(dtype, "wave * radius");
    Some((
        1,
        format!(
            "let first = select(w0, w2, lane >= 2u);\nlet second = select(w1, w3, lane >= 2u);\n\
             let share = max(of_bits(0x3f800000u | (first & 0x7fffffu)) - 1.0f, 1.0e-7f);\n\
             let radius = sqrt(-2.0f * log_(share));\n\
             let turn = 4.0f * (of_bits(0x3f800000u | (second & 0x7fffffu)) - 1.0f);\n\
             let whole = round(turn);\nlet part = (turn - whole) * 1.57079633f;\n\
             let quarter = (i32(whole) + i32(lane % 2u)) & 3;\n\
             let size = select(sin_part_(part), cos_part_(part), (quarter & 1) == 1);\n\
             let wave = select(size, -size, quarter >= 2);\nlet number = {value};\n"
        ),
    ))
}

fn bits(dtype: DType) -> Option<(usize, String)> {
    let pair = "(u64(select(w1, w3, lane == 1u)) << 32u) | u64(select(w0, w2, lane == 1u))";
    Some(match dtype {
        DType::U32 => (1, format!("{WORD}let number = word;\n")),
        DType::I32 => (1, format!("{WORD}let number = i32(word);\n")),
        DType::U64 => (2, format!("let number = {pair};\n")),
        DType::I64 => (2, format!("let number = i64({pair});\n")),
        _ => return None,
    })
}

/// The position that a seed of two parts stands for.
fn key_counter(call: &OpCall<'_>, caps: Caps) -> Result<Option<Shader>> {
    let (Some(seed), Some(place)) =
        (ScalarType::of(call.dtype(0), caps), ScalarType::of(DType::U64, caps))
    else {
        return Ok(None);
    };
    let mut body = String::new();
    for part in 0..2 {
        body += &format!("let seed{part} = u64(i64(in0[{part}]));\n");
        body += &halves(
            &format!("w{}", 2 * part),
            &format!("w{}", 2 * part + 1),
            &format!("seed{part}"),
        );
    }
    body += &format!("var k0 = {}u;\nvar k1 = {}u;\n", SEED_KEY as u32, SEED_KEY >> 32);
    body += &rounds();
    body += "out0[0] = (u64(w1) << 32u) | u64(w0);\nout1[0] = u64(0);\n\
             out1[1] = (u64(w3) << 32u) | u64(w2);\n";
    Ok(Some(Shader::plain(vec![(0, seed)], vec![place, place], body, 1)))
}
