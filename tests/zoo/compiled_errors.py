"""Makes the cases xla_total, xla_order and xla_complex: functions compiled by XLA, with elements for which TensorFlow's own kernels give errors,
another order or another side of a cut.

Run with TensorFlow 2.21: python compiled_errors.py FOLDER
"""

import numpy as np
import tensorflow as tf
from dataset_models import case

ROWS, INDICES = tf.TensorSpec([4, 3]), tf.TensorSpec([5], tf.int32)


def compiled(*specs):
    return tf.function(input_signature=specs, jit_compile=True)


class Total(tf.Module):
    def __init__(self):
        self.table = tf.Variable(np.arange(12, dtype=np.float32).reshape(4, 3))

    @compiled(ROWS, INDICES)
    def reads(self, x, i):
        pairs = tf.stack([i, i[::-1]], 1)
        batches = tf.reshape(tf.concat([i, i[:3]], 0), [4, 2])
        return [tf.gather(x, i), tf.gather(x, i, axis=1), tf.gather(x, batches, batch_dims=1), tf.gather_nd(x, pairs), tf.gather_nd(x, i[:, None]), tf.nn.embedding_lookup(self.table, i)]

    @compiled(ROWS, INDICES)
    def writes(self, x, i):
        rows = tf.concat([x, x[:1]], 0)
        places = i[:, None]
        scatters = (tf.tensor_scatter_nd_update, tf.tensor_scatter_nd_add, tf.tensor_scatter_nd_sub, tf.tensor_scatter_nd_max, tf.tensor_scatter_nd_min)
        segments = (tf.math.unsorted_segment_sum, tf.math.unsorted_segment_max, tf.math.unsorted_segment_min, tf.math.unsorted_segment_prod)
        once = tf.constant([[9], [1], [-2], [4], [0]])
        return [tf.scatter_nd(places, rows, [4, 3])] + [f(x, once, rows * 3) for f in scatters] + [f(rows, i, 3) for f in segments]

    @compiled(INDICES, INDICES)
    def integers(self, a, b):
        quotients = [a // b, a % b, tf.truncatediv(a, b), tf.raw_ops.Div(x=a, y=b), tf.raw_ops.TruncateMod(x=a, y=b), tf.cast(a, tf.uint8) // tf.cast(b, tf.uint8)]
        by = b * 17
        unsigned = tf.cast(a, tf.uint32)
        kinds = tf.int8, tf.int32, tf.int64
        powers = [tf.cast(tf.cast(x, kind) ** tf.cast(y, kind), tf.int32) for kind in kinds for x, y in ((a, b), (b, a), (tf.ones_like(a), a), (-tf.ones_like(a), a))]
        return quotients + powers + [tf.raw_ops.Reciprocal(x=a), tf.raw_ops.Reciprocal(x=tf.cast(b, tf.int64))] + [tf.bitwise.left_shift(a, by), tf.bitwise.right_shift(a, by), tf.bitwise.right_shift(unsigned, tf.cast(by, tf.uint32))]

    @compiled(ROWS, tf.TensorSpec([4], tf.int32))
    def losses(self, x, labels):
        with tf.GradientTape() as tape:
            tape.watch(x)
            losses = tf.nn.sparse_softmax_cross_entropy_with_logits(labels, x)
        gradient = tape.gradient(losses, x)
        tf.debugging.assert_less(x, -100.0)
        while tf.reduce_sum(losses) < 40.0:
            tf.debugging.Assert(tf.reduce_all(losses > 1e9), [losses])
            losses += 10.0 + tf.zeros_like(losses)
        return losses, gradient, tf.debugging.check_numerics(x / 0.0, "never")


class Order(tf.Module):
    @compiled(ROWS)
    def largest(self, x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            values, order = tf.math.top_k(x, 2)
        narrow = [tf.cast(y, tf.float32) if y.dtype != tf.int32 else y for kind in (tf.bfloat16, tf.float16, tf.float64) for y in tf.math.top_k(tf.cast(x, kind), 3)]
        return [values, order, tape.gradient(values, x), tf.sort(x), tf.argsort(x, direction="DESCENDING"), *narrow]

    @compiled(ROWS)
    def found(self, x):
        rows = tf.cumsum(tf.ones([4, 5]), axis=1)
        return tf.searchsorted(rows, x), tf.searchsorted(rows, x, side="right")

    @compiled(ROWS)
    def integers(self, x):
        kinds = tf.int8, tf.uint8, tf.int16, tf.uint16, tf.int32, tf.uint32, tf.int64, tf.uint64
        return [tf.cast(tf.cast(y, kind), tf.int64) for y in (x, tf.cast(x, tf.float64), tf.cast(x, tf.bfloat16)) for kind in kinds] + [tf.cast(x, tf.bool)]


class ComplexNumbers(tf.Module):
    @compiled(tf.TensorSpec([6], tf.complex64), tf.TensorSpec([6], tf.complex64))
    def functions(self, x, y):
        wide = tf.cast(x, tf.complex128)
        return x**y, wide ** tf.cast(y, tf.complex128), tf.math.rsqrt(x + y), tf.math.rsqrt(wide - 1), tf.sqrt(x), tf.exp(x), tf.tanh(y), tf.math.log(x + 5)


if __name__ == "__main__":
    random = np.random.RandomState(0)
    x = random.randn(4, 3).astype(np.float32)
    i = np.array([2, 9, -1, 0, 3], np.int32)
    a, b = np.array([7, -7, 0, 5, -9], np.int32), np.array([0, 0, 0, -2, 2], np.int32)
    case("xla_total", "compiled functions with indices out of range and divisions by zero", Total(), [("reads", x, i), ("writes", x, i), ("integers", a, b), ("losses", x, np.array([1, 3, -1, 0], np.int32))])
    signed = np.array([[0.0, -0.0, 0.0], [-0.0, 0.0, -0.0], [np.nan, 1.5, -np.nan], [2.0, -np.nan, np.inf]], np.float32)
    large = np.array([[3e9, -3e9, 300.7], [-1.5, -200.0, 1e20], [np.nan, np.inf, -np.inf], [65536.0, -0.7, 127.9]], np.float32)
    calls = [("largest", x), ("largest", signed), ("found", x * 3), ("found", signed), ("integers", large)]
    case("xla_order", "compiled functions that order zeros and NaN by their signs, and cast to the nearest integer", Order(), calls)
    z = np.array([0, 0, 2j, -1 - 1e-20j, -4, 3 + 4j], np.complex64)
    w = np.array([0, 2, 0, 0.5, -1e-20j, 1 - 2j], np.complex64)
    case("xla_complex", "compiled functions of complex numbers at zero and at cuts", ComplexNumbers(), [("functions", z, w)])
