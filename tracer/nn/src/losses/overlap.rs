//! Losses of masks: the part of two sets that they do not share.

use super::{EPSILON, floats};
use ferroflow_tracer::{Result, Tensor, ops};

/// `1 - 2·Σ target·prediction / (Σ target + Σ prediction)`, over the dimensions `axes`, or all of them if
/// there are none (Milletari et al. 2016).
///
/// # Errors
///
/// As [`mean_squared_error`](super::mean_squared_error).
#[track_caller]
pub fn dice(target: &Tensor, prediction: &Tensor, axes: &[i32]) -> Result<Tensor> {
    let (target, prediction) = &floats(target, prediction)?;
    let shared = sum(&(target * prediction)?, axes)?;
    let all = ((sum(target, axes)? + sum(prediction, axes)?)? + EPSILON)?;
    1.0 - ops::div(&(shared * 2.0)?, &all)?
}

/// `1 - s / (s + alpha·n + beta·m)`: `s` is what both share, `n` what only the target has, `m` what only
/// the prediction has (Salehi et al. 2017). `alpha` and `beta` of 0.5 are [`dice`].
///
/// # Errors
///
/// As [`mean_squared_error`](super::mean_squared_error).
#[track_caller]
pub fn tversky(
    target: &Tensor,
    prediction: &Tensor,
    alpha: f64,
    beta: f64,
    axes: &[i32],
) -> Result<Tensor> {
    let (target, prediction) = &floats(target, prediction)?;
    let shared = sum(&(target * prediction)?, axes)?;
    let missed = (sum(&((1.0 - prediction)? * target)?, axes)? * alpha)?;
    let wrong = (sum(&((1.0 - target)? * prediction)?, axes)? * beta)?;
    let all = (((&shared + missed)? + wrong)? + EPSILON)?;
    1.0 - ops::div(&shared, &all)?
}

fn sum(x: &Tensor, axes: &[i32]) -> Result<Tensor> {
    if axes.is_empty() { x.sum_all() } else { x.sum(axes) }
}
