"""Prints what layers of Keras give for equal weights and inputs: the numbers in keras.rs.

Weights and inputs are `numbers(shape)`. Each line has the shape, the first elements, and the sum of all magnitudes.
"""

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


x = numbers(2, 5, 3)
layers = {
    "lstm": L.LSTM(4, return_sequences=True), "gru": L.GRU(4, return_sequences=True),
    "dense": L.Dense(4, activation="gelu"),
    "conv1d": L.Conv1D(4, 2, padding="causal", dilation_rate=2), "mha": L.MultiHeadAttention(2, 3),
    "layer_norm": L.LayerNormalization(),
}
for name, layer in layers.items():
    f = (lambda v: layer(v, v)) if name == "mha" else layer
    f(x)
    fill(layer)
    show(name, f(x))
    if name == "mha":
        show("mha causal", layer(x, x, use_causal_mask=True))
        mask = np.array([[True, True, False, True, False]] * 2)[:, None, :]
        show("mha mask", layer(x, x, attention_mask=mask))
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(f(tf.constant(x)) ** 2)
    weights = layer.trainable_weights
    for w, g in zip(weights, tape.gradient(loss, [w.value for w in weights])):
        show(f"{name} d {w.path.split('/')[-1]}", g, 3)

images = numbers(2, 6, 6, 2)
layers = {
    "conv2d strides": L.Conv2D(4, 3, strides=2, padding="same", activation="relu"),
    "conv2d groups": L.Conv2D(4, 3, groups=2),
    "conv2d dilations": L.Conv2D(3, 2, dilation_rate=2),
    "depthwise": L.DepthwiseConv2D(3, depth_multiplier=2, padding="same"),
}
for name, layer in layers.items():
    layer(images)
    fill(layer)
    show(name, layer(images))
volumes = numbers(2, 4, 4, 4, 2)
layer = L.Conv3D(3, 2)
layer(volumes)
fill(layer)
show("conv3d", layer(volumes))

layer = L.BatchNormalization(momentum=0.9)
layer(images)
layer.set_weights([numbers(2) + 2, numbers(2), numbers(2), numbers(2) + 2])
show("batch_norm", layer(images))
show("batch_norm training", layer(images, training=True))
show("batch_norm mean", layer.moving_mean.numpy())
show("batch_norm variance", layer.moving_variance.numpy())
show("batch_norm then", layer(images))

layer = L.Embedding(7, 3)
layer(np.array([[1]]))
fill(layer)
show("embedding", layer(np.array([[0, 6], [3, 3]])))
for name in ["relu6", "elu", "selu", "gelu", "silu", "softplus", "leaky_relu"]:
    show(name, keras.activations.get(name)(numbers(6) * 4))
layer = L.Dense(2, kernel_regularizer=keras.regularizers.L1L2(0.01, 0.02))
layer(numbers(1, 3))
fill(layer)
show("regularizer", np.array(layer.losses[0]))
