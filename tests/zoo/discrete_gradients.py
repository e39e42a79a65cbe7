"""Makes the case discrete_gradients: ops of floats that TensorFlow has no gradient of, beside some that it has.

Run with TensorFlow 2.21: python discrete_gradients.py FOLDER
"""

from gradient_case import GradientCase, np, tf


def function(*shapes):
    return tf.function(input_signature=[tf.TensorSpec(shape) for shape in shapes])


class Model(tf.Module):
    @function([None])
    def dataset(self, x):
        data = tf.data.Dataset.from_tensor_slices(x)
        return x * x + data.reduce(0.0, lambda total, item: total + item)

    @function([4, 1, 3])
    def decoder(self, x):
        return 2.0 * x + tf.nn.ctc_greedy_decoder(x, [4])[1]

    @function([2, 3])
    def concatenation(self, x):
        rows = tf.sparse.from_dense(x)
        return 3.0 * x + tf.reduce_sum(tf.sparse.concat(0, [rows, rows]).values)


def main():
    case = GradientCase("discrete_gradients", Model())
    random = np.random.RandomState(0)
    for path, shape in [("dataset", [3]), ("decoder", [4, 1, 3]), ("concatenation", [2, 3])]:
        x = tf.constant(random.randn(*shape).astype(np.float32))
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = getattr(case.model, path)(x)
            total = tf.reduce_sum(y)
        args = [case.stored(f"{path}_in", x.numpy())]
        call = {"path": path, "args": args, "kwargs": {}}
        case.calls.append(call | {"kind": "function", "expect": case.stored(f"{path}_out", y.numpy())})
        expect = {"list": [case.stored(f"{path}_dx", tape.gradient(total, x).numpy())]}
        case.calls.append(call | {"kind": "gradient", "variables": [], "order": 1, "expect": expect})
    case.write("ops of floats that TensorFlow has no gradient of")


main()
