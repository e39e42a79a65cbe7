"""Prints results of Keras' layers for equal weights and inputs: the numbers in keras.rs, and keras_numbers.txt.

Run as `python keras_numbers.py > keras_numbers.txt`. Weights and inputs are `numbers(shape)`. Each line has the shape, the first elements, and the sum of all magnitudes.
"""

import keras
import numpy as np
import tensorflow as tf

from keras_recorder import L, fill, gradients, numbers, show, trained

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

trained("group_norm", L.GroupNormalization(2), 2, 3, 4, 6)
trained("group_norm plain", L.GroupNormalization(3, center=False, scale=False, epsilon=0.01), 2, 6)
trained("rms_norm", L.RMSNormalization(), 2, 5, 3)
trained("unit_norm", L.UnitNormalization(), 2, 5, 3)
trained("unit_norm axes", L.UnitNormalization(axis=[1, 2]), 2, 5, 3)
layer = L.Normalization()
layer.adapt([numbers(2, 5, 3), numbers(4, 5, 3) + 1])
show("normalization mean", layer.adapt_mean)
show("normalization variance", layer.adapt_variance)
show("normalization", layer(numbers(2, 5, 3)))
inverse = L.Normalization(invert=True)
inverse.adapt([numbers(2, 5, 3), numbers(4, 5, 3) + 1])
show("normalization invert", inverse(numbers(2, 5, 3)))
layer = L.Normalization(axis=None)
layer.adapt(numbers(2, 5, 3))
show("normalization all", layer(numbers(2, 5, 3)))
layer = L.Normalization(mean=[1.0, 2.0, 0.5], variance=[2.0, 0.0, 0.25])
show("normalization given", layer(numbers(2, 5, 3)))
dense = L.Dense(4)
layer = L.SpectralNormalization(dense, power_iterations=3)
layer(numbers(2, 3))
dense.set_weights([numbers(3, 4), numbers(4)])
layer.vector_u.assign(numbers(1, 4))
show("spectral_norm", layer(numbers(2, 3), training=True))
show("spectral_norm kernel", dense.kernel)
show("spectral_norm vector_u", layer.vector_u)

trained("conv1d_transpose", L.Conv1DTranspose(4, 3, strides=2, padding="same"), 2, 5, 3)
trained("conv1d_transpose valid", L.Conv1DTranspose(4, 2, strides=3), 2, 5, 3)
trained("conv2d_transpose", L.Conv2DTranspose(2, 3, strides=2, padding="same", output_padding=0, activation="tanh"), 2, 3, 4, 2)
trained("conv2d_transpose padded", L.Conv2DTranspose(2, (3, 2), strides=(3, 2), output_padding=1, use_bias=False), 2, 3, 4, 2)
trained("conv3d_transpose", L.Conv3DTranspose(2, 2, strides=(1, 2, 1)), 1, 2, 3, 2, 2)
trained("separable_conv1d", L.SeparableConv1D(4, 3, strides=2, depth_multiplier=2, padding="same"), 2, 5, 3)
trained("separable_conv2d", L.SeparableConv2D(3, 2, dilation_rate=2), 2, 5, 4, 2)
trained("depthwise_conv1d", L.DepthwiseConv1D(3, strides=2, depth_multiplier=2), 2, 6, 3)
trained("depthwise_conv1d dilated", L.DepthwiseConv1D(2, dilation_rate=2, padding="same"), 2, 6, 3)
trained("depthwise_conv2d", L.DepthwiseConv2D((2, 3), strides=2, padding="same"), 2, 5, 6, 2)
# TensorFlow's CPU has no gradients of dilated convolutions: those of one with a kernel of zeros in between.
layer = L.Conv1D(2, 5, padding="causal", use_bias=False)
layer(numbers(2, 6, 3))
kernel = np.zeros([5, 3, 2], np.float32)
kernel[::2] = numbers(3, 3, 2)
layer.set_weights([kernel])
x = tf.constant(numbers(2, 6, 3))
with tf.GradientTape() as tape:
    tape.watch(x)
    y = layer(x)
    loss = tf.reduce_sum(y**2)
show("conv1d dilated", y)
by_input, by_kernel = tape.gradient(loss, [x, layer.kernel.value])
show("conv1d dilated d x", by_input, 3)
show("conv1d dilated d 0", by_kernel[::2], 3)
# TensorFlow's CPU has no dilated transposed convolutions: the same with a kernel of zeros in between.
layer = L.Conv2DTranspose(2, 3)
layer(numbers(1, 3, 3, 2))
kernel = np.zeros([3, 3, 2, 2], np.float32)
kernel[::2, ::2] = numbers(2, 2, 2, 2)
layer.set_weights([kernel, numbers(2)])
show("conv2d_transpose dilated", layer(numbers(1, 3, 3, 2)))

trained("simple_rnn", L.SimpleRNN(4), 2, 5, 3)
trained("simple_rnn sequences", L.SimpleRNN(4, return_sequences=True, go_backwards=True, activation="relu"), 2, 5, 3)
trained("lstm backwards", L.LSTM(4, return_sequences=True, go_backwards=True), 2, 5, 3)
trained("gru backwards", L.GRU(4, go_backwards=True), 2, 5, 3)
trained("bidirectional", L.Bidirectional(L.LSTM(2)), 2, 5, 3)
for mode in ["concat", "sum", "mul", "ave"]:
    trained(f"bidirectional {mode}", L.Bidirectional(L.GRU(2, return_sequences=True), merge_mode=mode), 2, 5, 3)
trained("time_distributed", L.TimeDistributed(L.Conv1D(2, 2)), 2, 3, 4, 2)
trained("conv_lstm2d", L.ConvLSTM2D(2, 2, padding="same", strides=2), 2, 3, 4, 5, 2)
trained("conv_lstm1d", L.ConvLSTM1D(2, 3, return_sequences=True, go_backwards=True), 2, 3, 6, 2)

shaping = {
    "up_sampling1d": (L.UpSampling1D(3), (2, 4, 3)),
    "up_sampling2d": (L.UpSampling2D((2, 3)), (2, 3, 4, 2)),
    "up_sampling3d": (L.UpSampling3D((2, 1, 3)), (1, 2, 3, 2, 2)),
    "zero_padding1d": (L.ZeroPadding1D((1, 2)), (2, 4, 3)),
    "zero_padding2d": (L.ZeroPadding2D(((0, 2), (1, 0))), (2, 3, 4, 2)),
    "zero_padding3d": (L.ZeroPadding3D(), (1, 2, 3, 2, 2)),
    "cropping1d": (L.Cropping1D((1, 2)), (2, 4, 3)),
    "cropping2d": (L.Cropping2D(((0, 2), (1, 0))), (2, 3, 4, 2)),
    "cropping3d": (L.Cropping3D(((1, 0), (1, 1), (0, 1))), (1, 2, 3, 2, 2)),
    "repeat_vector": (L.RepeatVector(3), (2, 4)),
    "permute": (L.Permute((3, 1, 2)), (2, 3, 4, 2)),
    "reshape": (L.Reshape((-1, 6)), (2, 3, 4, 2)),
    "flatten": (L.Flatten(), (2, 3, 4, 2)),
    "max_pooling1d": (L.MaxPooling1D(3, strides=2, padding="same"), (2, 5, 3)),
    "max_pooling2d": (L.MaxPooling2D((2, 3), strides=1), (2, 4, 5, 2)),
    "max_pooling3d": (L.MaxPooling3D(2), (1, 4, 4, 2, 2)),
    "average_pooling1d": (L.AveragePooling1D(2), (2, 5, 3)),
    "average_pooling2d": (L.AveragePooling2D(3, strides=2, padding="same"), (2, 4, 5, 2)),
    "average_pooling3d": (L.AveragePooling3D(2, strides=1), (1, 3, 3, 3, 2)),
    "global_max_pooling": (L.GlobalMaxPooling2D(), (2, 4, 5, 2)),
    "global_max_pooling keep": (L.GlobalMaxPooling1D(keepdims=True), (2, 5, 3)),
    "global_average_pooling": (L.GlobalAveragePooling3D(), (1, 3, 3, 3, 2)),
    "global_average_pooling keep": (L.GlobalAveragePooling1D(keepdims=True), (2, 5, 3)),
}
for interpolation in ["bilinear", "bicubic", "lanczos3", "lanczos5"]:
    shaping[f"up_sampling2d {interpolation}"] = (L.UpSampling2D((2, 3), interpolation=interpolation), (2, 3, 4, 2))
for name, (layer, shape) in shaping.items():
    trained(name, layer, *shape)

A = keras.activations
activations = {
    "celu": lambda x: A.celu(x, 1.5), "gelu_tanh": lambda x: A.gelu(x, approximate=True), "hard_silu": A.hard_silu,
    "mish": A.mish, "squareplus": lambda x: A.squareplus(x, 3), "sparse_plus": A.sparse_plus,
    "hard_sigmoid": A.hard_sigmoid, "sparse_sigmoid": A.sparse_sigmoid, "log_sigmoid": A.log_sigmoid,
    "hard_tanh": A.hard_tanh, "tanh_shrink": A.tanh_shrink, "soft_shrink": lambda x: A.soft_shrink(x, 0.7),
    "hard_shrink": lambda x: A.hard_shrink(x, 0.7), "threshold": lambda x: A.threshold(x, 0.3, -2.0),
    "softsign": A.softsign, "exponential": A.exponential, "glu": A.glu, "log_softmax": A.log_softmax,
    "softmax": A.softmax,
    "layer relu": L.ReLU(max_value=1.5, negative_slope=0.1, threshold=0.3), "layer relu6": L.ReLU(6.0),
    "layer relu slope": L.ReLU(negative_slope=0.2), "layer elu": L.ELU(0.5), "layer softmax": L.Softmax(axis=[1, 2]),
    "layer softmax axis": L.Softmax(axis=1),
}
for name, f in activations.items():
    gradients(name, f, numbers(2, 3, 4) * 4, [])
show("layer softmax masked", L.Softmax()(numbers(2, 3, 4), mask=numbers(2, 3, 4) > 0))
trained("prelu", L.PReLU(shared_axes=[1]), 2, 3, 4)

a, b, c = numbers(2, 3, 4), numbers(2, 3, 4)[::-1, :, ::-1] + 0.3, numbers(2, 4)
for name, merge in {"add": L.Add, "multiply": L.Multiply, "average": L.Average, "maximum": L.Maximum, "minimum": L.Minimum}.items():
    show(f"merge {name}", merge()([a, b, c]))
show("merge subtract", L.Subtract()([a, c]))
show("merge concatenate", L.Concatenate(axis=1)([a, b]))
show("merge dot", L.Dot(axes=(2, 2))([a, b]))
show("merge dot first", L.Dot(axes=1)([a, b]))
show("merge dot vector", L.Dot(axes=(1, 2))([c, a]))
show("merge dot vectors", L.Dot(axes=-1)([c, c + 1]))
show("merge cosine", L.Dot(axes=(3, 1), normalize=True)([numbers(2, 3, 2, 4), numbers(2, 4, 5)]))
layer = L.ActivityRegularization(l1=0.1, l2=0.2)
layer(a)
show("activity", layer.losses[0])


def attention(name, layer, x, *masks, **kwargs):
    f = (lambda x: layer(x, x, **kwargs)) if isinstance(layer, (L.GroupQueryAttention, L.MultiHeadAttention)) else (lambda x: layer([x, x], *masks, **kwargs))
    f(x)
    fill(layer)
    gradients(name, f, x, layer.trainable_weights)


x = numbers(2, 5, 3)
masks = [np.arange(10).reshape(2, 5) % 3 > 0, np.arange(10).reshape(2, 5) % 4 != 2]
attention("attention", L.Attention(), x)
attention("attention scale", L.Attention(use_scale=True), x)
attention("attention concat", L.Attention(use_scale=True, score_mode="concat"), x, masks)
attention("attention causal", L.Attention(), x, masks, use_causal_mask=True)
attention("attention additive", L.AdditiveAttention(), x, masks)
attention("attention unscaled", L.AdditiveAttention(use_scale=False), x, use_causal_mask=True)
attention("attention grouped", L.GroupQueryAttention(3, 4, 2), x)
attention("attention windowed", L.GroupQueryAttention(3, 4, 1, use_bias=False, use_gate=True, sliding_window=2), x, use_causal_mask=True)
attention("attention masked", L.GroupQueryAttention(2, 2, 2), x, attention_mask=masks[1][:, None, :])

words = np.array([["b", "zz", "a"], ["a", "", "a"]])
categories = np.array([[1, 3, 1], [0, 7, 2]])
for mode in ["one_hot", "multi_hot", "count"]:
    show(f"category {mode}", L.CategoryEncoding(4, output_mode=mode)(categories))
    show(f"category {mode} volume", L.CategoryEncoding(4, output_mode=mode)(categories[:, None]))
    show(f"category {mode} vector", L.CategoryEncoding(4, output_mode=mode)(categories[0]))
    show(f"lookup {mode}", L.StringLookup(vocabulary=["a", "b", "c"], mask_token="", output_mode=mode)(words))
    show(f"hashing {mode}", L.Hashing(5, output_mode=mode)(words))
    show(f"discretization {mode}", L.Discretization([-0.2, 0.1], output_mode=mode)(numbers(2, 3)))
show("category weighted", L.CategoryEncoding(4, output_mode="count")(categories, count_weights=numbers(2, 3)))
show("hashing", L.Hashing(7)(words))
show("hashing integers", L.Hashing(7, mask_value=3)(categories))
show("hashing salted", L.Hashing(7, salt=[3, 5], mask_value="a")(words))
show("discretization", L.Discretization([-0.2, 0.1])(numbers(2, 3)))
layer = L.Discretization(num_bins=5, epsilon=0.02)
layer.adapt([numbers(40, 5) ** 2, numbers(30, 7) + 0.3])
show("discretization adapted", np.array(layer.bin_boundaries))
show("lookup", L.StringLookup(vocabulary=["a", "b", "c"])(words))
show("lookup masked", L.StringLookup(vocabulary=["", "[UNK]", "a", "b"], mask_token="")(words))
show("lookup buckets", L.StringLookup(vocabulary=["a"], num_oov_indices=4)(words))
show("lookup salted", L.StringLookup(vocabulary=["a"], num_oov_indices=4, salt=[3, 5])(words))
show("lookup integers", L.IntegerLookup(vocabulary=[3, 7], num_oov_indices=3, mask_token=0)(categories))
show("lookup padded", L.IntegerLookup(vocabulary=[3, 7], max_tokens=6, pad_to_max_tokens=True, output_mode="count")(categories))
layer = L.StringLookup(output_mode="tf_idf")
layer.adapt(words)
show("lookup adapted", layer(words))
layer = L.StringLookup(vocabulary=["a", "b"], idf_weights=[0.5, 2.0], output_mode="tf_idf")
show("lookup weighted", layer(words))

images = numbers(2, 5, 6, 2)
for name, layer in {
    "rescaling": L.Rescaling(2.0, 0.5), "rescaling channels": L.Rescaling([2.0, 3.0], [0.5, 1.0]),
    "resizing": L.Resizing(3, 4), "resizing larger": L.Resizing(7, 9, interpolation="bicubic"),
    "resizing nearest": L.Resizing(3, 4, interpolation="nearest"),
    "resizing antialias": L.Resizing(3, 4, antialias=True), "resizing lanczos": L.Resizing(3, 4, interpolation="lanczos3", antialias=True),
    "resizing cubic": L.Resizing(3, 4, interpolation="bicubic", antialias=True),
    "resizing crop": L.Resizing(2, 4, crop_to_aspect_ratio=True), "resizing pad": L.Resizing(2, 4, pad_to_aspect_ratio=True, fill_value=0.7),
    "center_crop": L.CenterCrop(2, 3), "center_crop small": L.CenterCrop(8, 3),
}.items():
    show(name, layer(images))
pixels = (np.arange(60) * 37 % 251).reshape(2, 5, 6, 1).astype(np.uint8)
show("resizing bytes", L.Resizing(3, 4)(pixels))
show("resizing image", L.Resizing(3, 4)(images[0]))

texts = np.array(["The cat, the dog -- and a cat!", "", "Über dogs & cafés; the end."])
T = L.TextVectorization
for name, layer in {
    "text": T(), "text short": T(output_sequence_length=4), "text long": T(output_sequence_length=9), "text ngrams": T(ngrams=2),
    "text characters": T(standardize="lower", split="character"), "text kept": T(standardize="strip_punctuation"),
    "text few": T(max_tokens=5), "text multi_hot": T(output_mode="multi_hot"), "text tf_idf": T(output_mode="tf_idf"),
}.items():
    layer.adapt(texts)
    show(name, layer(texts))
show("text vocabulary", T(vocabulary=["the", "cat", "dog"], output_sequence_length=4)(texts))

trained("layer_norm axes", L.LayerNormalization(axis=[-2, -1], epsilon=0.01), 2, 5, 3)
trained("layer_norm plain", L.LayerNormalization(center=False, scale=False), 2, 5, 3)
trained("layer_norm scaled", L.LayerNormalization(center=False), 2, 5, 3)
trained("einsum", L.EinsumDense("abc,cde->abde", output_shape=(None, 4, 2), bias_axes="de", activation="tanh"), 2, 5, 3)
trained("einsum plain", L.EinsumDense("...x,xy->...y", output_shape=4), 2, 5, 3)
attention("attention heads", L.MultiHeadAttention(2, 3, value_dim=4, use_bias=False), numbers(2, 5, 3))
layer = L.BatchNormalization(center=False, scale=False)
show("batch_norm plain", layer(numbers(2, 5, 3), training=True))
