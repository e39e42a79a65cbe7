//! Poisson distributions: `_StatelessRandomPoissonV2`.

use super::{MAX_ATTEMPTS, parameters::each_number, stack::Uniform};
use crate::{
    device::OpCall,
    error::Result,
    kernel::Kernel,
    philox::{BLOCKS_PER_NUMBER, Philox},
};
use std::sync::Arc;

pub(super) fn poisson(call: &OpCall<'_>) -> Result<Option<Arc<dyn Kernel>>> {
    each_number(call, BLOCKS_PER_NUMBER, |generator, parameters| sample(generator, parameters[0]))
}

/// A number of the Poisson distribution of this rate.
fn sample(generator: Philox, rate: f64) -> f64 {
    let mut uniform = Uniform::new(generator);
    if !rate.is_finite() {
        rate
    } else if rate < 10.0 {
        by_products(&mut uniform, rate)
    } else {
        by_rejection(&mut uniform, rate)
    }
}

/// Knuth's method ("Seminumerical algorithms", 3.4.1): counts uniform numbers until their product
/// falls below `exp(-rate)`.
fn by_products(uniform: &mut Uniform, rate: f64) -> f64 {
    let limit = (-rate).exp();
    let (mut product, mut count) = (1.0, 0.0);
    loop {
        product *= uniform.next();
        if product <= limit {
            return count;
        }
        count += 1.0;
    }
}

/// Hörmann's transformed rejection ("The transformed rejection method for generating Poisson random
/// variables", 1993).
fn by_rejection(uniform: &mut Uniform, rate: f64) -> f64 {
    let b = 0.931 + 2.53 * rate.sqrt();
    let a = -0.059 + 0.02483 * b;
    let inverse_alpha = 1.1239 + 1.1328 / (b - 3.4);
    for _ in 0..MAX_ATTEMPTS {
        let u = uniform.next() - 0.5;
        let v = uniform.next();
        let edge = 0.5 - u.abs();
        let k = ((2.0 * a / edge + b) * u + rate + 0.43).floor();
        if edge >= 0.07 && v <= 0.9277 - 3.6224 / (b - 2.0) {
            return k;
        }
        if k < 0.0 || (edge < 0.013 && v > edge) {
            continue;
        }
        let s = (v * inverse_alpha / (a / (edge * edge) + b)).ln();
        if s <= -rate + k * rate.ln() - libm::lgamma(k + 1.0) {
            return k;
        }
    }
    f64::NAN
}
