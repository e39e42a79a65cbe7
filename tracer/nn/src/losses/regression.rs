//! Losses of numbers.

use super::{EPSILON, floats};
use ferroflow_tracer::{Result, Tensor, ops};

/// Mean of `(target - prediction)²`.
///
/// ```
/// use ferroflow_nn::losses::mean_squared_error;
/// use ferroflow_tracer::Tensor;
/// # fn main() -> ferroflow_tracer::Result<()> {
/// let (y, found) = (Tensor::from([[0.0f32, 1.0]]), Tensor::from([[1.0f32, 3.0]]));
/// assert_eq!(mean_squared_error(&y, &found)?.to_vec::<f32>()?, [2.5]);
/// # Ok(())
/// # }
/// ```
///
/// # Errors
///
/// When the shapes do not broadcast.
#[track_caller]
pub fn mean_squared_error(target: &Tensor, prediction: &Tensor) -> Result<Tensor> {
    let (target, prediction) = &floats(target, prediction)?;
    (prediction - target)?.square()?.mean(&[-1])
}

/// Mean of `|target - prediction|`.
///
/// # Errors
///
/// As [`mean_squared_error`].
#[track_caller]
pub fn mean_absolute_error(target: &Tensor, prediction: &Tensor) -> Result<Tensor> {
    let (target, prediction) = &floats(target, prediction)?;
    (prediction - target)?.abs()?.mean(&[-1])
}

/// Mean of `100·|target - prediction| / |target|`.
///
/// # Errors
///
/// As [`mean_squared_error`].
#[track_caller]
pub fn mean_absolute_percentage_error(target: &Tensor, prediction: &Tensor) -> Result<Tensor> {
    let (target, prediction) = &floats(target, prediction)?;
    let relative = ((target - prediction)? / target.abs()?.maximum(EPSILON)?)?;
    relative.abs()?.mean(&[-1])? * 100.0
}

/// Mean of `(log(target + 1) - log(prediction + 1))²`; numbers below 0 count as 0.
///
/// # Errors
///
/// As [`mean_squared_error`].
#[track_caller]
pub fn mean_squared_logarithmic_error(target: &Tensor, prediction: &Tensor) -> Result<Tensor> {
    let (target, prediction) = &floats(target, prediction)?;
    let log = |x: &Tensor| (x.maximum(EPSILON)? + 1.0)?.log();
    (log(prediction)? - log(target)?)?.square()?.mean(&[-1])
}

/// Mean of `e²/2` where the error is at most `delta`, else `delta·|e| - delta²/2` (Huber 1964).
///
/// # Errors
///
/// As [`mean_squared_error`].
#[track_caller]
pub fn huber(target: &Tensor, prediction: &Tensor, delta: f64) -> Result<Tensor> {
    let (target, prediction) = &floats(target, prediction)?;
    let error = (prediction - target)?.abs()?;
    let (near, far) = ((error.square()? * 0.5)?, ((&error * delta)? - (0.5 * delta * delta))?);
    error.less_equal(delta)?.select(&near, &far)?.mean(&[-1])
}

/// Mean of `log(cosh(target - prediction))`.
///
/// # Errors
///
/// As [`mean_squared_error`].
#[track_caller]
pub fn log_cosh(target: &Tensor, prediction: &Tensor) -> Result<Tensor> {
    let (target, prediction) = &floats(target, prediction)?;
    let error = (prediction - target)?;
    let softplus = ops::softplus(&(&error * -2.0)?)?;
    ((error + softplus)? - std::f64::consts::LN_2)?.mean(&[-1])
}

/// Mean of `prediction - target·log(prediction)`: counts, which are predicted as rates.
///
/// # Errors
///
/// As [`mean_squared_error`].
#[track_caller]
pub fn poisson(target: &Tensor, prediction: &Tensor) -> Result<Tensor> {
    let (target, prediction) = &floats(target, prediction)?;
    (prediction - (target * (prediction + EPSILON)?.log()?)?)?.mean(&[-1])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_support::near;

    #[test]
    fn numbers_far_and_near() {
        let (y, x) = (Tensor::from([[0.0f32, 0.0]]), Tensor::from([[0.5f32, 3.0]]));
        near(mean_absolute_error(&y, &x), &[1.75]);
        near(huber(&y, &x, 1.0), &[(0.125 + 2.5) / 2.0]);
        let expected = (0.5f32.cosh().ln() + 3.0f32.cosh().ln()) / 2.0;
        near(log_cosh(&y, &x), &[expected]);
    }

    #[test]
    fn integers_are_compared_as_floats() {
        let (y, x) = (Tensor::from([[0i32, 0]]), Tensor::from([[1i32, 2]]));
        near(mean_squared_error(&y, &x), &[2.5]);
        near(mean_absolute_error(&y, &Tensor::from([[0.5f32, 2.0]])), &[1.25]);
    }

    #[test]
    fn columns_are_compared_with_vectors_row_by_row() {
        let (y, x) = (Tensor::from([1.0f32, 2.0]), Tensor::from([[1.0f32], [4.0]]));
        near(mean_squared_error(&y, &x), &[0.0, 4.0]);
        near(mean_squared_error(&x, &y), &[0.0, 4.0]);
    }
}
