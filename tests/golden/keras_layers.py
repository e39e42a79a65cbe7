"""Writes `keras_layers` with Keras: checkpoints of networks, an input of each, and what they give for it.

python keras_layers.py
"""

import json
import os
import pathlib

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
import keras
import numpy as np
import tensorflow as tf

L = keras.layers
folder = pathlib.Path(__file__).parent / "keras_layers"
keras.utils.set_random_seed(3)


def write(name, model, x):
    # Averages and biases are to differ from their first values.
    for variable in model.variables:
        if "seed" not in variable.path:
            variable.assign(variable + keras.random.uniform(variable.shape, 0.1, 0.4))
    y = model(x)
    tf.train.Checkpoint(model=model).write(str(folder / name))
    values = {"x": x.reshape(-1).tolist(), "y": np.asarray(y).reshape(-1).tolist()}
    (folder / f"{name}.json").write_text(json.dumps(values) + "\n")


def numbers(*shape):
    return (np.arange(np.prod(shape)) % 7 / 4 - 1).astype(np.float32).reshape(shape)


images = keras.Sequential([
    keras.Input([4, 4, 2]), L.Conv2D(3, 3, padding="same"), L.BatchNormalization(), L.ReLU(),
    L.DepthwiseConv2D(2), L.Flatten(), L.LayerNormalization(), L.Dropout(0.5), L.Dense(2),
])
write("images", images, numbers(2, 4, 4, 2))
sequences = keras.Sequential([
    keras.Input([3], dtype="int32"), L.Embedding(5, 2), L.LSTM(3, return_sequences=True), L.GRU(2),
])
write("sequences", sequences, np.array([[0, 4, 2], [1, 1, 3]], np.int32))

# An optimizer with a loss scale, after a step that counted, one that did not, and one that did.
w = keras.Variable([1.0, -2.0], name="w")
optimizer = keras.optimizers.LossScaleOptimizer(
    keras.optimizers.SGD(0.5, momentum=0.9), initial_scale=8.0, dynamic_growth_steps=9
)
optimizer.build([w])


def step(gradient):
    scale = optimizer.scale_loss(tf.constant(1.0))
    optimizer.apply([tf.constant(gradient) * scale], [w])


for gradient in [[1.0, 2.0], [np.inf, 1.0], [0.5, 0.5]]:
    step(gradient)
tf.train.Checkpoint(w=w, optimizer=optimizer).write(str(folder / "loss_scale"))
step([2.0, -1.0])
(folder / "loss_scale.json").write_text(json.dumps({"w": w.numpy().tolist()}) + "\n")
