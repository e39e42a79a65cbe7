"""Inputs, weights and lines of results that the programs beside this one share."""

import keras
import numpy as np
import tensorflow as tf

L = keras.layers


def numbers(*shape):
    n = int(np.prod(shape))
    return (np.array([((i * 7) % 23 - 11) / 10 for i in range(n)], np.float32) / 2).reshape(shape)


def fill(layer):
    layer.set_weights([numbers(*w.shape) for w in layer.weights])


def show(name, y, k=8):
    y = np.asarray(y)
    first = [float("%.6g" % v) for v in y.reshape(-1)[:k]]
    print(name, list(y.shape), first, "%.6g" % np.abs(y.astype(np.float64)).sum())


def gradients(name, f, x, weights):
    """The result, and the gradients of the sum of its squares by the input and by each weight."""
    x = tf.constant(x)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = f(x)
        loss = tf.reduce_sum(y**2)
    show(name, y)
    by_input, by_weight = tape.gradient(loss, [x, [w.value for w in weights]])
    show(f"{name} d x", by_input, 3)
    for i, g in enumerate(by_weight):
        show(f"{name} d {i}", g, 3)


def trained(name, layer, *shape, training=True):
    x = numbers(*shape)
    f = layer
    layer(x)
    fill(layer)
    if layer._call_has_training_arg:
        f = lambda x: layer(x, training=training)
    gradients(name, f, x, layer.trainable_weights)
