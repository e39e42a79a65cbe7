"""Writes the SavedModels of this folder with TensorFlow 2.21: python models.py [OUT_DIR]"""
import os
import shutil
import sys

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
import tensorflow as tf

OUT = sys.argv[1] if len(sys.argv) > 1 else os.path.dirname(os.path.abspath(__file__))


def spec(*shape):
    return tf.TensorSpec(shape, tf.float32)


class Small(tf.Module):
    """A variable, a function that calls another, a loop, a branch, and nested arguments."""

    def __init__(self):
        super().__init__()
        self.weight = tf.Variable([[1.0, 2.0], [3.0, 4.0]], name="weight")
        self.count = tf.Variable(0, name="count", trainable=False)

    @tf.function(input_signature=[spec(None, 2)])
    def dense(self, x):
        self.count.assign_add(1)
        return tf.nn.relu(x @ self.weight)

    @tf.function(input_signature=[spec(None, 2), tf.TensorSpec([], tf.int32)])
    def repeat(self, x, times):
        if tf.reduce_sum(x) > 100.0:
            return {"y": x, "size": tf.shape(x)}
        while times > 0:
            x = self.dense(x) / 2.0
            times -= 1
        return {"y": x, "size": tf.shape(x)}

    @tf.function
    def scale(self, pair, factor=2.0, *, negate=False):
        left, right = pair
        return (-left if negate else left) * factor, right


def small():
    model = Small()
    pair = (spec(3), spec(None))
    model.scale.get_concrete_function(pair)
    model.scale.get_concrete_function(pair, factor=spec(), negate=True)
    path = os.path.join(OUT, "small_model")
    tf.saved_model.save(model, path, signatures={"dense": model.dense})
    for part in ("assets", "fingerprint.pb"):
        part = os.path.join(path, part)
        shutil.rmtree(part) if os.path.isdir(part) else os.remove(part)


small()
