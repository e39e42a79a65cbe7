"""Makes the case rewritten_loop_gradients: custom gradients in loops that a tape in the same function was asked
about. TensorFlow calls a copy of the body then, and the gradient takes values of the original.

Run with TensorFlow 2.21: python rewritten_loop_gradients.py FOLDER
"""

from gradient_case import GradientCase, np, tf


def scaled(x, factor):
    """`x * factor`, with a gradient of `x` that says twice that much, and takes a value of the function around."""
    around = tf.sin(factor)

    @tf.custom_gradient
    def f(x):
        return x * factor, lambda dy: 2.0 * dy * factor + around

    return f(x)


def loop(x, factor):
    body = lambda i, y: (i + 1, scaled(y, factor + tf.cast(i, tf.float32)))
    return tf.while_loop(lambda i, y: i < 3, body, (0, x))[1]


def asked(f):
    @tf.function(input_signature=[tf.TensorSpec([3]), tf.TensorSpec([])])
    def call(x, factor):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = f(x, factor)
        return y + tf.stop_gradient(tape.gradient(y, x))

    return call


class Model(tf.Module):
    def __init__(self):
        self.loop = asked(loop)


def main():
    case = GradientCase("rewritten_loop_gradients", model := Model())
    x, factor = tf.constant(np.random.RandomState(0).randn(3).astype(np.float32)), tf.constant(0.5)
    with tf.GradientTape() as tape:
        tape.watch([x, factor])
        y = model.loop(x, factor)
        total = tf.reduce_sum(y)
    call = {"path": "loop", "args": [case.stored("x", x.numpy()), case.stored("factor", factor.numpy())], "kwargs": {}}
    case.calls.append(call | {"kind": "function", "expect": case.stored("y", y.numpy())})
    expect = {"list": [case.stored(f"d{i}", d.numpy()) for i, d in enumerate(tape.gradient(total, [x, factor]))]}
    case.calls.append(call | {"kind": "gradient", "variables": [], "order": 1, "expect": expect})
    case.write("custom gradients in loops that a tape was asked about")


main()
