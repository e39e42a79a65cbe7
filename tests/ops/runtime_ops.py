"""Recipes of ops of TensorFlow's runtime and optimiser, of handles and references of TensorFlow 1, and of others that graphs alone have.

Run with TensorFlow 2.21, from the folder of the corpus (it has `generate.py` and `core.py`):
    python generate.py FOLDER --no-shared --recipes THIS_FILE [--only Op,...] [--seed S]
"""

import core
from core import *

X = {"_cmp": "exact"}
tf = tfm()

# Ops that have no function of Python: calls of them go to the op itself.
RAW = {"CustomAggregator", "_EagerConst", "_HostCast", "_ArrayToList", "_ListToArray", "_TensorToHashBucketFast", "_UnaryOpsComposition",
       "_VarHandlesOp", "_ReadVariablesOp", "Send", "Recv", "_Send", "_Recv", "_HostSend", "_HostRecv", "_ParallelConcatStart", "_ParallelConcatUpdate", "_Retval"}


def proto(op, name, value):
    """An attribute as a node has it."""
    kind = next(a.type for a in op_def(op).attr if a.name == name)
    fields = {"int": "i", "float": "f", "bool": "b", "string": "s", "type": "type", "shape": "shape"}
    one = lambda kind, v: (v.as_datatype_enum if kind == "type" else v.as_proto() if kind == "shape" else v.encode() if isinstance(v, str) else v)
    AV = tf.compat.v1.AttrValue
    if kind.startswith("list("):
        inner = kind[5:-1]
        return AV(list=AV.ListValue(**{fields[inner]: [one(inner, v) for v in value]}))
    return AV(**{fields[kind]: one(kind, value)})


def raw(op):
    """A function that adds a node to a graph, or calls the op."""
    def call(*ins, **kw):
        od = op_def(op)
        ins = list(ins) or [kw.pop(a.name) for a in od.input_arg]
        attrs = dict(kw)
        for arg, v in zip(od.input_arg, ins):
            if arg.number_attr:
                attrs[arg.number_attr] = len(v)
            if arg.type_list_attr:
                attrs[arg.type_list_attr] = [tf.as_dtype(x.dtype).base_dtype for x in v]
            if arg.type_attr:
                attrs[arg.type_attr] = tf.as_dtype((v[0] if isinstance(v, list) else v).dtype).base_dtype
        outs = []
        for arg in od.output_arg:
            of = lambda: tf.as_dtype(attrs[arg.type_attr]) if arg.type_attr else tf.as_dtype(arg.type)
            outs += list(attrs[arg.type_list_attr]) if arg.type_list_attr else [of()] * (attrs[arg.number_attr] if arg.number_attr else 1)
        graph = tf.compat.v1.get_default_graph()
        node = graph.create_op(op, list(flat(ins)), [tf.as_dtype(t) for t in outs], name="node", attrs={k: proto(op, k, v) for k, v in attrs.items()})
        if not od.output_arg:
            return node
        many = any(a.number_attr or a.type_list_attr for a in od.output_arg)
        return list(node.outputs) if many or len(od.output_arg) > 1 else node.outputs[0]
    return call


for name in RAW:
    setattr(tf.raw_ops, name, raw(name))
    core._names[name] = [a.name for a in op_def(name).input_arg]


family("handle")


@rec("Barrier")
def _(g):
    make = lambda **kw: ST("Barrier", **dict(dict(component_types=["float32", "int64"], shapes=[[2], []], shared_name=g.name("b")), **kw))
    ct = dict(component_types=["float32", "int64"])
    put = lambda keys, values, index, **kw: ST("BarrierInsertMany", R(0), S(keys), values, component_index=index, **kw)
    take = lambda n, **kw: ST("BarrierTakeMany", R(0), I32(n), **dict(ct, **kw))
    sizes = [ST("BarrierReadySize", R(0)), ST("BarrierIncompleteSize", R(0))]
    rows = lambda n: g.arr("float32", [n, 2])
    close = lambda cancel=False, **kw: ST("BarrierClose", R(0), cancel_pending_enqueues=cancel, **kw)
    yield SEQ([make(), put(["a", "b"], rows(2), 0)] + sizes + [put(["b"], I64([7]), 1)] + sizes + [put(["b"], I64([8]), 1), put(["a", "a"], I64([9, 10]), 1)] + sizes +
              [put(["c", "a"], I64([5, 6]), 1, _err=True)] + sizes + [take(2)] + sizes + [take(1, timeout_ms=100, _err=True), close(), close(_err=True), put(["d"], I64([5]), 1, _err=True),
               put(["c"], rows(1), 0)] + sizes + [take(3, allow_small_batch=True), take(3, allow_small_batch=True, _err=True)] + sizes + [close(True), close(True, _err=True)] + sizes, "graph")
    yield SEQ([make(), put(["a"], g.arr("float32", [1, 3]), 0), put(["a"], rows(1), 2, _err=True), put(["a"], rows(1), 0, _err=True)] + sizes + [put(["a"], I64([1]), 1, _err=True)] + sizes + [put(["a"], rows(1), 0)] + sizes, "graph")
    yield SEQ([make(), put(["a"], rows(1), 0), close(), take(1, allow_small_batch=True, _err=True), take(0), put(["a"], I64([1]), 1)] + sizes + [take(0), take(2, allow_small_batch=True), take(1, _err=True)], "graph")
    yield SEQ([make(), put(["a"], rows(1), 0), put(["b"], rows(1), 0), put(["a"], I64([1]), 1), close(True)] + sizes + [put(["b"], I64([1]), 1, _err=True), take(2, allow_small_batch=True), take(1, allow_small_batch=True, _err=True)], "graph")
    yield SEQ([make(), put(["a", "b", "a"], rows(3), 0, _err=True)] + sizes + [put([], np.zeros([0], np.int64), 1), put(["b"], rows(1), 1, _err=True)], "graph")
    one = dict(component_types=["string"], shapes=[[]])
    yield SEQ([ST("Barrier", shared_name=g.name("b"), **one), put(["x", "y", "z"], S(["1", "2", "3"]), 0), ST("BarrierTakeMany", R(0), I32(2), component_types=["string"]), ST("BarrierReadySize", R(0)), ST("BarrierTakeMany", R(0), I32(1), component_types=["string"])], "graph")


@rec("SparseConditionalAccumulator")
def _(g):
    h = R(0)
    for dt in ("float32", "float64", "float16"):
        for red in ("MEAN", "SUM"):
            make = lambda shape: ST(g.op, dtype=dt, shape=shape, reduction_type=red, shared_name=g.name("a"))
            put = lambda step, indices, rows, shape=[], known=False, **kw: ST("SparseAccumulatorApplyGradient", h, I64(step), I64(indices), rows, I64(shape), has_known_shape=known, **kw)
            take = lambda n, **kw: ST("SparseAccumulatorTakeGradient", h, I32(n), dtype=dt, **kw)
            rows = lambda n: g.arr(dt, [n, 2])
            count = ST("AccumulatorNumAccumulated", h)
            yield SEQ([make([4, 2]), count, put(0, [0, 2], rows(2)), put(1, [1, 2, 3], rows(3), [4, 2], True), count, take(2), count, put(0, [1], rows(1)), count, put(1, [1], rows(1)), put(5, [1], rows(1)),
                       put(1, [3, 1], rows(2)), take(1), ST("AccumulatorSetGlobalStep", h, I64(9)), put(8, [0], rows(1)), count, put(9, [0], rows(1)), take(0, _err=True), take(1)], "graph")
            yield SEQ([make([4, 2]), put(0, [4], rows(1), _err=True), put(0, [0], g.arr(dt, [1, 3]), _err=True), put(0, [0, 1], rows(1), _err=True), put(0, [0], rows(1), [5, 2], True, _err=True), put(0, [0], rows(1), [4], True, _err=True), count], "graph")
            yield SEQ([make([None, None]), put(0, [7, 9], rows(2)), put(0, [9], g.arr(dt, [1, 3]), _err=True), put(0, [8], rows(1), [10, 2], True), take(1)], "graph")
            yield SEQ([make(None), put(0, [7], g.arr(dt, [1])), put(0, [7], g.arr(dt, [1])), take(1)], "graph")


@rec("Stack")
def _(g):
    for dt in ("float32", "string", "int64"):
        x, y = g.arr(dt, [2]), g.arr(dt, [])
        st = [ST("Stack", elem_type=dt, stack_name=g.one(["", "s"])), ST("StackPush", R(0), x), ST("StackPush", R(0), y), ST("StackPop", R(0), elem_type=dt), ST("StackPush", R(0), x), ST("StackPop", R(0), elem_type=dt), ST("StackPop", R(0), elem_type=dt), ST("StackClose", R(0))]
        yield SEQ(st, "graph_once")


family("state")


@rec("TemporaryVariable")
def _(g):
    for dt in ("float32", "int32", "float64"):
        x = lambda: g.arr(dt, [2, 2])
        name = g.one(["", "t"])
        yield SEQ([ST("TemporaryVariable", shape=[2, 2], dtype=dt, var_name="t"), ST("Assign", R(0), x()), ST("AssignAdd", R(1), x()), ST("DestroyTemporaryVariable", R(2), var_name="t")], "graph_once")
        yield SEQ([ST("TemporaryVariable", shape=[2, 2], dtype=dt, var_name="t"), ST("TemporaryVariable", shape=[2, 2], dtype=dt, var_name="u"), ST("Assign", R(0), x()), ST("Assign", R(1), x()), ST("AssignSub", R(2), x()),
                   ST("DestroyTemporaryVariable", R(4), var_name="t"), ST("DestroyTemporaryVariable", R(3), var_name="u")], "graph_once")


@rec("RefSelect")
def _(g):
    for dt in ("float32", "int64"):
        for index in (0, 1, 2):
            x = lambda: g.arr(dt, [2])
            st = [ST("VariableV2", shape=[2], dtype=dt, shared_name=g.name("v")) for _ in range(3)]
            st += [ST("Assign", R(k), x()) for k in range(3)] + [ST("RefSelect", I32(index), [R(3), R(4), R(5)]), ST("AssignAdd", R(6), x())]
            yield SEQ(st, "graph_once")


@rec("DebugGradientRefIdentity")
def _(g):
    for dt in ("float32", "string"):
        st = [ST("VariableV2", shape=[2], dtype=dt, shared_name=g.name("v")), ST("Assign", R(0), g.arr(dt, [2])), ST("DebugGradientRefIdentity", R(1)), ST("Assign", R(2), g.arr(dt, [2]))]
        yield SEQ(st, "graph_once")


@rec("SdcaShrinkL1")
def _(g):
    for l1, l2 in ((1.0, 2.0), (0.0, 1.0), (3.0, 1.0)):
        st = [ST("VariableV2", shape=[n], dtype="float32", shared_name=g.name("v")) for n in (3, 5)]
        st += [ST("Assign", R(k), F32(g.rng.uniform(-2, 2, n))) for k, n in ((0, 3), (1, 5))] + [ST("SdcaShrinkL1", [R(2), R(3)], l1=l1, l2=l2), ST("RefIdentity", R(0)), ST("RefIdentity", R(1))]
        yield SEQ(st, "graph_once")


# Ops on blocks of variables run in functions that XLA compiles only.
BLOCKS = {"ReadVariableXlaSplitND", "AssignVariableXlaConcatND"}
_eager = core.call_op


def call_op(op, ins, kw):
    if op not in BLOCKS:
        return _eager(op, ins, kw)
    def run(*xs):
        return list(flat(_eager(op, [ins[0], list(xs)] if xs else ins, kw)))
    outs = list(tf.function(run, jit_compile=True, autograph=False)(*(ins[1] if len(ins) > 1 else [])))
    return [outs] if outs else []


core.call_op = call_op


@rec("ReadVariableXlaSplitND", "AssignVariableXlaConcatND")
def _(g):
    for dt in ("float32", "int32"):
        for counts in ([2], [2, 1], [1, 3], [2, 2]):
            s = g.shape(len(counts), 2, 3)
            whole = [a * b for a, b in zip(s, counts)]
            n = int(np.prod(counts))
            for pad in ([], [g.int(0, 1) for _ in counts]):
                own = [a - b for a, b in zip(whole, pad or [0] * len(whole))]
                h = ST("VarHandleOp", dtype=dt, shape=own, shared_name=g.name("v"))
                st = [h, ST("AssignVariableOp", R(0), g.arr(dt, own)), ST("AssignVariableXlaConcatND", R(0), [g.arr(dt, s) for _ in range(n)], num_concats=counts, paddings=pad), ST("ReadVariableOp", R(0), dtype=dt),
                      ST("ReadVariableXlaSplitND", R(0), T=dt, N=n, num_splits=counts, paddings=pad)]
                yield SEQ(st)


family("session")


@rec("SyncDevice")
def _(g):
    yield SEQ([ST("SyncDevice")], "graph")


family("file")


@rec("ImmutableConst")
def _(g):
    for dt, shape in (("float32", [2, 2]), ("int64", [3]), ("uint8", []), ("complex64", [1])):
        # A kernel keeps the file that it found first.
        x, n = g.arr(dt, shape), g.name("data")
        yield SEQ([ST("WriteFile", S(n), S(x.tobytes())), ST(g.op, dtype=dt, shape=shape, memory_region_name=n)])
    n = g.name("data")
    yield SEQ([ST("WriteFile", S(n), S(b"abc")), ST(g.op, dtype="uint8", shape=[2], memory_region_name=n), ST(g.op, dtype="uint8", shape=[1], memory_region_name="nope", _err=True)])


@rec("GenerateVocabRemapping")
def _(g):
    files = [ST("WriteFile", S("new"), S("a\nb\nc\nd\n")), ST("WriteFile", S("old"), S("c\nx\na\nb"))]
    for offset, n, size in ((0, 4, -1), (1, 2, -1), (0, 4, 2), (4, 0, -1), (0, 3, 4)):
        yield SEQ(files + [ST(g.op, S("new"), S("old"), new_vocab_offset=offset, num_new_vocab=n, old_vocab_size=size)])
    for offset, n, size in ((2, 3, -1), (0, 4, 9)):
        yield SEQ(files + [ST(g.op, S("new"), S("old"), new_vocab_offset=offset, num_new_vocab=n, old_vocab_size=size, _err=True)])
    yield SEQ(files + [ST(g.op, S("nope"), S("old"), new_vocab_offset=0, num_new_vocab=1, _err=True), ST(g.op, S(""), S("old"), new_vocab_offset=0, num_new_vocab=1, _err=True)])
    yield SEQ([files[0], ST("WriteFile", S("old"), S("c\nc\n")), ST(g.op, S("new"), S("old"), new_vocab_offset=0, num_new_vocab=1, _err=True)])


@rec("LoadAndRemapMatrix")
def _(g):
    m = g.arr("float32", [5, 3])
    save = [ST("SaveV2", S("ck"), S(["m", "v"]), S(["", ""]), [m, g.arr("float32", [3])])]
    call = lambda rows, cols, values, n_cols=None, name="m", **kw: ST(g.op, S("ck"), S(name), I64(rows), I64(cols), F32(values), num_rows=len(rows), num_cols=n_cols or len(cols) or 3, **kw)
    yield SEQ(save + [call([4, 0, 2], [], []), call([4, -1, 2], [], [1, 2, 3]), call([1, 2], [2, -1, 0, 1], [7, 8]), call([-1, -1], [0, 1, 2], range(6)), call([], [0], []), call([3, 1], [1], [], max_rows_in_memory=1)])
    yield SEQ(save + [call([4, 0, 2], [], [1], _err=True), call([4, -1], [], [1], _err=True), call([4, 4], [], [], _err=True), call([0], [0, 0], [], _err=True), call([0], [], [], 2, _err=True), call([0], [0, 1], [], name="v", _err=True), call([0], [0, 1], [], name="x", _err=True)])


@rec("Save", "SaveSlices")
def _(g):
    for dt in ("float32", "float64", "int32", "int64", "uint8", "int8", "int16", "uint16", "bool", "string", "complex64", "complex128", "float16"):
        x, y = g.arr(dt, [2, 3]), g.arr(dt, [])
        slices = [S(["", ""])] if g.op == "SaveSlices" else []
        yield SEQ([ST(g.op, S("old"), S(["x", "y"]), *slices, [x, y]), ST("Restore", S("old"), S("x"), dt=dt), ST("RestoreV2", S("old"), S(["y", "x"]), S(["", ""]), dtypes=[dt, dt])])
    if g.op == "SaveSlices":
        a, b = g.arr("float32", [2, 2]), g.arr("float32", [2, 2])
        yield SEQ([ST(g.op, S("old"), S(["x", "x", "y"]), S(["4 2 0,2:-", "4 2 2,2:-", ""]), [a, b, I32(3)]), ST("Restore", S("old"), S("x"), dt="float32"), ST("RestoreSlice", S("old"), S("x"), S("4 2 1,2:-"), dt="float32")])
        yield SEQ([ST(g.op, S("old"), S(["x"]), S(["4 2 0,2:-"]), [F32([[1, 2]])], _err=True)])
    else:
        yield SEQ([ST(g.op, S("old"), S(["x"]), [F32([1]), F32([2])], _err=True)])


family("batch")


@rec("Batch")
def _(g):
    kw = lambda **more: dict(dict(num_batch_threads=1, max_batch_size=4, batch_timeout_micros=1000, grad_timeout_micros=0, shared_name=g.name("b")), **more)
    half = {"_cmp": "spec"}
    yield SEQ([ST(g.op, [g.arr("float32", [2, 2]), g.arr("int32", [2])], **half, **kw())])
    yield SEQ([ST(g.op, [g.arr("float32", [2, 2])], **half, **kw(allowed_batch_sizes=[3, 4]))])
    for bad in ([F32(1)], [g.arr("float32", [5, 1])], [g.arr("float32", [2]), g.arr("float32", [1])]):
        yield SEQ([ST(g.op, bad, _err=True, **kw())])
    for more in (dict(allowed_batch_sizes=[4, 3]), dict(allowed_batch_sizes=[2]), dict(num_batch_threads=0), dict(max_batch_size=0)):
        yield SEQ([ST(g.op, [g.arr("float32", [2, 2])], _err=True, **kw(**more))])
    yield SEQ([ST(g.op, [np.zeros([0, 1], np.float32)], **kw())])
    # What a run put into its batch comes back to it.
    n = g.name("u")
    yield SEQ([ST(g.op, [g.arr("float32", [2, 2])], **half, **kw()), ST("Unbatch", R(0, 0), R(0, 1), R(0, 2), timeout_micros=10 ** 6, shared_name=n), ST("UnbatchGrad", R(0, 0), R(0, 1), g.arr("float32", [2, 2]), R(0, 2), shared_name=g.name("w"))])


@rec("Unbatch")
def _(g):
    kw = dict(timeout_micros=10 ** 6, shared_name=g.name("u"))
    x = g.arr("float32", [3, 2])
    none = np.zeros([0, 2], np.float32), np.zeros([0, 3], np.int64)
    yield SEQ([ST(g.op, x, I64([[5, 0, 1], [6, 1, 3]]), I64(5), **kw), ST(g.op, *none, I64(6), **kw), ST(g.op, *none, I64(6), _err=True, **dict(kw, timeout_micros=1000))])
    kw = dict(timeout_micros=1000, shared_name=g.name("v"))
    yield SEQ([ST(g.op, x, I64(index), I64(5), _err=True, **kw) for index in ([[5, 0]], [[5, 0, 1]] * 4, [[5, 0, 9]])])


@rec("UnbatchGrad")
def _(g):
    kw = dict(shared_name=g.name("w"))
    x = g.arr("float32", [2, 2])
    yield SEQ([ST(g.op, x, I64([[5, 0, 2]]), x, I64(5), **kw), ST(g.op, np.zeros([0, 2], np.float32), np.zeros([0, 3], np.int64), x[:1], I64(8), **kw), ST(g.op, x, I64([[9, 0, 1], [8, 1, 2]]), x[1:], I64(9), **kw),
               ST(g.op, x, np.zeros([0, 3], np.int64), x, I64(3), _err=True, **kw)])


family("composite")


@rec("CompositeTensorVariantFromComponents", "CompositeTensorVariantToComponents")
def _(g):
    from tensorflow.core.protobuf import composite_tensor_variant_pb2 as pb
    from tensorflow.python.saved_model import nested_structure_coder
    def spec(s):
        p = pb.CompositeTensorVariantMetadata()
        p.type_spec_proto.CopyFrom(nested_structure_coder.encode_structure(s).type_spec_value)
        return p.SerializeToString()
    ragged, sparse = spec(tf.RaggedTensorSpec([None, None], tf.float32)), spec(tf.SparseTensorSpec([None], tf.float32))
    parts = [F32([1, 2, 3]), I64([0, 1, 3])]
    types = ["float32", "int64"]
    to = lambda meta, types, **kw: ST("CompositeTensorVariantToComponents", R(0), metadata=meta, Tcomponents=types, **kw)
    yield SEQ([ST("CompositeTensorVariantFromComponents", parts, metadata=ragged), to(ragged, types), to(sparse, types, _err=True), to(ragged, types[:1], _err=True), to(ragged, types[::-1], _err=True), to(b"\x0b", types, _err=True)])
    yield SEQ([ST("CompositeTensorVariantFromComponents", parts, metadata=b"\x0a\x05", _err=True)])


family("debug")


@rec("DebugNumericSummary")
def _(g):
    for x in (F32([[1, 2, -3], [4, 5, np.nan]]), I64([3, -1, 0]), A([True, False], "bool"), np.zeros([0, 2], np.float64), A([np.inf, -np.inf, np.nan, 3, -1e-300, 0], "float64"), A(3, "uint8"), A([-4, 9], "int8")):
        yield C(x, tensor_name="n:0")
        yield C(x, tensor_name="n:0", lower_bound=-0.5, upper_bound=2.0, mute_if_healthy=g.one([True, False]))


@rec("DebugNumericSummaryV2")
def _(g):
    xs = [F32([[1, 2, -3], [4, 5, np.nan]]), I64([3, -1, 0]), A([True, False], "bool"), np.zeros([0, 2], np.float64), A([np.inf, -np.inf, 3, -1e-300, 0], "float64"), A(3, "uint8"), np.zeros([1, 2, 3, 4, 5, 6, 7, 2], np.float16), A([-0.0, 2], "bfloat16")]
    for mode in (2, 3, 4, 5, 8):
        for x in xs:
            yield C(x, tensor_debug_mode=mode, tensor_id=g.int(-1, 2 ** 24), output_dtype=g.one(["float32", "float64"]))
    for mode in (-1, 0, 1, 6, 7):
        yield C(xs[0], tensor_debug_mode=mode, tensor_id=1, _err=True)
    yield C(xs[0], tensor_debug_mode=2, tensor_id=2 ** 24 + 1, _err=True)


family("cluster")


@rec("KMC2ChainInitialization")
def _(g):
    for n in (1, 2, 5, 30):
        yield C(F32(g.rng.uniform(0, 3, n)), I64(g.int(0, 10 ** 6)), **X)
    yield C(F32([]), I64(1), _err=True)
    yield C(F32([[1]]), I64(1), _err=True)


@rec("KmeansPlusPlusInitialization")
def _(g):
    for n, k in ((1, 1), (5, 2), (9, 4), (6, 6), (30, 3)):
        for retries in (0, 1, -1):
            yield C(F32(g.rng.uniform(-3, 3, [n, 2])), I64(k), I64(g.int(0, 10 ** 6)), I64(retries), **X)
    x = F32([[1, 2], [3, 4]])
    for bad in ((x, I64(3), I64(1), I64(0)), (x, I64(0), I64(1), I64(0)), (F32([1]), I64(1), I64(1), I64(0)), (np.zeros([0, 2], np.float32), I64(1), I64(1), I64(0))):
        yield C(*bad, _err=True)


family("quantized")


@rec("QuantizedBatchNormWithGlobalNormalization")
def _(g):
    for scaled in (False, True):
        for _ in range(4):
            c = g.int(2, 4)
            q = lambda *s: Q("quint8", g.rng.integers(0, 256, s))
            ends = lambda: (F32(-g.rng.uniform(0, 20)), F32(g.rng.uniform(1, 20)))
            yield C(q(g.int(1, 2), 2, g.int(1, 2), c), *ends(), q(c), *ends(), q(c), F32(0), F32(g.rng.uniform(1, 9)), q(c), *ends(), q(c), *ends(), out_type="qint32", variance_epsilon=0.001, scale_after_normalization=scaled, **X)


family("variables")


@rec("_VarHandlesOp")
def _(g):
    n = 2
    names = [g.name("v") for _ in range(n)]
    st = [ST("_VarHandlesOp", N=n, containers=[""] * n, shared_names=names, dtypes=["float32", "int64"], shapes=[[2], []]), ST("AssignVariableOp", R(0, 0), F32([1, 2])), ST("AssignVariableOp", R(0, 1), I64(7)),
          ST("_ReadVariablesOp", [R(0, 1), R(0, 0)], dtypes=["int64", "float32"]), ST("VarHandleOp", dtype="float32", shape=[2], shared_name=names[0]), ST("ReadVariableOp", R(4), dtype="float32")]
    yield SEQ(st, "graph")


family("array")


@rec("_EagerConst")
def _(g):
    for dt in ("float32", "string", "bool"):
        yield SEQ([ST(g.op, g.arr(dt, g.shape(2)))], "graph")


@rec("_HostCast")
def _(g):
    for a in ("float32", "int32", "bool", "bfloat16", "complex64"):
        for b in ("int64", "float16", "bool", "uint8"):
            yield SEQ([ST(g.op, g.arr(a, [3], 0, 5), DstT=b)], "graph")
    yield SEQ([ST(g.op, F32([1.00390625, 3.14159]), DstT="bfloat16", Truncate=True)], "graph")


@rec("_ArrayToList", "_ListToArray")
def _(g):
    for dt in ("float32", "int32", "string"):
        n = g.int(1, 3)
        more = dict(out_types=[dt] * n) if g.op == "_ArrayToList" else dict(T=dt, N=n)
        yield SEQ([ST(g.op, [g.arr(dt, g.shape(1)) for _ in range(n)], **more)], "graph")


@rec("_TensorToHashBucketFast")
def _(g):
    for dt in ("int8", "int16", "int32", "int64"):
        yield SEQ([ST(g.op, g.arr(dt, [2, 3], -100, 100), num_buckets=g.int(1, 10 ** 9))], "graph")


@rec("_UnaryOpsComposition")
def _(g):
    fine = "Abs Asinh Atan Ceil Cos Cosh Elu Exp Expm1 Floor Neg Relu Relu6 Rint Round Selu Sigmoid Sin Sinh Square Tan Tanh".split()
    for dt in ("float32", "float64"):
        for _ in range(8):
            yield SEQ([ST(g.op, g.arr(dt, [5], -2, 2), op_names=g.some(fine, g.int(1, 3)), _tol=1e-4)], "graph")
        yield SEQ([ST(g.op, g.arr(dt, [5], 1.5, 2), op_names=names) for names in (["Acosh"], ["Inv", "Reciprocal"], ["Log", "Log1p"], ["Rsqrt", "Sqrt"], ["Inv", "Acos"], ["Inv", "Asin", "Sigmoid", "Atanh"])], "graph")
    yield SEQ([ST(g.op, F32([1]), op_names=["Sign"], _err=True)], "graph")
    yield SEQ([ST(g.op, F32([1]), op_names=[], _err=True)], "graph")


@rec("_ParallelConcatStart")
def _(g):
    for dt in ("float32", "int64", "string"):
        for locs in ([0, 1], [1, 0], [-1, 0]):
            st = [ST(g.op, shape=[2, 2], dtype=dt)] + [ST("_ParallelConcatUpdate", R(0), g.arr(dt, [1, 2]), loc=l) for l in locs] + [ST("Identity", R(0))]
            yield SEQ(st, "graph_once")


@rec("CustomAggregator")
def _(g):
    for method in range(1, 8):
        for bins in (0, 4, 20):
            yield SEQ([ST(g.op, g.arr("float32", g.shape(2), -3, 9), id="1", calibration_method=method, num_bins=bins, min_percentile=0.1, max_percentile=99.9)], "graph")
    for x in ([], [1, 1], [0.5, np.inf], [0.1, 0.9, np.nan]):
        yield SEQ([ST(g.op, F32(x), id="1", calibration_method=1, num_bins=4)], "graph")
    yield SEQ([ST(g.op, F32([1]), id="1", _err=True)], "graph")


family("parse")


@rec("DecodeJSONExample")
def _(g):
    one = lambda kind, value: '{"features":{"feature":{"a":{"%s":{"value":%s}}}}}' % (kind, value)
    fine = [one("int64List", '[1,"2",-3,1.0,1e2]'), one("int64_list", "1"), one("floatList", '["Infinity","-Infinity","NaN",1,"2.5",-0.0]'), one("bytesList", '["YWI="]'), one("bytesList", '["_-8=","YWI"]'),
            '{"features":{"feature":{"b":{},"a":{"bytesList":{}}, "c":null}}}', one("bytesList", "[]"), '{"features":{"feature":{}}}', '{"features":{}}', "{}", '{"features":null}',
            '{"features":{"feature":{"\\u00e9":{"int64List":{"value":[9223372036854775807,-9223372036854775808]}}}}} ', '{"features":{"feature":{"a":{"int64List":{"value":[1]}}}},"features":{"feature":{"b":{"int64List":{"value":[1]}}}}}', "{'features':{}}", "{features:{}}"]
    yield C(S(fine))
    for text in fine:
        yield C(S(text))
    for text in (one("int64List", "[1.5]"), one("floatList", "[1e300]"), one("bytesList", '["Y W"]'), "[]", "", "null", '{"x":1}', one("int64List", '["99999999999999999999"]'), one("int64List", "[true]"), "{", '{"features":{}} x',
                 '{"features":{"feature":{"a":{"int64List":{"value":[1]},"floatList":{"value":[1]}}}}}', '{"features":{"feature":{"a":{"int64List":{"value":[1]}},"a":{"int64List":{"value":[2]}}}}}'):
        yield C(S(text), _err=True)


family("dataset")


@rec("GetOptions")
def _(g):
    kw = dict(output_types=["int64"], output_shapes=[[]])
    told = []
    for change in (lambda o: setattr(o, "deterministic", True), lambda o: setattr(o, "experimental_slack", True), lambda o: (setattr(o.autotune, "enabled", False), setattr(o.threading, "private_threadpool_size", 3)), lambda o: setattr(o.threading, "max_intra_op_parallelism", 1)):
        o = tf.data.Options()
        change(o)
        told.append(o._to_proto().SerializeToString())
    for _ in range(6):
        a, b = g.one(told), g.one(told)
        set_ = lambda d, o: ST("OptionsDataset", R(d), serialized_options=o, **kw)
        two = dict(output_types=["int64"] * 2, output_shapes=[[], []])
        yield SEQ([ST("RangeDataset", I64(0), I64(5), I64(1), **kw), ST("GetOptions", R(0)), set_(0, a), ST("GetOptions", R(2)), ST("SkipDataset", R(2), I64(1), **kw), ST("GetOptions", R(4)), set_(4, b), ST("GetOptions", R(6)),
                   set_(0, b), ST("ZipDataset", [R(2), R(8)], **two), ST("GetOptions", R(9)), ST("ConcatenateDataset", R(8), R(2), **kw), ST("GetOptions", R(11))])


family("session")


@rec("Send", "_Send", "_HostSend")
def _(g):
    device = "/job:localhost/replica:0/task:0/device:CPU:0"
    for dt in ("float32", "string"):
        kw = dict(tensor_name=g.name("t"), send_device=device, send_device_incarnation=1, recv_device=device)
        st = [ST("Identity", g.arr(dt, [2])), ST(g.op, R(0), **kw), ST(g.op.replace("Send", "Recv"), tensor_type=dt, **kw), ST("Identity", R(2))]
        yield SEQ(st, "graph_once")


family("string")


@rec("SdcaFprint")
def _(g):
    yield C(S([bytes(g.rng.integers(0, 256, n, dtype=np.uint8)) for n in range(0, 70)]), **X)
    yield C(S([bytes(g.rng.integers(0, 256, n, dtype=np.uint8)) for n in (127, 128, 129, 143, 144, 145, 159, 160, 175, 176, 177, 191, 192, 208, 240, 271, 272, 273, 300, 399, 400, 1000)]), **X)
    yield C(np.zeros([0], object), **X)
    yield C(S("a"), _err=True)
