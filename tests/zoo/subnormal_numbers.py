"""Makes the case subnormal_numbers: ops whose answers depend on how subnormal numbers compare.

Run with TensorFlow 2.21: python subnormal_numbers.py FOLDER
"""

from dataset_models import case, function, np, tf

# Small integers, whose bits are those of the smallest numbers.
BITS = ([None], tf.int64)
HALVES = ([None], tf.int32)


def numbers(bits):
    return tf.bitcast(bits, tf.float64), tf.bitcast(tf.cast(bits, tf.int32), tf.float32)


class Comparisons(tf.Module):
    @function(BITS)
    def unique(self, bits):
        return [item for x in numbers(bits) for item in tf.unique_with_counts(x)[1:]]

    @function(BITS)
    def difference(self, bits):
        return [tf.raw_ops.ListDiff(x=x, y=tf.constant([0], x.dtype))[1] for x in numbers(bits)]

    @function(BITS)
    def extremes(self, bits):
        found = [f(x) for x in numbers(bits) for f in (tf.argmax, tf.argmin)]
        return found + [f(tf.stack([x, -x]), 0) for x in numbers(bits) for f in (tf.argmax, tf.argmin)]

    @function(BITS)
    def order(self, bits):
        found = [tf.math.top_k(x, tf.size(x))[1] for x in numbers(bits)]
        return found + [tf.argsort(x, stable=True) for x in numbers(bits)]

    @function(BITS)
    def bounds(self, bits):
        sorted = [tf.constant([0.0, 1e-310, 1.0], tf.float64), tf.constant([0.0, 1e-39, 1.0])]
        found = [tf.searchsorted(s, x, side) for s, x in zip(sorted, numbers(bits)) for side in ("left", "right")]
        return found + [tf.raw_ops.Bucketize(input=x, boundaries=[0.0, 1.0]) for x in numbers(bits)]

    @function(BITS)
    def best(self, bits):
        return tf.math.in_top_k(tf.constant([0]), numbers(bits)[1][None], 2)

    @function(HALVES)
    def halves(self, bits):
        x = tf.bitcast(tf.cast(bits, tf.int16), tf.float16)
        return [*tf.unique(x)[1:], tf.argmax(x), tf.argmin(x), tf.math.top_k(x, tf.size(x))[1]]


if __name__ == "__main__":
    one, minus = 0x3F800000, -(1 << 63)
    bits = np.array([0, 3, 1, minus, one, minus + 2, 5, 0], np.int64)
    calls = [(name, bits) for name in ("unique", "difference", "extremes", "order", "bounds", "best")]
    halves = np.array([0, 1, 0x8000, 2, 0x3C00, 1, 0x8001], np.int32)
    case("subnormal_numbers", "ops whose answers depend on how subnormal numbers compare", Comparisons(), calls + [("halves", halves)])
