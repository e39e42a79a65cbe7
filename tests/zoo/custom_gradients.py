"""Makes the case custom_gradients: functions with gradients of their own, which the model brings
along, with the gradients TensorFlow gives once it has loaded them.

Run with TensorFlow 2.21: python custom_gradients.py FOLDER
"""

import json
import os
import shutil
import sys

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
import numpy as np
import tensorflow as tf

FOLDER = f"{sys.argv[1]}/custom_gradients"
VECTOR = tf.TensorSpec([None], tf.float32)


class Model(tf.Module):
    def __init__(self):
        self.scale = tf.Variable(2.0, name="scale")

        @tf.custom_gradient
        def clipped(x):
            y = tf.exp(x)
            return y, lambda dy: tf.clip_by_value(dy * y, -1.0, 1.0)

        @tf.custom_gradient
        def pair(a, b):
            return (a * b, a + b), lambda dp, dq: (dp * b * 10.0 + dq, dp * a * 100.0)

        @tf.custom_gradient
        def scaled(x):
            y = x * self.scale.read_value()

            def gradient(dy, variables=None):
                return dy * 3.0 * self.scale, [tf.reduce_sum(dy * x) * 7.0]

            return y, gradient

        self._clipped, self._pair, self._scaled = clipped, pair, scaled

    @tf.function(input_signature=[VECTOR])
    def clip(self, x):
        return self._clipped(x) * 2.0

    @tf.function(input_signature=[VECTOR, VECTOR])
    def two(self, a, b):
        p, q = self._pair(a, b)
        return p + q * q

    @tf.function(input_signature=[VECTOR, VECTOR])
    def one_of_two(self, a, b):
        return self._pair(a, b)[1]

    @tf.function(input_signature=[VECTOR])
    def by_variable(self, x):
        return self._scaled(x)

    @tf.function(input_signature=[VECTOR])
    def nested(self, x):
        return self.clip(self.clip(x) * 0.1)


def stored(name, value):
    np.save(f"{FOLDER}/io/{name}", value)
    return {"npy": f"io/{name}.npy", "dtype": value.dtype.name, "shape": list(value.shape)}


def gradients(model, path, args, variables, order):
    sources = args + [getattr(model, name) for name in variables]
    with tf.GradientTape(persistent=True) as outer:
        outer.watch(args)
        with tf.GradientTape(persistent=True) as inner:
            inner.watch(args)
            target = tf.reduce_sum(getattr(model, path)(*args))
        if order == 2:
            first = inner.gradient(target, args)
            target = tf.add_n([tf.reduce_sum(dx) for dx in first])
    return outer.gradient(target, sources)


def main():
    shutil.rmtree(FOLDER, ignore_errors=True)
    os.makedirs(f"{FOLDER}/io")
    options = tf.saved_model.SaveOptions(experimental_custom_gradients=True)
    tf.saved_model.save(Model(), f"{FOLDER}/model", options=options)
    model = tf.saved_model.load(f"{FOLDER}/model")
    x = tf.constant([-1.0, 0.2, 1.5])
    calls = []
    for path, args, variables, order in [
        ("clip", [x], [], 1),
        ("clip", [x], [], 2),
        ("two", [x, x + 1.0], [], 1),
        ("two", [x, x + 1.0], [], 2),
        ("one_of_two", [x, x + 1.0], [], 1),
        ("by_variable", [x], ["scale"], 1),
        ("by_variable", [x], ["scale"], 2),
        ("nested", [x], [], 1),
        ("nested", [x], [], 2),
    ]:
        name = f"c{len(calls):02}"
        given = [stored(f"{name}_in_{i}", arg.numpy()) for i, arg in enumerate(args)]
        found = gradients(model, path, args, variables, order)
        found = [
            {"py": None} if dx is None else stored(f"{name}_out_{i}", dx.numpy())
            for i, dx in enumerate(found)
        ]
        call = {"kind": "gradient", "path": path, "args": given, "order": order}
        calls.append(call | {"variables": variables, "expect": {"list": found}})
        y = getattr(model, path)(*args)
        call = {"kind": "function", "path": path, "args": given, "kwargs": {}}
        calls.append(call | {"expect": stored(f"{name}_y", y.numpy())})
    case = {
        "name": "custom_gradients",
        "kind": "saved_model",
        "source": "custom_gradients.py: gradients that the model brings along",
        "features": ["gradients"],
        "tags": ["serve"],
        "calls": calls,
    }
    with open(f"{FOLDER}/case.json", "w") as file:
        json.dump(case, file, indent=1)
        file.write("\n")


main()
