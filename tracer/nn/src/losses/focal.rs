//! Cross entropies with less weight for what is predicted well (Lin et al. 2017).

use super::{Prediction, entropy::of_probabilities, floats, inner};
use ferroflow_tracer::{Result, Tensor};

/// The parameters of focal losses.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Focal {
    /// The exponent of `1 - p`: 0 is plain cross entropy.
    pub gamma: f64,
    /// The weight of the class 1 in a binary loss, `1 - alpha` being that of 0; `None` for no weights.
    /// In a categorical loss the weight of all classes.
    pub alpha: Option<f64>,
}

impl Default for Focal {
    fn default() -> Focal {
        Focal { gamma: 2.0, alpha: None }
    }
}

impl Focal {
    /// The defaults of Keras's categorical loss: `alpha` is 0.25.
    pub const CATEGORICAL: Focal = Focal { gamma: 2.0, alpha: Some(0.25) };
}

/// Mean of the binary cross entropy times `(1 - p)^gamma`, `p` being the probability of the target.
///
/// # Errors
///
/// As [`mean_squared_error`](super::mean_squared_error).
#[track_caller]
pub fn binary_focal_cross_entropy(
    target: &Tensor,
    prediction: &Tensor,
    kind: Prediction,
    focal: &Focal,
) -> Result<Tensor> {
    let (target, prediction) = &floats(target, prediction)?;
    let p = match kind {
        Prediction::Logits => prediction.sigmoid()?,
        Prediction::Probabilities => prediction.clone(),
    };
    let other = (1.0 - target)?;
    let of_target = ((target * &p)? + (&other * (1.0 - &p)?)?)?;
    let each = ((1.0 - of_target)?.pow(focal.gamma)? * of_probabilities(target, &p)?)?;
    let each = match focal.alpha {
        Some(alpha) => (((target * alpha)? + (other * (1.0 - alpha))?)? * each)?,
        None => each,
    };
    each.mean(&[-1])
}

/// `-Σ alpha·(1 - p)^gamma·target·log(p)` over the classes; targets are one-hot.
///
/// # Errors
///
/// As [`mean_squared_error`](super::mean_squared_error).
#[track_caller]
pub fn categorical_focal_cross_entropy(
    target: &Tensor,
    prediction: &Tensor,
    kind: Prediction,
    focal: &Focal,
) -> Result<Tensor> {
    let (target, prediction) = &floats(target, prediction)?;
    let p = match kind {
        Prediction::Logits => prediction.softmax()?,
        Prediction::Probabilities => prediction.clone(),
    };
    let sum = p.sum(&[-1])?.expand_dims(-1)?;
    let p = inner(&(p / sum)?)?;
    let factor = ((1.0 - &p)?.pow(focal.gamma)? * focal.alpha.unwrap_or(1.0))?;
    ((target * p.log()?)? * factor)?.sum(&[-1])?.neg()
}
