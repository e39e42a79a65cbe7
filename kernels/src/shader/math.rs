//! Functions that shaders call, in the common language.
//!
//! The languages' own functions are only as good as each driver makes them (WGSL allows an absolute
//! error of 2⁻¹¹ for `sin`); these are a few units in the last place everywhere. Polynomials for
//! `atan` and `asin` are those of Cephes (`atanf.c`, `asinf.c`), that for `erfc` is of "Numerical
//! Recipes" (`erfcc`); the others are Taylor series over the reduced argument.

use super::{angle, special, whole};

/// A function of shaders.
#[derive(Debug)]
pub(super) struct ShaderFunction {
    pub(super) name: &'static str,
    pub(super) args: &'static [(&'static str, &'static str)],
    pub(super) result: &'static str,
    pub(super) body: &'static str,
}

pub(super) const fn unary(name: &'static str, body: &'static str) -> ShaderFunction {
    ShaderFunction { name, args: &[("x", "f32")], result: "f32", body }
}

pub(super) const fn binary(name: &'static str, body: &'static str) -> ShaderFunction {
    ShaderFunction { name, args: &[("x", "f32"), ("y", "f32")], result: "f32", body }
}

/// Functions of floats, each after those it calls.
const FUNCTIONS: &[ShaderFunction] = &[
    ShaderFunction {
        name: "of_bits",
        args: &[("bits", "u32")],
        result: "f32",
        body: "return bitcast<f32>(bits);\n",
    },
    ShaderFunction {
        name: "to_bits",
        args: &[("x", "f32")],
        result: "u32",
        body: "return bitcast<u32>(x);\n",
    },
    ShaderFunction {
        name: "is_nan_",
        args: &[("x", "f32")],
        result: "bool",
        body: "return (to_bits(x) & 0x7fffffffu) > 0x7f800000u;\n",
    },
    unary(
        "flush_",
        "let bits = to_bits(x);\n\
         return select(x, of_bits(bits & 0x80000000u), (bits & 0x7f800000u) == 0u);\n",
    ),
    binary("times_", "return x * y;\n"),
    unary("square_", "return x * x;\n"),
    unary(
        "sign_",
        "if (is_nan_(x)) { return x; }\nlet bits = to_bits(x);\n\
         if ((bits & 0x7f800000u) == 0u) { return of_bits(bits & 0x7fffffffu); }\n\
         return select(1.0f, -1.0f, (bits & 0x80000000u) != 0u);\n",
    ),
    binary(
        "max_",
        "if (is_nan_(x)) { return x; }\nif (is_nan_(y)) { return y; }\nreturn select(y, x, x > y);\n",
    ),
    binary(
        "min_",
        "if (is_nan_(x)) { return x; }\nif (is_nan_(y)) { return y; }\nreturn select(y, x, x < y);\n",
    ),
    // e^x = 2^k · e^r with r = x - k·ln 2 in [-0.35, 0.35]; the power of two in two steps, as one
    // alone may overflow.
    unary(
        "exp_",
        "if (is_nan_(x)) { return x; }\n\
         if (x > 88.8f) { return of_bits(0x7f800000u); }\nif (x < -104.0f) { return 0.0f; }\n\
         let k = round(x * 1.44269504f);\n\
         let r = (x - k * 0.693359375f) - k * -2.12194440e-4f;\n\
         let p = 1.0f + r * (1.0f + r * (0.5f + r * (0.16666667f + r * (0.041666668f + r * (0.0083333333f + r * (0.0013888889f + r * 1.9841270e-4f))))));\n\
         let whole = i32(k);\nlet half = whole / 2;\n\
         return p * of_bits(u32(half + 127) << 23u) * of_bits(u32(whole - half + 127) << 23u);\n",
    ),
    unary(
        "expm1_",
        "if (abs(x) < 0.5f) {\n\
         return x + x * x * (0.5f + x * (0.16666667f + x * (0.041666668f + x * (0.0083333333f + x * (0.0013888889f + x * (1.9841270e-4f + x * 2.4801587e-5f))))));\n}\n\
         return exp_(x) - 1.0f;\n",
    ),
    // x = m·2^e with m in [√½, √2); ln m = 2 artanh((m-1)/(m+1)).
    unary(
        "log_",
        "if (is_nan_(x) || x < 0.0f) { return of_bits(0x7fc00000u); }\n\
         if (x == 0.0f) { return of_bits(0xff800000u); }\n\
         if (to_bits(x) == 0x7f800000u) { return x; }\n\
         let bits = to_bits(x) - 0x3f3504f3u;\n\
         let e = f32(i32(bits) >> 23u);\n\
         let m = of_bits((bits & 0x007fffffu) + 0x3f3504f3u);\n\
         let s = (m - 1.0f) / (m + 1.0f);\nlet z = s * s;\n\
         let t = z * (0.33333334f + z * (0.2f + z * (0.14285715f + z * (0.11111111f + z * 0.090909094f))));\n\
         return e * 0.693359375f + (2.0f * s + (2.0f * s * t + e * -2.12194440e-4f));\n",
    ),
    unary(
        "log1p_",
        "if (abs(x) < 0.3f) {\nlet s = x / (2.0f + x);\nlet z = s * s;\n\
         return 2.0f * s + 2.0f * s * z * (0.33333334f + z * (0.2f + z * (0.14285715f + z * (0.11111111f + z * 0.090909094f))));\n}\n\
         return log_(1.0f + x);\n",
    ),
    // ln(e^x + e^y); what is NaN is neither lower nor higher and counts as one more of x.
    binary(
        "log_add_",
        "let low = select(x, y, y < x);\nlet high = select(x, y, x < y);\n\
         if (to_bits(high) == 0xff800000u) { return high; }\nreturn log1p_(exp_(low - high)) + high;\n",
    ),
    unary(
        "atan_part_",
        "let z = x * x;\nreturn x + x * z * (-0.333329491539f + z * (0.199777106478f + z * (-0.138776856032f + z * 0.0805374449538f)));\n",
    ),
    unary(
        "atan_",
        "let a = abs(x);\nvar y = 0.0f;\n\
         if (a > 2.41421356f) { y = 1.57079633f + atan_part_(-1.0f / a); }\n\
         else if (a > 0.41421356f) { y = 0.785398163f + atan_part_((a - 1.0f) / (a + 1.0f)); }\n\
         else { return atan_part_(x); }\n\
         return select(y, -y, x < 0.0f);\n",
    ),
    binary(
        "atan2_",
        "if (is_nan_(x)) { return x; }\nif (is_nan_(y)) { return y; }\n\
         let negative = (to_bits(y) & 0x80000000u) != 0u;\n\
         let a = abs(x);\nlet b = abs(y);\nvar angle = 0.0f;\n\
         if (a == b && a != 0.0f) { angle = 0.785398163f; }\n\
         else if (a > b) { angle = 1.57079633f - atan_(b / a); }\n\
         else if (b != 0.0f) { angle = atan_(a / b); }\n\
         if (negative) { angle = 3.14159265f - angle; }\n\
         return of_bits(to_bits(angle) | (to_bits(x) & 0x80000000u));\n",
    ),
    unary(
        "asin_part_",
        "let z = x * x;\nreturn x + x * z * (0.16666752422f + z * (0.074953002686f + z * (0.045470025998f + z * (0.024181311049f + z * 0.042163199048f))));\n",
    ),
    unary(
        "asin_",
        "let a = abs(x);\nif (!(a <= 1.0f)) { return of_bits(0x7fc00000u); }\n\
         if (a <= 0.5f) { return asin_part_(x); }\n\
         let y = 1.57079633f - 2.0f * asin_part_(sqrt(0.5f * (1.0f - a)));\nreturn select(y, -y, x < 0.0f);\n",
    ),
    unary(
        "acos_",
        "let a = abs(x);\nif (!(a <= 1.0f)) { return of_bits(0x7fc00000u); }\n\
         if (a <= 0.5f) { return 1.57079633f - asin_part_(x); }\n\
         let y = 2.0f * asin_part_(sqrt(0.5f * (1.0f - a)));\nreturn select(y, 3.14159265f - y, x < 0.0f);\n",
    ),
    unary(
        "sinh_",
        "let a = abs(x);\nif (a < 1.0f) {\nlet z = x * x;\n\
         return x + x * z * (0.16666667f + z * (0.0083333333f + z * (1.9841270e-4f + z * 2.7557319e-6f)));\n}\n\
         let h = exp_(0.5f * a);\nlet y = (0.5f * h) * h - 0.5f / (h * h);\nreturn select(y, -y, x < 0.0f);\n",
    ),
    unary("cosh_", "let h = exp_(0.5f * abs(x));\nreturn (0.5f * h) * h + 0.5f / (h * h);\n"),
    unary(
        "tanh_",
        "if (is_nan_(x)) { return x; }\nlet t = expm1_(-2.0f * abs(x));\nlet y = -t / (t + 2.0f);\n\
         return of_bits((to_bits(y) & 0x7fffffffu) | (to_bits(x) & 0x80000000u));\n",
    ),
    unary(
        "asinh_",
        "let a = abs(x);\nvar y = 0.0f;\nif (a > 1.0e9f) { y = log_(a) + 0.69314718f; }\n\
         else { y = log1p_(a + a * a / (1.0f + sqrt(1.0f + a * a))); }\nreturn select(y, -y, x < 0.0f);\n",
    ),
    unary(
        "acosh_",
        "if (x < 1.0f) { return of_bits(0x7fc00000u); }\n\
         if (x > 1.0e9f) { return log_(x) + 0.69314718f; }\n\
         let t = x - 1.0f;\nreturn log1p_(t + sqrt(2.0f * t + t * t));\n",
    ),
    unary(
        "atanh_",
        "let y = 0.5f * log1p_(2.0f * abs(x) / (1.0f - abs(x)));\nreturn select(y, -y, x < 0.0f);\n",
    ),
    unary(
        "erfc_tail_",
        "let t = 1.0f / (1.0f + 0.5f * x);\n\
         return t * exp_(-x * x + (-1.26551223f + t * (1.00002368f + t * (0.37409196f + t * (0.09678418f + t * (-0.18628806f + t * (0.27886807f + t * (-1.13520398f + t * (1.48851587f + t * (-0.82215223f + t * 0.17087277f))))))))));\n",
    ),
    // 2/√π · Σ (-1)^n x^(2n+1) / (n! (2n+1))
    unary(
        "erf_part_",
        "let z = x * x;\n\
         return 1.12837917f * (x + x * z * (-0.33333334f + z * (0.1f + z * (-0.023809524f + z * (0.0046296297f + z * (-7.5757576e-4f + z * (1.0683761e-4f + z * (-1.3227513e-5f + z * (1.4589169e-6f + z * -1.4503853e-7f)))))))));\n",
    ),
    unary(
        "erf_",
        "if (is_nan_(x)) { return x; }\nlet a = abs(x);\nif (a < 1.0f) { return erf_part_(x); }\n\
         let y = 1.0f - erfc_tail_(a);\nreturn select(y, -y, x < 0.0f);\n",
    ),
    unary(
        "erfc_",
        "if (is_nan_(x)) { return x; }\nlet a = abs(x);\nif (a < 0.5f) { return 1.0f - erf_part_(x); }\n\
         let y = erfc_tail_(a);\nreturn select(y, 2.0f - y, x < 0.0f);\n",
    ),
    // Division may be off by a few units in the last place, which floor would turn into one.
    binary(
        "divide_",
        "let q = x / y;\nlet whole = round(q);\n\
         return select(q, whole, whole * y == x && abs(q - whole) < 0.5f && abs(whole) < 16777216.0f);\n",
    ),
    // Exact: multiples of y by powers of two are taken off.
    binary(
        "trunc_mod_",
        "let divisor = abs(flush_(y));\nvar rest = abs(x);\n\
         if (is_nan_(x) || is_nan_(y) || divisor == 0.0f || (to_bits(rest) >= 0x7f800000u)) { return of_bits(0x7fc00000u); }\n\
         if (to_bits(divisor) == 0x7f800000u) { return x; }\n\
         for (var i = 0u; i < 300u; i++) {\nif (rest < divisor) { break; }\n\
         let steps = (to_bits(rest) >> 23u) - (to_bits(divisor) >> 23u);\n\
         var part = of_bits(to_bits(divisor) + (steps << 23u));\nif (part > rest) { part = 0.5f * part; }\n\
         rest = rest - part;\n}\n\
         return of_bits(to_bits(rest) | (to_bits(x) & 0x80000000u));\n",
    ),
    binary(
        "floor_mod_",
        "let rest = trunc_mod_(x, y);\n\
         if (flush_(rest) == 0.0f || (rest < 0.0f) == (y < 0.0f)) { return rest; }\nreturn rest + y;\n",
    ),
    binary(
        "pow_",
        "if (y == 0.0f || x == 1.0f) { return 1.0f; }\n\
         if (is_nan_(x)) { return x; }\nif (is_nan_(y)) { return y; }\n\
         let whole = floor(y) == y;\nlet odd = whole && abs(y) < 16777216.0f && (i32(y) & 1) == 1;\n\
         if (whole && abs(y) <= 64.0f) {\nvar base = x;\nvar result = 1.0f;\nvar left = u32(abs(y));\n\
         for (var i = 0u; i < 7u; i++) {\nif ((left & 1u) == 1u) { result = result * base; }\n\
         base = base * base;\nleft = left >> 1u;\nif (left == 0u) { break; }\n}\n\
         return select(result, 1.0f / result, y < 0.0f);\n}\n\
         if (x < 0.0f && !whole && to_bits(x) != 0xff800000u) { return of_bits(0x7fc00000u); }\n\
         let a = abs(x);\nvar size = 0.0f;\n\
         if (a == 1.0f) { size = 1.0f; }\n\
         else if (a == 0.0f) { size = select(0.0f, of_bits(0x7f800000u), y < 0.0f); }\n\
         else if (to_bits(a) == 0x7f800000u) { size = select(of_bits(0x7f800000u), 0.0f, y < 0.0f); }\n\
         else { size = exp_(y * log_(a)); }\n\
         return select(size, -size, odd && (to_bits(x) & 0x80000000u) != 0u);\n",
    ),
    binary(
        "next_after_",
        "if (is_nan_(x)) { return x; }\nif (is_nan_(y)) { return y; }\nif (flush_(x) == flush_(y)) { return y; }\n\
         if ((to_bits(x) & 0x7fffffffu) == 0u) { return of_bits((to_bits(y) & 0x80000000u) | 1u); }\n\
         let up = (y > x) == (x > 0.0f);\nreturn of_bits(select(to_bits(x) - 1u, to_bits(x) + 1u, up));\n",
    ),
    // What x86 gives for numbers that do not fit.
    ShaderFunction {
        name: "to_int_",
        args: &[("x", "f32")],
        result: "i32",
        body: "return select(-2147483647 - 1, i32(x), abs(x) < 2147483648.0f);\n",
    },
    ShaderFunction {
        name: "to_long_",
        args: &[("x", "f32")],
        result: "i64",
        body: "return select(i64(1) << 63u, i64(x), abs(x) < 9223372036854775808.0f);\n",
    },
    // Of numbers that fit 64 bits x86 takes the lower half.
    ShaderFunction {
        name: "to_unsigned_",
        args: &[("x", "f32")],
        result: "u32",
        body: "let size = trunc(abs(x));\nif (!(size < 9223372036854775808.0f)) { return 0u; }\n\
               let low = u32(size - floor(size * 2.3283064e-10f) * 4294967296.0f);\n\
               return select(low, 0u - low, x < 0.0f);\n",
    },
    ShaderFunction {
        name: "to_unsigned_long_",
        args: &[("x", "f32")],
        result: "u64",
        body: "if (x < 9223372036854775808.0f) { return u64(to_long_(x)); }\n\
               return u64(to_long_(x - 9223372036854775808.0f)) ^ (u64(1) << 63u);\n",
    },
    // To the nearest number of 10 bits of fraction, halves to even; below 2^-14 the step is fixed.
    unary(
        "round_f16_",
        "let bits = to_bits(x);\nlet size = bits & 0x7fffffffu;\nlet sign = bits & 0x80000000u;\n\
         if (size >= 0x7f800000u) { return x; }\n\
         if (size >= 0x477ff000u) { return of_bits(sign | 0x7f800000u); }\n\
         if (size < 0x38800000u) {\n\
         return of_bits(to_bits(round(of_bits(size) * 16777216.0f) * 5.9604645e-8f) | sign);\n}\n\
         return of_bits(sign | ((size + 0xfffu + ((size >> 13u) & 1u)) & 0xffffe000u));\n",
    ),
    unary(
        "round_bf16_",
        "if (is_nan_(x)) { return x; }\nlet bits = to_bits(x);\n\
         return of_bits((bits + 0x7fffu + ((bits >> 16u) & 1u)) & 0xffff0000u);\n",
    ),
];

fn all() -> impl DoubleEndedIterator<Item = &'static ShaderFunction> {
    let others = whole::FUNCTIONS.iter().copied();
    others.chain([FUNCTIONS, angle::FUNCTIONS, special::FUNCTIONS]).flatten()
}

/// The functions that a text calls, each after those it calls itself.
pub(super) fn needed(text: &str) -> Vec<&'static ShaderFunction> {
    let calls = |text: &str, name: &str| {
        text.match_indices(name).any(|(at, _)| {
            let before = text[..at].chars().next_back();
            let is_start = before.is_none_or(|c| !c.is_ascii_alphanumeric() && c != '_');
            is_start && text[at + name.len()..].starts_with('(')
        })
    };
    let mut needed: Vec<&ShaderFunction> = Vec::new();
    for function in all().rev() {
        let by_others = needed.iter().any(|other| calls(other.body, function.name));
        if by_others || calls(text, function.name) {
            needed.push(function);
        }
    }
    needed.reverse();
    needed
}
