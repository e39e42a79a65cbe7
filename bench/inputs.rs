//! Inputs made of seeds: splitmix64 of `seed × 1 000 003 + index`.

use anyhow::Result;
use ferroflow::{
    ir::{HostTensor, Shape},
    runtime::EagerTensor,
};

fn splitmix(seed: u64, index: u64) -> u64 {
    let mut z = index.wrapping_add(seed).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

fn numbers(seed: u64, n: usize) -> impl Iterator<Item = u64> {
    (0..n as u64).map(move |index| splitmix(seed * 1_000_003, index))
}

/// A number between 0 and 1 of 24 random bits: that of an element of a seed.
pub(crate) fn unit(seed: u64, index: u64) -> f64 {
    (splitmix(seed * 1_000_003, index) >> 40) as f64 / f64::from(1 << 24)
}

/// Numbers between `low` and `high`: 24 random bits each.
pub(crate) fn floats(seed: u64, dims: &[usize], low: f32, high: f32) -> Result<HostTensor> {
    let shape = Shape::new(dims.iter().copied())?;
    let unit = |bits: u64| (bits >> 40) as f32 * (1.0 / (1 << 24) as f32);
    let elements: Vec<f32> =
        numbers(seed, shape.num_elements()).map(|bits| unit(bits) * (high - low) + low).collect();
    Ok(HostTensor::from_slice(shape, &elements)?)
}

/// The same as a tensor to compute with.
pub(crate) fn array(seed: u64, dims: &[usize], low: f32, high: f32) -> Result<EagerTensor> {
    Ok(floats(seed, dims, low, high)?.into())
}

/// Indices below `modulus`.
pub(crate) fn ids(seed: u64, dims: &[usize], modulus: u64) -> Result<EagerTensor> {
    let shape = Shape::new(dims.iter().copied())?;
    let elements: Vec<i32> =
        numbers(seed, shape.num_elements()).map(|bits| (bits % modulus) as i32).collect();
    Ok(HostTensor::from_slice(shape, &elements)?.into())
}
