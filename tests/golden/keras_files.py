"""Writes tests/golden/keras_files with Keras 3: an archive, an `.h5` file as Keras 2 writes them, weights
of two bytes, and the same numbers as NumPy arrays.

    python tests/golden/keras_files.py tests/golden/keras_files
"""

import sys

import keras
import numpy as np

folder = sys.argv[1]
keras.utils.set_random_seed(5)
layers = [keras.layers.Dense(3, activation="relu"), keras.layers.BatchNormalization(), keras.layers.Dense(2)]
small = keras.Sequential([keras.Input((4,)), *layers], name="small")
small.compile("sgd", "mse")
small.fit(np.ones((2, 4)), np.ones((2, 2)), verbose=0)
small.save(f"{folder}/small.keras")
small.save(f"{folder}/small.h5")
arrays = {weight.path.replace("/", "."): weight.numpy() for weight in small.weights}

half = keras.Sequential([keras.Input((2,)), keras.layers.Dense(2, dtype=keras.DTypePolicy("bfloat16"))], name="half")
half.save_weights(f"{folder}/half.weights.h5")
arrays["half.kernel"] = np.array(keras.ops.cast(half.weights[0], "float32"))
np.savez(f"{folder}/arrays.npz", **arrays)

keras.utils.set_random_seed(6)
words = keras.Sequential(
    [
        keras.Input((5,)),
        keras.layers.Embedding(7, 4),
        keras.layers.Bidirectional(keras.layers.LSTM(3, return_sequences=True)),
        keras.layers.Dropout(0.5, seed=3),
        keras.layers.GRU(2),
        keras.layers.Dense(1),
    ]
)
words.save(f"{folder}/words.keras")
ids = np.array([[1, 2, 3, 4, 5], [6, 0, 1, 0, 2]], np.int32)
arrays |= {"words.ids": ids, "words.answers": words(ids).numpy()}
np.savez(f"{folder}/arrays.npz", **arrays)
