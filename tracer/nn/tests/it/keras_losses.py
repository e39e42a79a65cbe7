"""Prints what losses of Keras give, and their gradients: the numbers in keras_losses.txt.

    python keras_losses.py > keras_losses.txt

Inputs are those of losses.rs. Each line has a name, `value` or `gradient`, and the elements.
"""

import keras
import numpy as np
import tensorflow as tf

K = keras.losses


def fractions(*shape):
    n = int(np.prod(shape))
    return np.array([((i * 7) % 23 + 1) / 25 for i in range(n)], np.float32).reshape(shape)


def classes(n, count):
    return np.array([(i * 5 + 2) % count for i in range(n)], np.int32)


P = fractions(4, 5)
X = P * 6 - 3
HOT = np.eye(5, dtype=np.float32)[classes(4, 5)]
BITS = (np.arange(20).reshape(4, 5) % 3 == 0).astype(np.float32)
NUMBERS = fractions(4, 5)[::-1] * 4 - 1
NUMBER_OF_CLASS = classes(4, 5)
UNIT = X / np.linalg.norm(X, axis=1, keepdims=True)
STEPS = (fractions(2, 6, 4) * 4 - 2).astype(np.float32)
LABELS = np.array([[1, 2, 2, 0], [3, 1, 0, 0]], np.int32)

LOSSES = {
    "mean_squared_error": (K.mean_squared_error, NUMBERS, X),
    "mean_absolute_error": (K.mean_absolute_error, NUMBERS, X),
    "mean_absolute_percentage_error": (K.mean_absolute_percentage_error, NUMBERS, X),
    "mean_squared_logarithmic_error": (K.mean_squared_logarithmic_error, NUMBERS, X),
    "huber": (lambda y, x: K.huber(y, x, 0.7), NUMBERS, X),
    "log_cosh": (K.log_cosh, NUMBERS, X),
    "poisson": (K.poisson, BITS * 2, P),
    "hinge": (K.hinge, BITS, X),
    "hinge_signs": (K.hinge, BITS * 2 - 1, X),
    "squared_hinge": (K.squared_hinge, BITS, X),
    "categorical_hinge": (K.categorical_hinge, HOT, X),
    "kl_divergence": (K.kl_divergence, P[::-1], P),
    "binary_cross_entropy": (lambda y, x: K.binary_crossentropy(y, x), BITS, P),
    "binary_cross_entropy_logits": (lambda y, x: K.binary_crossentropy(y, x, from_logits=True), BITS, X),
    "binary_cross_entropy_smooth": (lambda y, x: K.binary_crossentropy(y, x, label_smoothing=0.2), BITS, P),
    "categorical_cross_entropy": (K.categorical_crossentropy, HOT, P),
    "categorical_cross_entropy_logits": (lambda y, x: K.categorical_crossentropy(y, x, from_logits=True), HOT, X),
    "categorical_cross_entropy_smooth": (lambda y, x: K.categorical_crossentropy(y, x, label_smoothing=0.1), HOT, P),
    "sparse_categorical_cross_entropy_logits": (
        lambda y, x: K.sparse_categorical_crossentropy(y, x, from_logits=True), NUMBER_OF_CLASS, X),
    "categorical_generalized_cross_entropy": (
        lambda y, x: K.categorical_generalized_cross_entropy(y, x, 0.7), NUMBER_OF_CLASS, P),
    "binary_focal_cross_entropy": (K.binary_focal_crossentropy, BITS, P),
    "binary_focal_cross_entropy_balanced": (
        lambda y, x: K.binary_focal_crossentropy(
            y, x, apply_class_balancing=True, alpha=0.3, gamma=1.5, from_logits=True), BITS, X),
    "categorical_focal_cross_entropy": (K.categorical_focal_crossentropy, HOT, P),
    "categorical_focal_cross_entropy_logits": (
        lambda y, x: K.categorical_focal_crossentropy(y, x, from_logits=True), HOT, X),
    "dice": (K.dice, BITS, P),
    "dice_rows": (lambda y, x: K.dice(y, x, axis=[1]), BITS, P),
    "tversky": (lambda y, x: K.tversky(y, x, alpha=0.3, beta=0.8), BITS, P),
    "cosine_similarity": (K.cosine_similarity, NUMBERS, X),
    "circle": (lambda y, x: K.circle(y, x, gamma=8.0), np.array([0, 1, 0, 1], np.int32), UNIT),
    "ctc": (K.ctc, LABELS, STEPS),
}


def show(name, kind, values):
    print(name, kind, *["%.7g" % v for v in np.asarray(values).reshape(-1)])


for name, (loss, target, prediction) in LOSSES.items():
    x = tf.constant(prediction)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = loss(tf.constant(target), x)
    show(name, "value", y)
    show(name, "gradient", tape.gradient(y, x))
