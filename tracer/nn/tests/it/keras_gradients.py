"""Prints results of Keras' layers, with gradients by input and weights, that the other programs leave out.

Run as `python keras_gradients.py > keras_gradients.txt`. Lines are those of keras_numbers.txt.
"""

import keras
import numpy as np
import tensorflow as tf

from keras_recorder import L, fill, gradients, numbers, show, trained


def gradient(name, layer, *shape, **kwargs):
    trained(f"gradient {name}", layer, *shape, **kwargs)


gradient("dense", L.Dense(4, activation="gelu"), 2, 5, 3)
gradient("lstm", L.LSTM(4), 2, 5, 3)
gradient("gru", L.GRU(4), 2, 5, 3)
gradient("layer_norm", L.LayerNormalization(), 2, 5, 3)
gradient("conv1d", L.Conv1D(4, 2, strides=2, activation="tanh"), 2, 5, 3)
gradient("conv2d", L.Conv2D(4, 3, strides=2, padding="same"), 2, 6, 6, 2)
gradient("conv3d", L.Conv3D(3, 2), 1, 3, 4, 3, 2)
gradient("conv_lstm3d", L.ConvLSTM3D(2, 2, padding="same"), 1, 2, 3, 2, 3, 2)
gradient("batch_norm", L.BatchNormalization(), 2, 6, 3)
norm = L.BatchNormalization()
norm(numbers(2, 6, 3))
norm.set_weights([numbers(3) + 2, numbers(3), numbers(3), numbers(3) + 2])
gradients("gradient batch_norm inference", norm, numbers(2, 6, 3), norm.trainable_weights)
gradient("rescaling", L.Rescaling(2.0, 0.5), 2, 4, 3)
gradient("center_crop", L.CenterCrop(2, 3), 2, 5, 6, 2)
gradient("resizing", L.Resizing(3, 4), 2, 5, 6, 2)
gradient("normalization", L.Normalization(mean=[1.0, 2.0, 0.5], variance=[2.0, 0.5, 0.25]), 2, 5, 3)
heads = L.MultiHeadAttention(2, 3)
x = numbers(2, 5, 3)
heads(x, x)
fill(heads)
gradients("gradient heads", lambda x: heads(x, x), x, heads.trainable_weights)
causal = L.MultiHeadAttention(2, 3)
causal(x, x)
fill(causal)
gradients("gradient heads causal", lambda x: causal(x, x, use_causal_mask=True), x, causal.trainable_weights)
dense = L.Dense(4)
norm = L.SpectralNormalization(dense, power_iterations=3)
norm(numbers(2, 3))
dense.set_weights([numbers(3, 4), numbers(4)])
norm.vector_u.assign(numbers(1, 4))
gradients("gradient spectral_norm", norm, numbers(2, 3), dense.trainable_weights)
embedding = L.Embedding(7, 3)
embedding(np.array([[1]]))
fill(embedding)
with tf.GradientTape() as tape:
    loss = tf.reduce_sum(embedding(np.array([[0, 6], [3, 3]])) ** 2)
by = tape.gradient(loss, embedding.embeddings.value)
show("gradient embedding d 0", tf.convert_to_tensor(by), 9)
a, b, c = numbers(2, 3, 4), numbers(2, 3, 4)[::-1, :, ::-1] + 0.3, numbers(2, 4)
merges = {
    "add": lambda x: L.Add()([x, b, c]), "subtract": lambda x: L.Subtract()([x, c]), "multiply": lambda x: L.Multiply()([x, b, c]),
    "average": lambda x: L.Average()([x, b, c]), "maximum": lambda x: L.Maximum()([x, b, c]), "minimum": lambda x: L.Minimum()([x, b, c]),
    "concatenate": lambda x: L.Concatenate(axis=1)([x, b]), "dot": lambda x: L.Dot(axes=(2, 2))([x, b]),
    "cosine": lambda x: L.Dot(axes=(2, 2), normalize=True)([x, b]),
}
for name, f in merges.items():
    gradients(f"gradient {name}", f, a, [])
gradient("adaptive average", L.AdaptiveAveragePooling1D(3), 2, 7, 3)
gradient("adaptive average images", L.AdaptiveAveragePooling2D((2, 3)), 2, 5, 6, 2)
gradient("adaptive average volumes", L.AdaptiveAveragePooling3D((2, 1, 3)), 1, 3, 4, 5, 2)
gradient("adaptive max", L.AdaptiveMaxPooling1D(2), 2, 5, 3)
gradient("adaptive max images", L.AdaptiveMaxPooling2D((4, 2)), 2, 6, 5, 2)
gradient("adaptive max volumes", L.AdaptiveMaxPooling3D(2), 1, 3, 4, 5, 2)
numbers_of = np.array([[0, 6], [3, 3]])
for name, tied in {"tied": True, "untied": False}.items():
    layer = L.ReversibleEmbedding(7, 3, tie_weights=tied, logit_soft_cap=None if tied else 0.5)
    layer(numbers_of)
    fill(layer)
    gradients(f"gradient reversed {name}", lambda x: layer(x, reverse=True), numbers(2, 5, 3), layer.trainable_weights[-1:])
    show(f"reversible {name}", layer(numbers_of))
crossing = L.HashedCrossing(7)
show("crossing", crossing([np.array(["A", "B", "A", "C"]), np.array([101, 101, 101, 102])]))
show("crossing texts", crossing([np.array([["A"], ["B"]]), np.array([["x"], ["y"]]), np.array([["u"], ["u"]])]))
show("crossing scalar", crossing([np.array(5), np.array(7)]))
show("crossing one_hot", L.HashedCrossing(4, output_mode="one_hot")([np.array([[1], [2]]), np.array([[3], [3]])]))
