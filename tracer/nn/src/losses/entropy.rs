//! Losses of classes that are told by probabilities.

use super::{EPSILON, classes, floats, inner, last_size, rows_like};
use ferroflow_tracer::{Result, Tensor, ops};

/// The numbers that a network predicts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Prediction {
    /// Any numbers, which a sigmoid or a softmax would make probabilities of. This is the exact
    /// way.
    Logits,
    /// Probabilities.
    Probabilities,
}

/// Mean of `-target·log(p) - (1 - target)·log(1 - p)`.
///
/// # Errors
///
/// As [`mean_squared_error`](super::mean_squared_error).
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
        Prediction::Probabilities => of_probabilities(target, prediction)?,
    };
    each.mean(&[-1])
}

/// The binary cross entropy of each element.
pub(super) fn of_probabilities(target: &Tensor, prediction: &Tensor) -> Result<Tensor> {
    let p = inner(prediction)?;
    let other = ((1.0 - target)? * (1.0 - &p)?.log()?)?;
    ((target * p.log()?)? + other)?.neg()
}

/// `-Σ target·log(p)` over the classes; targets are one-hot, or distributions.
///
/// # Errors
///
/// As [`mean_squared_error`](super::mean_squared_error).
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
            (target * inner(&(prediction / sum)?)?.log()?)?.sum(&[-1])?.neg()
        }
    }
}

/// `-log(p)` of the class whose number is the target: `[..]` or `[.., 1]` beside `[.., classes]`.
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
        Prediction::Probabilities => inner(prediction)?.log()?,
    };
    let width = last_size(&logits)?;
    let flat = classes(target, prediction)?.reshape(&[-1])?;
    let [found, _] =
        ops::sparse_softmax_cross_entropy_with_logits(&logits.reshape(&[-1, width])?, &flat)?;
    rows_like(&found, prediction)
}

/// `(1 - p^q) / q` for the probability `p` of the class whose number is the target: a loss that
/// wrong labels mislead less (Zhang and Sabuncu 2018). It is cross entropy for `q` towards 0, the
/// absolute error for 1.
///
/// # Errors
///
/// As [`sparse_categorical_cross_entropy`].
#[track_caller]
pub fn categorical_generalized_cross_entropy(
    target: &Tensor,
    prediction: &Tensor,
    q: f64,
) -> Result<Tensor> {
    let depth = Tensor::from(last_size(prediction)? as i32);
    let (on, off) = (Tensor::from(1.0f32), Tensor::from(0.0f32));
    let hot = ops::one_hot(&classes(target, prediction)?, &depth, &on, &off)?;
    let p = (prediction * hot.cast(prediction.dtype())?)?.sum(&[-1])?;
    (1.0 - p.pow(q)?)? / q
}

/// Sum of `target·log(target/prediction)`, both being probabilities.
///
/// # Errors
///
/// As [`mean_squared_error`](super::mean_squared_error).
#[track_caller]
pub fn kl_divergence(target: &Tensor, prediction: &Tensor) -> Result<Tensor> {
    let (target, prediction) = &floats(target, prediction)?;
    let bounded = |p: &Tensor| p.maximum(EPSILON)?.minimum(1.0);
    let (target, prediction) = (bounded(target)?, bounded(prediction)?);
    (&target * (&target / prediction)?.log()?)?.sum(&[-1])
}

/// Targets of 0 and 1 moved by `smoothing / 2` towards each other.
///
/// # Errors
///
/// When the targets are no floats.
#[track_caller]
pub fn smooth_binary(target: &Tensor, smoothing: f64) -> Result<Tensor> {
    (target * (1.0 - smoothing))? + 0.5 * smoothing
}

/// Targets of one-hot form that return `smoothing` to all classes in equal parts (Szegedy et al.
/// 2016).
///
/// # Errors
///
/// When the targets are no floats, or the number of classes is not known.
#[track_caller]
pub fn smooth_classes(target: &Tensor, smoothing: f64) -> Result<Tensor> {
    let part = smoothing / last_size(target)? as f64;
    (target * (1.0 - smoothing))? + part
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_support::near;

    #[test]
    fn logits_and_probabilities_agree() {
        let logits = Tensor::from([[1.0f32, -2.0, 0.5], [0.0, 3.0, 1.0]]);
        let probabilities = logits.softmax().unwrap();
        let (targets, hot) =
            (Tensor::from([2i32, 1]), Tensor::from([[0.0f32, 0.0, 1.0], [0.0, 1.0, 0.0]]));
        let by = |kind, prediction: &Tensor| {
            sparse_categorical_cross_entropy(&targets, prediction, kind)
        };
        let expected = by(Prediction::Logits, &logits).unwrap().to_vec::<f32>().unwrap();
        near(by(Prediction::Probabilities, &probabilities), &expected);
        near(categorical_cross_entropy(&hot, &logits, Prediction::Logits), &expected);
        near(categorical_cross_entropy(&hot, &probabilities, Prediction::Probabilities), &expected);
        let sigmoid = logits.sigmoid().unwrap();
        let expected = binary_cross_entropy(&hot, &logits, Prediction::Logits).unwrap();
        let expected = expected.to_vec::<f32>().unwrap();
        near(binary_cross_entropy(&hot, &sigmoid, Prediction::Probabilities), &expected);
    }

    #[test]
    fn sequences_of_classes_keep_their_shape() {
        let logits = Tensor::from_slice(&[2, 2, 2], &[0.0f32; 8]).unwrap();
        let targets = Tensor::from_slice(&[2, 2], &[0i32, 1, 1, 0]).unwrap();
        let loss = sparse_categorical_cross_entropy(&targets, &logits, Prediction::Logits).unwrap();
        assert_eq!(loss.shape().known().unwrap().dims(), [2, 2]);
        near(Ok(loss), &[2.0f32.ln(); 4]);
    }
}
