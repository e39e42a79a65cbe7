//! The regularised incomplete beta function: `Betainc`.
//!
//! The continued fraction of DLMF 8.17.22, evaluated as W. J. Lentz does, in double precision; on
//! the side of the mean where it converges (DLMF 8.17.4).

use super::Build;
use crate::{
    device::OpCall,
    error::Result,
    kernel::{Io, Kernel},
};
use ferroflow_ir::DType;
use libm::lgamma;
use num_traits::AsPrimitive;
use std::sync::Arc;

pub(super) const KERNELS: &[(&str, Build)] = &[("Betainc", betainc)];

/// Terms of the continued fraction, at most: more than the root of the largest parameter needs.
const MAX_TERMS: usize = 20_000;
/// Number in place of 0 in denominators.
const TINY: f64 = 1e-300;

fn betainc(call: &OpCall<'_>) -> Result<Option<Arc<dyn Kernel>>> {
    fn kernel<T>() -> Arc<dyn Kernel>
    where
        T: bytemuck::Pod + AsPrimitive<f64> + Send + Sync,
        f64: AsPrimitive<T>,
    {
        Arc::new(move |io: &mut Io<'_>| {
            let [a, b, x] = [0, 1, 2].map(|index| io.input::<T>(index));
            // A single number goes with every element.
            let get = |from: &[T], at: usize| from[if from.len() == 1 { 0 } else { at }].as_();
            let out = io.output::<T>(0);
            for (at, out) in out.iter_mut().enumerate() {
                *out = share(get(a, at), get(b, at), get(x, at)).as_();
            }
            Ok(())
        })
    }
    Ok(match call.dtype(0) {
        DType::F32 => Some(kernel::<f32>()),
        DType::F64 => Some(kernel::<f64>()),
        _ => None,
    })
}

/// The share of the beta function's integral that is below `x`; NaN outside of its domain.
fn share(a: f64, b: f64, x: f64) -> f64 {
    if !(a > 0.0 && b > 0.0 && (0.0..=1.0).contains(&x)) {
        return f64::NAN;
    }
    if x == 0.0 || x == 1.0 {
        return x;
    }
    let log_factor = lgamma(a + b) - lgamma(a) - lgamma(b) + a * x.ln() + b * (-x).ln_1p();
    match x < (a + 1.0) / (a + b + 2.0) {
        true => log_factor.exp() * fraction(a, b, x) / a,
        false => 1.0 - log_factor.exp() * fraction(b, a, 1.0 - x) / b,
    }
}

fn fraction(a: f64, b: f64, x: f64) -> f64 {
    let bounded = |value: f64| if value.abs() < TINY { TINY } else { value };
    let mut c = 1.0;
    let mut d = 1.0 / bounded(1.0 - (a + b) * x / (a + 1.0));
    let mut product = d;
    for n in 1..MAX_TERMS {
        let n = n as f64;
        let even = n * (b - n) * x / ((a + 2.0 * n - 1.0) * (a + 2.0 * n));
        let odd = -(a + n) * (a + b + n) * x / ((a + 2.0 * n) * (a + 2.0 * n + 1.0));
        let mut step = 1.0;
        for term in [even, odd] {
            d = 1.0 / bounded(1.0 + term * d);
            c = bounded(1.0 + term / c);
            step = c * d;
            product *= step;
        }
        if (step - 1.0).abs() < f64::EPSILON {
            break;
        }
    }
    product
}

#[cfg(test)]
mod tests {
    use super::share;

    #[test]
    fn known_shares() {
        let check = |a: f64, b: f64, x: f64, expected: f64| {
            assert!((share(a, b, x) - expected).abs() < 1e-13, "{a} {b} {x}: {}", share(a, b, x));
        };
        check(1.0, 1.0, 0.3, 0.3);
        check(2.0, 1.0, 0.5, 0.25);
        check(1.0, 3.0, 0.5, 0.875);
        check(5.0, 5.0, 0.5, 0.5);
        check(2.0, 3.0, 1.0, 1.0);
        assert!(share(0.0, 1.0, 0.5).is_nan() && share(1.0, 1.0, 1.5).is_nan());
    }
}
