//! Special functions that need loops: incomplete gamma functions and the Hurwitz zeta function.
//!
//! All are computed in `f64`, after Cephes (`igam.c`, `zeta.c`; Moshier, "Methods and Programs for
//! Mathematical Functions", 1989). Where they end outside their domains follows Eigen's
//! `SpecialFunctionsImpl.h`.

use std::{
    f64::consts::TAU,
    ops::{Add, Div, Mul, Neg, Sub},
};

/// Terms of a series or continued fraction before giving up.
const MAX_TERMS: usize = 2000;

/// A continued fraction is scaled down when it passes this size.
const BIG: f64 = 4_503_599_627_370_496.0;

/// A function's value and its derivative, propagated together (forward differentiation).
#[derive(Debug, Clone, Copy)]
struct Dual {
    value: f64,
    slope: f64,
}

/// Arithmetic that the series below compute with: numbers, or numbers with derivatives.
trait Scalar:
    Copy
    + From<f64>
    + Add<Output = Self>
    + Sub<Output = Self>
    + Mul<Output = Self>
    + Div<Output = Self>
    + Neg<Output = Self>
{
    /// `x^a exp(-x) / Γ(a + 1)`, where `a` is `self`.
    fn weight(self, x: f64) -> Self;
    /// Whether adding it to `sum` changes nothing any more.
    fn is_negligible(self, sum: Self) -> bool;
    fn magnitude(self) -> f64;
}

impl Scalar for f64 {
    fn weight(self, x: f64) -> f64 {
        weight(self, x)
    }

    fn is_negligible(self, sum: f64) -> bool {
        self.abs() <= f64::EPSILON / 2.0 * sum.abs()
    }

    fn magnitude(self) -> f64 {
        self.abs()
    }
}

impl Scalar for Dual {
    fn weight(self, x: f64) -> Dual {
        let value = weight(self.value, x);
        let relative = x.ln() - digamma(self.value + 1.0);
        Dual { value, slope: if value == 0.0 { 0.0 } else { self.slope * relative * value } }
    }

    fn is_negligible(self, sum: Dual) -> bool {
        self.value.is_negligible(sum.value) && self.slope.is_negligible(sum.slope)
    }

    fn magnitude(self) -> f64 {
        self.value.abs()
    }
}

impl From<f64> for Dual {
    fn from(value: f64) -> Dual {
        Dual { value, slope: 0.0 }
    }
}

impl Add for Dual {
    type Output = Dual;

    fn add(self, other: Dual) -> Dual {
        Dual { value: self.value + other.value, slope: self.slope + other.slope }
    }
}

impl Sub for Dual {
    type Output = Dual;

    fn sub(self, other: Dual) -> Dual {
        self + -other
    }
}

impl Mul for Dual {
    type Output = Dual;

    fn mul(self, other: Dual) -> Dual {
        let slope = self.slope * other.value + self.value * other.slope;
        Dual { value: self.value * other.value, slope }
    }
}

impl Div for Dual {
    type Output = Dual;

    fn div(self, other: Dual) -> Dual {
        let value = self.value / other.value;
        Dual { value, slope: (self.slope - value * other.slope) / other.value }
    }
}

impl Neg for Dual {
    type Output = Dual;

    fn neg(self) -> Dual {
        Dual { value: -self.value, slope: -self.slope }
    }
}

/// The digamma function of positive numbers (DLMF 5.5.2 and 5.11.2).
fn digamma(x: f64) -> f64 {
    let (mut x, mut skipped) = (x, 0.0);
    while x < 10.0 {
        skipped += 1.0 / x;
        x += 1.0;
    }
    let square = 1.0 / (x * x);
    let terms =
        [1.0 / 12.0, -691.0 / 32760.0, 1.0 / 132.0, -1.0 / 240.0, 1.0 / 252.0, -1.0 / 120.0];
    let series = terms.iter().fold(0.0, |sum, term| (sum + term) * square);
    x.ln() - 0.5 / x - (series + 1.0 / 12.0) * square - skipped
}

/// `x^a exp(-x) / Γ(a + 1)`; for large `a` by Stirling's series (DLMF 5.11.1), in which the large
/// terms cancel beforehand.
fn weight(a: f64, x: f64) -> f64 {
    if a < 200.0 {
        return (a * x.ln() - x - libm::lgamma(a + 1.0)).exp();
    }
    if a > 1e20 {
        return 0.0; // Where it is not small, `x` differs from `a` by less than can be told.
    }
    let distance = (x - a) / a;
    let correction = (1.0 / 12.0 - 1.0 / (360.0 * a * a)) / a;
    (a * (distance.ln_1p() - distance) - correction).exp() / (TAU * a).sqrt()
}

/// `P(a, x)` by its power series (DLMF 8.11.4).
fn series<S: Scalar>(a: S, x: f64) -> S {
    let (mut sum, mut term, mut divisor) = (S::from(1.0), S::from(1.0), a);
    for _ in 0..MAX_TERMS {
        divisor = divisor + S::from(1.0);
        term = term * S::from(x) / divisor;
        sum = sum + term;
        if term.is_negligible(sum) {
            break;
        }
    }
    sum * a.weight(x)
}

/// `Q(a, x)` by its continued fraction (DLMF 8.9.2).
fn fraction<S: Scalar>(a: S, x: f64) -> S {
    let (one, weight) = (S::from(1.0), a.weight(x));
    if weight.magnitude() == 0.0 {
        return S::from(0.0);
    }
    let mut y = one - a;
    let mut z = S::from(x) + y + one;
    let (mut p, mut q) = ([S::from(x + 1.0), one], [z * S::from(x), S::from(x)]);
    let mut result = p[0] / q[0];
    for term in 1..MAX_TERMS {
        y = y + one;
        z = z + S::from(2.0);
        let factor = y * S::from(term as f64);
        p = [p[0] * z - p[1] * factor, p[0]];
        q = [q[0] * z - q[1] * factor, q[0]];
        if q[0].magnitude() != 0.0 {
            let next = p[0] / q[0];
            let change = next - result;
            result = next;
            if change.is_negligible(result) {
                break;
            }
        }
        if p[0].magnitude() > BIG {
            (p, q) = (p.map(|p| p * S::from(1.0 / BIG)), q.map(|q| q * S::from(1.0 / BIG)));
        }
    }
    result * a * weight
}

/// The regularised lower incomplete gamma function `P(a, x)`.
pub(super) fn igamma(a: f64, x: f64) -> f64 {
    if x == 0.0 {
        0.0
    } else if x < 0.0 || a <= 0.0 || a.is_nan() || x.is_nan() {
        f64::NAN
    } else if a.is_infinite() {
        0.0
    } else if x > 1.0 && x > a {
        if x.is_infinite() { 1.0 } else { 1.0 - fraction(a, x) }
    } else {
        series(a, x)
    }
}

/// The regularised upper incomplete gamma function `Q(a, x)`.
pub(super) fn igammac(a: f64, x: f64) -> f64 {
    if x < 0.0 || a <= 0.0 || a.is_nan() || x.is_nan() {
        f64::NAN
    } else if x.is_infinite() {
        0.0
    } else if x < 1.0 || x < a {
        1.0 - series(a, x)
    } else {
        fraction(a, x)
    }
}

/// The derivative of `P(a, x)` by `a`.
pub(super) fn igamma_grad_a(a: f64, x: f64) -> f64 {
    let moving = Dual { value: a, slope: 1.0 };
    if x == 0.0 {
        0.0
    } else if x < 0.0 || a <= 0.0 || a.is_nan() || x.is_nan() {
        f64::NAN
    } else if a.is_infinite() {
        0.0
    } else if x > 1.0 && x > a {
        if x.is_infinite() { 0.0 } else { -fraction(moving, x).slope }
    } else {
        series(moving, x).slope
    }
}

/// The Hurwitz zeta function, the sum of `(q + k)^-x` from `k = 0` on, by the Euler-Maclaurin
/// formula (DLMF 25.11.5).
pub(super) fn zeta(x: f64, q: f64) -> f64 {
    /// `(2k)! / B₂ₖ`.
    const FACTORS: [f64; 12] = [
        12.0,
        -720.0,
        30_240.0,
        -1_209_600.0,
        47_900_160.0,
        -1_892_437_580.318_379_2,
        7.472_426_496e10,
        -2.950_130_727_918_164e12,
        1.164_678_281_435_006_7e14,
        -4.597_978_722_407_472_6e15,
        1.815_210_540_194_354_7e17,
        -7.166_165_256_175_667e18,
    ];
    if x == 1.0 {
        return f64::INFINITY;
    }
    if x < 1.0 || (q <= 0.0 && q != q.floor() && x != x.floor()) {
        return f64::NAN;
    }
    if q <= 0.0 && q == q.floor() {
        let even = x == x.floor() && x % 2.0 != 1.0;
        return if even { f64::INFINITY } else { f64::NAN };
    }
    if x.is_infinite() {
        return if q < 1.0 { f64::INFINITY } else { q.powf(-x) };
    }
    let (mut sum, mut base) = (q.powf(-x), q);
    let mut term = 0.0;
    for index in 0.. {
        if index >= 9 && (base > 9.0 || index >= MAX_TERMS) {
            break;
        }
        base += 1.0;
        term = base.powf(-x);
        sum += term;
        if (term / sum).abs() < f64::EPSILON / 2.0 {
            return sum;
        }
    }
    if term == 0.0 {
        return sum;
    }
    sum += term * base / (x - 1.0) - term / 2.0;
    let mut rising = 1.0;
    for (index, factor) in FACTORS.iter().enumerate() {
        let order = 2.0 * index as f64;
        rising *= x + order;
        term /= base;
        let correction = rising * term / factor;
        sum += correction;
        if (correction / sum).abs() < f64::EPSILON / 2.0 {
            break;
        }
        rising *= x + order + 1.0;
        term /= base;
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::*;

    fn near(found: f64, expected: f64) {
        assert!((found - expected).abs() <= 1e-13 * expected.abs().max(1.0), "{found} {expected}");
    }

    #[test]
    fn incomplete_gamma_functions_have_known_values() {
        near(igamma(1.0, 2.0), 1.0 - (-2.0f64).exp());
        near(igamma(0.5, 0.3), libm::erf(0.3f64.sqrt()));
        near(igammac(0.5, 4.0), libm::erfc(2.0));
        near(igamma(3.0, 0.5) + igammac(3.0, 0.5), 1.0);
        assert!(igamma(-1.0, 1.0).is_nan() && igammac(1.0, -1.0).is_nan());
    }

    #[test]
    fn the_derivative_by_a_is_that_of_differences() {
        for (a, x) in [(0.7, 0.4), (2.5, 4.0), (4.0, 1.5)] {
            let step = 1e-5;
            let slope = (igamma(a + step, x) - igamma(a - step, x)) / (2.0 * step);
            assert!((igamma_grad_a(a, x) - slope).abs() < 1e-9);
        }
    }

    #[test]
    fn zeta_has_known_values() {
        near(zeta(2.0, 1.0), std::f64::consts::PI.powi(2) / 6.0);
        near(zeta(3.0, 1.0), 1.202_056_903_159_594_2);
        near(zeta(2.0, 0.5), std::f64::consts::PI.powi(2) / 2.0);
        assert_eq!(zeta(1.0, 2.0), f64::INFINITY);
        assert!(zeta(0.5, 2.0).is_nan());
    }
}
