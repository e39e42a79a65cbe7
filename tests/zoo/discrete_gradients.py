"""Makes the case discrete_gradients: ops of floats that TensorFlow has no gradient of, beside some that it has.

Run with TensorFlow 2.21: python discrete_gradients.py FOLDER
"""

import json
import os
import shutil
import sys

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
import numpy as np
import tensorflow as tf

FOLDER = f"{sys.argv[1]}/discrete_gradients"


def function(*shapes):
    return tf.function(input_signature=[tf.TensorSpec(shape) for shape in shapes])


class Model(tf.Module):
    @function([None])
    def dataset(self, x):
        data = tf.data.Dataset.from_tensor_slices(x)
        return x * x + data.reduce(0.0, lambda total, item: total + item)

    @function([4, 1, 3])
    def decoder(self, x):
        return 2.0 * x + tf.nn.ctc_greedy_decoder(x, [4])[1]

    @function([2, 3])
    def concatenation(self, x):
        rows = tf.sparse.from_dense(x)
        return 3.0 * x + tf.reduce_sum(tf.sparse.concat(0, [rows, rows]).values)


def stored(name, value):
    np.save(f"{FOLDER}/io/{name}", value)
    return {"npy": f"io/{name}.npy", "dtype": value.dtype.name, "shape": list(value.shape)}


def main():
    shutil.rmtree(FOLDER, ignore_errors=True)
    os.makedirs(f"{FOLDER}/io")
    tf.saved_model.save(Model(), f"{FOLDER}/model")
    model = tf.saved_model.load(f"{FOLDER}/model")
    random = np.random.RandomState(0)
    calls = []
    for path, shape in [("dataset", [3]), ("decoder", [4, 1, 3]), ("concatenation", [2, 3])]:
        x = tf.constant(random.randn(*shape).astype(np.float32))
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = getattr(model, path)(x)
            total = tf.reduce_sum(y)
        args = [stored(f"{path}_in", x.numpy())]
        call = {"path": path, "args": args, "kwargs": {}}
        calls.append(call | {"kind": "function", "expect": stored(f"{path}_out", y.numpy())})
        expect = {"list": [stored(f"{path}_dx", tape.gradient(total, x).numpy())]}
        calls.append(call | {"kind": "gradient", "variables": [], "order": 1, "expect": expect})
    case = {
        "name": "discrete_gradients",
        "kind": "saved_model",
        "source": "discrete_gradients.py: ops of floats that TensorFlow has no gradient of",
        "features": ["gradients"],
        "tags": ["serve"],
        "calls": calls,
    }
    with open(f"{FOLDER}/case.json", "w") as file:
        json.dump(case, file, indent=1)
        file.write("\n")


main()
