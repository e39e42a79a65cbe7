//! Binomial distributions: `_StatelessRandomBinomialV2`.

use super::{MAX_ATTEMPTS, parameters::each_number_of, stack::Uniform};
use crate::{
    device::OpCall,
    error::Result,
    kernel::Kernel,
    philox::{BLOCKS_PER_NUMBER, Philox},
};
use ferroflow_ir::DType;
use half::f16;
use std::sync::Arc;

/// Blocks set aside for each number of the two methods.
const BLOCKS_OF_REJECTION: u64 = BLOCKS_PER_NUMBER;
const BLOCKS_OF_INVERSION: u64 = 42;

pub(super) fn binomial(call: &OpCall<'_>) -> Result<Option<Arc<dyn Kernel>>> {
    let dtype = call.dtype(4);
    each_number_of(call, move |generator, number, parameters| {
        sample(generator, number, dtype, parameters[0], parameters[1])
    })
}

/// The number of successes among `count` trials of probability `prob`, both of this dtype.
fn sample(generator: Philox, number: u64, dtype: DType, count: f64, prob: f64) -> f64 {
    if count <= 0.0 || prob <= 0.0 {
        return 0.0;
    }
    if prob >= 1.0 {
        return count;
    }
    if prob.is_nan() || !count.is_finite() {
        return f64::NAN;
    }
    let rare = if prob <= 0.5 { prob } else { as_element(dtype, 1.0 - prob) };
    let rejects = as_element(dtype, count * rare) >= 10.0;
    let blocks = if rejects { BLOCKS_OF_REJECTION } else { BLOCKS_OF_INVERSION };
    let stream = generator.skipped(u128::from(blocks) * u128::from(number));
    let mut uniform = Uniform::new(stream);
    let successes = match rejects {
        true => by_rejection(&mut uniform, count, rare),
        false => by_inversion(&mut uniform, count, rare),
    };
    if prob <= 0.5 { successes } else { count - successes }
}

/// The value as an element of a dtype.
fn as_element(dtype: DType, value: f64) -> f64 {
    match dtype {
        DType::F16 => f16::from_f64(value).to_f64(),
        DType::F32 => f64::from(value as f32),
        _ => value,
    }
}

/// Counts geometric waiting times until their sum passes the count.
fn by_inversion(uniform: &mut Uniform, count: f64, prob: f64) -> f64 {
    let (mut waited, mut successes) = (0.0, 0.0);
    for _ in 0..MAX_ATTEMPTS {
        waited += (uniform.next().ln() / (-prob).ln_1p()).ceil();
        if waited > count {
            break;
        }
        successes += 1.0;
    }
    successes
}

/// Hörmann's transformed rejection ("The generation of binomial random variates", 1993).
fn by_rejection(uniform: &mut Uniform, count: f64, prob: f64) -> f64 {
    let deviation = (count * prob * (1.0 - prob)).sqrt();
    let b = 1.15 + 2.53 * deviation;
    let a = -0.0873 + 0.0248 * b + 0.01 * prob;
    let c = count * prob + 0.5;
    let v_r = 0.92 - 4.2 / b;
    let r = prob / (1.0 - prob);
    let alpha = (2.83 + 5.1 / b) * deviation;
    let m = ((count + 1.0) * prob).floor();
    for _ in 0..MAX_ATTEMPTS {
        let u = uniform.next();
        let v = uniform.next();
        let u = u - 0.5;
        let edge = 0.5 - u.abs();
        let k = ((2.0 * a / edge + b) * u + c).floor();
        if edge >= 0.07 && v <= v_r {
            return k;
        }
        if k < 0.0 || k > count {
            continue;
        }
        let v = (v * alpha / (a / (edge * edge) + b)).ln();
        let bound = (m + 0.5) * ((m + 1.0) / (r * (count - m + 1.0))).ln()
            + (count + 1.0) * ((count - m + 1.0) / (count - k + 1.0)).ln()
            + (k + 0.5) * (r * (count - k + 1.0) / (k + 1.0)).ln()
            + stirling_rest(m)
            + stirling_rest(count - m)
            - stirling_rest(k)
            - stirling_rest(count - k);
        if v <= bound {
            return k;
        }
    }
    f64::NAN
}

/// Remainder of Stirling's formula for the logarithm of `k!`: from its series, or exactly where
/// that is too short.
fn stirling_rest(k: f64) -> f64 {
    const EXACT: [f64; 10] = [
        0.081_061_466_795_327_2,
        0.041_340_695_955_409_2,
        0.027_677_925_684_998_3,
        0.020_790_672_103_765_09,
        0.016_644_691_189_821_1,
        0.013_876_128_823_070_7,
        0.011_896_709_945_891_7,
        0.010_411_265_261_972_0,
        0.009_255_462_182_712_73,
        0.008_330_563_433_362_87,
    ];
    if (0.0..=9.0).contains(&k) {
        return EXACT[k as usize];
    }
    let square = (k + 1.0) * (k + 1.0);
    (1.0 / 12.0 - (1.0 / 360.0 - 1.0 / 1260.0 / square) / square) / (k + 1.0)
}
