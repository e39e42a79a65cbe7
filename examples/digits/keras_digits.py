"""The same network on the same data in Keras, to compare with: prints the accuracy on the last 360 digits."""

import gzip
import pathlib

import keras
import numpy as np


def read_idx(path):
    data = gzip.decompress(path.read_bytes())
    shape = np.frombuffer(data, ">u4", data[3], 4)
    return np.frombuffer(data, np.uint8, offset=4 + 4 * data[3]).reshape(shape)


folder = pathlib.Path(__file__).parent
x = read_idx(folder / "images.idx3.gz").astype(np.float32)[..., None] / 16
y = read_idx(folder / "labels.idx1.gz").astype(np.int32)
accuracies = []
for seed in range(9):
    keras.utils.set_random_seed(seed)
    model = keras.Sequential([
        keras.layers.Conv2D(16, 3, padding="same", activation="relu"),
        keras.layers.MaxPooling2D(2),
        keras.layers.Conv2D(32, 3, padding="same", activation="relu"),
        keras.layers.MaxPooling2D(2),
        keras.layers.Flatten(),
        keras.layers.Dense(10),
    ])
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(keras.optimizers.Adam(2e-3), loss, metrics=["accuracy"])
    model.fit(x[:-360], y[:-360], batch_size=32, epochs=20, verbose=0)
    accuracies.append(model.evaluate(x[-360:], y[-360:], verbose=0)[1])
print("accuracy", *(f"{accuracy:.4f}" for accuracy in accuracies))
