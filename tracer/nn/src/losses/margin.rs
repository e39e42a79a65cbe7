//! Losses of classes that are told by the sign of a number.

use super::floats;
use ferroflow_tracer::{Result, Tensor};

/// Mean of `max(1 - target·prediction, 0)`, targets being -1 or 1; if all are 0 or 1, they are taken as
/// -1 and 1.
///
/// # Errors
///
/// As [`mean_squared_error`](super::mean_squared_error).
#[track_caller]
pub fn hinge(target: &Tensor, prediction: &Tensor) -> Result<Tensor> {
    distance_to_margin(target, prediction)?.mean(&[-1])
}

/// Mean of `max(1 - target·prediction, 0)²`, with targets as of [`hinge`].
///
/// # Errors
///
/// As [`hinge`].
#[track_caller]
pub fn squared_hinge(target: &Tensor, prediction: &Tensor) -> Result<Tensor> {
    distance_to_margin(target, prediction)?.square()?.mean(&[-1])
}

/// `max(n - p + 1, 0)`, where `p` is the prediction for the class and `n` the largest of the others;
/// targets are one-hot.
///
/// # Errors
///
/// As [`hinge`].
#[track_caller]
pub fn categorical_hinge(target: &Tensor, prediction: &Tensor) -> Result<Tensor> {
    let (target, prediction) = &floats(target, prediction)?;
    let own = (target * prediction)?.sum(&[-1])?;
    let other = ((1.0 - target)? * prediction)?.max(&[-1])?;
    ((other - own)? + 1.0)?.maximum(0.0)
}

fn distance_to_margin(target: &Tensor, prediction: &Tensor) -> Result<Tensor> {
    let (target, prediction) = &floats(target, prediction)?;
    (1.0 - (signs(target)? * prediction)?)?.maximum(0.0)
}

/// Targets of 0 and 1 as -1 and 1, others as they are.
fn signs(target: &Tensor) -> Result<Tensor> {
    let are_binary = target.equal(0.0)?.logical_or(&target.equal(1.0)?)?.all_true()?;
    are_binary.select(&((target * 2.0)? - 1.0)?, target)
}
