//! Means of losses and of hits, by their names in Keras.

use super::MeanMetric;
use crate::{
    losses::{self, EPSILON, Prediction, classes},
    ranks::same_rank,
};
use ferroflow_ir::DType;
use ferroflow_tracer::{Result, Tensor, ops};

macro_rules! of_losses {
    ($($(#[$doc:meta])* $name:ident => $key:literal;)*) => {$(
        $(#[$doc])*
        ///
        /// # Errors
        ///
        /// As [`MeanMetric::new`].
        pub fn $name() -> Result<MeanMetric> {
            MeanMetric::new($key, losses::$name)
        }
    )*};
}

of_losses! {
    /// Mean of [`losses::mean_squared_error`].
    mean_squared_error => "mean_squared_error";
    /// Mean of [`losses::mean_absolute_error`].
    mean_absolute_error => "mean_absolute_error";
    /// Mean of [`losses::mean_absolute_percentage_error`].
    mean_absolute_percentage_error => "mean_absolute_percentage_error";
    /// Mean of [`losses::mean_squared_logarithmic_error`].
    mean_squared_logarithmic_error => "mean_squared_logarithmic_error";
    /// Mean of [`losses::log_cosh`].
    log_cosh => "logcosh";
    /// Mean of [`losses::poisson`].
    poisson => "poisson";
    /// Mean of [`losses::kl_divergence`].
    kl_divergence => "kl_divergence";
    /// Mean of [`losses::hinge`].
    hinge => "hinge";
    /// Mean of [`losses::squared_hinge`].
    squared_hinge => "squared_hinge";
    /// Mean of [`losses::categorical_hinge`].
    categorical_hinge => "categorical_hinge";
}

macro_rules! of_cross_entropies {
    ($($(#[$doc:meta])* $name:ident => $key:literal;)*) => {$(
        $(#[$doc])*
        ///
        /// # Errors
        ///
        /// As [`MeanMetric::new`].
        pub fn $name(kind: Prediction) -> Result<MeanMetric> {
            MeanMetric::new($key, move |y: &Tensor, x: &Tensor| losses::$name(y, x, kind))
        }
    )*};
}

of_cross_entropies! {
    /// Mean of [`losses::binary_cross_entropy`].
    binary_cross_entropy => "binary_crossentropy";
    /// Mean of [`losses::categorical_cross_entropy`].
    categorical_cross_entropy => "categorical_crossentropy";
    /// Mean of [`losses::sparse_categorical_cross_entropy`].
    sparse_categorical_cross_entropy => "sparse_categorical_crossentropy";
}

/// Square root of the mean of squared errors.
///
/// # Errors
///
/// As [`MeanMetric::new`].
pub fn root_mean_squared_error() -> Result<MeanMetric> {
    Ok(mean_squared_error()?.named("root_mean_squared_error").root())
}

/// Mean of the cosine of the angle between target and prediction.
///
/// # Errors
///
/// As [`MeanMetric::new`].
pub fn cosine_similarity() -> Result<MeanMetric> {
    let cosine = |y: &Tensor, x: &Tensor| losses::cosine_similarity(y, x)?.neg();
    MeanMetric::new("cosine_similarity", cosine)
}

/// Part of the predictions that equal their targets.
///
/// # Errors
///
/// As [`MeanMetric::new`].
pub fn accuracy() -> Result<MeanMetric> {
    MeanMetric::new("accuracy", |y: &Tensor, x: &Tensor| {
        let (y, x) = same_rank(&y.cast(x.dtype())?, x)?;
        hits(&y, &x)
    })
}

/// Part of the predictions that are on their target's side of a threshold, which is 0.5 in Keras.
///
/// # Errors
///
/// As [`MeanMetric::new`].
pub fn binary_accuracy(threshold: f64) -> Result<MeanMetric> {
    MeanMetric::new("binary_accuracy", move |y: &Tensor, x: &Tensor| {
        let (y, x) = same_rank(y, x)?;
        hits(&y, &x.greater(threshold)?.cast(y.dtype())?)
    })
}

/// Part of the examples whose largest prediction is that of their class; targets are one-hot.
///
/// # Errors
///
/// As [`MeanMetric::new`].
pub fn categorical_accuracy() -> Result<MeanMetric> {
    MeanMetric::new("categorical_accuracy", |y: &Tensor, x: &Tensor| {
        hits(&y.argmax(-1)?, &x.argmax(-1)?)
    })
}

/// Part of the examples whose largest prediction is that of their class; targets are numbers of
/// classes.
///
/// # Errors
///
/// As [`MeanMetric::new`].
pub fn sparse_categorical_accuracy() -> Result<MeanMetric> {
    MeanMetric::new("sparse_categorical_accuracy", |y: &Tensor, x: &Tensor| {
        let found = x.argmax(-1)?;
        hits(&classes(y, x)?.cast(found.dtype())?, &found)
    })
}

/// Part of the examples whose class has one of the `k` largest predictions; targets are one-hot.
///
/// # Errors
///
/// As [`MeanMetric::new`].
pub fn top_k_categorical_accuracy(k: i64) -> Result<MeanMetric> {
    MeanMetric::new("top_k_categorical_accuracy", move |y: &Tensor, x: &Tensor| {
        in_top_k(&y.argmax(-1)?, x, k)
    })
}

/// Part of the examples whose class has one of the `k` largest predictions; targets are numbers of
/// classes.
///
/// # Errors
///
/// As [`MeanMetric::new`].
pub fn sparse_top_k_categorical_accuracy(k: i64) -> Result<MeanMetric> {
    MeanMetric::new("sparse_top_k_categorical_accuracy", move |y: &Tensor, x: &Tensor| {
        in_top_k(&classes(y, x)?, x, k)
    })
}

/// Mean of Pearson's coefficients of correlation, each over a row.
///
/// # Errors
///
/// As [`MeanMetric::new`].
pub fn pearson_correlation() -> Result<MeanMetric> {
    MeanMetric::new("pearson_correlation", |y: &Tensor, x: &Tensor| {
        let (y, x) = same_rank(&y.cast(x.dtype())?, x)?;
        let (y, x) = (centred(&y)?, centred(&x)?);
        (standard(&y)? * standard(&x)?)?.mean(&[-1])
    })
}

/// Mean of Lin's coefficients of concordance, each over a row.
///
/// # Errors
///
/// As [`MeanMetric::new`].
pub fn concordance_correlation() -> Result<MeanMetric> {
    MeanMetric::new("concordance_correlation", |y: &Tensor, x: &Tensor| {
        let (y, x) = same_rank(&y.cast(x.dtype())?, x)?;
        let mean = |x: &Tensor| x.mean(&[-1])?.expand_dims(-1);
        let (y_mean, x_mean) = (mean(&y)?, mean(&x)?);
        let spread = (variance(&centred(&y)?)? + variance(&centred(&x)?)?)?;
        let norm = ((spread + (y_mean - &x_mean)?.square()?)? + EPSILON)?;
        let shared = ((y - &x_mean)? * (x - &x_mean)?)?;
        ((shared * 2.0)? / norm)?.mean(&[-1])
    })
}

fn hits(target: &Tensor, found: &Tensor) -> Result<Tensor> {
    target.equal(found)?.cast(DType::F32)
}

fn in_top_k(target: &Tensor, prediction: &Tensor, k: i64) -> Result<Tensor> {
    let width = losses::last_size(prediction)?;
    let rows = prediction.cast(DType::F32)?.reshape(&[-1, width])?;
    let found = ops::in_top_k(&rows, &target.reshape(&[-1])?, k)?.cast(DType::F32)?;
    ops::reshape(&found, &target.shape_tensor()?)
}

fn centred(x: &Tensor) -> Result<Tensor> {
    x - x.mean(&[-1])?.expand_dims(-1)?
}

fn variance(centred: &Tensor) -> Result<Tensor> {
    let middle = centred.mean(&[-1])?.expand_dims(-1)?;
    (centred - middle)?.square()?.mean(&[-1])?.expand_dims(-1)
}

/// With a deviation of 1.
fn standard(centred: &Tensor) -> Result<Tensor> {
    centred / variance(centred)?.sqrt()?
}
