"""Prints what metrics of Keras give: the numbers in keras_metrics.txt.

    python keras_metrics.py > keras_metrics.txt

Each metric sees two batches, without and then with weights of examples, and again after a reset. Inputs are those of
metrics.rs.
"""

import keras
import numpy as np

M = keras.metrics


def fractions(*shape, start=0):
    n = int(np.prod(shape))
    return np.array([(((i + start) * 7) % 23 + 1) / 25 for i in range(n)], np.float32).reshape(shape)


def classes(n, count, start=0):
    return np.array([((i + start) * 5 + 2) % count for i in range(n)], np.int32)


def batch(k):
    p = fractions(6, 5, start=3 * k)
    return {
        "p": p,
        "x": p * 6 - 3,
        "class": classes(6, 5, k),
        "hot": np.eye(5, dtype=np.float32)[classes(6, 5, k)],
        "bits": ((np.arange(30).reshape(6, 5) + k) % 3 == 0).astype(np.float32),
        "numbers": fractions(6, 5, start=11 * k + 4) * 4 - 1,
        "found": classes(6, 5, 2 * k + 1),
        "column": fractions(6, start=k) * 2 - 1,
        "bit": ((np.arange(6) + k) % 2).astype(np.float32),
        "w": np.array([1, 2, 0, 1, 3, 1], np.float32),
    }


METRICS = {
    "mean_squared_error": (M.MeanSquaredError(), "numbers", "x"),
    "mean_absolute_error": (M.MeanAbsoluteError(), "numbers", "x"),
    "mean_absolute_percentage_error": (M.MeanAbsolutePercentageError(), "numbers", "x"),
    "mean_squared_logarithmic_error": (M.MeanSquaredLogarithmicError(), "numbers", "x"),
    "root_mean_squared_error": (M.RootMeanSquaredError(), "numbers", "x"),
    "logcosh": (M.LogCoshError(), "numbers", "x"),
    "cosine_similarity": (M.CosineSimilarity(), "numbers", "x"),
    "poisson": (M.Poisson(), "bits", "p"),
    "kl_divergence": (M.KLDivergence(), "hot", "p"),
    "hinge": (M.Hinge(), "bits", "x"),
    "squared_hinge": (M.SquaredHinge(), "bits", "x"),
    "categorical_hinge": (M.CategoricalHinge(), "hot", "x"),
    "binary_crossentropy": (M.BinaryCrossentropy(), "bits", "p"),
    "categorical_crossentropy": (M.CategoricalCrossentropy(from_logits=True), "hot", "x"),
    "sparse_categorical_crossentropy": (M.SparseCategoricalCrossentropy(from_logits=True), "class", "x"),
    "accuracy": (M.Accuracy(), "class", "found"),
    "binary_accuracy": (M.BinaryAccuracy(), "bits", "p"),
    "categorical_accuracy": (M.CategoricalAccuracy(), "hot", "p"),
    "sparse_categorical_accuracy": (M.SparseCategoricalAccuracy(), "class", "p"),
    "top_k_categorical_accuracy": (M.TopKCategoricalAccuracy(k=2), "hot", "p"),
    "sparse_top_k_categorical_accuracy": (M.SparseTopKCategoricalAccuracy(k=3), "class", "p"),
    "pearson_correlation": (M.PearsonCorrelation(), "numbers", "x"),
    "concordance_correlation": (M.ConcordanceCorrelation(), "numbers", "x"),
    "true_positives": (M.TruePositives(), "bits", "p"),
    "false_positives": (M.FalsePositives(thresholds=[0.2, 0.7]), "bits", "p"),
    "true_negatives": (M.TrueNegatives(), "bits", "p"),
    "false_negatives": (M.FalseNegatives(), "bits", "p"),
    "precision": (M.Precision(), "bits", "p"),
    "precision_top_k": (M.Precision(top_k=2), "bits", "p"),
    "recall": (M.Recall(thresholds=[0.3, 0.6, 0.65]), "bits", "p"),
    "recall_class": (M.Recall(class_id=1), "bits", "p"),
    "auc": (M.AUC(), "bits", "p"),
    "auc_row": (M.AUC(from_logits=True), "bit", "column"),
    "auc_pr": (M.AUC(curve="PR"), "bits", "p"),
    "auc_pr_minoring": (M.AUC(curve="PR", summation_method="minoring", num_thresholds=20), "bits", "p"),
    "auc_majoring": (M.AUC(summation_method="majoring", num_thresholds=11), "bits", "p"),
    "precision_at_recall": (M.PrecisionAtRecall(0.6), "bits", "p"),
    "recall_at_precision": (M.RecallAtPrecision(0.3), "bits", "p"),
    "sensitivity_at_specificity": (M.SensitivityAtSpecificity(0.5), "bits", "p"),
    "specificity_at_sensitivity": (M.SpecificityAtSensitivity(0.5), "bits", "p"),
    "f1_score": (M.F1Score(), "hot", "p"),
    "f1_score_macro": (M.F1Score(average="macro"), "hot", "p"),
    "f1_score_weighted": (M.F1Score(average="weighted", threshold=0.4), "hot", "p"),
    "fbeta_score": (M.FBetaScore(average="micro", beta=2.0, threshold=0.5), "bits", "p"),
    "mean_io_u": (M.MeanIoU(5), "class", "found"),
    "io_u": (M.IoU(5, [0, 2], ignore_class=3), "class", "found"),
    "binary_io_u": (M.BinaryIoU(threshold=0.5), "bit", "column"),
    "one_hot_io_u": (M.OneHotMeanIoU(5), "hot", "p"),
    "r2_score": (M.R2Score(), "numbers", "x"),
    "r2_score_variance": (M.R2Score(class_aggregation="variance_weighted_average", num_regressors=2), "numbers", "x"),
    "r2_score_each": (M.R2Score(class_aggregation=None), "numbers", "x"),
}


def show(name, kind, value):
    print(name, kind, *["%.7g" % v for v in np.asarray(value).reshape(-1)])


for name, (metric, target, prediction) in METRICS.items():
    for kind in ["plain", "weighted"]:
        for k in [0, 1]:
            b = batch(k)
            weights = b["w"] if kind == "weighted" else None
            metric.update_state(b[target], b[prediction], weights)
        show(name, kind, metric.result())
        metric.reset_state()
