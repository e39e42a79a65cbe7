"""Prints what Keras' dtype policies and loss scale make of a network.

Run as `python keras_policies.py > keras_policies.txt`. Lines are those of keras_numbers.txt.
"""

import keras
import numpy as np
import tensorflow as tf

from keras_recorder import L, fill, numbers, show

words = np.array([[3, 5, 0, 2], [1, 0, 4, 1]])
targets = numbers(2, 4, 2) + 0.3
for policy in ["mixed_bfloat16", "mixed_float16"]:
    keras.config.set_dtype_policy(policy)
    model = keras.Sequential([
        keras.Input([4], dtype="int32"), L.Embedding(6, 3), L.LayerNormalization(), L.LSTM(4, return_sequences=True),
        L.Dense(2, activation="tanh"),
    ])
    fill(model)
    y = model(words)
    assert y.dtype == policy[6:], y.dtype
    show(f"{policy} result", tf.cast(y, "float32"))
    with tf.GradientTape() as tape:
        loss = keras.losses.MeanSquaredError()(targets, model(words))
    show(f"{policy} loss", loss)
    for i, g in enumerate(tape.gradient(loss, [w.value for w in model.trainable_weights])):
        show(f"{policy} d {i}", tf.convert_to_tensor(g), 3)
keras.config.set_dtype_policy("float32")
w = keras.Variable([1.0, -2.0])
optimizer = keras.optimizers.LossScaleOptimizer(keras.optimizers.SGD(0.5, momentum=0.9), initial_scale=8.0, dynamic_growth_steps=2)
optimizer.build([w])
for step, gradient in enumerate([[1.0, 2.0], [0.5, 0.5], [np.inf, 1.0], [2.0, -1.0], [np.nan, 0.0]]):
    scale = optimizer.scale_loss(tf.constant(1.0))
    optimizer.apply([tf.constant(gradient) * scale], [w])
    show(f"loss_scale {step}", w.numpy())
    show(f"loss_scale {step} state", [float(optimizer.dynamic_scale), float(optimizer.step_counter)])
