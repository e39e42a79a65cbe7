//! Metrics are those of Keras 3.15: `keras_metrics.py` prints them.

use crate::figures::{classes, figures, fractions, near, one_hot};
use ferroflow_nn::{
    losses::Prediction,
    metrics::{self, *},
};
use ferroflow_tracer::{Result, Tensor, function};
use std::sync::Arc;

const NUMBERS: &str = include_str!("keras_metrics.txt");

/// The inputs of `keras_metrics.py`.
fn input(name: &str, k: usize) -> Tensor {
    let matrix = |values: Vec<f32>| Tensor::from_slice(&[6, 5], &values).unwrap();
    let bit = |set: bool| f32::from(u8::from(set));
    match name {
        "p" => matrix(fractions(30, 3 * k)),
        "x" => matrix(fractions(30, 3 * k).iter().map(|p| p * 6.0 - 3.0).collect()),
        "class" => Tensor::from(classes(6, k)),
        "hot" => matrix(one_hot(&classes(6, k))),
        "bits" => matrix((0..30).map(|i| bit((i + k).is_multiple_of(3))).collect()),
        "numbers" => matrix(fractions(30, 11 * k + 4).iter().map(|p| p * 4.0 - 1.0).collect()),
        "found" => Tensor::from(classes(6, 2 * k + 1)),
        "column" => Tensor::from(fractions(6, k).iter().map(|p| p * 2.0 - 1.0).collect::<Vec<_>>()),
        "bit" => Tensor::from((0..6).map(|i| bit((i + k) % 2 == 1)).collect::<Vec<_>>()),
        "w" => Tensor::from([1.0f32, 2.0, 0.0, 1.0, 3.0, 1.0]),
        other => panic!("no input {other}"),
    }
}

/// The metric updated eagerly, and in a function, without and with weights, is Keras's.
fn check(key: &'static str, metric: Result<impl Metric + 'static>, target: &str, prediction: &str) {
    let metric = Arc::new(metric.unwrap());
    let expected = figures(NUMBERS);
    let updated = {
        let metric = metric.clone();
        function(move |y: Tensor, x: Tensor, w: Option<Tensor>| {
            metric.update_weighted(&y, &x, w.as_ref())
        })
    };
    for kind in ["plain", "weighted"] {
        for is_traced in [false, true] {
            for k in 0..2 {
                let (y, x) = (input(target, k), input(prediction, k));
                let weights = (kind == "weighted").then(|| input("w", k));
                if is_traced {
                    updated.call((y, x, weights)).unwrap();
                } else {
                    metric.update_weighted(&y, &x, weights.as_ref()).unwrap();
                }
            }
            near(key, &metric.result().unwrap(), &expected[&(key, kind)]);
            metric.reset().unwrap();
        }
    }
}

/// As [`check`], of a metric whose name is that of its line.
fn named(metric: Result<impl Metric + 'static>, target: &str, prediction: &str) {
    let name: String = metric.as_ref().unwrap().name().into();
    let key = figures(NUMBERS).into_keys().find(|(key, _)| *key == name).unwrap().0;
    check(key, metric, target, prediction);
}

#[test]
fn means_of_losses() {
    named(metrics::mean_squared_error(), "numbers", "x");
    named(metrics::mean_absolute_error(), "numbers", "x");
    named(metrics::mean_absolute_percentage_error(), "numbers", "x");
    named(metrics::mean_squared_logarithmic_error(), "numbers", "x");
    named(root_mean_squared_error(), "numbers", "x");
    named(metrics::log_cosh(), "numbers", "x");
    named(metrics::cosine_similarity(), "numbers", "x");
    named(metrics::poisson(), "bits", "p");
    named(metrics::kl_divergence(), "hot", "p");
    named(metrics::hinge(), "bits", "x");
    named(metrics::squared_hinge(), "bits", "x");
    named(metrics::categorical_hinge(), "hot", "x");
    named(metrics::binary_cross_entropy(Prediction::Probabilities), "bits", "p");
    named(metrics::categorical_cross_entropy(Prediction::Logits), "hot", "x");
    named(metrics::sparse_categorical_cross_entropy(Prediction::Logits), "class", "x");
}

#[test]
fn accuracies_and_correlations() {
    named(accuracy(), "class", "found");
    named(binary_accuracy(0.5), "bits", "p");
    named(categorical_accuracy(), "hot", "p");
    named(sparse_categorical_accuracy(), "class", "p");
    named(top_k_categorical_accuracy(2), "hot", "p");
    named(sparse_top_k_categorical_accuracy(3), "class", "p");
    named(pearson_correlation(), "numbers", "x");
    named(concordance_correlation(), "numbers", "x");
}

#[test]
fn outcomes_at_thresholds() {
    named(ConfusionCount::new(Outcomes::TruePositives), "bits", "p");
    let two = ConfusionOptions { thresholds: vec![0.2, 0.7], ..ConfusionOptions::default() };
    named(ConfusionCount::with_options(Outcomes::FalsePositives, two), "bits", "p");
    named(ConfusionCount::new(Outcomes::TrueNegatives), "bits", "p");
    named(ConfusionCount::new(Outcomes::FalseNegatives), "bits", "p");
    named(Precision::new(), "bits", "p");
    let top = ConfusionOptions { top_k: Some(2), ..ConfusionOptions::default() };
    check("precision_top_k", Precision::with_options(top), "bits", "p");
    let three = ConfusionOptions { thresholds: vec![0.3, 0.6, 0.65], ..Default::default() };
    named(Recall::with_options(three), "bits", "p");
    let class = ConfusionOptions { class: Some(1), ..ConfusionOptions::default() };
    check("recall_class", Recall::with_options(class), "bits", "p");
}

#[test]
fn areas_under_curves() {
    let of = |curve, summation, n_thresholds| {
        Auc::with_options(AucOptions { n_thresholds, curve, summation, logits: false })
    };
    named(Auc::new(), "bits", "p");
    let logits = AucOptions { logits: true, ..AucOptions::default() };
    check("auc_row", Auc::with_options(logits), "bit", "column");
    let pr = Curve::PrecisionRecall;
    check("auc_pr", of(pr, Summation::Interpolation, 200), "bits", "p");
    check("auc_pr_minoring", of(pr, Summation::Minoring, 20), "bits", "p");
    check("auc_majoring", of(Curve::Roc, Summation::Majoring, 11), "bits", "p");
    named(precision_at_recall(0.6, 200), "bits", "p");
    named(recall_at_precision(0.3, 200), "bits", "p");
    named(sensitivity_at_specificity(0.5, 200), "bits", "p");
    named(specificity_at_sensitivity(0.5, 200), "bits", "p");
    assert!(Auc::with_options(AucOptions { n_thresholds: 1, ..Default::default() }).is_err());
    assert!(precision_at_recall(1.5, 200).is_err());
}

#[test]
fn scores_and_overlaps() {
    named(FBetaScore::f1(5, FScoreAverage::None), "hot", "p");
    check("f1_score_macro", FBetaScore::f1(5, FScoreAverage::Macro), "hot", "p");
    let weighted = FBetaScore::new(5, FScoreAverage::Weighted, 1.0, Some(0.4));
    check("f1_score_weighted", weighted, "hot", "p");
    named(FBetaScore::new(5, FScoreAverage::Micro, 2.0, Some(0.5)), "bits", "p");
    named(IntersectionOverUnion::new(5), "class", "found");
    let two = IouOptions { classes: vec![0, 2], ignored: Some(3), ..IouOptions::default() };
    named(IntersectionOverUnion::with_options(5, two), "class", "found");
    named(binary_iou(0.5), "bit", "column");
    let hot = IouOptions { one_hot_target: true, one_hot_prediction: true, ..Default::default() };
    check("one_hot_io_u", IntersectionOverUnion::with_options(5, hot), "hot", "p");
}

#[test]
fn explained_variances() {
    named(R2Score::new(5), "numbers", "x");
    let by_variance = R2Score::with_options(5, R2Aggregation::Variance, 2);
    check("r2_score_variance", by_variance, "numbers", "x");
    check("r2_score_each", R2Score::with_options(5, R2Aggregation::None, 0), "numbers", "x");
}
