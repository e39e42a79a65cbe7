"""Records the ops UniformQuantized… and QuantizeAndDequantizeV4Grad: random inputs, and TensorFlow's results.

Run with TensorFlow 2.21: python quantized_ops.py FOLDER [SEED] [ROUNDS]
"""

import base64
import gzip
import json
import os
import sys

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
import numpy as np
import tensorflow as tf

FOLDER = sys.argv[1]
RANDOM = np.random.default_rng(int(sys.argv[2]) if len(sys.argv) > 2 else 1)
ROUNDS = int(sys.argv[3]) if len(sys.argv) > 3 else 2
PLAIN = {tf.qint8: tf.int8, tf.qint32: tf.int32}
LEAST, MOST = -(2**31), 2**31 - 1
CASES = {}


def tensor(t):
    plain = tf.bitcast(t, PLAIN[t.dtype]) if t.dtype in PLAIN else t
    return {"dtype": t.dtype.name, "shape": t.shape.as_list(), "b64": base64.b64encode(plain.numpy().tobytes()).decode()}


def add(op, *inputs, compare="exact", **attrs):
    names = [arg.name for arg in tf.raw_ops.__dict__[op].__signature__.parameters.values() if arg.name not in attrs and arg.name != "name"]
    results = tf.raw_ops.__dict__[op](**dict(zip(names, inputs)), **attrs)
    outputs = list(results) if isinstance(results, tuple) else [results]
    told = {k: v.name if isinstance(v, tf.DType) else v for k, v in attrs.items()}
    kinds = {"UniformQuantizedDot": {"Tin": "qint8"}, "UniformQuantizedDotHybrid": {"Tlhs": "float32", "Trhs": "qint8"}}.get(op, {"T": inputs[0].dtype.name})
    case = {"id": len(CASES.get(op, [])), "attrs": {**kinds, **told}, "inputs": [tensor(x) for x in inputs], "outputs": [tensor(y) for y in outputs], "compare": compare}
    CASES.setdefault(op, []).append({**case, "rtol": 1e-5, "atol": 1e-6} if compare == "close" else case)


def small(*shape):
    return tf.bitcast(tf.constant(RANDOM.integers(-128, 128, shape).astype(np.int8)), tf.qint8)


def large(*shape):
    return tf.bitcast(tf.constant(RANDOM.integers(-5000, 5000, shape).astype(np.int32)), tf.qint32)


def scales(*n):
    return tf.constant(RANDOM.random(n) * 0.05 + 0.001, tf.float32), tf.constant(RANDOM.integers(-20, 20, n), tf.int32)


def limits(prefix, whole):
    low, high = (LEAST, MOST) if whole or RANDOM.random() < 0.5 else sorted(int(v) for v in RANDOM.integers(-3000, 3000, 2))
    return {f"{prefix}quantization_min_val": low, f"{prefix}quantization_max_val": high}


for _ in range(ROUNDS):
    rows, inner, columns = (int(v) for v in RANDOM.integers(1, 6, 3))
    bytes_ = dict(lhs_quantization_min_val=-128, lhs_quantization_max_val=127, rhs_quantization_min_val=-127, rhs_quantization_max_val=127)
    for own, new in (((), ()), ((columns,), ()), ((columns,), (columns,))):
        axes = {"lhs_quantization_axis": -1, "rhs_quantization_axis": 1 if own else -1, "output_quantization_axis": 1 if new else -1}
        add("UniformQuantizedDot", small(rows, inner), small(inner, columns), *scales(), *scales(*own), *scales(*new), Tout=tf.qint32, **bytes_, **axes, **limits("output_", False))
    for own in ((), (columns,)):
        reals = tf.constant((RANDOM.normal(size=(rows, inner)) * 10 ** RANDOM.uniform(-2, 2) * (RANDOM.random((rows, 1)) > 0.2)).astype(np.float32))
        add("UniformQuantizedDotHybrid", reals, small(inner, columns), *scales(*own), Tout=tf.float32, rhs_quantization_min_val=-127, rhs_quantization_max_val=127, rhs_quantization_axis=1 if own else -1, compare="close")
    whole = {**limits("lhs_", True), **limits("rhs_", True)}
    for a, b in (((rows, columns), (rows, columns)), ((rows, columns), (columns,)), ((rows, columns), ()), ((), (rows, columns)), ((rows, 1), (rows, columns)), ((rows, columns), (2, 1, 1))):
        axes = {"lhs_quantization_axis": -1, "rhs_quantization_axis": -1, "output_quantization_axis": -1}
        add("UniformQuantizedAdd", large(*a), large(*b), *scales(), *scales(), *scales(), **whole, **axes, **limits("output_", False))
    for b, rhs, output in (((rows, columns), 1, 1), ((columns,), 0, -1)):
        axes = {"lhs_quantization_axis": 1, "rhs_quantization_axis": rhs, "output_quantization_axis": output}
        new = (columns,) if output == 1 else ()
        add("UniformQuantizedAdd", large(rows, columns), large(*b), *scales(columns), *scales(columns), *scales(*new), **whole, **axes, **limits("output_", False))
    add("UniformQuantizedClipByValue", large(rows, columns), large(), large(), *scales(), quantization_axis=-1, **limits("", False))
    add("UniformQuantizedClipByValue", large(rows, columns), large(columns), large(columns), *scales(columns), quantization_axis=1, **limits("", False))
    for dtype in (tf.float32, tf.float64):
        numbers = [tf.constant(RANDOM.normal(size=(rows, columns)), dtype) for _ in range(2)]
        numbers[1] = tf.where(RANDOM.random((rows, columns)) < 0.1, tf.constant(np.nan, dtype), numbers[1])
        add("QuantizeAndDequantizeV4Grad", *numbers, tf.constant(-0.7, dtype), tf.constant(0.5, dtype), axis=-1)
        ends = tf.constant(RANDOM.random(columns), dtype)
        add("QuantizeAndDequantizeV4Grad", *numbers, -ends, ends, axis=1)
os.makedirs(FOLDER, exist_ok=True)
for op, cases in sorted(CASES.items()):
    with open(f"{FOLDER}/{op}.json.gz", "wb") as raw, gzip.GzipFile(fileobj=raw, mode="wb", mtime=0, filename="") as f:
        f.write(json.dumps({"op": op, "tf": tf.__version__, "family": "quantized", "cases": cases}).encode())
