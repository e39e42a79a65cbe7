"""Makes the case xla_random: random numbers in functions that XLA compiles.

Run with TensorFlow 2.21: python compiled_models.py FOLDER
"""

import numpy as np
import tensorflow as tf
from dataset_models import case

R = tf.random
SEED = [tf.TensorSpec([2], tf.int32)]


def drawn(seed, algorithm):
    shapes = [], [3], [2, 2], [4, 3], [3, 5]
    results = [R.stateless_uniform(shape, seed, alg=algorithm) for shape in shapes]
    results += [R.stateless_normal(shape, seed, alg=algorithm) for shape in shapes]
    results += [R.stateless_truncated_normal(shape, seed, alg=algorithm) for shape in shapes[1:3]]
    results += [R.stateless_uniform([5], seed, -2.0, 3.0, tf.float64, alg=algorithm), R.stateless_normal([5], seed, dtype=tf.float64, alg=algorithm)]
    results += [R.stateless_uniform([5], seed, 3, 100, kind, alg=algorithm) for kind in (tf.int32, tf.int64)]
    results += [R.stateless_uniform([5], seed, None, None, kind, alg=algorithm) for kind in (tf.int32, tf.int64)]
    return results + [tf.cast(draw([6], seed, dtype=tf.bfloat16, alg=algorithm), tf.float32) for draw in (R.stateless_uniform, R.stateless_normal)]


class Draws(tf.Module):
    def __init__(self):
        self.generator = R.Generator.from_seed(3, alg="threefry")

    @tf.function(input_signature=SEED, jit_compile=True)
    def philox(self, seed):
        return drawn(seed, "philox")

    @tf.function(input_signature=SEED, jit_compile=True)
    def threefry(self, seed):
        return drawn(seed, "threefry")

    @tf.function(input_signature=SEED, jit_compile=True)
    def seeded(self, seed):
        """Ops that take seeds, in loops and branches, and classes."""
        logits = tf.math.log([[0.2, 0.3, 0.5], [0.6, 0.3, 0.1]])
        step = lambda i, total: (i + 1, total + R.stateless_normal([3], R.fold_in(seed, i)))
        _, total = tf.while_loop(lambda i, _: i < 3, step, [0, tf.zeros([3])])
        limits = R.stateless_parameterized_truncated_normal([4, 2], seed, [0.0, 1.0], [1.0, 2.0], [-1.0, 4.0], [1.0, 9.0])
        chosen = tf.cond(seed[0] > 3, lambda: R.stateless_uniform([2], seed), lambda: tf.zeros([2]))
        return R.stateless_categorical(logits, 9, seed), R.stateless_categorical(tf.cast(logits, tf.float64), 4, seed), total, limits, chosen, R.split(seed, 2)

    @tf.function(input_signature=SEED, jit_compile=True)
    def older(self, seed):
        """Ops that take seeds themselves."""
        raw = tf.raw_ops
        draws = raw.StatelessRandomUniform, raw.StatelessRandomNormal, raw.StatelessTruncatedNormal
        return *(draw(shape=[3], seed=seed) for draw in draws), raw.StatelessRandomUniformInt(shape=[3], seed=seed, minval=3, maxval=100)

    @tf.function(input_signature=SEED)
    def partly(self, seed):
        """The same function, compiled and not."""
        draw = lambda seed: R.stateless_normal([3], seed)
        return tf.function(draw, jit_compile=True)(seed), tf.function(draw)(seed)

    @tf.function(input_signature=[], jit_compile=True)
    def stateful(self):
        return self.generator.uniform([3]), self.generator.normal([2]), self.generator.uniform([3], 0, 9, tf.int32)


if __name__ == "__main__":
    seeds = np.array([5, 77], np.int32), np.array([-3, 2**31 - 1], np.int32)
    calls = [(name, seed) for name in ("philox", "threefry", "seeded", "older", "partly") for seed in seeds]
    case("xla_random", "random numbers of Philox and Threefry as XLA makes them", Draws(), [*calls, ("stateful",), ("stateful",)])
