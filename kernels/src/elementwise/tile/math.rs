//! Functions of a vector of floats.
//!
//! Ranges are reduced as Cody and Waite do (Software Manual for the Elementary Functions, 1980);
//! polynomials are those of the single-precision Cephes library (S. L. Moshier), the rational
//! function for `tanh`, and one for [`erf`], those of Eigen's `MathFunctionsImpl.h`. Errors stay within 2
//! units in the last place, of `tanh`, `erf` and `erfc` within 6, of `erf` within 8 where vectors round
//! products ([`Lanes::FUSES`]). Vectors that do not round them give the same bits, but of `erf`, whatever
//! their length.

pub(super) use super::erf::erf;
use super::lanes::Lanes;

/// The polynomial with these coefficients, highest power first.
#[inline(always)]
pub(super) fn polynomial<V: Lanes, const N: usize>(x: V, coefficients: [f32; N]) -> V {
    let mut sum = x.fill(coefficients[0]);
    for &coefficient in &coefficients[1..] {
        sum = sum.times_plus(x, x.fill(coefficient));
    }
    sum
}

const SIGN: u32 = 0x8000_0000;

#[inline(always)]
pub(super) fn neg<V: Lanes>(x: V) -> V {
    x.xor(x.fill_bits(SIGN))
}

#[inline(always)]
pub(super) fn abs<V: Lanes>(x: V) -> V {
    x.without(x.fill_bits(SIGN))
}

/// `magnitude` with the sign of `x`.
#[inline(always)]
pub(super) fn with_sign<V: Lanes>(magnitude: V, x: V) -> V {
    abs(magnitude).or(x.and(x.fill_bits(SIGN)))
}

/// -1, 0 or 1; NaN for NaN; the magnitude of subnormal numbers.
#[inline(always)]
pub(super) fn sign<V: Lanes>(x: V) -> V {
    let is_zero = x.flush().is_eq(x.fill(0.0));
    let one = with_sign(x.fill(1.0), x);
    is_zero.choose(abs(x), x.is_nan().choose(x, one))
}

/// The larger; NaN if either is.
#[inline(always)]
pub(super) fn larger<V: Lanes>(a: V, b: V) -> V {
    a.is_nan().choose(a, a.max_or(b))
}

/// The smaller; NaN if either is.
#[inline(always)]
pub(super) fn smaller<V: Lanes>(a: V, b: V) -> V {
    a.is_nan().choose(a, a.min_or(b))
}

#[inline(always)]
pub(super) fn is_infinite<V: Lanes>(x: V) -> V {
    abs(x).is_eq(x.fill(f32::INFINITY))
}

#[inline(always)]
pub(super) fn is_finite<V: Lanes>(x: V) -> V {
    abs(x).is_lt(x.fill(f32::INFINITY))
}

/// `x / divisor` by the divisor's rounded reciprocal and a correction (P. Markstein, "Computation
/// of Elementary Functions on the IBM RISC System/6000 Processor", 1990, theorem 8.1): the same
/// bits in a fifth of the time. The divisor is from 2⁻⁶⁰ to 2⁶⁰ in size; quotients below 2⁻¹⁰⁰,
/// whose rests are not normal numbers, may be off in the last place.
#[inline(always)]
pub(super) fn divided<V: Lanes>(x: V, divisor: V, reciprocal: V) -> V {
    if !V::FUSES {
        return x.over(divisor);
    }
    let quotient = x.times(reciprocal);
    let rest = quotient.times_from(divisor, x);
    // Infinities, NaN, and quotients that overflow have no rest.
    is_finite(rest).choose(rest.times_plus(reciprocal, quotient), quotient)
}

const LN2_HIGH: f32 = 0.693_359_375;
const LN2_LOW: f32 = -2.121_944_4e-4;

/// `exp(r) - 1` for `|r| <= ln(2) / 2`, less `r`: the rest of the series.
#[inline(always)]
fn exp_rest<V: Lanes>(r: V) -> V {
    let p = polynomial(
        r,
        [1.987_569_1e-4, 1.398_199_9e-3, 8.333_452e-3, 4.166_579_5e-2, 1.666_666_5e-1, 0.5],
    );
    r.times(r).times(p)
}

#[inline(always)]
pub(super) fn exp<V: Lanes>(x: V) -> V {
    let (low, high) = (x.fill(-87.336_54), x.fill(88.722_83));
    // Operands in this order let NaN through.
    let clamped = low.max_or(high.min_or(x));
    let n = clamped.times(x.fill(std::f32::consts::LOG2_E)).rint();
    let r = n.times_from(x.fill(LN2_HIGH), clamped);
    let r = n.times_from(x.fill(LN2_LOW), r);
    let series = exp_rest(r).plus(r).plus(x.fill(1.0));
    let result = series.times_power(n);
    let result = high.is_lt(x).choose(x.fill(f32::INFINITY), result);
    result.without(x.is_lt(low))
}

#[inline(always)]
pub(super) fn expm1<V: Lanes>(x: V) -> V {
    let small = abs(x).is_lt(x.fill(0.346_573_6));
    small.choose(exp_rest(x).plus(x), exp(x).minus(x.fill(1.0)))
}

#[inline(always)]
pub(super) fn log<V: Lanes>(x: V) -> V {
    let one = x.fill(1.0);
    let exponent = x.shift_down::<23>().minus_integers(x.fill_bits(126));
    let mantissa = x.and(x.fill_bits(0x007f_ffff)).or(x.fill(0.5));
    let below = mantissa.is_lt(x.fill(std::f32::consts::FRAC_1_SQRT_2));
    let e = exponent.integers_to_floats().minus(below.and(one));
    let m = mantissa.plus(below.and(mantissa)).minus(one);
    let square = m.times(m);
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
    let tail = e.times_plus(x.fill(LN2_LOW), square.times(m).times(p));
    let tail = x.fill(0.5).times_from(square, tail);
    let result = e.times_plus(x.fill(LN2_HIGH), m.plus(tail));
    let plain = x.is_lt(x.fill(f32::INFINITY));
    let flushed = x.flush();
    let result = plain.choose(result, x);
    let result = flushed.is_lt(x.fill(0.0)).choose(x.fill(f32::NAN), result);
    flushed.is_eq(x.fill(0.0)).choose(x.fill(f32::NEG_INFINITY), result)
}

/// By `log(u) · (x / (u - 1))` with `u = 1 + x` as rounded (W. Kahan).
#[inline(always)]
pub(super) fn log1p<V: Lanes>(x: V) -> V {
    let one = x.fill(1.0);
    let u = one.plus(x);
    let corrected = log(u).times(x.over(u.minus(one)));
    let exact = u.is_eq(one);
    let infinite = u.is_eq(x.fill(f32::INFINITY));
    infinite.choose(u, exact.choose(x, corrected))
}

#[inline(always)]
pub(super) fn tanh<V: Lanes>(x: V) -> V {
    // Here the quotient is larger than 1 by more than its error.
    let limit = 10.5;
    let c = x.fill(-limit).max_or(x.fill(limit).min_or(x));
    let square = c.times(c);
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
    let result = c.times(p).over_near(q);
    let result = x.fill(-1.0).max_or(x.fill(1.0).min_or(result));
    abs(x).is_lt(x.fill(4e-4)).choose(x, result)
}

/// The rounding error of the square of a number.
#[inline(always)]
fn rest_of_square<V: Lanes>(x: V, square: V) -> V {
    if V::FUSES {
        return x.times_plus(x, neg(square));
    }
    // Products of halves of twelve bits are exact (T. J. Dekker, "A Floating-Point Technique for Extending the
    // Available Precision", 1971).
    let high = x.without(x.fill_bits(0xfff));
    let low = x.minus(high);
    let cross = high.times(low);
    high.times(high).minus(square).plus(cross).plus(cross).plus(low.times(low))
}

/// 1 - `erf`, by `exp(-x²)` times a polynomial in `1 / (1 + |x| / 2)`, which is the variable of W.
/// H. Press and others, "Numerical Recipes" (1992), section 6.2. The coefficients are fitted to the
/// least relative error, 5e-8.
#[inline(always)]
pub(super) fn erfc<V: Lanes>(x: V) -> V {
    let (one, size) = (x.fill(1.0), smaller(abs(x), x.fill(30.0)));
    let square = size.times(size);
    // What rounding the square took away counts where the square is large.
    let rest = rest_of_square(size, square);
    let bell = exp(neg(square));
    let bell = rest.times_from(bell, bell);
    let t = one.over(size.times_plus(x.fill(0.5), one));
    let p = polynomial(
        t,
        [
            -5.912_459_6e-2,
            2.848_47e-1,
            -4.877_645e-1,
            2.787_147_8e-1,
            -2.707_305_2e-2,
            2.028_767_5e-1,
            2.430_556_1e-1,
            2.823_819_5e-1,
            2.820_860_4e-1,
        ],
    );
    let result = bell.times(t.times(p));
    x.is_lt(x.fill(0.0)).choose(x.fill(2.0).minus(result), result)
}

/// Angles up to this size are reduced exactly enough.
const REDUCED_ANGLE: f32 = 8192.0;

/// The sine and the cosine of an angle `r` of at most an eighth turn more than so many quarter
/// turns.
#[inline(always)]
fn sin_or_cos<V: Lanes>(r: V, quarters: V) -> V {
    let square = r.times(r);
    let sine = polynomial(square, [-1.951_529_6e-4, 8.332_161e-3, -1.666_665_5e-1]);
    let sine = sine.times(square).times_plus(r, r);
    let cosine = polynomial(square, [2.443_315_7e-5, -1.388_731_6e-3, 4.166_664_6e-2]);
    let cosine = cosine.times(square).times_plus(square, r.fill(1.0));
    let cosine = r.fill(0.5).times_from(square, cosine);
    let odd = r.fill_bits(0).minus_integers(quarters.and(r.fill_bits(1)));
    let flip = quarters.shift_up::<30>().and(r.fill_bits(SIGN));
    odd.choose(cosine, sine).xor(flip)
}

/// The sine of an angle more quarter turns on.
#[inline(always)]
fn sin_from<V: Lanes>(x: V, ahead: u32) -> V {
    let quarters = x.times(x.fill(std::f32::consts::FRAC_2_PI)).rint();
    let r = quarters.times_from(x.fill(1.570_312_5), x);
    let r = quarters.times_from(x.fill(4.837_512_97e-4), r);
    let r = quarters.times_from(x.fill(7.549_789_95e-8), r);
    sin_or_cos(r, quarters.rounded_to_integers().plus_integers(x.fill_bits(ahead)))
}

/// [`sin_from`], and `exact` for the angles where that cannot be trusted.
#[inline(always)]
fn sin_of_any<V: Lanes>(x: V, ahead: u32, exact: fn(f32) -> f32) -> V {
    let near = sin_from(x, ahead);
    let far = abs(x).is_le(x.fill(REDUCED_ANGLE)).xor(x.fill_bits(u32::MAX));
    if far.any() { far.choose(each(x, exact), near) } else { near }
}

#[inline(always)]
pub(super) fn sin<V: Lanes>(x: V) -> V {
    sin_of_any(x, 0, f32::sin)
}

#[inline(always)]
pub(super) fn cos<V: Lanes>(x: V) -> V {
    sin_of_any(x, 1, f32::cos)
}

#[inline(never)]
fn each<V: Lanes>(x: V, function: fn(f32) -> f32) -> V {
    let mut array = x.to_array();
    array.as_mut().iter_mut().for_each(|x| *x = function(*x));
    x.with_array(array)
}

/// Rounded to the upper half of a float, halves to even. The lower half is anything.
#[inline(always)]
pub(super) fn round_upper<V: Lanes>(x: V) -> V {
    let odd = x.shift_down::<16>().and(x.fill_bits(1));
    let rounded = x.plus_integers(odd.plus_integers(x.fill_bits(0x7fff)));
    x.is_nan().choose(x.or(x.fill_bits(0x0040_0000)), rounded)
}

#[cfg(test)]
mod tests {
    #[cfg(target_arch = "x86_64")]
    use super::super::lanes::{Avx2, Avx512};
    use super::{
        super::lanes::{Array, filled, for_each_vector, of},
        *,
    };

    /// The largest error of `ours` against `exact`, in units in the last place.
    fn error<V: Lanes>(
        ours: impl Fn(V) -> V,
        exact: impl Fn(f64) -> f64,
        low: f32,
        high: f32,
    ) -> f64 {
        let mut worst = 0.0f64;
        for step in 0..5_000 {
            let x = low + (high - low) * (step as f32 / 4_999.0);
            let found = of(x, &ours);
            let expected = exact(f64::from(x));
            let ulp = f64::from((expected as f32).abs().next_up() - (expected as f32).abs());
            worst = worst.max((f64::from(found) - expected).abs() / ulp.max(1e-40));
        }
        worst
    }

    fn check<V: Lanes>() {
        if !V::detected() {
            return;
        }
        let checks: [(&str, f64, f64); 13] = [
            ("exp", error::<V>(exp, f64::exp, -87.0, 88.0), 2.0),
            ("expm1", error::<V>(expm1, f64::exp_m1, -20.0, 20.0), 3.0),
            ("log", error::<V>(log, f64::ln, 1e-6, 4.0), 2.0),
            ("log large", error::<V>(log, f64::ln, 4.0, 1e30), 2.0),
            ("log1p", error::<V>(log1p, f64::ln_1p, -0.99, 3.0), 4.0),
            ("log1p small", error::<V>(log1p, f64::ln_1p, -1e-4, 1e-4), 4.0),
            ("tanh", error::<V>(tanh, f64::tanh, -10.0, 10.0), 6.0),
            ("erf", error::<V>(erf, libm::erf, -5.0, 5.0), 8.0),
            ("erfc", error::<V>(erfc, libm::erfc, -6.0, 9.1), 6.0),
            ("sin", error::<V>(sin, f64::sin, -3.0, 3.0), 3.0),
            ("cos", error::<V>(cos, f64::cos, -1.5, 1.5), 3.0),
            ("sign", error::<V>(sign, f64::signum, -2.0, 1.9), 0.0),
            ("flush", error::<V>(V::flush, |x| x, -2.0, 1.9), 0.0),
        ];
        for (name, found, allowed) in checks {
            assert!(found <= allowed, "{name}: {found} units in the last place");
        }
    }

    #[test]
    fn functions_are_accurate() {
        for_each_vector!(check);
    }

    fn check_erfc<V: Lanes>() {
        if !V::detected() {
            return;
        }
        let erfc = |x: f32| of::<V>(x, erfc);
        let far = [f32::INFINITY, f32::MAX, 10.5, f32::NEG_INFINITY, -10.5].map(erfc);
        assert_eq!(far, [0.0, 0.0, 0.0, 2.0, 2.0]);
        assert!(erfc(f32::NAN).is_nan() && erfc(0.0) == 1.0 && erfc(-0.0) == 1.0);
    }

    #[test]
    fn erfc_has_its_limits() {
        for_each_vector!(check_erfc);
    }

    fn check_limits<V: Lanes>() {
        if !V::detected() {
            return;
        }
        for x in [10.5, 11.0, 30.0, 1e10, f32::MAX, f32::INFINITY] {
            for (name, function) in [("tanh", tanh as fn(V) -> V), ("erf", erf)] {
                assert_eq!([x, -x].map(|x| of(x, function)), [1.0, -1.0], "{name} of {x}");
            }
        }
        for step in 0..100_000 {
            let x = 3.0 + step as f32 * 1e-4;
            for (name, function) in [("tanh", tanh as fn(V) -> V), ("erf", erf)] {
                assert!(of(x, function) <= 1.0 && of(-x, function) >= -1.0, "{name} of {x}");
            }
        }
    }

    #[test]
    fn what_saturates_reaches_one_and_stays_there() {
        for_each_vector!(check_limits);
    }

    /// Checks that quotients by constants are those of division, for numbers of all fractions.
    fn check_quotients<V: Lanes>() {
        let filled = filled::<V>;
        for divisor in [std::f32::consts::SQRT_2, 3.0, 7.0, 10.0, 255.0, 0.1, -1.7e-5, 6.5e9] {
            let (Some(by), Some(reciprocal)) = (filled(divisor), filled(1.0 / divisor)) else {
                return;
            };
            for first in (0..1u32 << 23).step_by(3 * V::LEN) {
                let mut array = by.to_array();
                for (index, x) in array.as_mut().iter_mut().enumerate() {
                    *x = f32::from_bits(0x3f80_0000 | ((first + index as u32) & 0x007f_ffff));
                }
                let found = divided(by.with_array(array), by, reciprocal).to_array();
                for (x, found) in array.as_ref().iter().zip(found.as_ref()) {
                    assert_eq!(*found, x / divisor, "{x} / {divisor}");
                }
            }
            for x in [0.0, -0.0, f32::INFINITY, f32::NEG_INFINITY, f32::NAN, f32::MAX, 2e-38] {
                let (found, expected) = (of::<V>(x, |x| divided(x, by, reciprocal)), x / divisor);
                let unit = expected.abs().next_up() - expected.abs();
                let tiny = expected.abs() < 1e-30 && (found - expected).abs() <= unit;
                let same = found.to_bits() == expected.to_bits() || found.is_nan() && x.is_nan();
                assert!(same || tiny, "{x} / {divisor} = {found}");
            }
        }
    }

    #[test]
    fn quotients_by_constants_are_exact() {
        for_each_vector!(check_quotients);
    }

    #[cfg(target_arch = "x86_64")]
    #[test]
    fn near_quotients_are_those_of_division() {
        if !(Avx2::detected() && Avx512::detected()) {
            return;
        }
        for step in 0..200_000u32 {
            let x = f32::from_bits(0x3b00_0000 + step * 941);
            let bits = |y: f32| y.to_bits();
            assert_eq!(bits(of::<Avx2>(x, tanh)), bits(of::<Avx512>(x, tanh)), "tanh({x})");
        }
    }

    #[cfg(target_arch = "x86_64")]
    #[test]
    fn vectors_of_any_length_have_the_same_bits() {
        if !(Avx2::detected() && Avx512::detected()) {
            return;
        }
        let numbers = [0.0, -0.0, 1e-40, -1e-40, 0.3, -7.5, 88.7, -87.4, 1e5, f32::MAX];
        for x in numbers.into_iter().chain([f32::INFINITY, f32::NEG_INFINITY, f32::NAN]) {
            let same = |name: &str, short: fn(Avx2) -> Avx2, long: fn(Avx512) -> Avx512| {
                let (short, long) = (of(x, short), of(x, long));
                let same = short.to_bits() == long.to_bits() || (short.is_nan() && long.is_nan());
                assert!(same, "{name}({x}): {short} and {long}");
            };
            same("exp", exp, exp);
            same("expm1", expm1, expm1);
            same("log", log, log);
            same("log1p", log1p, log1p);
            same("tanh", tanh, tanh);
            same("erfc", erfc, erfc);
            same("sin", sin, sin);
            same("cos", cos, cos);
            same("sign", sign, sign);
            same("flush", Lanes::flush, Lanes::flush);
            same("larger", |x| larger(x, x.fill(1.0)), |x| larger(x, x.fill(1.0)));
            same("smaller", |x| smaller(x, x.fill(1.0)), |x| smaller(x, x.fill(1.0)));
        }
    }
}
