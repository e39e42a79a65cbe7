//! Losses: the distance of predictions from targets.
//!
//! Each function returns one value per example, reduced over the last dimension; the mean of them is
//! what is usually minimised ([`weighted_mean`]). Formulas are those of Keras
//! (`keras/src/losses/losses.py`), and so are dtypes: that of floats that are predicted, otherwise
//! `float32`; targets are cast to it. Targets `[n]` beside predictions `[n, 1]`, or the other way
//! round, are brought to one rank.
//!
//! - `regression.rs`: numbers;
//! - `entropy.rs`: classes by their probabilities, `focal.rs` with more weight for the hard ones;
//! - `margin.rs`: classes by the sign of a number;
//! - `overlap.rs`: masks;
//! - `embedding.rs`: directions of vectors; `sequence.rs`: labels without positions.

mod embedding;
mod entropy;
mod focal;
mod margin;
mod overlap;
mod regression;
mod sequence;

pub use embedding::{Circle, circle, cosine_similarity};
pub use entropy::{
    Prediction, binary_cross_entropy, categorical_cross_entropy,
    categorical_generalized_cross_entropy, kl_divergence, smooth_binary, smooth_classes,
    sparse_categorical_cross_entropy,
};
pub use focal::{Focal, binary_focal_cross_entropy, categorical_focal_cross_entropy};
pub use margin::{categorical_hinge, hinge, squared_hinge};
pub use overlap::{dice, tversky};
pub use regression::{
    huber, log_cosh, mean_absolute_error, mean_absolute_percentage_error, mean_squared_error,
    mean_squared_logarithmic_error, poisson,
};
pub use sequence::ctc;

use crate::ranks::{same_rank, squeezed};
use ferroflow_ir::DType;
use ferroflow_tracer::{Error, Result, Tensor, ops};

/// The lower bound of probabilities, so that their logarithms are finite, and of divisors: `epsilon()`
/// of Keras.
pub(crate) const EPSILON: f64 = 1e-7;

/// A loss: any function of targets and predictions that returns a value for each example.
pub trait Loss: Send + Sync {
    /// The value of each example.
    ///
    /// # Errors
    ///
    /// When targets and predictions do not fit each other.
    fn per_example(&self, target: &Tensor, prediction: &Tensor) -> Result<Tensor>;
}

impl<F: Fn(&Tensor, &Tensor) -> Result<Tensor> + Send + Sync> Loss for F {
    fn per_example(&self, target: &Tensor, prediction: &Tensor) -> Result<Tensor> {
        self(target, prediction)
    }
}

/// The sum of the values of examples, each times its weight, by the number of examples: what Keras
/// minimises (`sum_over_batch_size`).
///
/// ```
/// use ferroflow_nn::losses::weighted_mean;
/// use ferroflow_tracer::Tensor;
/// # fn main() -> ferroflow_tracer::Result<()> {
/// let (values, weights) = (Tensor::from([1.0f32, 3.0]), Tensor::from([1.0f32, 0.0]));
/// assert_eq!(weighted_mean(&values, Some(&weights))?.to_scalar::<f32>()?, 0.5);
/// # Ok(())
/// # }
/// ```
///
/// # Errors
///
/// When the weights do not broadcast to the values.
#[track_caller]
pub fn weighted_mean(values: &Tensor, weights: Option<&Tensor>) -> Result<Tensor> {
    match weights {
        None => values.mean_all(),
        Some(weights) => {
            let (values, weights) = same_rank(values, &weights.cast(values.dtype())?)?;
            (values * weights)?.mean_all()
        }
    }
}

/// Weights of values whose mask says which of them count, for [`weighted_mean`]: those that do not
/// weigh nothing, and the others so much that the mean is one of them alone, as in Keras
/// (`apply_mask`). Weights of examples `[batch]` are those of all steps of a mask `[batch, steps]`.
///
/// ```
/// use ferroflow_nn::losses::{masked_weights, weighted_mean};
/// use ferroflow_tracer::Tensor;
/// # fn main() -> ferroflow_tracer::Result<()> {
/// let (values, mask) = (Tensor::from([1.0f32, 3.0, 9.0]), Tensor::from([true, true, false]));
/// let weights = masked_weights(&mask, None)?;
/// assert_eq!(weighted_mean(&values, Some(&weights))?.to_scalar::<f32>()?, 2.0);
/// # Ok(())
/// # }
/// ```
///
/// # Errors
///
/// When mask and weights do not broadcast to each other.
#[track_caller]
pub fn masked_weights(mask: &Tensor, weights: Option<&Tensor>) -> Result<Tensor> {
    let counts = mask.cast(DType::F32)?;
    let n = ops::size(mask)?.cast(DType::F32)?;
    let scaled = (&counts * ops::div_no_nan(&n, &counts.sum_all()?)?)?;
    with_weights(&scaled, weights)
}

/// Weights of masked values in a sum: 0 or that of the example.
pub(crate) fn masked_sum_weights(mask: &Tensor, weights: Option<&Tensor>) -> Result<Tensor> {
    with_weights(&mask.cast(DType::F32)?, weights)
}

fn with_weights(mask: &Tensor, weights: Option<&Tensor>) -> Result<Tensor> {
    let Some(weights) = weights else { return Ok(mask.clone()) };
    let (mask, weights) = same_rank(mask, &weights.cast(DType::F32)?)?;
    let missing = mask.shape().rank().zip(weights.shape().rank());
    let missing = missing.map_or(0, |(mask, weights)| mask.saturating_sub(weights));
    let weights = (0..missing).try_fold(weights, |weights, _| weights.expand_dims(-1))?;
    mask * weights
}

/// Target and prediction in the dtype that a loss is computed in, and of one rank.
fn floats(target: &Tensor, prediction: &Tensor) -> Result<(Tensor, Tensor)> {
    let dtype = if prediction.dtype().is_float() { prediction.dtype() } else { DType::F32 };
    same_rank(&target.cast(dtype)?, &prediction.cast(dtype)?)
}

/// Integers that number classes, as the ops take them: `[n, 1]` as `[n]` where predictions are
/// `[n, classes]`.
pub(crate) fn classes(target: &Tensor, prediction: &Tensor) -> Result<Tensor> {
    let target = match target.dtype() {
        DType::I32 | DType::I64 => target.clone(),
        _ => target.cast(DType::I64)?,
    };
    let (rank, shape) = (target.shape().rank(), target.shape());
    if rank.is_some() && rank == prediction.shape().rank() && shape.dim(-1) == Some(1) {
        squeezed(&target)
    } else {
        Ok(target)
    }
}

/// Probabilities away from 0 and 1.
fn inner(p: &Tensor) -> Result<Tensor> {
    p.maximum(EPSILON)?.minimum(1.0 - EPSILON)
}

/// The number of classes.
pub(crate) fn last_size(x: &Tensor) -> Result<i64> {
    let size = x.shape().dim(-1);
    size.map(|size| size as i64).ok_or_else(|| Error::Conversion {
        expected: "a known number of classes".into(),
        found: x.spec().to_string(),
    })
}

/// A value per row, under the shape of the rows.
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
