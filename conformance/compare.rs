//! Whether a tensor is the recorded one.

use anyhow::{Result, bail};
use ferroflow::ir::{DType, HostTensor, Shape};
use std::collections::BTreeMap;

pub(crate) use float_elements::{elements, floats, with_elements};

/// Tolerance in the comparison of a result.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Tolerance {
    /// Relative.
    pub(crate) rtol: f64,
    /// Absolute.
    pub(crate) atol: f64,
}

impl Tolerance {
    /// Whether a number is the expected one.
    pub(crate) fn accepts(self, found: f64, expected: f64) -> bool {
        let same = found == expected || (found.is_nan() && expected.is_nan());
        let near = (found - expected).abs() <= self.atol + self.rtol * expected.abs();
        same || near && expected.is_finite()
    }
}

/// The words of a case's `compare`.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Compare {
    /// Same dtype, shape and elements.
    Exact,
    /// Floats within a tolerance, the rest equal.
    Close(Tolerance),
    /// Dtype and rank only.
    Spec,
    /// The rows in any order.
    Set,
}

impl Compare {
    pub(crate) fn check(self, found: &HostTensor, expected: &HostTensor) -> Result<()> {
        if found.dtype() != expected.dtype() {
            bail!("dtype {} instead of {}", found.dtype(), expected.dtype());
        }
        if let Compare::Spec = self {
            return match found.shape().rank() == expected.shape().rank() {
                true => Ok(()),
                false => bail!("shape {} instead of {}", found.shape(), expected.shape()),
            };
        }
        if found.shape() != expected.shape() {
            bail!("shape {} instead of {}", found.shape(), expected.shape());
        }
        match self {
            Compare::Exact | Compare::Spec => exact(found, expected),
            Compare::Close(tolerance) => close(found, expected, tolerance),
            Compare::Set => same_rows(found, expected),
        }
    }
}

fn exact(found: &HostTensor, expected: &HostTensor) -> Result<()> {
    if found == expected {
        return Ok(());
    }
    if found.dtype().is_float() || found.dtype().is_complex() {
        return close(found, expected, Tolerance { rtol: 0.0, atol: 0.0 });
    }
    bail!("{found:?} instead of {expected:?}")
}

fn close(found: &HostTensor, expected: &HostTensor, tolerance: Tolerance) -> Result<()> {
    let (Some(found_values), Some(expected_values)) = (elements(found), elements(expected)) else {
        return match found == expected {
            true => Ok(()),
            false => bail!("{found:?} instead of {expected:?}"),
        };
    };
    for (index, (&found, &expected)) in found_values.iter().zip(&expected_values).enumerate() {
        if !tolerance.accepts(found, expected) {
            let n = found_values.len();
            bail!("element {index} of {n} is {found:e} instead of {expected:e}");
        }
    }
    Ok(())
}

fn same_rows(found: &HostTensor, expected: &HostTensor) -> Result<()> {
    let rows = |tensor: &HostTensor| -> Result<BTreeMap<String, usize>> {
        let mut rows = BTreeMap::new();
        for row in 0..tensor.shape().first().copied().unwrap_or(0) {
            let row = tensor.rows(row..row + 1)?;
            let key = match row.strings() {
                Ok(strings) => format!("{strings:?}"),
                Err(_) => format!("{:?}", row.bytes()),
            };
            *rows.entry(key).or_default() += 1;
        }
        Ok(rows)
    };
    match rows(found)? == rows(expected)? {
        true => Ok(()),
        false => bail!("{found:?} instead of, in any order, {expected:?}"),
    }
}

mod float_elements {
    use super::*;
    use half::{bf16, f16};
    use num_complex::Complex;

    /// The elements of a float tensor, real and imaginary parts of complex ones.
    pub(crate) fn elements(tensor: &HostTensor) -> Option<Vec<f64>> {
        Some(match tensor.dtype() {
            DType::F16 => tensor.as_slice::<f16>().ok()?.iter().map(|x| x.to_f64()).collect(),
            DType::BF16 => tensor.as_slice::<bf16>().ok()?.iter().map(|x| x.to_f64()).collect(),
            DType::F32 => tensor.as_slice::<f32>().ok()?.iter().map(|&x| f64::from(x)).collect(),
            DType::F64 => tensor.as_slice::<f64>().ok()?.to_vec(),
            DType::C64 => {
                let values = tensor.as_slice::<Complex<f32>>().ok()?;
                values.iter().flat_map(|x| [f64::from(x.re), f64::from(x.im)]).collect()
            }
            DType::C128 => {
                let values = tensor.as_slice::<Complex<f64>>().ok()?;
                values.iter().flat_map(|x| [x.re, x.im]).collect()
            }
            _ => return None,
        })
    }

    /// A float tensor with other elements, rounded to its dtype.
    pub(crate) fn with_elements(like: &HostTensor, values: &[f64]) -> Result<HostTensor> {
        floats(like.dtype(), like.shape(), values)
    }

    /// A tensor of floats, rounded to a dtype.
    pub(crate) fn floats(dtype: DType, shape: &Shape, values: &[f64]) -> Result<HostTensor> {
        let singles = |values: &[f64]| values.iter().map(|&x| x as f32).collect::<Vec<f32>>();
        let bytes: Vec<u8> = match dtype {
            DType::F16 => values.iter().flat_map(|&x| f16::from_f64(x).to_le_bytes()).collect(),
            DType::BF16 => values.iter().flat_map(|&x| bf16::from_f64(x).to_le_bytes()).collect(),
            DType::F32 | DType::C64 => {
                singles(values).into_iter().flat_map(f32::to_le_bytes).collect()
            }
            DType::F64 | DType::C128 => values.iter().flat_map(|x| x.to_le_bytes()).collect(),
            other => bail!("{other} is no dtype of floats"),
        };
        Ok(HostTensor::from_bytes(dtype, shape.clone(), &bytes)?)
    }
}
