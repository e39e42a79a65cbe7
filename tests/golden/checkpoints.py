"""Writes the checkpoint cases of this folder with TensorFlow 2.21: python checkpoints.py [OUT_DIR]

Each case is a folder with the files in `model`, and in `case.json` what TensorFlow was given: dtype,
shape and value of every tensor, strings and the bytes of arrays in base64.
"""
import base64
import json
import os
import sys

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
import numpy as np
import tensorflow as tf

v1 = tf.compat.v1
OUT = sys.argv[1] if len(sys.argv) > 1 else os.path.dirname(os.path.abspath(__file__))


def folder(name):
    path = os.path.join(OUT, name)
    os.makedirs(os.path.join(path, "model"), exist_ok=True)
    return path


def describe(name, source, prefix, tensors):
    entries = {}
    for key, value in sorted(tensors.items()):
        value = np.asarray(value)
        entry = {"dtype": value.dtype.name, "shape": list(value.shape)}
        if value.dtype == object:
            entry["dtype"] = "string"
            entry["values"] = [base64.b64encode(item).decode() for item in value.flat]
        else:
            entry["bytes"] = base64.b64encode(value.tobytes()).decode()
        entries[key] = entry
    case = {"name": name, "source": source, "prefix": "model/" + prefix, "entries": entries}
    with open(os.path.join(folder(name), "case.json"), "w") as file:
        json.dump(case, file, indent=1)
        file.write("\n")


def constant(value):
    value = np.asarray(value)
    return tf.constant(value.tolist() if value.dtype == object else value)


def save(name, keys, slices, tensors):
    prefix = os.path.join(folder(name), "model", "m")
    tf.raw_ops.SaveV2(prefix=prefix, tensor_names=keys, shape_and_slices=slices, tensors=tensors)


def dtypes():
    """One tensor of each dtype, an empty one, a scalar, and strings of several lengths."""
    name = "ckpt_dtypes"
    tensors = {
        "empty": np.zeros([0, 4], np.float32),
        "scalar": np.float64(np.pi),
        "bool": np.array([True, False, True]),
        "bfloat16": tf.constant([1.5, -2.25, 3e38], tf.bfloat16).numpy(),
        "string": np.array([[b"alpha", b""], [b"\x00\xff\xfe", b"long" * 100]], object),
    }
    numbers = "float16 float32 float64 int8 int16 int32 int64 uint8 uint16 uint32 uint64"
    for dtype in (numbers + " complex64 complex128").split():
        tensors[dtype] = np.arange(6).reshape(2, 3).astype(dtype)
    keys = sorted(tensors)
    save(name, keys, [""] * len(keys), [constant(tensors[key]) for key in keys])
    describe(name, dtypes.__doc__, "m", tensors)


def slices():
    """Two matrices, each stored in three slices along both dimensions."""
    name = "ckpt_slices"
    strings = np.array([[b"%d,%d" % (row, column) for column in range(4)] for row in range(6)], object)
    numbers = np.arange(24, dtype=np.float32).reshape(6, 4)

    def parts(matrix):
        return [constant(part) for part in (matrix[:2], matrix[2:, :1], matrix[2:, 1:])]

    specs = ["6 4 0,2:-", "6 4 2,4:0,1", "6 4 2,4:1,3"]
    keys = ["numbers"] * 3 + ["strings"] * 3
    save(name, keys, specs * 2, parts(numbers) + parts(strings))
    describe(name, slices.__doc__, "m", {"numbers": numbers, "strings": strings})


def many():
    """Enough tensors for several restart points in the index."""
    name = "ckpt_many"
    tensors = {f"layer_{i}/block/kernel_{j}": np.full([2], i + 100 * j, np.int32)
               for i in range(10) for j in range(8)}
    keys = sorted(tensors)
    save(name, keys, [""] * len(keys), [constant(tensors[key]) for key in keys])
    describe(name, many.__doc__, "m", tensors)


def variants():
    """A list of tensors, and a vector of two lists. The values are handles, so none is recorded."""
    name = "variants"
    pairs = tf.raw_ops.TensorListFromTensor(
        tensor=tf.constant([[1.0, 2.0], [3.0, 4.0]]), element_shape=tf.constant([2]))
    numbers = tf.raw_ops.TensorListFromTensor(
        tensor=tf.constant([5, 6, 7]), element_shape=tf.constant([], tf.int32))
    save(name, ["one", "two"], ["", ""], [pairs, tf.stack([pairs, numbers])])


def first_format(name, sharded):
    """The format of the first releases, with a partitioned variable."""
    weights = np.arange(35, dtype=np.float32).reshape(7, 5)
    tensors = {"weights": weights, "flags": np.array([True, False]),
               "names": np.array([b"a", b"", b"\x00\xff"], object)}

    def part(shape, dtype, partition_info):
        start = partition_info.var_offset[0]
        return tf.constant(weights[start:start + shape[0]])

    with tf.Graph().as_default(), v1.Session() as session:
        partitioner = v1.fixed_size_partitioner(3)
        with tf.device("/cpu:0"):
            v1.get_variable("weights", weights.shape, initializer=part, partitioner=partitioner,
                            use_resource=False)
        for key in ("flags", "names"):
            v1.get_variable(key, initializer=constant(tensors[key]), use_resource=False)
        saver = v1.train.Saver(write_version=v1.train.SaverDef.V1, sharded=sharded)
        session.run(v1.global_variables_initializer())
        prefix = os.path.join(folder(name), "model", "m")
        path = saver.save(session, prefix, write_meta_graph=False, write_state=False)
    describe(name, first_format.__doc__, os.path.basename(path), tensors)


dtypes()
slices()
many()
variants()
first_format("ckpt_first_format", sharded=False)
first_format("ckpt_first_format_sharded", sharded=True)
