#!/usr/bin/env python3
"""A client of TensorFlow that has a server compute, one of ferroflow or one of TensorFlow.

    python client.py ADDRESS FOLDER...

Each FOLDER is a case of a zoo: its function is called here and on the server, and must give the same.
Prints a line for each thing that is tried, and at last `N of N`.
"""
import json
import os
import sys

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
os.environ["CUDA_VISIBLE_DEVICES"] = ""

import numpy as np
import tensorflow as tf

tf.config.experimental_connect_to_host(sys.argv[1])
REMOTE = "/job:worker/replica:0/task:0/device:CPU:0"
passed = tried = 0


def attempt(name, run):
    """Runs `run` here and there, and compares what it returns. What fails here is not tried there."""
    global passed, tried
    try:
        expected = tf.nest.map_structure(np.asarray, run())
    except Exception:
        return
    tried += 1
    try:
        with tf.device(REMOTE):
            got = run()
            assert all(REMOTE in x.device for x in tf.nest.flatten(got)), "it ran elsewhere"
        for a, b in zip(tf.nest.flatten(expected), tf.nest.flatten(got)):
            if a.dtype.kind in "OSU":
                np.testing.assert_array_equal(a, b.numpy())
            else:
                np.testing.assert_allclose(a, b.numpy(), rtol=1e-5, atol=1e-5)
        passed += 1
        print("pass", name, flush=True)
    except Exception as error:
        print("FAIL", name, type(error).__name__, str(error)[:300].replace("\n", " "), flush=True)


def variable():
    v = tf.Variable([1.0, 2.0])
    v.assign_add([10.0, 20.0])
    return tf.identity(v)


@tf.function
def loop(x):
    for i in tf.range(5):
        x = tf.tanh(x) + tf.cast(i, x.dtype)
    return x, tf.reduce_sum(x)


@tf.function
def nested(x):
    return loop(x)[1] * 2.0


def gradient():
    x = tf.constant([[0.5, -1.0]])
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = tf.reduce_sum(tf.nn.softmax(x) * x)
    return tape.gradient(y, x)


def captured():
    w = tf.Variable(tf.ones([3, 2]))

    @tf.function
    def step(x):
        w.assign_sub(0.1 * tf.transpose(x) @ tf.ones([2, 2]))
        return x @ w

    step(tf.ones([2, 3]))
    return step(tf.ones([2, 3]))


def error():
    try:
        tf.linalg.matmul(tf.ones([2, 3]), tf.ones([2, 3])).numpy()
    except tf.errors.InvalidArgumentError:
        return tf.constant(1.0)
    return tf.constant(0.0)


attempt("add", lambda: tf.constant([1.0, 2.0]) + tf.constant([10.0, 20.0]))
attempt("matmul", lambda: tf.linalg.matmul(tf.ones([64, 32]), tf.ones([32, 8])))
attempt("several outputs", lambda: tf.math.top_k(tf.constant([3.0, 1.0, 2.0]), 2))
attempt("list inputs", lambda: tf.concat([tf.ones([2, 2]), tf.zeros([1, 2])], 0))
attempt("strings", lambda: tf.strings.upper(tf.constant(["a", "bc"])))
attempt("integers", lambda: tf.constant([7, -7]) // tf.constant([2, 2]))
attempt("large", lambda: tf.reshape(tf.range(1 << 20, dtype=tf.float32), [1024, 1024]) + 1.0)
attempt("variable", variable)
attempt("function", lambda: loop(tf.constant([0.1, 0.2])))
attempt("nested function", lambda: nested(tf.constant([0.1, 0.2])))
attempt("gradient", gradient)
attempt("captured variable", captured)
attempt("error", error)


def signatures(folder):
    """The calls of signatures that a case of a zoo records."""
    try:
        case = json.load(open(os.path.join(folder, "case.json")))
    except OSError:
        return
    for call in case.get("calls", []):
        inputs = call.get("kwargs", {})
        is_plain = all("npy" in value for value in inputs.values())
        if call.get("kind") == "signature" and is_plain and not call.get("args"):
            yield call["path"], inputs


def call(folder, path, inputs):
    model = tf.saved_model.load(os.path.join(folder, "model"))
    load = lambda value: tf.constant(np.load(os.path.join(folder, value["npy"])))
    return model.signatures[path](**{name: load(value) for name, value in inputs.items()})


for folder in sys.argv[2:]:
    for path, inputs in signatures(folder):
        attempt(f"{os.path.basename(folder)} {path}", lambda: call(folder, path, inputs))

print(f"{passed} of {tried}", flush=True)
os._exit(0 if passed == tried else 1)
