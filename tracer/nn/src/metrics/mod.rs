//! Metrics: figures over all examples that were seen since the last reset.
//!
//! A [`Metric`] keeps sums in variables, so it is updated inside functions too, saved in checkpoints,
//! and read at any time. Formulas, names and state are those of Keras 3 (`keras/src/metrics`); state
//! is `float32`, or `int64` where pairs of classes are counted.
//!
//! ```
//! use ferroflow_nn::metrics::{Metric, sparse_categorical_accuracy};
//! use ferroflow_tracer::Tensor;
//! # fn main() -> ferroflow_tracer::Result<()> {
//! let accuracy = sparse_categorical_accuracy()?;
//! accuracy.update(&Tensor::from([1i32, 0]), &Tensor::from([[0.1f32, 0.9], [0.8, 0.2]]))?;
//! accuracy.update(&Tensor::from([1i32, 1]), &Tensor::from([[0.1f32, 0.9], [0.8, 0.2]]))?;
//! assert_eq!(accuracy.result()?.to_scalar::<f32>()?, 0.75);
//! accuracy.reset()?;
//! # Ok(())
//! # }
//! ```
//!
//! - `mean.rs`: means and sums of values; `functions.rs`: means of losses and of hits;
//! - `confusion.rs`: counts of true and false positives and negatives, precision and recall;
//! - `curve.rs`: the same at many thresholds, areas under curves; `f_score.rs`;
//! - `overlap.rs`: intersection over union of classes;
//! - `regression.rs`: coefficients of determination and correlation.

mod confusion;
mod curve;
mod f_score;
mod functions;
mod mean;
mod overlap;
mod regression;

pub use confusion::{ConfusionCount, ConfusionOptions, Outcomes, Precision, Recall};
pub use curve::{
    Auc, AucOptions, ConstrainedRate, Curve, Summation, precision_at_recall, recall_at_precision,
    sensitivity_at_specificity, specificity_at_sensitivity,
};
pub use f_score::{FBetaScore, FScoreAverage};
pub use functions::{
    accuracy, binary_accuracy, binary_cross_entropy, categorical_accuracy,
    categorical_cross_entropy, categorical_hinge, concordance_correlation, cosine_similarity,
    hinge, kl_divergence, log_cosh, mean_absolute_error, mean_absolute_percentage_error,
    mean_squared_error, mean_squared_logarithmic_error, pearson_correlation, poisson,
    root_mean_squared_error, sparse_categorical_accuracy, sparse_categorical_cross_entropy,
    sparse_top_k_categorical_accuracy, squared_hinge, top_k_categorical_accuracy,
};
pub use mean::{Mean, MeanMetric, Sum};
pub use overlap::{IntersectionOverUnion, IouOptions, binary_iou};
pub use regression::{R2Aggregation, R2Score};

use ferroflow_tracer::{Result, Tensor, Trackable, Variable};

/// A figure over all examples since the last reset.
pub trait Metric: Trackable + Send + Sync {
    /// The name under which logs have it.
    fn name(&self) -> &str;

    /// Takes more examples in. `weights` are as of Keras: a number for each example, or anything that
    /// broadcasts to the values of the examples.
    ///
    /// # Errors
    ///
    /// When targets, predictions and weights do not fit each other.
    fn update_weighted(
        &self,
        target: &Tensor,
        prediction: &Tensor,
        weights: Option<&Tensor>,
    ) -> Result<()>;

    /// The figure.
    ///
    /// # Errors
    ///
    /// When the state cannot be read.
    fn result(&self) -> Result<Tensor>;

    /// Whether steps that a mask of the predictions leaves out have no weight in it: as in Keras, that
    /// is so for means.
    fn supports_masking(&self) -> bool {
        false
    }

    /// Its sums.
    fn state(&self) -> Vec<&Variable>;

    /// Takes more examples in, of equal weight.
    ///
    /// # Errors
    ///
    /// As [`update_weighted`](Metric::update_weighted).
    fn update(&self, target: &Tensor, prediction: &Tensor) -> Result<()> {
        self.update_weighted(target, prediction, None)
    }

    /// Forgets all examples.
    ///
    /// # Errors
    ///
    /// When the state cannot be assigned.
    fn reset(&self) -> Result<()> {
        self.state().into_iter().try_for_each(|sum| sum.assign(&sum.read()?.zeros_like()?))
    }
}

/// `a / b`, and 0 where `b` is 0.
fn quotient(a: &Tensor, b: &Tensor) -> Result<Tensor> {
    ferroflow_tracer::ops::div_no_nan(a, b)
}
