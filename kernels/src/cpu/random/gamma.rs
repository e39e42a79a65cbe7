//! Gamma distributions: `StatelessRandomGammaV3`.

use super::{MAX_ATTEMPTS, parameters::each_number, stack::Stack, variate::Variate};
use crate::{
    device::OpCall,
    error::Result,
    kernel::Kernel,
    philox::{BLOCKS_PER_NUMBER, Philox},
};
use std::sync::Arc;

pub(super) fn gamma(call: &OpCall<'_>) -> Result<Option<Arc<dyn Kernel>>> {
    each_number(call, BLOCKS_PER_NUMBER, |generator, parameters| sample(generator, parameters[0]))
}

/// A number of the gamma distribution of shape `alpha`, by the method of Marsaglia and Tsang, "A
/// simple method for generating gamma variables", 2000.
fn sample(mut generator: Philox, alpha: f64) -> f64 {
    let (mut normal, mut uniform) = (Stack::new(f64::normal), Stack::new(f64::uniform));
    if alpha == 1.0 {
        return -(-uniform.next(&mut generator)).ln_1p();
    }
    let d = if alpha < 1.0 { alpha + 2.0 / 3.0 } else { alpha - 1.0 / 3.0 };
    let c = 1.0 / 3.0 / d.sqrt();
    for _ in 0..MAX_ATTEMPTS {
        let x = normal.next(&mut generator);
        let v = (1.0 + c * x).powi(3);
        if 1.0 + c * x <= 0.0 {
            continue;
        }
        let u = uniform.next(&mut generator);
        let squeezed = u < 1.0 - 0.0331 * (x * x) * (x * x);
        if squeezed || u.ln() < 0.5 * x * x + d * (1.0 - v + v.ln()) {
            let boost =
                if alpha < 1.0 { uniform.next(&mut generator).powf(1.0 / alpha) } else { 1.0 };
            return d * v * boost;
        }
    }
    f64::NAN
}
