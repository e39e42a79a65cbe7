"""Makes the case function_ops: loops over ranges, gradients of functions, and calls as TensorFlow's runtime makes them.

Run with TensorFlow 2.21: python function_ops.py FOLDER
"""

from dataset_models import case, function, np, tf

AV = tf.compat.v1.AttrValue
NUMBER, VECTOR, ROWS = ((), tf.int32), ([None], tf.float32), ([None, 2], tf.float32)


def concrete(*specs):
    return lambda f: tf.function(f).get_concrete_function(*[tf.TensorSpec(*spec) for spec in specs])


@concrete(NUMBER, VECTOR, NUMBER)
def step(i, x, total):
    return x * 2.0 + tf.cast(i, tf.float32), total + i


@concrete(VECTOR, ROWS)
def product(v, rows):
    return tf.sin(v) * 3.0, rows * rows + tf.tanh(rows)


@concrete(VECTOR)
def grows(x):
    return tf.reduce_sum(x) < 100.0


@concrete(VECTOR)
def doubled(x):
    return x * 2.0


@concrete(VECTOR)
def negated(x):
    return -x


def numbers(change):
    @concrete(((), tf.variant))
    def branch(data):
        data = tf.data.experimental.from_variant(data, tf.TensorSpec([], tf.int64))
        return tf.data.experimental.to_variant(change(data))
    return branch


BRANCHES = [numbers(lambda d: d.map(lambda x: x * 2).batch(2, drop_remainder=True)), numbers(lambda d: d.batch(2, drop_remainder=True).map(lambda x: x + x))]


def name(f):
    """The attribute that names a function, which is in the graph then."""
    f.add_to_graph(tf.compat.v1.get_default_graph())
    return AV(func=tf.compat.v1.NameAttrList(name=f.name))


def node(op, inputs, types, **attrs):
    return tf.compat.v1.get_default_graph().create_op(op, inputs, types, attrs=attrs, name="node").outputs


def types(*all):
    return AV(list=AV.ListValue(type=[t.as_datatype_enum for t in all]))


class Functions(tf.Module):
    @function(NUMBER, NUMBER, NUMBER, VECTOR)
    def loop(self, start, limit, delta, x):
        return tf.raw_ops.For(start=start, limit=limit, delta=delta, input=[x, tf.constant(0)], body=step)

    @function(VECTOR, ROWS, VECTOR, ROWS)
    def gradient(self, v, rows, dy, dz):
        return tf.raw_ops.SymbolicGradient(input=[v, rows, dy, dz], Tout=[tf.float32, tf.float32], f=product)

    @function(((), tf.bool), VECTOR)
    def choice(self, which, x):
        return node("_If", [which, x], [tf.float32], Tcond=AV(type=tf.bool.as_datatype_enum), Tin=types(tf.float32), Tout=types(tf.float32), then_branch=name(doubled), else_branch=name(negated))[0]

    @function(VECTOR)
    def repeat(self, x):
        return node("_While", [x], [tf.float32], T=types(tf.float32), cond=name(grows), body=name(doubled))[0]

    @function(((), tf.int64))
    def fastest(self, n):
        data = tf.raw_ops.ChooseFastestBranchDataset(input_dataset=tf.data.experimental.to_variant(tf.data.Dataset.range(n)), ratio_numerator=np.int64(2), ratio_denominator=np.int64(1), other_arguments=[], num_elements_per_branch=4,
                                                     branches=BRANCHES, other_arguments_lengths=[0, 0], output_types=[tf.int64], output_shapes=[[2]])
        data = tf.data.experimental.from_variant(data, tf.TensorSpec([2], tf.int64))
        return data.reduce(tf.zeros([0], tf.int64), lambda all, x: tf.concat([all, x], 0)), data.cardinality()


if __name__ == "__main__":
    v, rows = np.array([1, 2, 3], np.float32), np.array([[1, 2], [3, 4], [5, 6], [7, 8]], np.float32)
    n = np.int32
    case("function_ops", "loops over ranges, gradients of functions, and calls as the runtime makes them", Functions(),
         [("loop", n(0), n(4), n(1), v), ("loop", n(7), n(0), n(-3), v), ("loop", n(2), n(2), n(5), v), ("loop", n(2), n(1), n(5), v), ("loop", n(1), n(2), n(-5), v), ("loop", n(0), n(2), n(0), v),
          ("gradient", v, rows, v * 2, rows - 3), ("gradient", v[:0], rows, v[:0], rows), ("choice", np.True_, v), ("choice", np.False_, v), ("repeat", v), ("repeat", v * 100), ("fastest", np.int64(8)), ("fastest", np.int64(40)), ("fastest", np.int64(0))])
