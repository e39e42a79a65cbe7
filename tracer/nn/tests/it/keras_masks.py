"""Prints what Keras' layers, losses and metrics make of masks, and the losses of activities.

Run as `python keras_masks.py > keras_masks.txt`. Lines are those of keras_numbers.txt.
"""

import keras
import numpy as np
import tensorflow as tf

from keras_recorder import L, fill, gradients, numbers, show

mask = np.array([[1, 1, 0, 1, 0], [0, 1, 1, 0, 0]], bool)


def masked(name, layer, x, mask, call=None, **kwargs):
    f = call or (lambda x: layer(x, mask=mask, **kwargs))
    f(x)
    fill(layer)
    gradients(f"mask {name}", f, x, layer.trainable_weights)


x = numbers(2, 5, 3)
for name, make in {"simple_rnn": L.SimpleRNN, "lstm": L.LSTM, "gru": L.GRU}.items():
    masked(name, make(4), x, mask)
    masked(f"{name} sequences", make(4, return_sequences=True), x, mask)
masked("gru backwards", L.GRU(4, go_backwards=True, return_sequences=True), x, mask)
masked("lstm zeros", L.LSTM(4, zero_output_for_mask=True, return_sequences=True), x, mask)
masked("lstm zeros last", L.LSTM(4, zero_output_for_mask=True), x, mask)
state = [numbers(2, 4), numbers(2, 4) + 0.5]
lstm = L.LSTM(4, return_sequences=True, return_state=True)
lstm(x)
fill(lstm)
for name, y in zip(["results", "output", "memory"], lstm(x, mask=np.array([mask[0], [False] * 5]), initial_state=state)):
    show(f"mask state {name}", y)
masked("bidirectional", L.Bidirectional(L.LSTM(2)), x, mask)
masked("bidirectional sequences", L.Bidirectional(L.GRU(2, return_sequences=True)), x, mask)
masked("conv_lstm1d", L.ConvLSTM1D(2, 3, return_sequences=True), numbers(2, 5, 6, 2), mask)
steps = np.arange(24).reshape(2, 3, 4) % 3 > 0
masked("time_distributed", L.TimeDistributed(L.GRU(2)), numbers(2, 3, 4, 2), steps)
masked("batch_norm", L.BatchNormalization(momentum=0.9), x, mask, training=True)
layer = L.BatchNormalization(momentum=0.9)
layer(x, mask=mask, training=True)
show("mask batch_norm mean", layer.moving_mean)
show("mask batch_norm variance", layer.moving_variance)
masked("pooling", L.GlobalAveragePooling1D(), x, mask)
masked("pooling keep", L.GlobalAveragePooling1D(keepdims=True), x, mask)
masked("softmax", L.Softmax(), numbers(2, 5), mask)
layer = L.MultiHeadAttention(2, 3)


def attend(x):
    x = tf.identity(x)
    keras.src.backend.set_keras_mask(x, tf.constant(mask))
    return layer(x, x)


masked("heads", layer, x, mask, attend)
grouped = L.GroupQueryAttention(3, 4, 2)
masked("grouped", grouped, x, mask, lambda x: grouped(x, x, query_mask=mask, value_mask=mask))
for name, layer in {"dot": L.Attention(use_scale=True), "additive": L.AdditiveAttention()}.items():
    masked(name, layer, x, mask, lambda x: layer([x, x], mask=[mask, mask]))

words = np.array([[3, 5, 0, 2], [1, 0, 0, 0]])
model = keras.Sequential([
    keras.Input([4], dtype="int32"), L.Embedding(6, 3, mask_zero=True), L.LSTM(4, return_sequences=True), L.Dropout(0.5),
    L.LayerNormalization(), L.Dense(2, activation="tanh"),
])
fill(model)
y = model(words)
show("mask model", y)
targets, weights = numbers(2, 4, 2) + 0.3, np.array([0.5, 2.0], np.float32)
show("mask loss", keras.losses.MeanSquaredError()(targets, y))
show("mask loss weighted", keras.losses.MeanSquaredError()(targets, y, weights[:, None]))
metric = keras.metrics.MeanSquaredError()
metric.update_state(targets, y)
metric.update_state(targets + 1, y, weights[:, None])
show("mask metric", metric.result())
with tf.GradientTape() as tape:
    loss = keras.losses.MeanSquaredError()(targets, model(words))
for i, g in enumerate(tape.gradient(loss, [w.value for w in model.trainable_weights])):
    show(f"mask loss d {i}", tf.convert_to_tensor(g), 3)
padded = np.where(mask[..., None], x, -1.0)
layer = L.Masking(-1.0)
show("mask masking", layer(padded))
show("mask masking mask", np.asarray(layer.compute_mask(padded), np.float32))
model = keras.Sequential([L.Dense(3), L.ActivityRegularization(l1=0.1, l2=0.2), L.Dense(2, activity_regularizer=keras.regularizers.L2(0.3))])
model(x[0])
fill(model)
model(x[0])
show("activity losses", np.array(model.losses))


def with_mask(x, mask):
    x = tf.constant(x)
    if mask is not None:
        keras.src.backend.set_keras_mask(x, tf.constant(mask))
    return x


a, b = numbers(2, 5, 3), numbers(2, 5, 3)[::-1, :, ::-1] + 0.3
other = np.array([[0, 1, 0, 0, 1], [0, 0, 1, 1, 0]], bool)
merging = {
    "add": L.Add, "subtract": L.Subtract, "multiply": L.Multiply, "average": L.Average, "maximum": L.Maximum,
    "minimum": L.Minimum, "concatenate": lambda: L.Concatenate(axis=1), "concatenate last": L.Concatenate,
}
for name, merge in merging.items():
    for kind, masks in {"both": [mask, other], "first": [mask, None], "second": [None, other]}.items():
        y = merge()([with_mask(a, masks[0]), with_mask(b, masks[1])])
        show(f"merge {name} {kind}", y)
        y_mask = keras.src.backend.get_keras_mask(y)
        show(f"merge {name} {kind} mask", np.float32(-1) if y_mask is None else np.asarray(y_mask, np.float32), 20)
