"""Makes the case custom_gradients: functions with gradients of their own, which the model brings
along, with the gradients TensorFlow gives once it has loaded them.

Run with TensorFlow 2.21: python custom_gradients.py FOLDER
"""

from gradient_case import GradientCase, tf

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

    @tf.function(input_signature=[VECTOR, VECTOR])
    def in_loop(self, x, w):
        scaled = scaled_by(w)
        return tf.map_fn(lambda row: scaled(row * x), tf.stack([x, w]))


def scaled_by(w):
    """A function whose gradient takes a value of the function around."""

    @tf.custom_gradient
    def scaled(x):
        return x * w, lambda dy: dy * w * 5.0

    return scaled


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
    options = tf.saved_model.SaveOptions(experimental_custom_gradients=True)
    case = GradientCase("custom_gradients", Model(), options)
    x = tf.constant([-1.0, 0.2, 1.5])
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
        ("in_loop", [x, x + 1.0], [], 1),
    ]:
        name = f"c{len(case.calls):02}"
        given = [case.stored(f"{name}_in_{i}", arg.numpy()) for i, arg in enumerate(args)]
        found = gradients(case.model, path, args, variables, order)
        found = [
            {"py": None} if dx is None else case.stored(f"{name}_out_{i}", dx.numpy())
            for i, dx in enumerate(found)
        ]
        call = {"kind": "gradient", "path": path, "args": given, "order": order}
        case.calls.append(call | {"variables": variables, "expect": {"list": found}})
        y = getattr(case.model, path)(*args)
        call = {"kind": "function", "path": path, "args": given, "kwargs": {}}
        case.calls.append(call | {"expect": case.stored(f"{name}_y", y.numpy())})
    case.write("gradients that the model brings along")


main()
