"""Makes the case ds_groups: groups of elements that have several components.

Run with TensorFlow 2.21: python dataset_groups.py FOLDER
"""

import numpy as np
import tensorflow as tf
from dataset_models import NUMBERS, D, case, function


def elements(v):
    return D.from_tensor_slices({"key": v, "more": (tf.cast(v, tf.float32) * 0.5, tf.strings.as_string(v))})


def told(data):
    """All components of all elements."""
    start = (tf.zeros([0], tf.int64), tf.zeros([0]), tf.constant(""))

    def step(s, e):
        parts = tf.reshape(e["more"][1], [-1])
        return tf.concat([s[0], tf.reshape(e["key"], [-1])], 0), tf.concat([s[1], tf.reshape(e["more"][0], [-1])], 0), s[2] + "|" + tf.strings.reduce_join(parts, separator=",")

    return data.reduce(start, step)


class Groups(tf.Module):
    @function(NUMBERS)
    def windows(self, v):
        data = elements(v)
        batches = data.group_by_window(lambda e: e["key"] % 2, lambda k, w: w.batch(3), 3)
        keyed = data.group_by_window(lambda e: e["key"] % 3, lambda k, w: w.map(lambda e: {**e, "key": e["key"] + 100 * k}), window_size_func=lambda k: k + 1)
        return told(batches), told(keyed)

    @function(NUMBERS)
    def lengths(self, v):
        data = D.from_tensor_slices(v).map(lambda n: (tf.range(n), n))
        padded = data.bucket_by_sequence_length(lambda row, n: tf.shape(row)[0], [3, 5], [2, 2, 2])
        return padded.reduce(tf.zeros([0], tf.int64), lambda s, e: tf.concat([s, tf.reshape(e[0], [-1]), e[1]], 0))

    @function(NUMBERS)
    def sparse_rows(self, v):
        """Sparse batches, the last of them of one row."""
        rows = D.from_tensor_slices(v).map(lambda n: tf.fill([n], n))
        batches = rows.apply(tf.data.experimental.dense_to_sparse_batch(3, [9]))
        start = (tf.zeros([0], tf.int64), tf.zeros([0, 2], tf.int64), tf.zeros([0], tf.int64))
        return batches.reduce(start, lambda s, e: (tf.concat([s[0], e.values], 0), tf.concat([s[1], e.indices], 0), tf.concat([s[2], e.dense_shape], 0)))


if __name__ == "__main__":
    v = np.array([3, 1, 4, 1, 5, 9, 2, 6])
    case("ds_groups", "windows of keys and lengths, of elements with several components", Groups(), [("windows", v), ("lengths", v), ("windows", v[:0]), ("sparse_rows", v[:4]), ("sparse_rows", v[:1])])
