"""Changes recorded calls of ops at random, and records what TensorFlow gives for them.

    python op_mutants.py --cases tests/ops --out DIR --seed 1 --mutants 40 [--edges] [--op NAME ...]

For each op of a folder of recorded cases, a file of the same form is written to DIR, for
`cargo xtask conformance --ops DIR`: what TensorFlow computes of changed values, shapes, dtypes and
attributes, with gradients where there are some. Calls that TensorFlow refuses are left out. A call depends
on the op, the seed and its number only. TensorFlow may abort or hang in a call: each op has a process of
its own, and a new one behind such a call.
"""

import argparse
import base64
import gzip
import json
import math
import os
import random
import resource
import signal
import sys
import traceback

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("TF_ENABLE_ONEDNN_OPTS", "0")
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "-1")

import numpy as np
import tensorflow as tf
from tensorflow.core.framework import attr_value_pb2, node_def_pb2
from tensorflow.python.eager import context, execute
from tensorflow.python.framework import op_def_registry, ops

try:
    import tensorflow_text  # noqa: F401, registers its ops
except ImportError:
    pass

# Most elements of an input, of an output, and seconds of a call.
MOST_ELEMENTS, MOST_RESULTS, MOST_SECONDS = 4096, 1 << 16, 10
# Bytes that a process may have.
MOST_MEMORY = 12 << 30

# Ops whose results TensorFlow does not fix where inputs are not in order, out of range or without a result, and
# gradients that it takes otherwise than its own values change (`BlockLSTMV2`, complex `MatrixSquareRoot`).
UNFIXED = {
    "BlockLSTMV2", "CTCBeamSearchDecoder", "CTCLoss", "EditDistance", "IsotonicRegression", "LowerBound",
    "MatrixLogarithm", "MatrixSquareRoot", "RaggedBincount", "RaggedTensorToTensor", "SparseAdd",
    "SparseReduceMax", "SparseReduceMaxSparse", "SparseReduceSum", "SparseReduceSumSparse", "SparseSegmentMeanGrad",
    "SparseSegmentSqrtNGradV2", "SparseSegmentSumGrad", "SparseSegmentSumGradV2", "SparseSlice", "SparseAddGrad",
    "SparseReorder", "SparseSoftmax", "UpperBound",
}

PLAIN = {"qint8": np.int8, "quint8": np.uint8, "qint16": np.int16, "quint16": np.uint16, "qint32": np.int32}


def numpy_of(dtype):
    """The numpy dtype that holds a dtype's elements."""
    return np.dtype(PLAIN.get(dtype) or tf.as_dtype(dtype).as_numpy_dtype)


def decoded(value):
    """The array of a recorded tensor."""
    if value["dtype"] == "string":
        texts = [base64.b64decode(text) for text in value["values"]]
        return np.array(texts, dtype=object).reshape(value["shape"])
    return np.frombuffer(base64.b64decode(value["b64"]), numpy_of(value["dtype"])).reshape(value["shape"])


def encoded(array, dtype):
    """An array as a recorded tensor of a dtype."""
    shape = list(array.shape)
    if dtype == "string":
        texts = [base64.b64encode(text).decode() for text in array.reshape(-1)]
        return {"dtype": dtype, "shape": shape, "values": texts}
    data = np.ascontiguousarray(array, numpy_of(dtype)).tobytes()
    return {"dtype": dtype, "shape": shape, "b64": base64.b64encode(data).decode()}


def recorded(tensor):
    """A result of TensorFlow as a recorded tensor."""
    dtype = tensor.dtype.name
    if dtype in ("resource", "variant"):
        return {"dtype": dtype, "opaque": True}
    if dtype in PLAIN:
        wide = tf.bitcast(tensor, tf.as_dtype(PLAIN[dtype]))
        return encoded(wide.numpy(), dtype)
    array = tensor.numpy()
    return encoded(np.array(array, dtype=object) if dtype == "string" else np.asarray(array), dtype)


def tensor_of(value):
    """A recorded tensor as TensorFlow's."""
    array, dtype = decoded(value), value["dtype"]
    if dtype in PLAIN:
        return tf.bitcast(tf.constant(array), tf.as_dtype(dtype))
    if dtype == "string":
        return tf.constant(array.tolist(), tf.string, shape=value["shape"])
    return tf.constant(array, tf.as_dtype(dtype))


def flat(values):
    for value in values:
        if isinstance(value, list):
            yield from value
        else:
            yield value


def attr_of(value, kind):
    """An attribute of a case, as `execute` takes it."""
    if kind.startswith("list("):
        return [attr_of(item, kind[5:-1]) for item in value]
    match kind:
        case "type":
            return tf.as_dtype(value).as_datatype_enum
        case "shape":
            return tf.TensorShape(value).as_proto()
        case "string":
            return base64.b64decode(value["b64"]) if isinstance(value, dict) else value.encode()
        case "float":
            return float(value)
        case "tensor":
            held = value["tensor"]
            return tf.make_tensor_proto(decoded(held), dtype=held["dtype"], shape=held["shape"])
        case _:
            return value


def lengths(op_def, case):
    """For each output of the op, the length of its list; None for one that is no list."""
    for output in op_def.output_arg:
        if output.number_attr:
            yield case["attrs"][output.number_attr]
        elif output.type_list_attr:
            yield len(case["attrs"][output.type_list_attr])
        else:
            yield None


def call(op_def, case, inputs):
    """The results of a call, lists flattened."""
    attrs = []
    for attr in op_def.attr:
        if attr.name in case["attrs"]:
            attrs += [attr.name, attr_of(case["attrs"][attr.name], attr.type)]
    n_outputs = sum(1 if n is None else n for n in lengths(op_def, case))
    name, attrs = op_def.name.encode(), tuple(attrs)
    results = execute.execute(name, n_outputs, inputs, attrs, context.context())
    results = results if isinstance(results, list) else [results]
    execute.record_gradient(op_def.name, inputs, attrs, results)
    return results


FIELDS = {"type": "type", "shape": "shape", "string": "s", "float": "f", "int": "i", "bool": "b", "tensor": "tensor"}


def check_shapes(op_def, case):
    """An error where TensorFlow's shape function refuses a call: eager calls skip it, and some kernels
    read what is not there."""
    node = node_def_pb2.NodeDef(name="call", op=op_def.name)
    for attr in op_def.attr:
        if attr.name not in case["attrs"]:
            continue
        is_list = attr.type.startswith("list(")
        field = FIELDS.get(attr.type[5:-1] if is_list else attr.type)
        if field is None:
            return
        value = attr_of(case["attrs"][attr.name], attr.type)
        given = {field: value}
        if is_list:
            given = {"list": attr_value_pb2.AttrValue.ListValue(**given)}
        node.attr[attr.name].CopyFrom(attr_value_pb2.AttrValue(**given))
    with tf.Graph().as_default() as graph:
        inputs = [tensor_of(value) for value in flat(case["inputs"])]
        try:
            ops._create_c_op(graph, node, inputs, [])
        except tf.errors.UnimplementedError:
            # Graphs of today have it no more.
            return


def grouped(op_def, case, results):
    """Results as the op's outputs, lists as such."""
    rest = iter(results)
    return [next(rest) if n is None else [next(rest) for _ in range(n)] for n in lengths(op_def, case)]


class Refused(Exception):
    """TensorFlow has no result that can be recorded."""


def is_differentiable(tensor):
    return tensor.dtype.is_floating or tensor.dtype.is_complex


def gradients(op_def, case, inputs, rng):
    """The gradients by the inputs, or None."""
    sources = [x for x in inputs if is_differentiable(x)]
    with tf.GradientTape() as tape:
        for source in sources:
            tape.watch(source)
        results = call(op_def, case, inputs)
    targets = [y for y in results if is_differentiable(y)]
    if not sources or not targets:
        return None
    draw = lambda y: tf.cast(tf.constant(rng.normal(size=y.shape).round(3)), y.dtype)
    upstream = {id(y): draw(y) for y in targets}
    found = tape.gradient(targets, sources, output_gradients=[upstream[id(y)] for y in targets])
    dense = [None if x is None else tf.convert_to_tensor(x) for x in found]
    if all(x is None for x in dense):
        return None
    by_source = {id(x): dx for x, dx in zip(sources, dense)}
    record = lambda tensor: None if tensor is None else recorded(tensor)
    dy = [record(upstream.get(id(y))) for y in results]
    dx = iter([record(by_source.get(id(x))) for x in inputs])
    dx = [[next(dx) for _ in x] if isinstance(x, list) else next(dx) for x in case["inputs"]]
    return {"dy": grouped(op_def, case, dy), "dx": dx}


def answered(op_def, case, rng):
    """The case with TensorFlow's results."""
    check_shapes(op_def, case)
    inputs = [tensor_of(value) for value in flat(case["inputs"])]
    results = call(op_def, case, inputs)
    if any(math.prod(result.shape) > MOST_RESULTS for result in results):
        raise Refused
    found = [recorded(result) for result in results]
    # Some kernels leave memory as they find it.
    if found != [recorded(result) for result in call(op_def, case, inputs)]:
        raise Refused
    case["outputs"] = grouped(op_def, case, found)
    # What is summed in another order is off by the size of what is summed, not of the sum.
    arrays = [np.abs(np.asarray(x.numpy(), np.complex128)) for x in [*results, *inputs] if is_differentiable(x)]
    finite = [array[np.isfinite(array)] for array in arrays]
    largest = max((array.max() for array in finite if array.size), default=0.0)
    case["rtol"] = case.get("rtol", 1e-5)
    case["atol"] = max(case.get("atol", 1e-5), case["rtol"] * float(largest))
    if rng.random() < 0.5:
        try:
            found = gradients(op_def, case, inputs, rng)
        except (tf.errors.OpError, ValueError, TypeError, LookupError, NotImplementedError):
            found = None
        if found:
            case["grads"] = found
    return case


FEW = [0.0, -0.0, 1.0, -1.0, 0.5, -2.5, 3.0, 1e-3, 40.0]
EDGES = [math.nan, math.inf, -math.inf]


def edges(dtype, with_limits):
    """Values of a dtype that kernels may forget, with those that are not finite if asked for."""
    if dtype == "bool":
        return [False, True]
    if dtype == "string":
        return [b"", b" ", b"a", b"\xff\xfe", "\u00e9\u4e2d".encode(), b"A b,c", b"-1", b"1e3", b"\0"]
    kind = numpy_of(dtype)
    if kind.kind in "iu":
        limits = np.iinfo(kind)
        some = [0, 1, 2, 3, 7] + ([-1, -2] if limits.min < 0 else [])
        return some + ([limits.max, limits.min] if with_limits else [])
    if kind.kind == "c":
        return [0, 1, -1j, complex(-2, 0.5)] + ([complex(math.nan, 1), complex(math.inf, 0)] if with_limits else [])
    limits = [float(limit) for limit in tf.as_dtype(dtype).limits]
    return FEW + (EDGES + limits if with_limits else [])


class Mutation:
    """Changes of a case, each by a choice of `rng`."""

    def __init__(self, op_def, case, rng, with_limits):
        self.op_def, self.case, self.rng, self.with_limits = op_def, case, rng, with_limits
        self.kinds = {attr.name: attr for attr in op_def.attr}

    def inputs(self):
        return list(flat(self.case["inputs"]))

    def values(self):
        """Some elements of an input are others."""
        value = self.rng.choice(self.inputs())
        array = decoded(value).copy()
        if array.size == 0:
            return
        elements = array.reshape(-1)
        dtype = value["dtype"]
        style = self.rng.random()
        if style < 0.5:
            choices = edges(dtype, self.with_limits)
            if elements.size <= 8 and dtype.startswith(("int", "uint")):
                choices = [0, 1, 2, 3] + ([-1] if dtype.startswith("int") else [])
            for _ in range(self.rng.randint(1, max(1, elements.size // 3))):
                at = self.rng.randrange(elements.size)
                elements[at] = self.rng.choice(choices)
        elif style < 0.7:
            elements[:] = elements[self.rng.sample(range(elements.size), elements.size)]
        elif style < 0.85:
            elements[:] = elements[self.rng.randrange(elements.size)]
        elif dtype not in ("string", "bool"):
            with np.errstate(all="ignore"):
                elements[:] = (elements * self.rng.choice([-1, 2, 0, 3, 10, 100])).astype(elements.dtype)
        value.update(encoded(array, dtype))

    def sizes(self):
        """Dimensions of one size are of another, in all inputs or in one."""
        inputs = self.inputs()
        dims = sorted({dim for value in inputs for dim in value["shape"]})
        if not dims:
            return
        old = self.rng.choice(dims)
        new = self.rng.choice([0, 1, 2, 3, 4, 5, 7, 9, 16, 17, old + 1, max(old - 1, 0), 2 * old])
        chosen = [self.rng.choice(inputs)] if self.rng.random() < 0.25 else inputs
        for value in chosen:
            shape = [new if dim == old else dim for dim in value["shape"]]
            if self.rng.random() < 0.1 and value["shape"].count(old) > 1:
                at = self.rng.choice([i for i, dim in enumerate(value["shape"]) if dim == old])
                shape = [new if i == at else dim for i, dim in enumerate(value["shape"])]
            self.reshape(value, shape)

    def ranks(self):
        """Inputs have a dimension more, or fewer."""
        inputs = self.inputs()
        chosen = inputs if self.rng.random() < 0.5 else [self.rng.choice(inputs)]
        more = self.rng.random() < 0.6
        size = self.rng.choice([1, 1, 2, 3])
        for value in chosen:
            self.reshape(value, [size, *value["shape"]] if more else value["shape"][1:])

    def reshape(self, value, shape):
        """Another shape, elements chosen among those that there were."""
        n = math.prod(shape)
        if n > MOST_ELEMENTS:
            return
        elements = decoded(value).reshape(-1)
        if elements.size == 0:
            zero = b"" if value["dtype"] == "string" else 1
            elements = np.array([zero], dtype=object if zero == b"" else numpy_of(value["dtype"]))
        if n <= elements.size:
            taken = elements[:n]
        else:
            more = [self.rng.randrange(elements.size) for _ in range(n - elements.size)]
            taken = np.concatenate([elements, elements[more]])
        value.update(encoded(taken.reshape(shape), value["dtype"]))

    def dtypes(self):
        """Another dtype for an attribute, and for the inputs that are of it."""
        types = [attr for attr in self.op_def.attr if attr.type == "type" and attr.name in self.case["attrs"]]
        if not types:
            return
        attr = self.rng.choice(types)
        allowed = [tf.as_dtype(dtype).name for dtype in attr.allowed_values.list.type]
        common = ["float32", "float64", "float16", "bfloat16", "int32", "int64", "int8", "uint8", "int16",
                  "uint16", "uint32", "uint64", "complex64", "complex128", "bool"]
        dtype = self.rng.choice(allowed or common)
        if dtype in ("string", "resource", "variant") or self.case["attrs"][attr.name] in ("string", "variant"):
            return
        self.case["attrs"][attr.name] = dtype
        for arg, held in zip(self.op_def.input_arg, self.case["inputs"]):
            if arg.type_attr == attr.name:
                for value in held if isinstance(held, list) else [held]:
                    with np.errstate(all="ignore"):
                        value.update(encoded(decoded(value).astype(numpy_of(dtype)), dtype))

    def attrs(self):
        """Another value for an attribute."""
        names = [name for name in self.case["attrs"] if name in self.kinds and self.is_free(name)]
        if not names:
            return
        name = self.rng.choice(names)
        attr, value = self.kinds[name], self.case["attrs"][name]
        self.case["attrs"][name] = self.changed(attr, attr.type, value)

    def is_free(self, name):
        args = [*self.op_def.input_arg, *self.op_def.output_arg]
        counted = any(name in (arg.number_attr, arg.type_list_attr, arg.type_attr) for arg in args)
        return not counted and self.kinds[name].type not in ("tensor", "func", "type", "list(type)", "list(func)")

    def changed(self, attr, kind, value):
        rng = self.rng
        if kind.startswith("list("):
            value = list(value)
            if value:
                at = rng.randrange(len(value))
                value[at] = self.changed(attr, kind[5:-1], value[at])
            return value
        match kind:
            case "int":
                return rng.choice([value + 1, max(value - 1, 0), 0, 1, 2, 3, -1, value * 2])
            case "bool":
                return not value
            case "float":
                number = float(value)
                return rng.choice([number * 2, -number, 0.0, 1.0, 0.5, number + 1.0])
            case "string":
                allowed = [text.decode() for text in attr.allowed_values.list.s]
                return rng.choice(allowed) if allowed else value
            case "shape" if value:
                at = rng.randrange(len(value))
                return [rng.choice([1, 2, 3, None]) if i == at else dim for i, dim in enumerate(value)]
            case _:
                return value

    def run(self):
        ways = [(4, self.values), (3, self.sizes), (1, self.ranks), (2, self.dtypes), (3, self.attrs)]
        for _ in range(self.rng.choice([1, 1, 2, 3])):
            way = self.rng.choices([way for _, way in ways], [weight for weight, _ in ways])[0]
            if self.case["inputs"] or way == self.attrs:
                way()


def is_base(case):
    """Whether the results of a case are fixed by its inputs, which are tensors."""
    words = case.get("compare", "exact")
    words = words if isinstance(words, list) else [words]
    held = [*flat(case["inputs"]), *flat(case.get("outputs") or [{"opaque": True}])]
    return not {"spec", "set"} & set(words) and not any("opaque" in value for value in held)


def mutant(op_def, bases, seed, number, with_limits):
    """The case of a seed and a number; None where TensorFlow refuses it."""
    rng = random.Random(f"{op_def.name} {seed} {number}")
    base = rng.choice(bases)
    kept = ("attrs", "inputs", "compare", "rtol", "atol")
    case = json.loads(json.dumps({key: base[key] for key in kept if key in base}))
    case["id"] = number
    Mutation(op_def, case, rng, with_limits).run()
    case["note"] = f"of case {base['id']}"
    dtypes = {tf.as_dtype(value["dtype"]) for value in flat(case["inputs"])}
    if any(dtype.is_floating or dtype.is_complex for dtype in dtypes):
        case["compare"] = "close"
        narrow = {tf.float16, tf.bfloat16} & dtypes
        least = 1e-2 if narrow else 1e-5 if {tf.float32, tf.complex64} & dtypes else 1e-8
        case["rtol"] = max(case.get("rtol", 0), least)
    numbers = np.random.default_rng(rng.getrandbits(32))
    try:
        return answered(op_def, case, numbers)
    except (tf.errors.OpError, ValueError, TypeError, LookupError, OverflowError, Refused):
        return None
    except Exception:
        traceback.print_exc()
        return None


def in_process(op_def, bases, seed, numbers, path, with_limits):
    """Writes mutants to a file, in a process of its own; the number of a call that ended the process."""
    process = os.fork()
    if process == 0:
        resource.setrlimit(resource.RLIMIT_AS, (MOST_MEMORY, MOST_MEMORY))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
        with open(path, "a") as file:
            for number in numbers:
                file.write(f'{{"begin": {number}}}\n')
                file.flush()
                signal.alarm(MOST_SECONDS)
                case = mutant(op_def, bases, seed, number, with_limits)
                signal.alarm(0)
                if case:
                    file.write(json.dumps(case, allow_nan=False) + "\n")
        os._exit(0)
    _, status = os.waitpid(process, 0)
    if status == 0:
        return None
    with open(path) as file:
        begun = [line for line in file if line.startswith('{"begin"')]
    return json.loads(begun[-1])["begin"] if begun else numbers.start


def write(folder, op, bases, seed, n, with_limits):
    """The file of an op, with all of its mutants."""
    op_def = op_def_registry.get(op)
    # Quantised convolutions and matmuls have kernels in oneDNN only.
    is_left_out = op in UNFIXED or op.startswith("Quantized") and ("Conv2D" in op or "MatMul" in op)
    if op_def is None or op_def.is_stateful or is_left_out:
        return 0
    path = os.path.join(folder, f"{op}.lines")
    numbers = range(n)
    while numbers:
        ended = in_process(op_def, bases, seed, numbers, path, with_limits)
        numbers = range(ended + 1, n) if ended is not None else range(0)
    with open(path) as file:
        lines = [line for line in file if line.endswith("}\n") and not line.startswith('{"begin"')]
    os.remove(path)
    if lines:
        cases = [json.loads(line) for line in lines]
        with gzip.open(os.path.join(folder, f"{op}.json.gz"), "wt") as file:
            json.dump({"op": op, "tf": tf.__version__, "cases": cases}, file)
    return len(lines)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--cases", required=True)
    parser.add_argument("--out", required=True)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--mutants", type=int, default=20)
    parser.add_argument("--part", default="0/1", help="one of so many parts of the ops, as 0/2")
    parser.add_argument("--op", action="append")
    parser.add_argument("--edges", action="store_true", help="infinities, NaN and the limits of dtypes, too")
    flags = parser.parse_args()
    os.makedirs(flags.out, exist_ok=True)
    part, parts = map(int, flags.part.split("/"))
    names = sorted(name for name in os.listdir(flags.cases) if name.endswith(".json.gz"))
    n_calls = 0
    for name in names[part::parts]:
        op = name.removesuffix(".json.gz")
        if flags.op and op not in flags.op:
            continue
        with gzip.open(os.path.join(flags.cases, name), "rt") as file:
            bases = [case for case in json.load(file).get("cases", []) if is_base(case)]
        if bases:
            n_calls += write(flags.out, op, bases, flags.seed, flags.mutants, flags.edges)
    print(f"{n_calls} calls")


if __name__ == "__main__":
    sys.exit(main())
