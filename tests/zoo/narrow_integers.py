"""Makes the case narrow_integers: variables and constants of 4 bits, whose bytes have zeros above those.

Run with TensorFlow 2.21: python narrow_integers.py FOLDER
"""

import ml_dtypes
from dataset_models import case, function, np, tf

INDICES = ([6], tf.int32)
VALUES = np.array([-8, -3, -1, 0, 5, 7], np.int8)


class Narrow(tf.Module):
    def __init__(self):
        self.signed = tf.Variable(VALUES.astype(ml_dtypes.int4))
        self.unsigned = tf.Variable((VALUES + 8).astype(ml_dtypes.uint4))
        # Long enough to be written as bytes.
        self.table = tf.constant(np.tile(VALUES, 20).astype(ml_dtypes.int4))

    @function(INDICES)
    def product(self, x):
        read = [tf.cast(value.read_value(), tf.int32) * x for value in (self.signed, self.unsigned)]
        return read + [tf.cast(self.table, tf.int32), tf.cast(tf.cast(x, self.table.dtype), tf.int32)]

    @function(INDICES)
    def assign(self, x):
        self.signed.assign(tf.cast(x, self.signed.dtype))
        return tf.cast(self.signed.read_value(), tf.int32)


if __name__ == "__main__":
    x = np.array([-9, -4, 3, 9, 15, 200], np.int32)
    case("narrow_integers", "variables and constants of 4 bits", Narrow(), [("product", x), ("assign", x), ("product", x)])
