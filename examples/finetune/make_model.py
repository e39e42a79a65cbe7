"""Writes the model of the example with Keras: a network that reads the digits 0 to 4, and what it sees in an image.

The SavedModel beside this file has the function `features`, `[n, 8, 8, 1]` → `[n, 128]`, and the variables it uses.
"""

import pathlib
import sys

import keras
import tensorflow as tf

folder = pathlib.Path(__file__).parent
sys.path.append(str(folder))
from keras_finetune import BATCH, digits  # noqa: E402

keras.utils.set_random_seed(0)
images, labels = digits(range(5))
features = keras.Sequential([
    keras.Input([8, 8, 1]),
    keras.layers.Conv2D(16, 3, padding="same", activation="relu", name="first"),
    keras.layers.MaxPooling2D(2),
    keras.layers.Conv2D(32, 3, padding="same", activation="relu", name="second"),
    keras.layers.MaxPooling2D(2),
    keras.layers.Flatten(),
])
model = keras.Sequential([features, keras.layers.Dense(5)])
loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
model.compile(keras.optimizers.Adam(2e-3), loss, metrics=["accuracy"])
model.fit(images, labels, batch_size=BATCH, epochs=15, verbose=2)

archive = keras.export.ExportArchive()
archive.track(features)
spec = tf.TensorSpec([None, 8, 8, 1], tf.float32, name="images")
archive.add_endpoint("features", lambda images: features(images, training=False), [spec])
archive.write_out(str(folder / "model"))
