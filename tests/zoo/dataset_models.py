"""Makes the cases ds_pipelines, ds_selections and ds_iterators: functions that use tf.data.

Run with TensorFlow 2.21: python dataset_models.py FOLDER
"""

import base64
import json
import os
import shutil
import sys

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
import numpy as np
import tensorflow as tf

D = tf.data.Dataset
AUTO = tf.data.AUTOTUNE


def function(*specs):
    return tf.function(input_signature=[tf.TensorSpec(*spec) for spec in specs])


NUMBER, NUMBERS, ROWS, TEXTS = ((), tf.int64), ([None], tf.int64), ([None, 2], tf.float32), ([None], tf.string)


def digest(data):
    """All elements of int64 scalars or vectors in one vector, each behind its size."""
    start = tf.zeros([0], tf.int64)
    return data.reduce(start, lambda all, e: tf.concat([all, [tf.size(e, tf.int64)], tf.reshape(e, [-1])], 0))


class Pipelines(tf.Module):
    def __init__(self):
        self.weights = tf.Variable([[1.0, -1.0], [0.5, 2.0]])
        self.calls = tf.Variable(0)

    @function(ROWS)
    def total(self, x):
        data = D.from_tensor_slices((x, tf.range(tf.shape(x)[0]))).map(lambda r, i: (r * 2.0, i), num_parallel_calls=AUTO)
        data = data.batch(2, drop_remainder=True).prefetch(AUTO).cache()
        return data.reduce(tf.zeros([2]), lambda s, e: s + tf.reduce_sum(e[0] @ self.weights, 0) + tf.cast(e[1][0], tf.float32))

    @function(NUMBER)
    def numbers(self, n):
        data = D.range(n)
        return [digest(d) for d in (
            D.range(10, n, -3), data.repeat(2).take(9).skip(2), data.concatenate(data.repeat(0)).shard(3, 1),
            data.filter(lambda i: i % 3 > 0).enumerate().map(lambda i, v: i * 10 + v), data.take(-1).skip(-1),
            data.interleave(lambda i: D.range(i), cycle_length=3, block_length=2), data.flat_map(lambda i: D.range(i).repeat(2)),
            data.interleave(lambda i: D.from_tensors(i).repeat(3), cycle_length=2, num_parallel_calls=2),
            data.scan(tf.constant(1, tf.int64), lambda s, i: (s * 2 + i, s)).take_while(lambda v: v < 100),
            data.batch(3).unbatch(), data.batch(4).rebatch([3, 1]), data.batch(2).rebatch(5, drop_remainder=True),
            data.map(lambda i: i % 4).unique(), data.repeat(3).shuffle(4, seed=7), data.shuffle(100, seed=3, reshuffle_each_iteration=False).repeat(2),
            data.window(4, 3, 2).flat_map(lambda w: w.batch(9)), data.window(2, 5, 1, drop_remainder=True).flat_map(lambda w: w.batch(2)),
            data.group_by_window(lambda i: i % 3, lambda k, w: w.batch(9).map(lambda b: b * 10 + k), window_size=3),
            D.choose_from_datasets([data, data.map(lambda i: -i)], D.range(2).repeat(5)), data.ragged_batch(3).map(lambda r: r + 1),
            D.zip((data, data.skip(1))).map(lambda a, b: a * b), data.apply(tf.data.experimental.assert_cardinality(n)))]

    @function(NUMBER)
    def counts(self, n):
        data = D.range(n)
        return [d.cardinality() for d in (data, data.repeat(), data.repeat().take(7), data.batch(3), data.batch(3, True), data.filter(lambda i: i > 2), data.skip(3), data.repeat(2),
                                          data.concatenate(data), D.zip((data, data.repeat())), data.shard(4, 1), data.window(3, 2, 1, True), data.window(3, 2, 2), data.flat_map(D.range),
                                          data.map(lambda i: i), data.unique(), data.cache().prefetch(2).shuffle(4), data.take_while(lambda i: i < 3))]

    @function(TEXTS)
    def words(self, s):
        data = D.from_tensor_slices(s).map(tf.strings.split)
        lengths = data.map(lambda w: tf.strings.length(w))
        return (data.padded_batch(2, padding_values="-").reduce("", lambda a, b: tf.strings.join([a, tf.strings.reduce_join(b)], "|")),
                lengths.padded_batch(3, padded_shapes=[4], drop_remainder=True, padding_values=9).reduce(0, lambda a, b: a * 2 + tf.reduce_sum(b)),
                D.from_tensors({"text": s, "size": tf.strings.length(s)}).unbatch().reduce(0, lambda a, e: a + e["size"]))

    @function(NUMBERS)
    def state(self, v):
        def count(i):
            self.calls.assign_add(1)
            return i + tf.cast(self.calls, tf.int64)

        return D.from_tensor_slices(v).map(count).batch(99).get_single_element(), self.calls.read_value()


class Iterators(tf.Module):
    @function(ROWS, ((), tf.float32))
    def walk(self, x, limit):
        total, n = tf.zeros([2]), 0
        for i, row in D.from_tensor_slices(x).enumerate():
            if tf.reduce_sum(row) < 0.0:
                continue
            total += row * tf.cast(i, tf.float32)
            n += 1
            if tf.reduce_sum(total) > limit:
                break
        return total, n

    @function(NUMBERS)
    def two(self, v):
        it = iter(D.from_tensor_slices(v).repeat(2))
        first = next(it)
        option = it.get_next_as_optional()
        second = tf.cond(option.has_value(), lambda: option.get_value(), lambda: tf.constant(-1, tf.int64))
        rest = tf.constant(0, tf.int64)
        for e in it:
            rest = rest * 3 + e
        return first, second, rest

    @function(NUMBER)
    def nested(self, n):
        out = tf.TensorArray(tf.int64, 0, dynamic_size=True, element_shape=[])
        for i in D.range(n):
            for j in D.range(i):
                if j > 3:
                    break
                out = out.write(out.size(), i * 10 + j)
        return out.stack()

    @function(NUMBERS)
    def only(self, v):
        return D.from_tensor_slices(v).get_single_element()

    @function(NUMBERS, NUMBER)
    def ragged_stop(self, v, n):
        return D.from_tensor_slices(v).batch(n).batch(2).batch(9).get_single_element()


class Selections(tf.Module):
    """Random choices, errors, sparse elements, and what `tf.data.experimental` adds."""

    @function(NUMBER)
    def random(self, n):
        data, more = D.range(n), D.range(100, 100 + n)
        return [digest(d) for d in (
            D.random(seed=4).take(3), D.random(seed=4, rerandomize_each_iteration=True).take(2).repeat(2), D.sample_from_datasets([data, more], [0.5, 0.5], seed=4),
            D.sample_from_datasets([data, more], [0.3, 0.7], seed=9, stop_on_empty_dataset=True), D.sample_from_datasets([data, more], seed=1),
            data.apply(tf.data.experimental.shuffle_and_repeat(4, 3, seed=3)), data.apply(tf.data.experimental.shuffle_and_repeat(50, 2, seed=5)))]

    @function(NUMBER)
    def experimental(self, n):
        data, e = D.range(n), tf.data.experimental
        folded = e.Reducer(lambda k: (k, k * 0), lambda s, i: (s[0] * 3 + i, s[1] + 1), lambda a, b: a * 100 + b)
        return [digest(d) for d in (
            data.apply(e.group_by_reducer(lambda i: i % 3, folded)), data.apply(e.parallel_interleave(lambda i: D.range(i), cycle_length=3, block_length=2, sloppy=False)),
            data.apply(e.map_and_batch(lambda i: i * 2, 3)), data.map(lambda i: 100 // (i - 2)).ignore_errors())]

    @function(NUMBER)
    def sparse(self, n):
        rows = D.range(1, n).map(lambda i: tf.fill([i], i))
        batches = rows.apply(tf.data.experimental.dense_to_sparse_batch(3, [8]))
        hot = D.range(n).map(lambda i: tf.sparse.from_dense(tf.one_hot(i % 4, 4, dtype=tf.int64))).batch(2)
        slices = D.from_tensor_slices(tf.sparse.from_dense(tf.linalg.diag(tf.range(n))))
        return [digest(d.map(tf.sparse.to_dense)) for d in (batches, hot, slices)]


def told(folder, key, value):
    if isinstance(value, (list, tuple)):
        kind = "list" if isinstance(value, list) else "tuple"
        return {kind: [told(folder, f"{key}_{i}", v) for i, v in enumerate(value)]}
    value = tf.convert_to_tensor(value)
    if value.dtype == tf.string:
        flat = value.numpy().reshape(-1).tolist() if value.shape.rank else [value.numpy()]
        return {"dtype": "string", "shape": value.shape.as_list(), "values": [base64.b64encode(v).decode() for v in flat]}
    np.save(f"{folder}/io/{key}", value.numpy())
    return {"npy": f"io/{key}.npy", "dtype": value.dtype.name, "shape": value.shape.as_list()}


def case(name, source, module, calls, tolerances={}):
    """Records calls of a module. `tolerances` are those of paths whose results are not compared as usual."""
    folder = f"{sys.argv[1]}/{name}"
    shutil.rmtree(folder, ignore_errors=True)
    os.makedirs(f"{folder}/io")
    tf.saved_model.save(module, f"{folder}/model")
    loaded = tf.saved_model.load(f"{folder}/model")
    listed = []
    for path, *args in calls:
        key = f"c{len(listed):02}"
        call = {"kind": "function", "path": path, "args": [told(folder, f"{key}_in_{i}", a) for i, a in enumerate(args)], "kwargs": {}}
        try:
            call["expect"] = told(folder, key, getattr(loaded, path)(*map(tf.constant, args)))
        except tf.errors.OpError as error:
            call["expect"] = {"error": {"class": type(error).__name__}}
        if path in tolerances:
            call["rtol"] = call["atol"] = tolerances[path]
        listed.append(call)
    with open(f"{folder}/case.json", "w") as file:
        json.dump({"name": name, "kind": "saved_model", "source": f"dataset_models.py: {source}", "features": ["dataset"], "tags": ["serve"], "calls": listed}, file, indent=1)
        file.write("\n")


if __name__ == "__main__":
    rows = np.array([[1, 2], [-3, 1], [0.5, 0.25], [4, -1], [2, 2]], np.float32)
    texts = ["the quick fox", "", "a b c d", "one", "two words"]
    case("ds_pipelines", "every transformation of tf.data that runs without files", Pipelines(),
         [("total", rows), ("total", rows[:0]), ("numbers", np.int64(11)), ("numbers", np.int64(0)), ("numbers", np.int64(4)), ("counts", np.int64(10)), ("counts", np.int64(0)), ("words", texts), ("state", np.array([5, 6, 7])), ("state", np.array([1]))])
    case("ds_selections", "random choices, errors, sparse elements, and what tf.data.experimental adds", Selections(),
         [("random", np.int64(7)), ("random", np.int64(1)), ("experimental", np.int64(9)), ("experimental", np.int64(2)), ("sparse", np.int64(6))])
    case("ds_iterators", "for loops with break and continue, iterators, optionals, errors", Iterators(),
         [("walk", rows, np.float32(1)), ("walk", rows, np.float32(99)), ("walk", rows[:0], np.float32(1)), ("two", np.array([3, 4])), ("two", np.array([3])), ("two", np.zeros(0, np.int64)),
          ("nested", np.int64(7)), ("nested", np.int64(0)), ("only", np.array([8])), ("only", np.array([8, 9])), ("only", np.zeros(0, np.int64)), ("ragged_stop", np.arange(8), np.int64(2)), ("ragged_stop", np.arange(7), np.int64(2)), ("ragged_stop", np.arange(7), np.int64(0))])
