//! Complex arithmetic: products, quotients, roots, exponentials and their inverses.
//!
//! Functions work on `f64` parts, also for complex64. Infinities, NaNs and signs of zero follow
//! annex G of the C standard (ISO/IEC 9899:2011), as far as TensorFlow's x86 build does.

use super::number::RealFloat;
use num_complex::Complex;
use std::f64::consts::{FRAC_PI_2, LN_2};

/// The numbers that functions are computed with.
pub(super) type WideComplex = Complex<f64>;

const NAN: f64 = f64::NAN;
const INFINITY: f64 = f64::INFINITY;

/// Beyond it the exponential function overflows.
const LARGEST_EXPONENT: f64 = 709.0;

/// A function of wide numbers on any.
pub(super) fn widely<T: RealFloat>(
    x: Complex<T>,
    function: impl Fn(WideComplex) -> WideComplex,
) -> Complex<T> {
    let result = function(Complex::new(x.re.widen(), x.im.widen()));
    Complex::new(T::narrow(result.re), T::narrow(result.im))
}

/// The product as vector units compute it: infinite factors may give NaN in both parts.
pub(super) fn product<T: RealFloat>(x: Complex<T>, y: Complex<T>) -> Complex<T> {
    Complex::new(x.re * y.re - x.im * y.im, x.re * y.im + x.im * y.re)
}

/// The product; infinite if a factor is (annex G.5.1, example 1).
pub(super) fn whole_product<T: RealFloat>(x: Complex<T>, y: Complex<T>) -> Complex<T> {
    let plain = product(x, y);
    if !(plain.re.is_nan() && plain.im.is_nan()) {
        return plain;
    }
    let overflowed = (x.re * y.re).is_infinite()
        || (x.im * y.im).is_infinite()
        || (x.re * y.im).is_infinite()
        || (x.im * y.re).is_infinite();
    let (x, y) = match (is_infinite(x), is_infinite(y)) {
        (false, false) if overflowed => (number(x), number(y)),
        (false, false) => return plain,
        (true, false) => (unit_box(x), number(y)),
        (false, true) => (number(x), unit_box(y)),
        (true, true) => (unit_box(x), unit_box(y)),
    };
    product(x, y).scale(T::infinity())
}

/// The quotient as vector units compute it (Eigen's `pdiv_complex`): a zero or infinite divisor
/// gives NaN.
pub(super) fn quotient<T: RealFloat>(x: Complex<T>, y: Complex<T>) -> Complex<T> {
    let scale = y.re.abs().max(y.im.abs());
    let unit = Complex::new(y.re / scale, y.im / scale);
    let squared = unit.re * unit.re + unit.im * unit.im;
    let scaled = product(x, unit.conj());
    Complex::new(scaled.re / squared / scale, scaled.im / squared / scale)
}

/// The quotient; infinite for a zero divisor, zero for an infinite one (annex G.5.1, example 2).
pub(super) fn whole_quotient<T: RealFloat>(x: Complex<T>, y: Complex<T>) -> Complex<T> {
    let plain = quotient(x, y);
    if !(plain.re.is_nan() && plain.im.is_nan()) {
        return plain;
    }
    if y.re.is_zero() && y.im.is_zero() && !(x.re.is_nan() && x.im.is_nan()) {
        return x.scale(T::infinity().copysign(y.re));
    }
    if is_infinite(x) && y.re.is_finite() && y.im.is_finite() {
        return product(unit_box(x), y.conj()).scale(T::infinity());
    }
    if is_infinite(y) && x.re.is_finite() && x.im.is_finite() {
        return product(x, unit_box(y).conj()).scale(T::zero());
    }
    plain
}

fn is_infinite<T: RealFloat>(x: Complex<T>) -> bool {
    x.re.is_infinite() || x.im.is_infinite()
}

/// An infinite number's direction: 1 for infinite parts, 0 for others.
fn unit_box<T: RealFloat>(x: Complex<T>) -> Complex<T> {
    let unit = |part: T| if part.is_infinite() { T::one() } else { T::zero() }.copysign(part);
    Complex::new(unit(x.re), unit(x.im))
}

/// The same number with zeros for NaNs.
fn number<T: RealFloat>(x: Complex<T>) -> Complex<T> {
    let part = |part: T| if part.is_nan() { T::zero().copysign(part) } else { part };
    Complex::new(part(x.re), part(x.im))
}

/// The point of the unit circle in the direction of `x`; 0 for 0 (Eigen's `psign`). A part that is
/// NaN hides neither the other nor its own magnitude.
pub(super) fn sign<T: RealFloat>(x: Complex<T>) -> Complex<T> {
    let part = |own: T, other: T| {
        let (magnitude, across) = (own.abs(), other.abs());
        let largest = if across > magnitude { across } else { magnitude };
        let least = if across < magnitude { across } else { magnitude };
        let ratio = least / largest;
        if largest.is_zero() {
            T::zero()
        } else if least.is_zero() {
            own / largest
        } else {
            own / (largest * (T::one() + ratio * ratio).sqrt())
        }
    };
    Complex::new(part(x.re, x.im), part(x.im, x.re))
}

/// The square root in the right half plane.
pub(super) fn sqrt(z: WideComplex) -> WideComplex {
    let Complex { re: x, im: y } = z;
    if y.is_infinite() {
        return Complex::new(INFINITY, y);
    }
    if x.is_infinite() {
        let small = if y.is_nan() { NAN } else { 0.0 };
        return if x > 0.0 {
            Complex::new(x, small.copysign(y))
        } else {
            Complex::new(small, INFINITY.copysign(y))
        };
    }
    if x == 0.0 && y == 0.0 {
        return Complex::new(0.0, y);
    }
    // A quarter of the number cannot overflow below; its root is half the root.
    let (x, y) = (x / 4.0, y / 4.0);
    let root = ((x.abs() + x.hypot(y)) * 2.0).sqrt();
    if x >= 0.0 || x.is_nan() {
        Complex::new(root, 2.0 * y / root)
    } else {
        Complex::new(2.0 * y.abs() / root, root.copysign(y))
    }
}

/// `1 / sqrt(z)`; infinite for 0 (Eigen's `rsqrt_impl` for complex numbers).
pub(super) fn rsqrt(z: WideComplex) -> WideComplex {
    let Complex { re: x, im: y } = z;
    let magnitude = x.hypot(y);
    if magnitude == 0.0 {
        return Complex::new(INFINITY, NAN);
    }
    if magnitude.is_infinite() {
        return Complex::new(0.0, 0.0);
    }
    let root = ((x.abs() + magnitude) / 2.0).sqrt();
    let (long, short) = (root / magnitude, y.abs() / (2.0 * root * magnitude));
    match (x >= 0.0, y < 0.0) {
        (true, true) => Complex::new(long, short),
        (true, false) => Complex::new(long, -short),
        (false, true) => Complex::new(short, long),
        (false, false) => Complex::new(short, -long),
    }
}

/// `scale` times the point of the unit circle at a finite angle, where `scale` is `exp(exponent)`.
fn polar(exponent: f64, angle: f64) -> WideComplex {
    let (sin, cos) = angle.sin_cos();
    if exponent > LARGEST_EXPONENT && exponent.is_finite() {
        let half = (exponent / 2.0).exp();
        return Complex::new(half * cos * half, half * sin * half);
    }
    let scale = exponent.exp();
    Complex::new(scale * cos, scale * sin)
}

/// The exponential function.
pub(super) fn exp(z: WideComplex) -> WideComplex {
    let Complex { re: x, im: y } = z;
    if y == 0.0 {
        Complex::new(x.exp(), y)
    } else if y.is_finite() {
        polar(x, y)
    } else if x == -INFINITY {
        Complex::new(0.0, 0.0)
    } else {
        Complex::new(if x == INFINITY { x } else { NAN }, NAN)
    }
}

/// The exponential function. With an infinite angle it is infinite in no known direction, for
/// which vectors of complex64 take the angle's sign (Eigen's `pexp_complex`).
pub(super) fn exp_of<T: RealFloat>(x: Complex<T>) -> Complex<T> {
    let mut result = widely(x, exp);
    if size_of::<T>() == size_of::<f32>() && result.re.is_infinite() && x.im.is_infinite() {
        result.re = result.re.copysign(x.im);
    }
    result
}

/// `exp(z) - 1` without cancellation near 0.
pub(super) fn expm1(z: WideComplex) -> WideComplex {
    let half_sine = (z.im / 2.0).sin();
    let scale = z.re.exp();
    let re = z.re.exp_m1() - scale * 2.0 * half_sine * half_sine;
    Complex::new(re, scale * z.im.sin())
}

/// The natural logarithm.
pub(super) fn log(z: WideComplex) -> WideComplex {
    let (large, small) = {
        let (x, y) = (z.re.abs(), z.im.abs());
        if x >= y { (x, y) } else { (y, x) }
    };
    let re = if (0.5..2.0).contains(&large) {
        ((large - 1.0) * (large + 1.0) + small * small).ln_1p() / 2.0
    } else {
        z.re.hypot(z.im).ln()
    };
    Complex::new(re, z.im.atan2(z.re))
}

/// `log(1 + z)` without cancellation near 0. At infinity it is what the usual correction of
/// `log(1 + z)` gives (Eigen's `generic_log1p`).
pub(super) fn log1p(z: WideComplex) -> WideComplex {
    if is_infinite(z) {
        let sum = z + 1.0;
        let logarithm = log(sum);
        if logarithm == sum {
            return z;
        }
        return whole_product(z, whole_quotient(logarithm, sum - 1.0));
    }
    let squared = z.re * (2.0 + z.re) + z.im * z.im;
    Complex::new(squared.ln_1p() / 2.0, z.im.atan2(1.0 + z.re))
}

/// The power: NaN for a zero base, as its logarithm is infinite.
pub(super) fn pow_of<T: RealFloat>(x: Complex<T>, y: Complex<T>) -> Complex<T> {
    let y = Complex::new(y.re.widen(), y.im.widen());
    widely(x, |x| exp(whole_product(y, log(x))))
}

/// The hyperbolic sine.
pub(super) fn sinh(z: WideComplex) -> WideComplex {
    let Complex { re: x, im: y } = z;
    if y == 0.0 {
        return Complex::new(x.sinh(), y);
    }
    if !y.is_finite() {
        return Complex::new(if x == 0.0 { x } else { infinite_or_nan(x) }, NAN);
    }
    if x.abs() > LARGEST_EXPONENT {
        let half = polar(x.abs() - LN_2, y);
        return Complex::new(half.re * x.signum(), half.im);
    }
    Complex::new(x.sinh() * y.cos(), x.cosh() * y.sin())
}

/// The hyperbolic cosine.
pub(super) fn cosh(z: WideComplex) -> WideComplex {
    let Complex { re: x, im: y } = z;
    if y == 0.0 {
        return Complex::new(x.cosh(), 0.0f64.copysign(x) * y);
    }
    if !y.is_finite() {
        return Complex::new(infinite_or_nan(x), if x == 0.0 { 0.0 } else { NAN });
    }
    if x.abs() > LARGEST_EXPONENT {
        let half = polar(x.abs() - LN_2, y);
        return Complex::new(half.re, half.im * x.signum());
    }
    Complex::new(x.cosh() * y.cos(), x.sinh() * y.sin())
}

/// The hyperbolic tangent (Kahan, "Branch cuts for complex elementary functions", 1987).
pub(super) fn tanh(z: WideComplex) -> WideComplex {
    let Complex { re: x, im: y } = z;
    if x.is_infinite() {
        let sign = if y.is_finite() { (2.0 * y).sin() } else { 0.0 };
        return Complex::new(1f64.copysign(x), 0f64.copysign(sign));
    }
    if y == 0.0 {
        return Complex::new(x.tanh(), y);
    }
    if !y.is_finite() {
        return Complex::new(if x == 0.0 { x } else { NAN }, NAN);
    }
    if x.abs() > 22.0 {
        return Complex::new(1f64.copysign(x), 4.0 * y.sin() * y.cos() * (-2.0 * x.abs()).exp());
    }
    let (t, s) = (y.tan(), x.sinh());
    let (beta, rho) = (1.0 + t * t, s.hypot(1.0));
    let scale = 1.0 + beta * s * s;
    Complex::new(beta * rho * s / scale, t / scale)
}

/// Result for a magnitude whose direction is lost.
fn infinite_or_nan(x: f64) -> f64 {
    if x.is_infinite() { INFINITY } else { NAN }
}

/// The number with its parts exchanged. It turns odd hyperbolic functions into circular ones:
/// `sin(z)` is the exchanged `sinh` of the exchanged `z`.
fn exchanged(z: WideComplex) -> WideComplex {
    Complex::new(z.im, z.re)
}

/// The sine.
pub(super) fn sin(z: WideComplex) -> WideComplex {
    exchanged(sinh(exchanged(z)))
}

/// The cosine.
pub(super) fn cos(z: WideComplex) -> WideComplex {
    cosh(Complex::new(-z.im, z.re))
}

/// The tangent.
pub(super) fn tan(z: WideComplex) -> WideComplex {
    exchanged(tanh(exchanged(z)))
}

/// The inverse hyperbolic sine: odd, and mirrored at the real axis.
pub(super) fn asinh(z: WideComplex) -> WideComplex {
    let (x, y) = (z.re.abs(), z.im.abs());
    let result = if x.is_finite() && y.is_finite() {
        // The inverse sine of `y + ix` (Kahan) with its parts exchanged.
        let (less, more) = (sqrt(Complex::new(1.0 - y, -x)), sqrt(Complex::new(1.0 + y, x)));
        let across = less.re * more.im - less.im * more.re;
        Complex::new(across.asinh(), y.atan2(less.re * more.re - less.im * more.im))
    } else if y == 0.0 {
        Complex::new(x, y)
    } else {
        infinite_logarithm(x, y)
    };
    mirrored(result, z)
}

/// The inverse sine.
pub(super) fn asin(z: WideComplex) -> WideComplex {
    exchanged(asinh(exchanged(z)))
}

/// The inverse cosine (Kahan).
pub(super) fn acos(z: WideComplex) -> WideComplex {
    let Complex { re: x, im: y } = z;
    if !(x.is_finite() && y.is_finite()) {
        let Complex { re, im } = infinite_logarithm(x, y.abs());
        let angle = if x == 0.0 { FRAC_PI_2 } else { im };
        return Complex::new(angle, -re.copysign(y));
    }
    let (less, more) = (sqrt(Complex::new(1.0 - x, -y)), sqrt(Complex::new(1.0 + x, y)));
    let across = more.re * less.im - more.im * less.re;
    Complex::new(2.0 * less.re.atan2(more.re), across.asinh())
}

/// The inverse hyperbolic cosine, in the right half plane.
pub(super) fn acosh(z: WideComplex) -> WideComplex {
    let Complex { re, im } = acos(z);
    Complex::new(im.abs(), re.copysign(z.im))
}

/// The inverse hyperbolic tangent (Kahan): odd, and mirrored at the real axis.
pub(super) fn atanh(z: WideComplex) -> WideComplex {
    let (x, y) = (z.re.abs(), z.im.abs());
    let large = f64::MAX.sqrt() / 4.0;
    let result = if x.is_infinite() || y.is_infinite() {
        Complex::new(0.0, if y.is_nan() { NAN } else { FRAC_PI_2 })
    } else if x.is_nan() || y.is_nan() {
        Complex::new(if x == 0.0 { 0.0 } else { NAN }, NAN)
    } else if x == 1.0 && y == 0.0 {
        Complex::new(INFINITY, 0.0)
    } else if x > large || y > large {
        Complex::new(x / x.hypot(y) / x.hypot(y), FRAC_PI_2)
    } else {
        let re = (4.0 * x / ((1.0 - x) * (1.0 - x) + y * y)).ln_1p() / 4.0;
        Complex::new(re, (2.0 * y).atan2((1.0 - x) * (1.0 + x) - y * y) / 2.0)
    };
    mirrored(result, z)
}

/// The inverse tangent.
pub(super) fn atan(z: WideComplex) -> WideComplex {
    exchanged(atanh(exchanged(z)))
}

/// The logarithm of a number of which a part is infinite or NaN.
fn infinite_logarithm(x: f64, y: f64) -> WideComplex {
    let re = if x.is_infinite() || y.is_infinite() { INFINITY } else { NAN };
    Complex::new(re, y.atan2(x))
}

/// A value of the first quadrant with the signs of another number.
fn mirrored(value: WideComplex, signs: WideComplex) -> WideComplex {
    Complex::new(value.re.copysign(signs.re), value.im.copysign(signs.im))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn z(re: f64, im: f64) -> WideComplex {
        Complex::new(re, im)
    }

    fn check(found: WideComplex, expected: WideComplex) {
        let near = |a: f64, b: f64| a == b || (a.is_nan() && b.is_nan()) || (a - b).abs() < 1e-13;
        assert!(near(found.re, expected.re) && near(found.im, expected.im), "{found} {expected}");
    }

    #[test]
    fn infinities_survive_products_and_quotients() {
        check(product(z(NAN, -INFINITY), z(1.0, 2.0)), z(NAN, NAN));
        check(whole_product(z(NAN, -INFINITY), z(1.0, 2.0)), z(INFINITY, -INFINITY));
        check(quotient(z(1.0, 1.0), z(0.0, 0.0)), z(NAN, NAN));
        check(whole_quotient(z(1.0, 1.0), z(0.0, 0.0)), z(INFINITY, INFINITY));
        check(whole_quotient(z(1.0, 1.0), z(INFINITY, NAN)), z(0.0, 0.0));
        check(quotient(z(1.0, 2.0), z(3.0, -4.0)), z(-0.2, 0.4));
    }

    #[test]
    fn inverses_undo_functions() {
        for point in [z(0.3, 0.7), z(-1.2, 0.4), z(0.9, -1.1), z(-0.2, -0.6)] {
            check(sin(asin(point)), point);
            check(cos(acos(point)), point);
            check(tan(atan(point)), point);
            check(sinh(asinh(point)), point);
            check(cosh(acosh(point)), point);
            check(tanh(atanh(point)), point);
            check(exp(log(point)), point);
            check(sqrt(point) * sqrt(point), point);
            check(rsqrt(point) * sqrt(point), z(1.0, 0.0));
            check(log1p(expm1(point)), point);
        }
    }

    #[test]
    fn cuts_follow_the_sign_of_zero() {
        check(sqrt(z(-4.0, 0.0)), z(0.0, 2.0));
        check(sqrt(z(-4.0, -0.0)), z(0.0, -2.0));
        assert!(asin(z(2.0, 0.0)).im > 0.0 && asin(z(2.0, -0.0)).im < 0.0);
        assert!(atanh(z(2.0, 0.0)).im > 0.0 && atanh(z(2.0, -0.0)).im < 0.0);
        check(atanh(z(1.0, 0.0)), z(INFINITY, 0.0));
    }

    #[test]
    fn large_exponents_do_not_overflow_early() {
        let value = sinh(z(709.9, 1.57));
        assert!(value.re.is_finite() && value.im.is_finite());
        check(exp(z(INFINITY, NAN)), z(INFINITY, NAN));
        check(tanh(z(INFINITY, NAN)), z(1.0, 0.0));
    }
}
