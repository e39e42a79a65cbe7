//! Functions of eight floats at once.
//!
//! Ranges are reduced as Cody and Waite do (Software Manual for the Elementary Functions, 1980);
//! polynomials are those of the single-precision Cephes library (S. L. Moshier), the rational
//! functions for `tanh` and `erf` those of Eigen's `MathFunctionsImpl.h`. Errors stay within 2 units
//! in the last place, of `tanh` and `erf` within 6.

use std::arch::x86_64::*;

#[inline]
#[target_feature(enable = "avx2,fma")]
pub(super) fn splat(value: f32) -> __m256 {
    _mm256_set1_ps(value)
}

/// The polynomial with these coefficients, highest power first.
#[inline]
#[target_feature(enable = "avx2,fma")]
fn polynomial<const N: usize>(x: __m256, coefficients: [f32; N]) -> __m256 {
    let mut sum = splat(coefficients[0]);
    for &coefficient in &coefficients[1..] {
        sum = _mm256_fmadd_ps(sum, x, splat(coefficient));
    }
    sum
}

#[inline]
#[target_feature(enable = "avx2,fma")]
fn bits(value: u32) -> __m256 {
    _mm256_castsi256_ps(_mm256_set1_epi32(value as i32))
}

#[inline]
#[target_feature(enable = "avx2,fma")]
pub(super) fn neg(x: __m256) -> __m256 {
    _mm256_xor_ps(x, bits(0x8000_0000))
}

#[inline]
#[target_feature(enable = "avx2,fma")]
pub(super) fn abs(x: __m256) -> __m256 {
    _mm256_and_ps(x, bits(0x7fff_ffff))
}

/// `magnitude` with the sign of `x`.
#[inline]
#[target_feature(enable = "avx2,fma")]
fn with_sign(magnitude: __m256, x: __m256) -> __m256 {
    _mm256_or_ps(abs(magnitude), _mm256_and_ps(x, bits(0x8000_0000)))
}

/// Zero of the same sign for subnormal numbers.
#[inline]
#[target_feature(enable = "avx2,fma")]
pub(super) fn flush(x: __m256) -> __m256 {
    let exponent = _mm256_and_si256(_mm256_castps_si256(x), _mm256_set1_epi32(0x7f80_0000));
    let tiny = _mm256_cmpeq_epi32(exponent, _mm256_setzero_si256());
    let clear = _mm256_castsi256_ps(_mm256_srli_epi32::<1>(tiny));
    _mm256_andnot_ps(clear, x)
}

/// -1, 0 or 1; NaN for NaN; the magnitude of subnormal numbers.
#[inline]
#[target_feature(enable = "avx2,fma")]
pub(super) fn sign(x: __m256) -> __m256 {
    let zero = _mm256_setzero_ps();
    let is_number = _mm256_cmp_ps::<_CMP_ORD_Q>(x, x);
    let is_zero = _mm256_cmp_ps::<_CMP_EQ_OQ>(flush(x), zero);
    let one = with_sign(splat(1.0), x);
    _mm256_blendv_ps(_mm256_blendv_ps(x, one, is_number), abs(x), is_zero)
}

#[inline]
#[target_feature(enable = "avx2,fma")]
pub(super) fn larger(a: __m256, b: __m256) -> __m256 {
    // The instruction gives its second operand when either is NaN.
    let a_is_nan = _mm256_cmp_ps::<_CMP_UNORD_Q>(a, a);
    _mm256_blendv_ps(_mm256_max_ps(a, b), a, a_is_nan)
}

#[inline]
#[target_feature(enable = "avx2,fma")]
pub(super) fn smaller(a: __m256, b: __m256) -> __m256 {
    let a_is_nan = _mm256_cmp_ps::<_CMP_UNORD_Q>(a, a);
    _mm256_blendv_ps(_mm256_min_ps(a, b), a, a_is_nan)
}

#[inline]
#[target_feature(enable = "avx2,fma")]
pub(super) fn rint(x: __m256) -> __m256 {
    _mm256_round_ps::<{ _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC }>(x)
}

/// `2^n` for integral `n` within the range of normal numbers.
#[inline]
#[target_feature(enable = "avx2,fma")]
fn exp2_integer(n: __m256) -> __m256 {
    let n = _mm256_add_epi32(_mm256_cvtps_epi32(n), _mm256_set1_epi32(127));
    _mm256_castsi256_ps(_mm256_slli_epi32::<23>(n))
}

const LN2_HIGH: f32 = 0.693_359_375;
const LN2_LOW: f32 = -2.121_944_4e-4;

/// `exp(r) - 1` for `|r| <= ln(2) / 2`, less `r`: the rest of the series.
#[inline]
#[target_feature(enable = "avx2,fma")]
fn exp_rest(r: __m256) -> __m256 {
    let p = polynomial(
        r,
        [1.987_569_1e-4, 1.398_199_9e-3, 8.333_452e-3, 4.166_579_5e-2, 1.666_666_5e-1, 0.5],
    );
    _mm256_mul_ps(_mm256_mul_ps(r, r), p)
}

#[inline]
#[target_feature(enable = "avx2,fma")]
pub(super) fn exp(x: __m256) -> __m256 {
    let (low, high) = (splat(-87.336_54), splat(88.722_83));
    // Operands in this order let NaN through.
    let clamped = _mm256_max_ps(low, _mm256_min_ps(high, x));
    let n = rint(_mm256_mul_ps(clamped, splat(std::f32::consts::LOG2_E)));
    let r = _mm256_fnmadd_ps(n, splat(LN2_HIGH), clamped);
    let r = _mm256_fnmadd_ps(n, splat(LN2_LOW), r);
    let series = _mm256_add_ps(_mm256_add_ps(exp_rest(r), r), splat(1.0));
    // Half the power twice, as 2^128 is no float.
    let half = rint(_mm256_mul_ps(n, splat(0.5)));
    let scaled = _mm256_mul_ps(series, exp2_integer(half));
    let result = _mm256_mul_ps(scaled, exp2_integer(_mm256_sub_ps(n, half)));
    let over = _mm256_cmp_ps::<_CMP_GT_OQ>(x, high);
    let under = _mm256_cmp_ps::<_CMP_LT_OQ>(x, low);
    let result = _mm256_blendv_ps(result, splat(f32::INFINITY), over);
    _mm256_andnot_ps(under, result)
}

#[inline]
#[target_feature(enable = "avx2,fma")]
pub(super) fn expm1(x: __m256) -> __m256 {
    let small = _mm256_cmp_ps::<_CMP_LT_OQ>(abs(x), splat(0.346_573_6));
    let near = _mm256_add_ps(exp_rest(x), x);
    let far = _mm256_sub_ps(exp(x), splat(1.0));
    _mm256_blendv_ps(far, near, small)
}

#[inline]
#[target_feature(enable = "avx2,fma")]
pub(super) fn log(x: __m256) -> __m256 {
    let one = splat(1.0);
    let raw = _mm256_castps_si256(x);
    let exponent = _mm256_sub_epi32(_mm256_srli_epi32::<23>(raw), _mm256_set1_epi32(126));
    let mantissa = _mm256_or_ps(_mm256_and_ps(x, bits(0x007f_ffff)), splat(0.5));
    let mut e = _mm256_cvtepi32_ps(exponent);
    let below = _mm256_cmp_ps::<_CMP_LT_OQ>(mantissa, splat(std::f32::consts::FRAC_1_SQRT_2));
    e = _mm256_sub_ps(e, _mm256_and_ps(below, one));
    let m = _mm256_sub_ps(_mm256_add_ps(mantissa, _mm256_and_ps(below, mantissa)), one);
    let square = _mm256_mul_ps(m, m);
    let p = polynomial(
        m,
        [
            7.037_683_6e-2,
            -1.151_461e-1,
            1.167_699_9e-1,
            -1.242_014_1e-1,
            1.424_932_3e-1,
            -1.666_805_8e-1,
            2.000_071_5e-1,
            -2.499_999_4e-1,
            3.333_333e-1,
        ],
    );
    let tail = _mm256_fmadd_ps(e, splat(LN2_LOW), _mm256_mul_ps(_mm256_mul_ps(square, m), p));
    let tail = _mm256_fnmadd_ps(splat(0.5), square, tail);
    let result = _mm256_fmadd_ps(e, splat(LN2_HIGH), _mm256_add_ps(m, tail));
    let zero = _mm256_cmp_ps::<_CMP_EQ_OQ>(flush(x), _mm256_setzero_ps());
    let negative = _mm256_cmp_ps::<_CMP_LT_OQ>(flush(x), _mm256_setzero_ps());
    let plain = _mm256_cmp_ps::<_CMP_LT_OQ>(x, splat(f32::INFINITY));
    let result = _mm256_blendv_ps(x, result, plain);
    let result = _mm256_blendv_ps(result, splat(f32::NAN), negative);
    _mm256_blendv_ps(result, splat(f32::NEG_INFINITY), zero)
}

/// By `log(u) · (x / (u - 1))` with `u = 1 + x` as rounded (W. Kahan).
#[inline]
#[target_feature(enable = "avx2,fma")]
pub(super) fn log1p(x: __m256) -> __m256 {
    let one = splat(1.0);
    let u = _mm256_add_ps(one, x);
    let step = _mm256_sub_ps(u, one);
    let corrected = _mm256_mul_ps(log(u), _mm256_div_ps(x, step));
    let exact = _mm256_cmp_ps::<_CMP_EQ_OQ>(u, one);
    let infinite = _mm256_cmp_ps::<_CMP_EQ_OQ>(u, splat(f32::INFINITY));
    _mm256_blendv_ps(_mm256_blendv_ps(corrected, x, exact), u, infinite)
}

#[inline]
#[target_feature(enable = "avx2,fma")]
pub(super) fn tanh(x: __m256) -> __m256 {
    let limit = 7.905_311;
    let c = _mm256_max_ps(splat(-limit), _mm256_min_ps(splat(limit), x));
    let square = _mm256_mul_ps(c, c);
    let p = polynomial(
        square,
        [
            -2.760_768_5e-16,
            2.000_188e-13,
            -8.604_671_5e-11,
            5.122_297e-8,
            1.485_722_4e-5,
            6.372_619_3e-4,
            4.893_524_6e-3,
        ],
    );
    let q = polynomial(square, [1.198_258_4e-6, 1.185_347_1e-4, 2.268_434_6e-3, 4.893_525e-3]);
    let result = _mm256_div_ps(_mm256_mul_ps(c, p), q);
    let tiny = _mm256_cmp_ps::<_CMP_LT_OQ>(abs(x), splat(4e-4));
    _mm256_blendv_ps(result, x, tiny)
}

#[inline]
#[target_feature(enable = "avx2,fma")]
pub(super) fn erf(x: __m256) -> __m256 {
    let c = _mm256_max_ps(splat(-4.0), _mm256_min_ps(splat(4.0), x));
    let square = _mm256_mul_ps(c, c);
    let p = polynomial(
        square,
        [
            -2.726_142_3e-10,
            2.770_681_4e-8,
            -2.101_024e-6,
            -5.692_506_4e-5,
            -7.349_906e-4,
            -2.954_599_8e-3,
            -1.609_603_4e-2,
        ],
    );
    let q = polynomial(
        square,
        [-1.456_607_2e-5, -2.133_740_6e-4, -1.682_827e-3, -7.373_329e-3, -1.426_473_9e-2],
    );
    let result = _mm256_div_ps(_mm256_mul_ps(c, p), q);
    let one = with_sign(splat(1.0), x);
    _mm256_blendv_ps(result, one, _mm256_cmp_ps::<_CMP_GT_OQ>(abs(result), splat(1.0)))
}

/// Angles up to this size are reduced exactly enough.
const REDUCED_ANGLE: f32 = 8192.0;

/// Whether [`sin`] and [`cos`] can be trusted for every angle here.
#[inline]
#[target_feature(enable = "avx2,fma")]
fn angles_are_small(x: __m256) -> bool {
    let large = _mm256_cmp_ps::<_CMP_NLE_UQ>(abs(x), splat(REDUCED_ANGLE));
    _mm256_movemask_ps(large) == 0
}

/// The angle less a multiple of a quarter turn, and that multiple.
#[inline]
#[target_feature(enable = "avx2,fma")]
fn reduce_angle(x: __m256) -> (__m256, __m256i) {
    let quarters = rint(_mm256_mul_ps(x, splat(std::f32::consts::FRAC_2_PI)));
    let r = _mm256_fnmadd_ps(quarters, splat(1.570_312_5), x);
    let r = _mm256_fnmadd_ps(quarters, splat(4.837_512_97e-4), r);
    let r = _mm256_fnmadd_ps(quarters, splat(7.549_789_95e-8), r);
    (r, _mm256_cvtps_epi32(quarters))
}

#[inline]
#[target_feature(enable = "avx2,fma")]
fn sin_or_cos(r: __m256, quarters: __m256i) -> __m256 {
    let square = _mm256_mul_ps(r, r);
    let sine = polynomial(square, [-1.951_529_6e-4, 8.332_161e-3, -1.666_665_5e-1]);
    let sine = _mm256_fmadd_ps(_mm256_mul_ps(sine, square), r, r);
    let cosine = polynomial(square, [2.443_315_7e-5, -1.388_731_6e-3, 4.166_664_6e-2]);
    let cosine = _mm256_fmadd_ps(_mm256_mul_ps(cosine, square), square, splat(1.0));
    let cosine = _mm256_fnmadd_ps(splat(0.5), square, cosine);
    let odd = _mm256_castsi256_ps(_mm256_slli_epi32::<31>(quarters));
    let flip = _mm256_and_si256(_mm256_slli_epi32::<30>(quarters), _mm256_set1_epi32(i32::MIN));
    _mm256_xor_ps(_mm256_blendv_ps(sine, cosine, odd), _mm256_castsi256_ps(flip))
}

/// The sine of any angle.
#[inline]
#[target_feature(enable = "avx2,fma")]
pub(super) fn sin_any(x: __m256) -> __m256 {
    if angles_are_small(x) { sin(x) } else { each(x, f32::sin) }
}

/// The cosine of any angle.
#[inline]
#[target_feature(enable = "avx2,fma")]
pub(super) fn cos_any(x: __m256) -> __m256 {
    if angles_are_small(x) { cos(x) } else { each(x, f32::cos) }
}

fn each(x: __m256, function: fn(f32) -> f32) -> __m256 {
    bytemuck::cast(bytemuck::cast::<__m256, [f32; 8]>(x).map(function))
}

/// Rounded to the upper half of a float, halves to even.
#[inline]
#[target_feature(enable = "avx2,fma")]
pub(super) fn to_bf16(x: __m256) -> __m128i {
    let raw = _mm256_castps_si256(x);
    let high = _mm256_srli_epi32::<16>(raw);
    let odd = _mm256_and_si256(high, _mm256_set1_epi32(1));
    let bias = _mm256_add_epi32(odd, _mm256_set1_epi32(0x7fff));
    let rounded = _mm256_srli_epi32::<16>(_mm256_add_epi32(raw, bias));
    let quiet = _mm256_or_si256(high, _mm256_set1_epi32(0x40));
    let is_nan = _mm256_castps_si256(_mm256_cmp_ps::<_CMP_UNORD_Q>(x, x));
    let wide = _mm256_blendv_epi8(rounded, quiet, is_nan);
    let packed = _mm256_permute4x64_epi64::<0b1000>(_mm256_packus_epi32(wide, wide));
    _mm256_castsi256_si128(packed)
}

/// A byte of 0 or 1 for each lane of a mask, in the lower half.
#[inline]
#[target_feature(enable = "avx2,fma")]
pub(super) fn to_bytes(mask: __m256) -> __m128i {
    let raw = _mm256_castps_si256(mask);
    let (low, high) = (_mm256_castsi256_si128(raw), _mm256_extracti128_si256::<1>(raw));
    let words = _mm_packs_epi32(low, high);
    _mm_and_si128(_mm_packs_epi16(words, words), _mm_set1_epi8(1))
}

#[inline]
#[target_feature(enable = "avx2,fma")]
pub(super) fn sin(x: __m256) -> __m256 {
    let (r, quarters) = reduce_angle(x);
    sin_or_cos(r, quarters)
}

#[inline]
#[target_feature(enable = "avx2,fma")]
pub(super) fn cos(x: __m256) -> __m256 {
    let (r, quarters) = reduce_angle(x);
    sin_or_cos(r, _mm256_add_epi32(quarters, _mm256_set1_epi32(1)))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The largest error of `ours` against `exact`, in units in the last place.
    #[target_feature(enable = "avx2,fma")]
    fn error(
        ours: impl Fn(__m256) -> __m256,
        exact: impl Fn(f64) -> f64,
        low: f32,
        high: f32,
    ) -> f64 {
        let mut worst = 0.0f64;
        for step in 0..20_000 {
            let x = low + (high - low) * (step as f32 / 19_999.0);
            let mut lanes = [0f32; 8];
            lanes.copy_from_slice(&bytemuck::cast::<__m256, [f32; 8]>(ours(splat(x))));
            let expected = exact(f64::from(x));
            let ulp = f64::from((expected as f32).abs().next_up() - (expected as f32).abs());
            worst = worst.max((f64::from(lanes[0]) - expected).abs() / ulp.max(1e-40));
        }
        worst
    }

    #[test]
    #[expect(unsafe_code, reason = "the features are detected first")]
    fn functions_are_accurate() {
        if !crate::simd::has_avx2() {
            return;
        }
        // SAFETY: the processor has the features `check` is compiled for.
        unsafe { check() }

        #[target_feature(enable = "avx2,fma")]
        fn check() {
            let checks: [(&str, f64, f64); 12] = [
                ("exp", error(|x| exp(x), f64::exp, -87.0, 88.0), 2.0),
                ("expm1", error(|x| expm1(x), f64::exp_m1, -20.0, 20.0), 3.0),
                ("log", error(|x| log(x), f64::ln, 1e-6, 4.0), 2.0),
                ("log large", error(|x| log(x), f64::ln, 4.0, 1e30), 2.0),
                ("log1p", error(|x| log1p(x), f64::ln_1p, -0.99, 3.0), 4.0),
                ("log1p small", error(|x| log1p(x), f64::ln_1p, -1e-4, 1e-4), 4.0),
                ("tanh", error(|x| tanh(x), f64::tanh, -10.0, 10.0), 6.0),
                ("erf", error(|x| erf(x), libm::erf, -5.0, 5.0), 8.0),
                ("sin", error(|x| sin(x), f64::sin, -3.0, 3.0), 3.0),
                ("cos", error(|x| cos(x), f64::cos, -1.5, 1.5), 3.0),
                ("sign", error(|x| sign(x), f64::signum, -2.0, 1.9), 0.0),
                ("flush", error(|x| flush(x), |x| x, -2.0, 1.9), 0.0),
            ];
            for (name, found, allowed) in checks {
                assert!(found <= allowed, "{name}: {found} units in the last place");
            }
        }
    }
}
