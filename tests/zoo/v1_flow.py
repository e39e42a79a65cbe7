"""Makes the cases v1_flow_*: control flow as TensorFlow 1 writes it, with TensorFlow's answers.

Run with TensorFlow 2.21: python v1_flow.py FOLDER [NAME ..]
"""

import base64
import json
import os
import shutil
import sys

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
import numpy as np
import tensorflow as tf
from tensorflow.python.framework import function as legacy_function

v1 = tf.compat.v1
v1.disable_eager_execution()
v1.disable_control_flow_v2()

FOLDER, ONLY = sys.argv[1], sys.argv[2:]
f32, i32, i64 = np.float32, np.int32, np.int64


def stored(folder, name, value):
    value = np.asarray(value)
    if value.dtype.kind in "OS":
        texts = [base64.b64encode(text).decode() for text in value.reshape(-1)]
        return {"dtype": "string", "shape": list(value.shape), "values": texts}
    np.save(f"{folder}/io/{name}", value)
    return {"npy": f"io/{name}.npy", "dtype": value.dtype.name, "shape": list(value.shape)}


def case(name, build, feeds, loader=None):
    """A model that `build` makes, and what it gives for each of `feeds`, one after the other.

    With `loader="session"` the answers are a session's alone: where an output belongs to the side
    that is not taken, a session has an error, and functions give an empty tensor; and where a loop
    assigns to a reference variable, TensorFlow's functions do not load every time.
    """
    name = f"v1_flow_{name}"
    if ONLY and name not in ONLY:
        return
    folder = f"{FOLDER}/{name}"
    shutil.rmtree(folder, ignore_errors=True)
    os.makedirs(f"{folder}/io")
    with tf.Graph().as_default() as graph, v1.Session(graph=graph) as session:
        v1.set_random_seed(7)
        inputs, outputs = build()
        session.run(v1.global_variables_initializer())
        v1.saved_model.simple_save(session, f"{folder}/model", inputs, outputs)
    calls = []
    with tf.Graph().as_default() as graph, v1.Session(graph=graph) as session:
        meta_graph = v1.saved_model.load(session, ["serve"], f"{folder}/model")
        signature = meta_graph.signature_def["serving_default"]
        for number, feed in enumerate(feeds):
            kwargs = {key: stored(folder, f"c{number:02}_in_{key}", feed[key]) for key in feed}
            call = {"kind": "signature", "path": "serving_default", "kwargs": kwargs}
            fetches = {key: tensor.name for key, tensor in signature.outputs.items()}
            try:
                found = session.run(fetches, {signature.inputs[key].name: feed[key] for key in feed})
                found = {key: stored(folder, f"c{number:02}_out_{key}", found[key]) for key in found}
                call["expect"] = {"dict": found}
            except tf.errors.OpError as error:
                call["expect"] = {"error": True, "class": type(error).__name__}
            calls.append(call)
    text = {
        "name": name,
        "kind": "saved_model",
        "source": f"v1_flow.py: {build.__name__}",
        "features": ["v1"],
        "tags": ["serve"],
        "calls": calls,
    }
    if loader:
        text["loader"] = loader
    with open(f"{folder}/case.json", "w") as file:
        json.dump(text, file, indent=1)
        file.write("\n")


def placeholder(dtype, shape, name):
    return v1.placeholder(dtype, shape, name)


def nested_while():
    n, x = placeholder(tf.int32, [], "n"), placeholder(tf.float32, [None], "x")

    def body(i, _, m):
        grow = lambda j, a: (j + 1, a * 1.1 + tf.cast(j * i, tf.float32))
        _, a = v1.while_loop(lambda j, a: j < i, grow, [0, x])
        goes_on = lambda k, m: tf.logical_and(k < 3, m < 1000.0)
        _, m = v1.while_loop(goes_on, lambda k, m: (k + 1, m + tf.reduce_sum(a)), [0, m])
        return i + 1, a, m

    i, a, m = v1.while_loop(lambda i, a, m: i < n, body, [0, x, 0.0])
    return {"n": n, "x": x}, {"i": i, "a": a, "m": m}


def cell(x, h):
    with v1.variable_scope("cell", reuse=v1.AUTO_REUSE):
        start = v1.random_uniform_initializer(-0.5, 0.5, seed=3)
        w = v1.get_variable("w", [9, 5], initializer=start, use_resource=False)
        return tf.tanh(tf.matmul(tf.concat([x, h], 1), w)), w


class Cell:
    output_size = 5
    state_size = 5

    def zero_state(self, batch, dtype):
        return tf.zeros([batch, 5], dtype)

    def __call__(self, x, h, scope=None):
        h, _ = cell(x, h)
        return h, h


def dynamic_rnn():
    x, lengths = placeholder(tf.float32, [None, 3, 4], "x"), placeholder(tf.int32, [None], "len")
    y, h = v1.nn.dynamic_rnn(Cell(), x, sequence_length=lengths, dtype=tf.float32)
    return {"x": x, "len": lengths}, {"y": y, "h": h}


def rnn_gradients():
    x = placeholder(tf.float32, [None, 6, 4], "x")
    steps = tf.transpose(x, [1, 0, 2])
    n = tf.shape(steps)[0]
    given = tf.TensorArray(tf.float32, size=n).unstack(steps)
    made = tf.TensorArray(tf.float32, size=n, element_shape=[None, 5])

    def body(i, h, made):
        h, _ = cell(given.read(i), h)
        return i + 1, h, made.write(i, h)

    start = [0, tf.zeros([tf.shape(x)[0], 5]), made]
    _, h, made = v1.while_loop(lambda i, h, made: i < n, body, start, swap_memory=True)
    y = made.stack()
    w = v1.global_variables()[0]
    dx, dw = v1.gradients(tf.reduce_sum(y**2) + tf.reduce_sum(h), [x, w])
    return {"x": x}, {"y": y, "dx": dx, "dw": dw}


def cond_in_while():
    n, x = placeholder(tf.int32, [], "n"), placeholder(tf.float32, [], "x")

    def body(i, a, b):
        inner = lambda: v1.cond(a > 10.0, lambda: a / 2.0 + x, lambda: a * 2.0)
        a = v1.cond(tf.equal(i % 2, 0), lambda: a + tf.cast(i, tf.float32), inner)
        return i + 1, a, v1.cond(a > 5.0, lambda: b + 1, lambda: tf.identity(b))

    _, a, b = v1.while_loop(lambda i, a, b: i < n, body, [0, x, 0])
    return {"n": n, "x": x}, {"a": a, "b": b}


def while_in_cond():
    n, x = placeholder(tf.int32, [], "n"), placeholder(tf.float32, [2], "x")
    loop = lambda end, step: v1.while_loop(lambda i, a: i < end, lambda i, a: (i + 1, step(a)), [0, x])
    i, a = v1.cond(n > 2, lambda: loop(n, lambda a: a + x), lambda: loop(3, lambda a: a * x))
    return {"n": n, "x": x}, {"a": a, "i": i}


def cases():
    x = placeholder(tf.float32, [], "x")
    tests = [(x < 1.0, lambda: x * 10.0), (x < 2.0, lambda: x + 100.0), (x < 3.0, lambda: -x)]
    first = v1.case(tests, default=lambda: tf.constant(7.0))
    apart = [tests[0], (tf.logical_and(x >= 1.0, x < 2.0), lambda: x + 100.0)]
    only = v1.case(apart, default=lambda: tf.constant(7.0), exclusive=True)
    powers = [lambda: x, lambda: x * x, lambda: x * x * x]
    power = tf.switch_case(tf.cast(x, tf.int32), powers, default=lambda: -x)
    return {"x": x}, {"first": first, "only": only, "power": power}


def assign_in_cond(use_resource):
    def build():
        p, x = placeholder(tf.bool, [], "p"), placeholder(tf.float32, [], "x")
        v = v1.get_variable("v", initializer=1.0, use_resource=use_resource)
        w = v1.get_variable("w", initializer=5.0, use_resource=use_resource)

        def yes():
            with tf.control_dependencies([v1.assign_add(v, x)]):
                return v.read_value() + 0.0

        def no():
            with tf.control_dependencies([v1.assign(w, x)]):
                return v1.assign_sub(v, 2.0 * x) + 0.0

        y = v1.cond(p, yes, no)
        with tf.control_dependencies([y]):
            return {"p": p, "x": x}, {"y": y, "v": v.read_value() + 0.0, "w": w.read_value() + 0.0}

    return build


def assign_in_while():
    n = placeholder(tf.int32, [], "n")
    v = v1.get_variable("v", initializer=[1.0, 2.0], use_resource=False)

    def body(i, total):
        with tf.control_dependencies([v1.assign_add(v, [1.0, tf.cast(i, tf.float32)])]):
            return i + 1, total + tf.reduce_sum(v.read_value())

    _, total = v1.while_loop(lambda i, t: i < n, body, [0, 0.0], parallel_iterations=1)
    with tf.control_dependencies([total]):
        return {"n": n}, {"total": total, "v": v.read_value() + 0.0}


def printing():
    """Prints in a loop, which must not run ahead: rounds in order, twice only by the second one."""
    n, x = placeholder(tf.int32, [], "n"), placeholder(tf.float32, [2, 2], "x")

    def body(i, total):
        i = v1.Print(i, [i, total], message="round: ", summarize=2)
        total = v1.Print(total, [], message="first two", first_n=2)
        return i + 1, total + x

    _, total = v1.while_loop(
        lambda i, t: i < n, body, [0, tf.zeros([2, 2])], parallel_iterations=1)
    return {"n": n, "x": x}, {"total": v1.Print(total, [total], message="total", summarize=-1)}


def while_gradients():
    n, x = placeholder(tf.int32, [], "n"), placeholder(tf.float32, [3], "x")

    def body(i, a):
        other = lambda: v1.cond(tf.reduce_sum(a) > 1.0, lambda: a * a, lambda: a / 3.0)
        step = lambda j, b: (j + 1, tf.sin(b) + x)
        sines = lambda: v1.while_loop(lambda j, b: j <= i, step, [0, a])[1] * 0.5
        return i + 1, v1.cond(tf.equal(i % 2, 0), sines, lambda: tf.exp(-a) + other())

    _, a = v1.while_loop(lambda i, a: i < n, body, [0, x])
    (dx,) = v1.gradients(tf.reduce_sum(a), [x])
    return {"n": n, "x": x}, {"a": a, "dx": dx}


def cond_gradients():
    x = placeholder(tf.float32, [3], "x")
    y = v1.cond(tf.reduce_sum(x) > 0.0, lambda: tf.exp(x) * x, lambda: tf.sin(x) / 2.0)
    (dx,) = v1.gradients(tf.reduce_sum(y * y), [x])
    (ddx,) = v1.gradients(dx, [x])
    return {"x": x}, {"y": y, "dx": dx, "ddx": ddx}


def assertions():
    x = placeholder(tf.float32, [None], "x")
    checks = [v1.assert_greater(x, 0.0), v1.Assert(tf.size(x) > 0, [x])]
    with tf.control_dependencies(checks):
        return {"x": x}, {"y": tf.sqrt(x)}


def growing():
    n, words = placeholder(tf.int32, [], "n"), placeholder(tf.string, [None], "words")
    shapes = [tf.TensorShape([]), tf.TensorShape([None]), tf.TensorShape([None])]
    add = lambda i, a, w: (i + 1, tf.concat([a, [i]], 0), tf.strings.join([w, "x"]))
    _, a, w = v1.while_loop(lambda i, a, w: i < n, add, [0, tf.constant([9]), words], shape_invariants=shapes)
    return {"n": n, "words": words}, {"a": a, "w": w}


def same_choice_twice():
    p, x = placeholder(tf.bool, [], "p"), placeholder(tf.float32, [None], "x")
    a = v1.cond(p, lambda: tf.reduce_sum(x, axis=0), lambda: tf.reduce_max(x))
    b = v1.cond(p, lambda: tf.reshape(x + a, [-1, 1]), lambda: tf.reshape(x * a, [-1, 1]))
    c, d = v1.cond(p, lambda: [x, a], lambda: [b[:, 0], a + 1.0])
    return {"p": p, "x": x}, {"a": a, "b": b, "c": c, "d": d}


def one_side():
    p, x = placeholder(tf.bool, [], "p"), placeholder(tf.float32, [], "x")
    sides = []

    def yes():
        sides.append(x * 3.0)
        return sides[0] + 1.0

    y = v1.cond(p, yes, lambda: x - 1.0)
    return {"p": p, "x": x}, {"y": y, "inner": sides[0]}


def decoder():
    start = placeholder(tf.int32, [None], "start")
    table = tf.constant(np.random.RandomState(1).randn(7, 5).astype(f32))
    n = tf.shape(start)[0]

    def body(i, token, h, done, made, score):
        h = tf.tanh(h * 0.5 + tf.gather(table, token))
        logits = tf.matmul(h, table, transpose_b=True)
        token = tf.where(done, tf.zeros([n], tf.int32), tf.argmax(logits, 1, tf.int32))
        done = tf.logical_or(done, tf.equal(token, 3))
        gain = lambda: tf.reduce_max(logits, 1)
        score += v1.cond(tf.reduce_any(done), gain, lambda: tf.zeros([n]))
        return i + 1, token, h, done, made.write(i, token), score

    made = tf.TensorArray(tf.int32, size=0, dynamic_size=True)
    first = [0, start, tf.zeros([n, 5]), tf.fill([n], False), made, tf.zeros([n])]
    goes_on = lambda i, t, h, done, m, s: tf.logical_and(i < 8, tf.logical_not(tf.reduce_all(done)))
    i, _, _, _, made, score = v1.while_loop(goes_on, body, first, back_prop=False)
    return {"start": start}, {"tokens": tf.transpose(made.stack()), "n": i, "score": score}


def in_function():
    n, x = placeholder(tf.int32, [], "n"), placeholder(tf.float32, [2], "x")

    @legacy_function.Defun(tf.int32, tf.float32, func_name="powers")
    def powers(n, x):
        step = lambda i, a: (i + 1, v1.cond(i > 1, lambda: a * x, lambda: a + x))
        return v1.while_loop(lambda i, a: i < n, step, [0, x])[1]

    return {"n": n, "x": x}, {"y": powers(n, x), "z": powers(n + 1, -x)}


def several_variables():
    n = placeholder(tf.int64, [], "n")

    def body(i, f, b, x):
        turned = x[::-1] + tf.cast(i, tf.float32)
        return [i + 1, f * tf.cast(i + 1, tf.float64), tf.logical_not(b), turned]

    numbers = tf.constant([1.0, 2.0, 3.0])
    start = [tf.constant(0, tf.int64), tf.constant(1.0, tf.float64), False, numbers]
    goes_on = lambda i, f, b, x: tf.logical_or(i < n, b)
    found = v1.while_loop(goes_on, body, start, maximum_iterations=9)
    return {"n": n}, dict(zip("ifbx", found))


def count_up_to():
    x = placeholder(tf.float32, [], "x")
    count = v1.get_variable("count", [], tf.int64, v1.zeros_initializer(), use_resource=False)
    number = count.count_up_to(2)
    return {"x": x}, {"number": number, "y": x * tf.cast(number, tf.float32)}


def read_after_update():
    """A read of a reference is the variable's memory: nodes that come after an update see it."""
    x = v1.placeholder(tf.float32, [2], "x")
    w = v1.get_variable("w", [2], initializer=v1.zeros_initializer(), use_resource=False)
    before = w.value()
    column = tf.expand_dims(tf.reshape(before, [2, 1]), 0)
    update = v1.assign_add(w, x + before * 0.0 + tf.reshape(column, [2]) * 0.0)
    with tf.control_dependencies([update]):
        after = tf.add(before, 10.0)
        row = tf.add(column, 10.0)
        same = tf.identity(before)
    descent = v1.train.GradientDescentOptimizer(1.0)
    with tf.control_dependencies([after, row, same]):
        step = descent.minimize(tf.reduce_sum(w.value() * x) * 0.5, var_list=[w])
    average = tf.train.ExponentialMovingAverage(0.5)
    with tf.control_dependencies([step]):
        averaged = average.apply([w])
    with tf.control_dependencies([averaged]):
        mean = average.average(w).read_value()
    return {"x": x}, {"after": after, "mean": mean, "row": row}


def memory_in_branches():
    """Branches and loops write reference variables, and nodes inside and after them see it."""
    x = v1.placeholder(tf.float32, [2], "x")
    reference = lambda name: v1.get_variable(name, [2], initializer=v1.zeros_initializer(), use_resource=False)
    w, target, sums, fetched = map(reference, ["w", "target", "sums", "fetched"])
    is_positive = x[0] > 0

    def in_branch():
        with tf.control_dependencies([v1.assign_add(w, x)]):
            return tf.identity(w) * 1.5

    inside = tf.cond(is_positive, in_branch, lambda: x)
    with tf.control_dependencies([inside]):
        copied = tf.cond(is_positive, lambda: tf.group(v1.assign(target, w)), tf.no_op)
    with tf.control_dependencies([copied]):
        after_branch = tf.add(target, w)

    def round(i):
        with tf.control_dependencies([v1.assign_add(sums, x)]):
            return tf.add(i, 1)

    [number] = tf.while_loop(lambda i: i < 3, round, [0])
    with tf.control_dependencies([number]):
        several = tf.identity_n([sums, x])
        after_loop = tf.add(sums, 10.0)
        update = v1.assign_add(fetched, x + several[0] * 0.0)
    old = tf.identity(fetched)
    with tf.control_dependencies([after_loop, old, update]):
        again = v1.assign_add(sums, x)
    with tf.control_dependencies([again]):
        after_write = tf.add(several[0], 0.0)
    results = {"inside": inside, "after_branch": after_branch, "after_loop": after_loop}
    return {"x": x}, {**results, "after_write": after_write, "old": old, "update": tf.add(update, 0.0)}


random = np.random.RandomState(0)
row = f32([0.1, 0.5, -0.3])
case("nested_while", nested_while, [{"n": i32(n), "x": f32([1, 2, 3])} for n in (4, 0)])
case("dynamic_rnn", dynamic_rnn, [{"x": random.randn(2, 3, 4).astype(f32), "len": i32([2, 3])}])
case("rnn_gradients", rnn_gradients, [{"x": random.randn(2, 6, 4).astype(f32)}])
case("cond_in_while", cond_in_while, [{"n": i32(n), "x": f32(1.5)} for n in (0, 1, 7, 20)])
case("while_in_cond", while_in_cond, [{"n": i32(n), "x": f32([1.5, 2])} for n in (0, 5)])
case("cases", cases, [{"x": f32(x)} for x in (0.5, 1.5, 2.5, 9.0)])
for kind, use_resource in (("ref", False), ("resource", True)):
    feeds = [{"p": np.bool_(p), "x": f32(x)} for p, x in ((True, 2), (False, 3), (True, 1))]
    case(f"assign_in_cond_{kind}", assign_in_cond(use_resource), feeds)
feeds = [{"n": i32(n)} for n in (3, 0, 2)]
case("assign_in_while", assign_in_while, feeds, loader="session")
grid = f32([[1, 0.5], [0.25, 3]])
case("printing", printing, [{"n": i32(n), "x": grid} for n in (2, 1)])
case("while_gradients", while_gradients, [{"n": i32(n), "x": row} for n in (0, 1, 4, 5)])
case("cond_gradients", cond_gradients, [{"x": row}, {"x": -2 * row}])
case("assertions", assertions, [{"x": f32([1, 4])}, {"x": f32([1, -4])}])
words = np.array([b"a", b"bc"], object)
case("growing", growing, [{"n": i32(n), "words": words} for n in (0, 4)])
feeds = [{"p": np.bool_(p), "x": f32([1, 2, 3])} for p in (True, False)]
case("same_choice_twice", same_choice_twice, feeds)
feeds = [{"p": np.bool_(p), "x": f32(2)} for p in (True, False)]
case("one_side", one_side, feeds, loader="session")
case("decoder", decoder, [{"start": i32([1, 2, 5])}, {"start": i32([0])}])
case("in_function", in_function, [{"n": i32(n), "x": f32([1.5, 2])} for n in (0, 5)])
case("several_variables", several_variables, [{"n": i64(n)} for n in (0, 3, 50)])
case("count_up_to", count_up_to, [{"x": f32(x)} for x in (3, 5, 7)])
case("read_after_update", read_after_update, [{"x": f32(x)} for x in ([1, 2], [3, -1], [0.5, 0])], loader="session")
case("memory_in_branches", memory_in_branches, [{"x": f32(x)} for x in ([1, 2], [-3, 1], [0.5, 0])], loader="session")
