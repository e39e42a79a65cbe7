//! Special functions, as scalar formulas: Chebyshev series on intervals, joined by known
//! expansions. Formulas are those of the Digital Library of Mathematical Functions (DLMF);
//! what happens outside a function's domain is TensorFlow's choice (`special_math` kernels, Eigen's
//! `BesselFunctionsImpl.h` and `SpecialFunctionsImpl.h`).

use super::{math::FUNCTION, sets::*, special_series::*};
use crate::emit::call;
use crate::gradient::{self, Gradient};
use crate::{dtype::DType, expr::Scalar, infer, op::*, shape::PartialShape};
use std::f64::consts::{FRAC_2_PI, FRAC_2_SQRT_PI, FRAC_PI_2, FRAC_PI_4, LN_2, PI, SQRT_2};

/// A special function of one real argument.
const SPECIAL: OpDef = OpDef { attrs: &[ty("T", FLOATS)], ..FUNCTION };

const EULER: f64 = 0.577_215_664_901_532_9;

pub(super) static OPS: &[OpDef] = &[
    OpDef {
        name: "BesselI0",
        summary: "Computes the modified Bessel function of the first kind of order 0.",
        lowering: Lowering::Elementwise(|s| s.x(0).abs().exp() * bessel_i0e(s.x(0))),
        gradient: Gradient::Rule(|b| b.times(call("BesselI1", [b.x(0)]))),
        ..SPECIAL
    },
    OpDef {
        name: "BesselI0e",
        summary: "Computes `exp(-|x|)` times the modified Bessel function `I0`.",
        lowering: Lowering::Elementwise(|s| bessel_i0e(s.x(0))),
        gradient: Gradient::Rule(|b| {
            b.times(call("BesselI1e", [b.x(0)]) - call("Sign", [b.x(0)]) * b.y(0))
        }),
        ..SPECIAL
    },
    OpDef {
        name: "BesselI1",
        summary: "Computes the modified Bessel function of the first kind of order 1.",
        lowering: Lowering::Elementwise(|s| s.x(0).abs().exp() * bessel_i1e(s.x(0))),
        gradient: Gradient::Rule(gradient::math::bessel_i1),
        ..SPECIAL
    },
    OpDef {
        name: "BesselI1e",
        summary: "Computes `exp(-|x|)` times the modified Bessel function `I1`.",
        lowering: Lowering::Elementwise(|s| bessel_i1e(s.x(0))),
        gradient: Gradient::Rule(gradient::math::bessel_i1e),
        ..SPECIAL
    },
    OpDef {
        name: "BesselJ0",
        summary: "Computes the Bessel function of the first kind of order 0.",
        lowering: Lowering::Elementwise(|s| bessel_j0(s.x(0))),
        gradient: Gradient::Rule(|b| b.times(-call("BesselJ1", [b.x(0)]))),
        ..SPECIAL
    },
    OpDef {
        name: "BesselJ1",
        summary: "Computes the Bessel function of the first kind of order 1.",
        lowering: Lowering::Elementwise(|s| bessel_j1(s.x(0))),
        gradient: Gradient::Rule(gradient::math::bessel_j1),
        ..SPECIAL
    },
    OpDef {
        name: "BesselK0",
        summary: "Computes the modified Bessel function of the second kind of order 0.",
        lowering: Lowering::Elementwise(|s| {
            let x = s.x(0);
            positive(x, f64::INFINITY, x.le(2.0).select(k0_small(x), (-x).exp() * k0e_large(x)))
        }),
        gradient: Gradient::Rule(|b| b.times(-call("BesselK1", [b.x(0)]))),
        domain: Some((0.5, 1.5)),
        ..SPECIAL
    },
    OpDef {
        name: "BesselK0e",
        summary: "Computes `exp(x)` times the modified Bessel function `K0`.",
        lowering: Lowering::Elementwise(|s| {
            let x = s.x(0);
            positive(x, f64::INFINITY, x.le(2.0).select(x.exp() * k0_small(x), k0e_large(x)))
        }),
        gradient: Gradient::Rule(|b| b.times(b.y(0) - call("BesselK1e", [b.x(0)]))),
        domain: Some((0.5, 1.5)),
        ..SPECIAL
    },
    OpDef {
        name: "BesselK1",
        summary: "Computes the modified Bessel function of the second kind of order 1.",
        lowering: Lowering::Elementwise(|s| {
            let x = s.x(0);
            positive(x, f64::INFINITY, x.le(2.0).select(k1_small(x), (-x).exp() * k1e_large(x)))
        }),
        gradient: Gradient::Rule(|b| b.times(-call("BesselK0", [b.x(0)]) - b.y(0) / b.x(0))),
        domain: Some((0.5, 1.5)),
        ..SPECIAL
    },
    OpDef {
        name: "BesselK1e",
        summary: "Computes `exp(x)` times the modified Bessel function `K1`.",
        lowering: Lowering::Elementwise(|s| {
            let x = s.x(0);
            positive(x, f64::INFINITY, x.le(2.0).select(x.exp() * k1_small(x), k1e_large(x)))
        }),
        gradient: Gradient::Rule(|b| {
            b.times(b.y(0) * (1.0 - call("Reciprocal", [b.x(0)])) - call("BesselK0e", [b.x(0)]))
        }),
        domain: Some((0.5, 1.5)),
        ..SPECIAL
    },
    OpDef {
        name: "BesselY0",
        summary: "Computes the Bessel function of the second kind of order 0.",
        lowering: Lowering::Elementwise(|s| bessel_y0(s.x(0))),
        gradient: Gradient::Rule(|b| b.times(-call("BesselY1", [b.x(0)]))),
        domain: Some((1.2, 2.4)),
        ..SPECIAL
    },
    OpDef {
        name: "BesselY1",
        summary: "Computes the Bessel function of the second kind of order 1.",
        lowering: Lowering::Elementwise(|s| bessel_y1(s.x(0))),
        gradient: Gradient::Rule(|b| b.times(call("BesselY0", [b.x(0)]) - b.y(0) / b.x(0))),
        domain: Some((1.2, 2.4)),
        ..SPECIAL
    },
    OpDef {
        name: "Betainc",
        summary: "Computes the regularised incomplete beta function.",
        inputs: &[arg("a", "T"), arg("b", "T"), arg("x", "T")],
        outputs: &[arg("z", "T")],
        attrs: &[ty("T", F32_F64)],
        infer: |context| {
            let is_scalar = |index: usize| context.shape(index).rank() == Some(0);
            let mut shape = PartialShape::scalar();
            for index in (0..3).filter(|&index| !is_scalar(index)) {
                let own = context.shape(index);
                let merged = match shape.rank() {
                    Some(0) => Some(own.clone()),
                    _ => shape.merge(own),
                };
                shape = merged
                    .ok_or_else(|| context.wrong(index, format!("scalar or {shape}"), own))?;
            }
            context.set(0, shape);
            Ok(())
        },
        lowering: Lowering::HostKernel(HostReason::NotWritten),
        gradient: Gradient::Broadcast(gradient::math::betainc),
        ..OpDef::PURE
    },
    OpDef {
        name: "Dawsn",
        summary: "Computes Dawson's integral, `exp(-x²)` times the integral of `exp(t²)` to `x`.",
        lowering: Lowering::Elementwise(|s| dawsn(s.x(0))),
        gradient: Gradient::Rule(|b| b.times(1.0 - 2.0 * b.x(0) * b.y(0))),
        ..SPECIAL
    },
    OpDef {
        name: "Digamma",
        summary: "Computes the derivative of the logarithm of the gamma function.",
        lowering: Lowering::Elementwise(|s| digamma(s.x(0))),
        gradient: Gradient::Rule(|b| b.times(call("Polygamma", [b.x(0).like(1.0), b.x(0)]))),
        domain: Some((1.2, 2.4)),
        ..SPECIAL
    },
    OpDef {
        name: "Erfinv",
        summary: "Computes the inverse of the error function.",
        lowering: Lowering::Elementwise(|s| {
            let x = s.x(0);
            let tail = (1.0 - x.abs()) * 0.5;
            quantile(x * 0.5, tail) * (1.0 / SQRT_2)
        }),
        gradient: Gradient::Rule(|b| b.times(b.y(0).square().exp() * (1.0 / FRAC_2_SQRT_PI))),
        domain: Some((-0.9, 0.9)),
        ..SPECIAL
    },
    OpDef {
        name: "Expint",
        summary: "Computes the exponential integral `Ei`.",
        lowering: Lowering::Elementwise(|s| expint(s.x(0))),
        gradient: Gradient::Rule(|b| b.times(b.x(0).exp() / b.x(0))),
        domain: Some((1.2, 2.4)),
        ..SPECIAL
    },
    OpDef {
        name: "FresnelCos",
        summary: "Computes the Fresnel integral of `cos(π t² / 2)` from 0 to `x`.",
        lowering: Lowering::Elementwise(|s| {
            let x = s.x(0);
            let (f, g, angle) = fresnel_tail(x.abs());
            let large = f * angle.sin() - g * angle.cos() + 0.5;
            fresnel(x, x.square().square(), x.abs() * fresnel_series(x, FRESNEL_C), large)
        }),
        gradient: Gradient::Rule(|b| b.times(call("Cos", [b.x(0).square() * FRAC_PI_2]))),
        ..SPECIAL
    },
    OpDef {
        name: "FresnelSin",
        summary: "Computes the Fresnel integral of `sin(π t² / 2)` from 0 to `x`.",
        lowering: Lowering::Elementwise(|s| {
            let x = s.x(0);
            let (f, g, angle) = fresnel_tail(x.abs());
            let large = 0.5 - f * angle.cos() - g * angle.sin();
            let cube = x.abs() * x.square();
            fresnel(x, x.square().square(), cube * fresnel_series(x, FRESNEL_S), large)
        }),
        gradient: Gradient::Rule(|b| b.times(call("Sin", [b.x(0).square() * FRAC_PI_2]))),
        ..SPECIAL
    },
    OpDef {
        name: "Ndtri",
        summary: "Computes quantiles of the standard normal distribution.",
        lowering: Lowering::Elementwise(|s| {
            let p = s.x(0);
            quantile(p - 0.5, p.min(1.0 - p))
        }),
        gradient: Gradient::Rule(|b| b.times((b.y(0).square() * 0.5).exp() * (2.0 * PI).sqrt())),
        ..SPECIAL
    },
    OpDef {
        name: "Polygamma",
        summary: "Computes the derivative of order `a` of the digamma function at `x`.",
        inputs: &[arg("a", "T"), arg("x", "T")],
        outputs: &[arg("z", "T")],
        attrs: &[ty("T", F32_F64)],
        infer: infer::broadcast,
        lowering: Lowering::Elementwise(|s| polygamma(s.x(0), s.x(1))),
        gradient: Gradient::Broadcast(gradient::math::polygamma),
        ..OpDef::PURE
    },
    OpDef {
        name: "RandomGammaGrad",
        summary: "Gradient of a number drawn from a gamma distribution by the distribution's shape.",
        inputs: &[arg("alpha", "T"), arg("sample", "T")],
        outputs: &[arg("output", "T")],
        attrs: &[ty("T", F32_F64)],
        infer: infer::broadcast,
        lowering: Lowering::Composite(|c| {
            let (alpha, sample) = (c.x(0).cast(DType::F64), c.x(1).cast(DType::F64));
            let power = call("Xlogy", [alpha - 1.0, sample]);
            let density = (power - sample - call("Lgamma", [alpha])).exp();
            // Where the density is too small for a number, so is the share.
            let share = call("IgammaGradA", [alpha, sample]);
            vec![call("DivNoNan", [-share, density]).cast(c.dtype(0))]
        }),
        ..OpDef::PURE
    },
    OpDef {
        name: "Spence",
        summary: "Computes Spence's function, the integral of `log(t) / (1 - t)` from 1 to `x`.",
        lowering: Lowering::Elementwise(|s| spence(s.x(0))),
        gradient: Gradient::Rule(gradient::math::spence),
        domain: Some((1.2, 2.4)),
        ..SPECIAL
    },
];

/// `value` where `x` is positive, `otherwise` where it is not.
fn positive<'s>(x: Scalar<'s>, otherwise: f64, value: Scalar<'s>) -> Scalar<'s> {
    x.le(0.0).select(x.like(otherwise), value)
}

/// The negative of `value`, a function of `|x|`, where `x` is negative.
fn odd<'s>(x: Scalar<'s>, value: Scalar<'s>) -> Scalar<'s> {
    x.lt(0.0).select(-value, value)
}

fn bessel_i0e(x: Scalar<'_>) -> Scalar<'_> {
    let x = x.abs();
    let small = (x * 0.25 - 1.0).chebyshev(I0E_SMALL);
    let large = (16.0 / x - 1.0).chebyshev(I0E_LARGE) * x.rsqrt();
    x.le(8.0).select(small, large)
}

fn bessel_i1e(x: Scalar<'_>) -> Scalar<'_> {
    let magnitude = x.abs();
    let small = (magnitude * 0.25 - 1.0).chebyshev(I1E_SMALL) * magnitude;
    let large = (16.0 / magnitude - 1.0).chebyshev(I1E_LARGE) * magnitude.rsqrt();
    odd(x, magnitude.le(8.0).select(small, large))
}

/// `K0(x)` for `x` up to 2 (DLMF 10.31.2).
fn k0_small(x: Scalar<'_>) -> Scalar<'_> {
    let i0 = x.exp() * (x * 0.25 - 1.0).chebyshev(I0E_SMALL);
    (x.square() * 0.5 - 1.0).chebyshev(K0_SMALL) - (x * 0.5).log() * i0
}

fn k0e_large(x: Scalar<'_>) -> Scalar<'_> {
    (4.0 / x - 1.0).chebyshev(K0_LARGE) * x.rsqrt()
}

/// `K1(x)` for `x` up to 2 (DLMF 10.31.1).
fn k1_small(x: Scalar<'_>) -> Scalar<'_> {
    let i1 = x.exp() * (x * 0.25 - 1.0).chebyshev(I1E_SMALL) * x;
    (x * 0.5).log() * i1 + (x.square() * 0.5 - 1.0).chebyshev(K1_SMALL) / x
}

fn k1e_large(x: Scalar<'_>) -> Scalar<'_> {
    (4.0 / x - 1.0).chebyshev(K1_LARGE) * x.rsqrt()
}

/// `x²` from 0 to 25 as an argument of Chebyshev polynomials.
fn up_to_five(x: Scalar<'_>) -> Scalar<'_> {
    x.square() * (2.0 / 25.0) - 1.0
}

/// The real and imaginary part of a Hankel function whose phase lags by `lag`, for `x` from 5 on
/// (DLMF 10.17.3, 10.17.4).
fn hankel<'s>(x: Scalar<'s>, lag: f64, p: &[f64], q: &[f64]) -> (Scalar<'s>, Scalar<'s>) {
    let scale = 5.0 / x;
    let argument = scale.square() * 2.0 - 1.0;
    let (p, q) = (argument.chebyshev(p), argument.chebyshev(q) * scale);
    let phase = x - lag;
    let amplitude = x.rsqrt() * FRAC_2_PI.sqrt();
    let (sin, cos) = (phase.sin(), phase.cos());
    (amplitude * (p * cos - q * sin), amplitude * (p * sin + q * cos))
}

fn bessel_j0(x: Scalar<'_>) -> Scalar<'_> {
    let x = x.abs();
    let (large, _) = hankel(x, FRAC_PI_4, HANKEL_P0, HANKEL_Q0);
    x.le(5.0).select(up_to_five(x).chebyshev(J0_SMALL), large)
}

fn bessel_j1(x: Scalar<'_>) -> Scalar<'_> {
    let magnitude = x.abs();
    let small = up_to_five(magnitude).chebyshev(J1_SMALL) * magnitude;
    let (large, _) = hankel(magnitude, 3.0 * FRAC_PI_4, HANKEL_P1, HANKEL_Q1);
    odd(x, magnitude.le(5.0).select(small, large))
}

fn bessel_y0(x: Scalar<'_>) -> Scalar<'_> {
    let argument = up_to_five(x);
    let j0 = argument.chebyshev(J0_SMALL);
    let small = argument.chebyshev(Y0_SMALL) + x.log() * j0 * FRAC_2_PI;
    let (_, large) = hankel(x, FRAC_PI_4, HANKEL_P0, HANKEL_Q0);
    positive(x, f64::NEG_INFINITY, x.le(5.0).select(small, large))
}

fn bessel_y1(x: Scalar<'_>) -> Scalar<'_> {
    let argument = up_to_five(x);
    let j1 = argument.chebyshev(J1_SMALL) * x;
    let small = argument.chebyshev(Y1_SMALL) * x + (x.log() * j1 - 1.0 / x) * FRAC_2_PI;
    let (_, large) = hankel(x, 3.0 * FRAC_PI_4, HANKEL_P1, HANKEL_Q1);
    let value = x.le(5.0).select(small, large);
    if x.dtype() == DType::F64 {
        return positive(x, f64::NEG_INFINITY, value);
    }
    // At 0 single precision subtracts infinities.
    x.lt(0.0).select(x.like(f64::NEG_INFINITY), x.eq(0.0).select(x.like(f64::NAN), value))
}

fn dawsn(x: Scalar<'_>) -> Scalar<'_> {
    let small = up_to_five(x).chebyshev(DAWSN_SMALL) * x;
    let large = ((5.0 / x).square() * 2.0 - 1.0).chebyshev(DAWSN_LARGE) * (0.5 / x);
    // Close to 5 the terms of the first series cancel; there the product with `2 x` is almost 1.
    let size = x.abs();
    let middle = (size - 4.0).chebyshev(DAWSN_MIDDLE) * (0.5 / x);
    size.le(3.0).select(small, size.le(5.0).select(middle, large))
}

/// The digamma function: reflected to the right half-line (DLMF 5.5.4), shifted beyond 10 (5.5.2),
/// expanded there (5.11.2). NaN at 0 and negative integers.
fn digamma(x: Scalar<'_>) -> Scalar<'_> {
    let negative = x.le(0.0);
    let floor = x.floor();
    let nearest = (x - floor).gt(0.5).select(floor + 1.0, floor);
    let offset = x - nearest;
    let reflected = offset.eq(0.5).select(x.like(0.0), PI / (offset * PI).tan());
    let reflected = x.eq(floor).select(x.like(f64::NAN), reflected);

    let x = negative.select(1.0 - x, x);
    let near = x.lt(10.0);
    // The ten reciprocals of x, …, x + 9, taken in pairs from both ends.
    let product = x * (x + 9.0);
    let pairs = [0.0, 8.0, 14.0, 18.0, 20.0].map(|pair| 1.0 / (product + pair));
    let skipped = pairs.into_iter().fold(x.like(0.0), |sum, pair| sum + pair) * (x + x + 9.0);
    let shifted = near.select(x + 10.0, x);
    let square = 1.0 / shifted.square();
    let series = square
        * square.polynomial(&[
            1.0 / 12.0,
            -691.0 / 32760.0,
            1.0 / 132.0,
            -1.0 / 240.0,
            1.0 / 252.0,
            -1.0 / 120.0,
            1.0 / 12.0,
        ]);
    let value = shifted.log() - 0.5 / shifted - series;
    let value = near.select(value - skipped, value);
    negative.select(value - reflected, value)
}

/// The exponential integral of positive arguments, NaN for others (DLMF 6.6.2, 6.12.2).
fn expint(x: Scalar<'_>) -> Scalar<'_> {
    let inverse = (1.0 / x).flush();
    let small = x * (x * (1.0 / 3.0) - 1.0).chebyshev(EI_SMALL) + EULER + logarithm(x);
    let middle = (inverse * 16.0 - 5.0 / 3.0).chebyshev(EI_MIDDLE);
    let large = (inverse * 48.0 - 1.0).chebyshev(EI_LARGE);
    let scaled = x.exp() * inverse * x.lt(24.0).select(middle, large);
    x.exact().lt(0.0).select(x.like(f64::NAN), x.lt(6.0).select(small, scaled))
}

/// The natural logarithm. That of a subnormal `f32` is finite, as the C library takes it for its
/// least exponent.
fn logarithm(x: Scalar<'_>) -> Scalar<'_> {
    if x.dtype() == DType::F64 {
        return x.log();
    }
    let subnormal = x.eq(0.0).and(x.exact().gt(0.0));
    subnormal.select(x.like(-150.0 * LN_2), x.log())
}

fn fresnel_series<'s>(x: Scalar<'s>, series: &[f64]) -> Scalar<'s> {
    (x.square().square() * (2.0 / (2.5625 * 2.5625)) - 1.0).chebyshev(series)
}

/// The auxiliary functions of the Fresnel integrals and their angle, for positive `x` whose square
/// is above 2.5625 (DLMF 7.5.3, 7.5.4).
fn fresnel_tail(x: Scalar<'_>) -> (Scalar<'_>, Scalar<'_>, Scalar<'_>) {
    let square = x.square();
    let argument = 2.0 * 2.5625 / square - 1.0;
    let f = argument.chebyshev(FRESNEL_F) / (x * PI);
    let g = argument.chebyshev(FRESNEL_G) / (x * square * (PI * PI));
    (f, g, square * FRAC_PI_2)
}

/// Joins the two forms of an odd Fresnel integral; beyond 36974 it is one half.
fn fresnel<'s>(
    x: Scalar<'s>,
    fourth_power: Scalar<'s>,
    small: Scalar<'s>,
    large: Scalar<'s>,
) -> Scalar<'s> {
    let large = x.abs().gt(36_974.0).select(x.like(0.5), large);
    odd(x, fourth_power.le(2.5625 * 2.5625).select(small, large))
}

/// The normal quantile at the probability `1/2 + offset`, whose distance to the nearer end of
/// [0, 1] is `tail`.
fn quantile<'s>(offset: Scalar<'s>, tail: Scalar<'s>) -> Scalar<'s> {
    let edge = (-2.0f64).exp();
    let width = 0.5 - edge;
    let middle = (offset.square() * (2.0 / (width * width)) - 1.0).chebyshev(QUANTILE_MIDDLE);
    let depth = (tail.log() * -2.0).log() * 0.5;
    let (low, high) = (2f64.ln(), 40f64.ln());
    let argument = depth * (2.0 / (high - low)) - (high + low) / (high - low);
    let far = argument.chebyshev(QUANTILE_TAIL);
    let far = tail.eq(0.0).select(tail.like(f64::INFINITY), far);
    let far = tail.lt(0.0).select(tail.like(f64::NAN), far);
    tail.gt(edge).select(middle * offset, odd(offset, far))
}

/// `(-1)^(n+1) n! ζ(n+1, x)` for integers `n` from 1 on (DLMF 25.11.12).
fn polygamma<'s>(n: Scalar<'s>, x: Scalar<'s>) -> Scalar<'s> {
    let order = n + 1.0;
    let value = n.like(-1.0).pow(order) * order.lgamma().exp() * order.zeta(x);
    let value = n.eq(0.0).select(digamma(x), value);
    n.floor().eq(n).select(value, n.like(f64::NAN))
}

/// Spence's function: moved to [1/2, 3/2] by reflection and inversion (DLMF 25.12.4, 25.12.6).
fn spence(x: Scalar<'_>) -> Scalar<'_> {
    let inverse = (1.0 / x).flush();
    let inverted = x.gt(1.5);
    let near = inverted.select(inverse, x);
    let reflected = near.lt(0.5);
    let argument = reflected.select(-near, near - 1.0);
    let value = argument * (argument * 2.0).chebyshev(SPENCE);
    let mirror = near.log() * (1.0 - near).log();
    let value = reflected.select(PI * PI / 6.0 - mirror - value, value);
    let value = inverted.select(x.log().square() * -0.5 - value, value);
    let value = x.eq(0.0).select(x.like(PI * PI / 6.0), value);
    x.lt(0.0).select(x.like(f64::NAN), value)
}
