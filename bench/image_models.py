#!/usr/bin/env python3
"""Models that are not among the rows `infer.*`, and how long TensorFlow and OpenVINO take for them.

    image_models.py make FOLDER [NAME ...]                     writes the models
    image_models.py time ENGINE FOLDER [NAME ...] [--batch N]  a line for each: the least time of its calls in ms

`make` and the engine `tensorflow` need tensorflow-cpu and Keras 3, the engine `openvino` the package of that name. Weights
are random. `FOLDER/NAME` is a SavedModel with the input `x`, `FOLDER/NAME.pb` the same as a GraphDef with the weights in
it, which OpenVINO reads, `FOLDER/NAME.npy` an element of a batch. The other side is
`ferroflow run FOLDER/NAME --inputs x=FOLDER/NAME.npy --threads 1 --repeat N`.
"""

import os
import sys
import time

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
os.environ["KERAS_BACKEND"] = "tensorflow"
os.environ["CUDA_VISIBLE_DEVICES"] = "-1"
import numpy as np

APPLICATIONS = ["EfficientNetB0", "DenseNet121", "NASNetMobile", "ConvNeXtTiny", "MobileNetV3Small", "InceptionV3"]


def application(name):
    import keras

    model = getattr(keras.applications, name)(weights=None)
    return model, [size or 224 for size in model.input_shape[1:]], "float32"


def distilbert(size=256, width=768, heads=12, blocks=6):
    """Six post-norm blocks of a transformer on tokens."""
    import keras
    from keras import layers as L

    tokens = L.Input([size], dtype="int32")
    x = L.LayerNormalization()(L.Embedding(30522, width)(tokens) + L.Embedding(size, width)(np.arange(size)[None]))
    for _ in range(blocks):
        x = L.LayerNormalization()(x + L.MultiHeadAttention(heads, width // heads)(x, x))
        x = L.LayerNormalization()(x + L.Dense(width)(L.Dense(4 * width, activation="gelu")(x)))
    return keras.Model(tokens, L.Dense(2)(x[:, 0])), [size], "int32"


def unet(width=32):
    """Three levels down and up, with transposed convolutions."""
    import keras
    from keras import layers as L

    def block(x, filters):
        for _ in range(2):
            x = L.ReLU()(L.BatchNormalization()(L.Conv2D(filters, 3, padding="same")(x)))
        return x

    image, levels = L.Input([128, 128, 3]), []
    x = image
    for level in range(3):
        levels.append(block(x, width << level))
        x = L.MaxPool2D()(levels[-1])
    x = block(x, width << 3)
    for level in (2, 1, 0):
        x = L.Conv2DTranspose(width << level, 2, strides=2, padding="same")(x)
        x = block(L.Concatenate()([x, levels[level]]), width << level)
    return keras.Model(image, L.Conv2D(4, 1, activation="softmax")(x)), [128, 128, 3], "float32"


def gru(size=64):
    """A bidirectional GRU, a convolution and a maximum over time."""
    import keras
    from keras import layers as L

    tokens = L.Input([None], dtype="int32")
    x = L.Bidirectional(L.GRU(128, return_sequences=True))(L.Embedding(5000, 128)(tokens))
    x = L.GlobalMaxPooling1D()(L.Conv1D(128, 5, activation="relu")(x))
    return keras.Model(tokens, L.Dense(5)(x)), [size], "int32"


MODELS = {"distilbert": distilbert, "unet": unet, "gru": gru}
MODELS.update({name.lower(): lambda name=name: application(name) for name in APPLICATIONS})


def make(folder, names):
    import keras
    import tensorflow as tf
    from tensorflow.python.framework.convert_to_constants import convert_variables_to_constants_v2

    os.makedirs(folder, exist_ok=True)
    for name in names or MODELS:
        keras.utils.set_random_seed(1)
        module = tf.Module()
        module.model, dims, dtype = MODELS[name]()
        spec = tf.TensorSpec([None, *dims], dtype, name="x")
        signature = tf.function(lambda x: {"y": module.model(x, training=False)}).get_concrete_function(x=spec)
        tf.saved_model.save(module, f"{folder}/{name}", signatures=signature)
        loaded = tf.saved_model.load(f"{folder}/{name}")  # Variables live as long as it does.
        frozen = convert_variables_to_constants_v2(loaded.signatures["serving_default"])
        with open(f"{folder}/{name}.pb", "wb") as file:
            file.write(frozen.graph.as_graph_def().SerializeToString())
        random = np.random.default_rng(0)
        x = random.integers(0, 5000, [1, *dims]) if dtype == "int32" else random.random([1, *dims])
        np.save(f"{folder}/{name}.npy", x.astype(dtype))


def tensorflow(path, x):
    import tensorflow as tf

    tf.config.threading.set_intra_op_parallelism_threads(1)
    tf.config.threading.set_inter_op_parallelism_threads(1)
    loaded = tf.saved_model.load(path)
    call, x = loaded.signatures["serving_default"], tf.constant(x)
    return lambda: (loaded, call(x=x)["y"].numpy())


def openvino(path, x):
    import openvino as ov

    core = ov.Core()
    model = core.read_model(path + ".pb")
    model.reshape({model.inputs[0]: list(x.shape)})
    settings = {"INFERENCE_NUM_THREADS": 1, "PERFORMANCE_HINT": "LATENCY", "INFERENCE_PRECISION_HINT": "f32"}
    request = core.compile_model(model, "CPU", settings).create_infer_request()
    return lambda: request.infer([x])


def measure(engine, folder, names, batch):
    for name in names or MODELS:
        x = np.repeat(np.load(f"{folder}/{name}.npy"), batch, 0)
        call = {"tensorflow": tensorflow, "openvino": openvino}[engine](f"{folder}/{name}", x)
        times, start = [], time.perf_counter()
        while len(times) < 5 or time.perf_counter() - start < 3:
            before = time.perf_counter()
            call()
            times.append(time.perf_counter() - before)
        print(f"{name}: {1e3 * min(times):.3f} ms", flush=True)


if __name__ == "__main__":
    command, *args = sys.argv[1:]
    batch = int(args.pop(args.index("--batch") + 1)) if "--batch" in args else 1
    args = [arg for arg in args if arg != "--batch"]
    if command == "make":
        make(args[0], args[1:])
    else:
        measure(args[0], args[1], args[2:], batch)
