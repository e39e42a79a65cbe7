//! Losses: how far predictions are from targets.
//!
//! Each gives one value per example, over the last dimension; the mean of them is what is usually
//! minimised. Formulas are those of Keras (`keras/src/losses/losses.py`), and so are dtypes: that of
//! floats that are predicted, otherwise `float32`; targets are cast to it.

use ferroflow_ir::DType;
use ferroflow_tracer::{
    error::{Error, Result},
    ops,
    tensor::Tensor,
};

/// What keeps logarithms of probabilities finite.
const EPSILON: f64 = 1e-7;

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

/// Mean of `max(1 - target·prediction, 0)`, targets being -1 or 1.
///
/// # Errors
///
/// As [`mean_squared_error`].
#[track_caller]
pub fn hinge(target: &Tensor, prediction: &Tensor) -> Result<Tensor> {
    let (target, prediction) = &floats(target, prediction)?;
    (1.0 - (target * prediction)?)?.maximum(0.0)?.mean(&[-1])
}

/// Sum of `target·log(target/prediction)`, both being probabilities.
///
/// # Errors
///
/// As [`mean_squared_error`].
#[track_caller]
pub fn kl_divergence(target: &Tensor, prediction: &Tensor) -> Result<Tensor> {
    let (target, prediction) = &floats(target, prediction)?;
    let bounded = |p: &Tensor| p.maximum(EPSILON)?.minimum(1.0);
    let (target, prediction) = (bounded(target)?, bounded(prediction)?);
    (&target * (&target / prediction)?.log()?)?.sum(&[-1])
}

/// What predictions are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Prediction {
    /// Any numbers, which a sigmoid or a softmax would make probabilities of. This is the exact way.
    Logits,
    /// Probabilities.
    Probabilities,
}

/// Mean of `-target·log(p) - (1 - target)·log(1 - p)`.
///
/// # Errors
///
/// As [`mean_squared_error`].
#[track_caller]
pub fn binary_cross_entropy(
    target: &Tensor,
    prediction: &Tensor,
    kind: Prediction,
) -> Result<Tensor> {
    let (target, prediction) = &floats(target, prediction)?;
    let each = match kind {
        Prediction::Logits => {
            // max(x, 0) - x·z + log(1 + exp(-|x|)) does not overflow.
            let x = prediction;
            let tail = (x.abs()?.neg()?.exp()? + 1.0)?.log()?;
            ((x.maximum(0.0)? - (x * target)?)? + tail)?
        }
        Prediction::Probabilities => {
            let p = prediction.maximum(EPSILON)?.minimum(1.0 - EPSILON)?;
            let other = ((1.0 - target)? * (1.0 - &p)?.log()?)?;
            ((target * p.log()?)? + other)?.neg()?
        }
    };
    each.mean(&[-1])
}

/// `-Σ target·log(p)` over the classes.
///
/// # Errors
///
/// As [`mean_squared_error`].
#[track_caller]
pub fn categorical_cross_entropy(
    target: &Tensor,
    prediction: &Tensor,
    kind: Prediction,
) -> Result<Tensor> {
    let (target, prediction) = &floats(target, prediction)?;
    match kind {
        Prediction::Logits => {
            let width = last_size(prediction)?;
            let flat = |x: &Tensor| x.reshape(&[-1, width]);
            let [found, _] =
                ops::softmax_cross_entropy_with_logits(&flat(prediction)?, &flat(target)?)?;
            rows_like(&found, prediction)
        }
        Prediction::Probabilities => {
            let sum = prediction.sum(&[-1])?.expand_dims(-1)?;
            let p = (prediction / sum)?.maximum(EPSILON)?.minimum(1.0 - EPSILON)?;
            (target * p.log()?)?.sum(&[-1])?.neg()
        }
    }
}

/// `-log(p)` of the class whose number is the target.
///
/// # Errors
///
/// When the targets are no integers, or the shapes do not fit.
#[track_caller]
pub fn sparse_categorical_cross_entropy(
    target: &Tensor,
    prediction: &Tensor,
    kind: Prediction,
) -> Result<Tensor> {
    let logits = match kind {
        Prediction::Logits => prediction.clone(),
        Prediction::Probabilities => prediction.maximum(EPSILON)?.minimum(1.0 - EPSILON)?.log()?,
    };
    let width = last_size(&logits)?;
    let (flat, target) = (logits.reshape(&[-1, width])?, target.reshape(&[-1])?);
    let target = match target.dtype() {
        DType::I32 | DType::I64 => target,
        _ => target.cast(DType::I64)?,
    };
    let [found, _] = ops::sparse_softmax_cross_entropy_with_logits(&flat, &target)?;
    rows_like(&found, prediction)
}

/// Both in the dtype that a loss is computed in.
fn floats(target: &Tensor, prediction: &Tensor) -> Result<(Tensor, Tensor)> {
    let dtype = if prediction.dtype().is_float() { prediction.dtype() } else { DType::F32 };
    Ok((target.cast(dtype)?, prediction.cast(dtype)?))
}

fn last_size(x: &Tensor) -> Result<i64> {
    let size = x.shape().dim(-1);
    size.map(|size| size as i64).ok_or_else(|| Error::Conversion {
        expected: "a known number of classes".into(),
        found: x.spec().to_string(),
    })
}

/// One value per row, under the shape of the rows.
fn rows_like(values: &Tensor, like: &Tensor) -> Result<Tensor> {
    match like.shape().rank() {
        Some(2) => Ok(values.clone()),
        Some(rank) => {
            let (begin, size) = (Tensor::from([0i32]), Tensor::from([rank as i32 - 1]));
            let shape = ops::slice(&like.shape_tensor()?, &begin, &size)?;
            ops::reshape(values, &shape)
        }
        None => Err(Error::Conversion {
            expected: "predictions of known rank".into(),
            found: like.spec().to_string(),
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn values(loss: Result<Tensor>) -> Vec<f32> {
        loss.unwrap().to_vec::<f32>().unwrap()
    }

    fn near(found: &[f32], expected: &[f32]) {
        let same = found.len() == expected.len()
            && found.iter().zip(expected).all(|(a, b)| (a - b).abs() < 1e-5);
        assert!(same, "{found:?} instead of {expected:?}");
    }

    #[test]
    fn regressions() {
        let (y, x) = (Tensor::from([[0.0f32, 0.0]]), Tensor::from([[0.5f32, 3.0]]));
        near(&values(mean_absolute_error(&y, &x)), &[1.75]);
        near(&values(huber(&y, &x, 1.0)), &[(0.125 + 2.5) / 2.0]);
        let expected = (0.5f32.cosh().ln() + 3.0f32.cosh().ln()) / 2.0;
        near(&values(log_cosh(&y, &x)), &[expected]);
    }

    #[test]
    fn integers_are_compared_as_floats() {
        let (y, x) = (Tensor::from([[0i32, 0]]), Tensor::from([[1i32, 2]]));
        near(&values(mean_squared_error(&y, &x)), &[2.5]);
        near(&values(mean_absolute_error(&y, &Tensor::from([[0.5f32, 2.0]]))), &[1.25]);
        let found = binary_cross_entropy(&y, &Tensor::from([[0.0f32, 0.0]]), Prediction::Logits);
        near(&values(found), &[2.0f32.ln()]);
    }

    #[test]
    fn logits_and_probabilities_agree() {
        let logits = Tensor::from([[1.0f32, -2.0, 0.5], [0.0, 3.0, 1.0]]);
        let probabilities = logits.softmax().unwrap();
        let (targets, hot) =
            (Tensor::from([2i32, 1]), Tensor::from([[0.0f32, 0.0, 1.0], [0.0, 1.0, 0.0]]));
        let by = |kind, prediction: &Tensor| {
            values(sparse_categorical_cross_entropy(&targets, prediction, kind))
        };
        let expected = by(Prediction::Logits, &logits);
        near(&by(Prediction::Probabilities, &probabilities), &expected);
        near(&values(categorical_cross_entropy(&hot, &logits, Prediction::Logits)), &expected);
        let found = categorical_cross_entropy(&hot, &probabilities, Prediction::Probabilities);
        near(&values(found), &expected);
        let (sigmoid, logits) = (logits.sigmoid().unwrap(), logits);
        let expected = values(binary_cross_entropy(&hot, &logits, Prediction::Logits));
        let found = binary_cross_entropy(&hot, &sigmoid, Prediction::Probabilities);
        near(&values(found), &expected);
    }

    #[test]
    fn sequences_of_classes_keep_their_shape() {
        let logits = Tensor::from_slice(&[2, 2, 2], &[0.0f32; 8]).unwrap();
        let targets = Tensor::from_slice(&[2, 2], &[0i32, 1, 1, 0]).unwrap();
        let loss = sparse_categorical_cross_entropy(&targets, &logits, Prediction::Logits).unwrap();
        assert_eq!(loss.shape().known().unwrap().dims(), [2, 2]);
        near(&loss.to_vec::<f32>().unwrap(), &[2.0f32.ln(); 4]);
    }
}
