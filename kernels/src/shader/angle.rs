//! Sines and cosines, with angles reduced as far as they go.
//!
//! Angles up to 2¹⁵ lose multiples of π/2 in four parts. Larger ones are multiplied by as many bits of
//! 1/2π as count (Payne and Hanek 1983), in integers.

use super::math::{ShaderFunction, unary};

/// Each after those it calls; they call functions of [`super::math`].
pub(super) const FUNCTIONS: &[ShaderFunction] = &[
    // The high half of a product, of products of halves.
    ShaderFunction {
        name: "mulhi_",
        args: &[("a", "u32"), ("b", "u32")],
        result: "u32",
        body: "let a0 = a & 0xffffu;\nlet a1 = a >> 16u;\nlet b0 = b & 0xffffu;\nlet b1 = b >> 16u;\n\
               let middle = a1 * b0 + ((a0 * b0) >> 16u);\nlet other = a0 * b1 + (middle & 0xffffu);\n\
               return a1 * b1 + (middle >> 16u) + (other >> 16u);\n",
    },
    // Words of 1/2π, after one of zeros.
    ShaderFunction {
        name: "turn_word_",
        args: &[("i", "u32")],
        result: "u32",
        body: "if (i == 1u) { return 0x28be60dbu; }\n\
               if (i == 2u) { return 0x9391054au; }\n\
               if (i == 3u) { return 0x7f09d5f4u; }\n\
               if (i == 4u) { return 0x7d4d3770u; }\n\
               if (i == 5u) { return 0x36d8a566u; }\n\
               if (i == 6u) { return 0x4f10e410u; }\n\
               if (i == 7u) { return 0x7f9458eau; }\n\
               return 0u;\n",
    },
    // 32 bits of them from a place on.
    ShaderFunction {
        name: "turn_bits_",
        args: &[("place", "u32")],
        result: "u32",
        body: "let i = place >> 5u;\nlet left = place & 31u;\n\
               if (left == 0u) { return turn_word_(i); }\n\
               return (turn_word_(i) << left) | (turn_word_(i + 1u) >> (32u - left));\n",
    },
    // What a large angle has beyond whole turns, as 64 bits: the upper half, or the lower one.
    ShaderFunction {
        name: "turns_",
        args: &[("x", "f32"), ("lower", "bool")],
        result: "u32",
        body: "let bits = to_bits(x);\nlet m = (bits & 0x7fffffu) | 0x800000u;\n\
               let place = ((bits >> 23u) & 255u) - 118u;\n\
               let middle = turn_bits_(place + 32u);\n\
               let low = m * middle + mulhi_(m, turn_bits_(place + 64u));\n\
               let carry = select(0u, 1u, low < m * middle);\n\
               return select(m * turn_bits_(place) + mulhi_(m, middle) + carry, low, lower);\n",
    },
    // The quadrant of x, or one that differs by whole turns.
    ShaderFunction {
        name: "quadrant_",
        args: &[("x", "f32")],
        result: "f32",
        body: "if (abs(x) < 32768.0f) { return round(x * 0.63661977f); }\n\
               let k = f32((((turns_(x, false) >> 29u) + 1u) >> 1u) & 3u);\n\
               return select(k, -k, x < 0.0f);\n",
    },
    // What is left of x in [-π/4, π/4], of quadrant k.
    ShaderFunction {
        name: "rest_",
        args: &[("x", "f32"), ("k", "f32")],
        result: "f32",
        body: "if (abs(x) < 32768.0f) {\n\
               return (((x - k * 1.5703125f) - k * 4.83751297e-4f) - k * 7.54953362e-8f) - k * 2.56334407e-12f;\n}\n\
               let low = turns_(x, true);\nlet part = (turns_(x, false) << 2u) | (low >> 30u);\n\
               let quarter = f32(i32(part)) * 2.3283064e-10f + f32(low << 2u) * 5.421011e-20f;\n\
               return select(quarter, -quarter, x < 0.0f) * 1.57079633f;\n",
    },
    unary(
        "sin_part_",
        "let z = x * x;\nreturn x + x * z * (-0.16666667f + z * (0.0083333333f + z * (-1.9841270e-4f + z * 2.7557319e-6f)));\n",
    ),
    unary(
        "cos_part_",
        "let z = x * x;\nreturn 1.0f + z * (-0.5f + z * (0.041666668f + z * (-0.0013888889f + z * (2.4801587e-5f + z * -2.7557319e-7f))));\n",
    ),
    unary(
        "sin_",
        "if ((to_bits(x) & 0x7f800000u) == 0x7f800000u) { return of_bits(0x7fc00000u); }\n\
         let k = quadrant_(x);\nlet r = rest_(x, k);\nlet q = i32(k) & 3;\n\
         let y = select(sin_part_(r), cos_part_(r), (q & 1) == 1);\nreturn select(y, -y, q >= 2);\n",
    ),
    unary(
        "cos_",
        "if ((to_bits(x) & 0x7f800000u) == 0x7f800000u) { return of_bits(0x7fc00000u); }\n\
         let k = quadrant_(x);\nlet r = rest_(x, k);\nlet q = (i32(k) + 1) & 3;\n\
         let y = select(sin_part_(r), cos_part_(r), (q & 1) == 1);\nreturn select(y, -y, q >= 2);\n",
    ),
];
