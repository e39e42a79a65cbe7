"""Trains the network of the demo on the digits of `examples/digits` and writes `digits/`, a SavedModel.

The drawings of a page are shifted and tilted more than the forms that the data comes from, so the network sees them
shifted and tilted too.
"""

import gzip
import pathlib
import shutil

import keras
import numpy as np
import tensorflow as tf


def read_idx(path):
    data = gzip.decompress(path.read_bytes())
    shape = np.frombuffer(data, ">u4", data[3], 4)
    return np.frombuffer(data, np.uint8, offset=4 + 4 * data[3]).reshape(shape)


here = pathlib.Path(__file__).parent
data = here.parent.parent / "examples" / "digits"
x = read_idx(data / "images.idx3.gz").astype(np.float32)[..., None] / 16
y = read_idx(data / "labels.idx1.gz").astype(np.int32)
keras.utils.set_random_seed(7)
network = keras.Sequential([
    keras.Input((8, 8, 1)),
    keras.layers.RandomTranslation(0.1, 0.1, fill_mode="constant"),
    keras.layers.RandomRotation(0.04, fill_mode="constant"),
    keras.layers.Conv2D(24, 3, padding="same", activation="relu"),
    keras.layers.Conv2D(24, 3, padding="same", activation="relu"),
    keras.layers.MaxPooling2D(2),
    keras.layers.Conv2D(48, 3, padding="same", activation="relu"),
    keras.layers.Flatten(),
    keras.layers.Dropout(0.3),
    keras.layers.Dense(10, activation="softmax"),
])
network.compile(keras.optimizers.Adam(2e-3), "sparse_categorical_crossentropy", metrics=["accuracy"])
network.fit(x[:-360], y[:-360], batch_size=32, epochs=40, verbose=0)
print("accuracy", network.evaluate(x[-360:], y[-360:], verbose=0)[1])


@tf.function(input_signature=[tf.TensorSpec([None, 8, 8], tf.float32, name="image")])
def read(image):
    return {"probabilities": network(image[..., None], training=False)}


module = tf.Module()
module.variables_ = network.variables
module.read = read
shutil.rmtree(here / "digits", ignore_errors=True)
tf.saved_model.save(module, str(here / "digits"), signatures={"serving_default": read})
