"""Recipes of ops beyond those of the op corpus: candidates, readers, handles of TensorFlow 1, backward ops and others.

Run with TensorFlow 2.21, from the folder of the corpus (it has `generate.py` and `core.py`):
    python generate.py FOLDER --no-shared --recipes THIS_FILE [--only Op,...] [--seed S]
"""

import core
from core import *

X = {"_cmp": "exact"}

# Ops that TensorFlow has for XLA only run inside a compiled function.
COMPILED = {"SegmentMaxV2", "SegmentMinV2", "SegmentProdV2", "SegmentSumV2", "XlaConcatND", "XlaSplitND"}
_eager = core.call_op


def call_op(op, ins, kw):
    if op not in COMPILED:
        return _eager(op, ins, kw)
    tf = tfm()
    static = [i for i, a in enumerate(op_def(op).input_arg) if a.name == "num_segments"]
    def run(*xs):
        return tuple(flat(_eager(op, [ins[i] if i in static else x for i, x in enumerate(xs)], kw)))
    outs = list(tf.function(run, jit_compile=True, autograph=False)(*ins))
    return [outs] if op == "XlaSplitND" else outs


core.call_op = call_op

family("backward")


@rec("BlockLSTMGrad", "BlockLSTMGradV2")
def _(g):
    tf = tfm()
    forward = tf.raw_ops.BlockLSTM if g.op == "BlockLSTMGrad" else tf.raw_ops.BlockLSTMV2
    for ph in (False, True):
        t, b, i, c = g.int(2, 4), g.int(1, 3), g.int(1, 3), g.int(1, 3)
        f = lambda *s: g.arr("float32", s, -1, 1)
        n = I64(g.int(1, t))
        ins = [f(t, b, i), f(b, c), f(b, c), f(i + c, 4 * c), f(c), f(c), f(c), f(4 * c)]
        outs = [y.numpy() for y in forward(seq_len_max=n, x=ins[0], cs_prev=ins[1], h_prev=ins[2], w=ins[3], wci=ins[4], wcf=ins[5], wco=ins[6], b=ins[7], cell_clip=-1.0, use_peephole=ph)]
        # The gates of steps after seq_len_max are left unset.
        outs = [np.concatenate([y[:int(n)], np.zeros_like(y[int(n):])]) for y in outs]
        yield C(n, *ins, *outs, f(t, b, c), f(t, b, c), use_peephole=ph)


@rec("FractionalAvgPoolGrad")
def _(g):
    for dt in ("float32", "float64", "int32", "int64"):
        # The sums of overlapping windows round in another order, which shows where integers are cut off.
        for ov in (False, True) if dt.startswith("float") else (False,):
            rows, cols = I64([0, 2, 3, 5, 7]), I64([0, 1, 3, 4, 6])
            yield C(I64([2, 7, 6, 2]), g.arr(dt, [2, 4, 4, 2], 0, 50), rows, cols, overlapping=ov)


@rec("FractionalMaxPoolGrad")
def _(g):
    tf = tfm()
    for dt in ("float32", "float64", "int32", "int64"):
        for ov in (False, True):
            x = g.arr(dt, [2, 7, 6, 2], 0, 9)
            y, r, c = tf.raw_ops.FractionalMaxPool(value=x, pooling_ratio=[1.0, 1.5, 1.3, 1.0], overlapping=ov, deterministic=True, seed=g.int(1, 99), seed2=g.int(1, 99))
            yield C(x, y.numpy(), g.arr(dt, y.shape, 0, 9), r.numpy(), c.numpy(), overlapping=ov)


@rec("ScaleAndTranslateGrad")
def _(g):
    for kt in ("lanczos1", "lanczos3", "lanczos5", "gaussian", "box", "triangle", "keyscubic", "mitchellcubic"):
        for aa in (True, False):
            h = g.int(3, 5)
            yield C(g.arr("float32", [1, g.int(2, 7), 5, 2], 0, 5), g.arr("float32", [1, h, 4, 2], 0, 5), F32([g.rng.uniform(.5, 2), 1.2]), F32([g.rng.uniform(-1, 1), .3]), kernel_type=kt, antialias=aa, _rtol=1e-4, _atol=1e-4)


family("search")


@rec("ApproxTopK")
def _(g):
    for dt in ("float32", "float16", "bfloat16"):
        for k in (0, 1, 3):
            x = g.rng.permutation(np.arange(24) - 10).reshape(g.one([[24], [4, 6], [2, 2, 6]])).astype(NP[dt])
            yield C(x, k=k, **X)
    yield C(F32([1, 3, 3, 2, 3]), k=3, _note="ties", **X)


family("segment")


@rec("SegmentMaxV2", "SegmentMinV2", "SegmentProdV2", "SegmentSumV2")
def _(g):
    for dt in ("float32", "float64", "int32", "int64", "bfloat16"):
        it = g.one([np.int32, np.int64])
        n = g.int(3, 6)
        ids = np.sort(g.rng.integers(0, 4, n)).astype(it)
        yield C(g.arr(dt, [n] + g.shape(g.int(0, 2)), -3, 3), ids, it(g.int(4, 6)), _grad=False)


family("blocks")


@rec("XlaConcatND")
def _(g):
    for dt in ("float32", "int32", "complex64", "bool"):
        for counts in ([2], [2, 1], [1, 3], [2, 2], [2, 1, 2]):
            s = g.shape(len(counts), 2, 3)
            for pad in ([], [g.int(0, 1) for _ in counts]):
                n = int(np.prod(counts))
                yield C([g.arr(dt, s) for _ in range(n)], num_concats=counts, paddings=pad, _grad=False, **X)


@rec("XlaSplitND")
def _(g):
    for dt in ("float32", "int32", "complex64"):
        for counts in ([2], [2, 1], [1, 3], [2, 2], [2, 1, 2]):
            for padded in (False, True):
                pad = [g.int(0, 1) if padded else 0 for _ in counts]
                s = [c * g.int(1, 2) - p if c * 2 > p else 1 for c, p in zip(counts, pad)]
                if all((a + p) % c == 0 and a > 0 for a, p, c in zip(s, pad, counts)):
                    yield C(g.arr(dt, s), N=int(np.prod(counts)), num_splits=counts, paddings=pad, _grad=False, **X)


family("array")


@rec("ToBool")
def _(g):
    for x in (F32(0), F32(2), A(-0.0, "float64"), I32(0), I64(-3), A(True, "bool"), A(0, "uint8"), S(""), S("a"), F32([0.0]), F32([]), np.zeros([0, 2], np.int32), I32([[0]])):
        yield C(x, **X)


@rec("ParallelConcat")
def _(g):
    for dt in ("float32", "int32", "int64", "bool", "complex64"):
        s = g.shape(g.int(0, 2))
        n = g.int(1, 3)
        yield C([g.arr(dt, [1] + s) for _ in range(n)], shape=[n] + s, _grad=False, **X)


@rec("Copy", "CopyHost", "DeepCopy")
def _(g):
    for x in (g.arr("float32", g.shape(2)), g.arr("int64", []), S(["a", "b"]), g.arr("bool", [0, 2])):
        yield C(x, **X)


@rec("DeviceIndex")
def _(g):
    for names in (["CPU", "GPU"], ["GPU", "CPU"], ["GPU", "TPU"], []):
        yield C(device_names=names, **X)


family("handle")


@rec("HashTable")
def _(g):
    for keys, values, default in ((I64([5, -2, 9]), S(["a", "b", "c"]), S("?")), (S(["x", "y"]), I64([3, 4]), I64(-1)), (S(["x", "y"]), F32([3, 4]), F32(-1))):
        kd, vd = dtype_name(keys), dtype_name(values)
        st = [ST("HashTable", key_dtype=kd, value_dtype=vd, shared_name=g.one(["", g.name("t")]))]
        st += [ST("InitializeTable", R(0), keys, values), ST("LookupTableSize", R(0)),
               ST("LookupTableFind", R(0), np.concatenate([keys[1:], keys[:1]]), default),
               ST("LookupTableFind", R(0), (I64([[77]]) if kd == "int64" else S([["z"]])), default),
               ST("LookupTableExport", R(0), Tkeys=kd, Tvalues=vd, _cmp="spec")]
        yield SEQ(st, "graph")


@rec("MutableHashTable")
def _(g):
    st = [ST("MutableHashTable", key_dtype="int64", value_dtype="float32")]
    st += [ST("LookupTableInsert", R(0), I64([1, 2]), F32([10, 20])), ST("LookupTableFind", R(0), I64([2, 3]), F32(-1)), ST("LookupTableSize", R(0)),
           ST("LookupTableImport", R(0), I64([7]), F32([70])), ST("LookupTableFind", R(0), I64([1, 7]), F32(-1)), ST("LookupTableExport", R(0), Tkeys="int64", Tvalues="float32")]
    yield SEQ(st, "graph")


@rec("MutableHashTableOfTensors")
def _(g):
    st = [ST("MutableHashTableOfTensors", key_dtype="string", value_dtype="int64", value_shape=[2])]
    st += [ST("LookupTableInsert", R(0), S(["a", "b"]), I64([[1, 2], [3, 4]])), ST("LookupTableFind", R(0), S(["b", "c"]), I64([0, 9])), ST("LookupTableSize", R(0))]
    yield SEQ(st, "graph")


@rec("FIFOQueue", "PaddingFIFOQueue", "PriorityQueue")
def _(g):
    extra = {"PriorityQueue": dict(component_types=["float32"], shapes=[[2]])}.get(g.op, dict(component_types=["int64", "float32"], shapes=[[], [2]]))
    st = [ST(g.op, capacity=10, **extra)]
    key = [3, 1, 2]
    for i, k in enumerate(key):
        st.append(ST("QueueEnqueue", R(0), [I64(k), F32([i, k])], timeout_ms=-1))
    st.append(ST("QueueEnqueueMany", R(0), [I64([9, 5]), F32([[1, 2], [3, 4]])], timeout_ms=-1))
    ct = ["int64", "float32"]
    st += [ST("QueueSize", R(0)), ST("QueueIsClosed", R(0)) if False else ST("QueueSize", R(0)), ST("QueueDequeue", R(0), component_types=ct), ST("QueueDequeueMany", R(0), I32(2), component_types=ct),
           ST("QueueClose", R(0)), ST("QueueDequeueUpTo", R(0), I32(5), component_types=ct) if g.op == "FIFOQueue" else ST("QueueDequeue", R(0), component_types=ct), ST("QueueSize", R(0))]
    yield SEQ(st, "graph")


@rec("RandomShuffleQueue")
def _(g):
    st = [ST("RandomShuffleQueue", component_types=["int64"], shapes=[[]], capacity=20, min_after_dequeue=2, seed=7, seed2=g.int(1, 9))]
    st.append(ST("QueueEnqueueMany", R(0), [I64(range(10))], timeout_ms=-1))
    st += [ST("QueueSize", R(0)), ST("QueueDequeue", R(0), component_types=["int64"]), ST("QueueDequeueMany", R(0), I32(3), component_types=["int64"]), ST("QueueSize", R(0)),
           ST("QueueClose", R(0)), ST("QueueDequeueUpTo", R(0), I32(50), component_types=["int64"])]
    yield SEQ(st, "graph")


family("queue")


@rec("RandomShuffleQueueV2")
def _(g):
    for kept in (0, 3):
        st = [ST("RandomShuffleQueueV2", component_types=["int64", "string"], shapes=[[], []], capacity=20, min_after_dequeue=kept, seed=g.int(1, 9), seed2=g.int(0, 9), shared_name=g.name("q"))]
        st.append(ST("QueueEnqueueManyV2", R(0), [I64(range(8)), S(list("abcdefgh"))], timeout_ms=-1))
        ct = ["int64", "string"]
        st += [ST("QueueSizeV2", R(0)), ST("QueueDequeueV2", R(0), component_types=ct), ST("QueueDequeueManyV2", R(0), I32(3), component_types=ct), ST("QueueSizeV2", R(0)),
               ST("QueueEnqueueV2", R(0), [I64(77), S("z")], timeout_ms=-1), ST("QueueDequeueV2", R(0), component_types=ct),
               ST("QueueCloseV2", R(0)), ST("QueueDequeueUpToV2", R(0), I32(50), component_types=ct), ST("QueueDequeueV2", R(0), component_types=ct, _err=True)]
        yield SEQ(st)
    yield SEQ([ST("RandomShuffleQueueV2", component_types=["int64"], capacity=2, min_after_dequeue=2, shared_name=g.name("q"), _err=True)])


@rec("MapStage", "OrderedMapStage")
def _(g):
    p = g.op[: -len("Stage")]
    a = dict(dtypes=["float32", "int64"], shared_name=g.name("m"))
    stage = lambda k, idx, v: ST(p + "Stage", I64(k), I32(idx), v, **a)
    st = [stage(5, [0, 1], [F32([1, 2]), I64(3)]), ST(p + "Size", **a), stage(2, [1], [I64(9)]), ST(p + "IncompleteSize", **a), stage(2, [1], [I64(9)]),
          stage(2, [0], [F32([4])]), ST(p + "Size", **a), ST(p + "IncompleteSize", **a), ST(p + "Peek", I64(5), I32([0, 1]), **a),
          ST(p + "Peek", I64(2), I32([1]), **dict(a, dtypes=["int64"])), ST(p + "Unstage", I64(5), I32([0]), **dict(a, dtypes=["float32"])),
          ST(p + "Size", **a), ST(p + "Unstage", I64(5), I32([1]), **dict(a, dtypes=["int64"])), ST(p + "UnstageNoKey", I32([0, 1]), **a), ST(p + "Size", **a),
          stage(2, [1, 0], [I64(9), F32([1])]), stage(8, [0, 1], [F32([4]), I64(1)]), ST(p + "Clear", **a), ST(p + "Size", **a)]
    for s in (4, 15):
        st[s].err = True
    yield SEQ(st)
    a2 = dict(dtypes=["int64"], shared_name=g.name("m"))
    keys = [9, 1, 5] if g.op == "OrderedMapStage" else [9]
    st = [ST(p + "Stage", I64(k), I32([0]), [I64(10 * k)], **a2) for k in keys]
    st += [ST(p + "UnstageNoKey", I32([0]), **a2) for _ in keys] + [ST(p + "Size", **a2)]
    yield SEQ(st)


@rec("ResourceConditionalAccumulator")
def _(g):
    for dt in ("float32", "float64", "float16"):
        for red in ("MEAN", "SUM"):
            h = R(0)
            st = [ST(g.op, dtype=dt, shape=[2], reduction_type=red, shared_name=g.name("a")), ST("ResourceAccumulatorNumAccumulated", h),
                  ST("ResourceAccumulatorApplyGradient", h, I64(0), g.arr(dt, [2])), ST("ResourceAccumulatorApplyGradient", h, I64(1), g.arr(dt, [2])),
                  ST("ResourceAccumulatorNumAccumulated", h), ST("ResourceAccumulatorApplyGradient", h, I64(0), g.arr(dt, [3]), _err=True),
                  ST("ResourceAccumulatorTakeGradient", h, I32(2), dtype=dt), ST("ResourceAccumulatorNumAccumulated", h),
                  ST("ResourceAccumulatorApplyGradient", h, I64(0), g.arr(dt, [2])), ST("ResourceAccumulatorNumAccumulated", h),
                  ST("ResourceAccumulatorSetGlobalStep", h, I64(9)), ST("ResourceAccumulatorApplyGradient", h, I64(8), g.arr(dt, [2])), ST("ResourceAccumulatorNumAccumulated", h),
                  ST("ResourceAccumulatorApplyGradient", h, I64(9), g.arr(dt, [2])), ST("ResourceAccumulatorTakeGradient", h, I32(0), dtype=dt, _err=True),
                  ST("ResourceAccumulatorTakeGradient", h, I32(1), dtype=dt)]
            yield SEQ(st)


@rec("ConditionalAccumulator")
def _(g):
    h = R(0)
    yield SEQ([ST(g.op, dtype="float32", shape=[2], shared_name=g.name("a")), ST("AccumulatorApplyGradient", h, I64(0), g.arr("float32", [2])), ST("AccumulatorApplyGradient", h, I64(0), g.arr("float32", [2])),
               ST("AccumulatorNumAccumulated", h), ST("AccumulatorTakeGradient", h, I32(1), dtype="float32"), ST("AccumulatorSetGlobalStep", h, I64(5)),
               ST("AccumulatorApplyGradient", h, I64(4), g.arr("float32", [2])), ST("AccumulatorNumAccumulated", h)], "graph")


family("candidates")


@rec("AllCandidateSampler", "FixedUnigramCandidateSampler", "LearnedUnigramCandidateSampler", "ThreadUnsafeUnigramCandidateSampler", "LogUniformCandidateSampler", "UniformCandidateSampler")
def _(g):
    for unique in (False, True):
        for n in (4, 9):
            seed, seed2 = g.int(1, 10 ** 6), g.int(1, 10 ** 6)
            kw = dict(num_true=2, num_sampled=n, unique=unique, seed=seed, seed2=seed2)
            top = n
            if g.op != "AllCandidateSampler":
                top = kw["range_max"] = g.int(n, 20)
            if g.op == "FixedUnigramCandidateSampler":
                reserved = g.int(0, 1) if not unique else 0
                kw.update(unigrams=[float(x) for x in g.rng.integers(1, 9, top - reserved)], num_reserved_ids=reserved, distortion=g.one([1.0, 0.75]))
            true = g.rng.integers(0, top, [3, 2])
            yield SEQ([ST(g.op, I64(true), _tol=1e-5, **kw)] + ([ST(g.op, I64(true), _tol=1e-5, **kw)] if "Unigram" in g.op or g.op == "UniformCandidateSampler" else []))
    if g.op == "FixedUnigramCandidateSampler":
        yield SEQ([ST("WriteFile", S("vocab.csv"), S("a,3\nb,1\nc,2.5\n")), ST(g.op, I64([[0], [2]]), num_true=1, num_sampled=5, unique=False, range_max=3, vocab_file="vocab.csv", seed=3, seed2=g.int(1, 99), _tol=1e-5)])
        yield SEQ([ST(g.op, I64([[0]]), num_true=1, num_sampled=2, unique=False, range_max=3, unigrams=[1.0], seed=3, _err=True)])
    if g.op != "AllCandidateSampler":
        extra = dict(unigrams=[1.0, 2.0, 3.0]) if g.op == "FixedUnigramCandidateSampler" else {}
        yield SEQ([ST(g.op, I64([[3]]), num_true=1, num_sampled=2, unique=False, range_max=3, seed=3, _err=True, **extra)])


@rec("ComputeAccidentalHits")
def _(g):
    for k in (1, 2, 3):
        yield C(I64(g.rng.integers(0, 9, [4, k])), I64(g.rng.permutation(9)[:5]), num_true=k, **X)
    yield C(I64([[1, 2]]), I64([1]), num_true=3, _err=True)
    yield C(I64([[1, 1]]), I64([1, 3, 1]), num_true=2, **X)


family("reader")

LINES = [("f1", "a\nb\r\nc\n"), ("f2", "d\ne"), ("f3", "")]


def reader_steps(g, make, names, actions, files=LINES):
    tf = tfm()
    st = []
    for name, text in files:
        st.append(ST("WriteFile", S(name), S(text)))
    st += [ST("FIFOQueueV2", component_types=["string"], shapes=[[]], shared_name=g.name("q")), make]
    q, r = R(len(st) - 2), R(len(st) - 1)
    st += [ST("QueueEnqueueManyV2", q, [S(names)], timeout_ms=-1), ST("QueueCloseV2", q)]
    for a in actions:
        op = {"n": "NumRecordsProduced", "u": "NumWorkUnitsCompleted", "s": "SerializeState", "x": "Reset"}.get(a[0])
        if op:
            st.append(ST("Reader%sV2" % op, r, _err=a.endswith("!")))
        elif a[0] == "r":
            st.append(ST("ReaderReadV2", r, q, _err=a.endswith("!")))
        else:
            st.append(ST("ReaderReadUpToV2", r, q, I64(int(a.rstrip("!"))), _err=a.endswith("!")))
    return st


@rec("TextLineReaderV2")
def _(g):
    yield SEQ(reader_steps(g, ST(g.op, shared_name=g.name("r")), ["f1", "f3", "f2"], "r n u 5 n u 1 5 n u 5! s! x n u".split()))
    yield SEQ(reader_steps(g, ST(g.op, skip_header_lines=1, shared_name=g.name("r")), ["f1", "f2"], "r r r n u r!".split()))
    yield SEQ(reader_steps(g, ST(g.op, shared_name=g.name("r")), ["nope", "f2"], "r! n u r n".split()))


@rec("WholeFileReaderV2")
def _(g):
    yield SEQ(reader_steps(g, ST(g.op, shared_name=g.name("r")), ["f1", "f2", "f3"], "r s n 5 n u r n x n".split()))


@rec("IdentityReaderV2")
def _(g):
    st = reader_steps(g, ST(g.op, shared_name=g.name("r")), ["f1", "f2", "f3", "f4", "f5"], "s r s n 5 n u".split(), [])
    r = R(1)
    st += [ST("ReaderRestoreStateV2", r, S(b'\x08\x01\x10\x01\x18\x01"\x02f1')), ST("ReaderNumRecordsProducedV2", r), ST("ReaderReadV2", r, R(0)),
           ST("ReaderRestoreStateV2", r, S(b'\x08\x01\x10\x05')), ST("ReaderNumWorkUnitsCompletedV2", r), ST("ReaderReadV2", r, R(0)), ST("ReaderRestoreStateV2", r, S(b'\xff'), _err=True)]
    yield SEQ(st)


@rec("FixedLengthRecordReaderV2")
def _(g):
    f = [("fx", "HHabcdefghF")]
    for kw in (dict(), dict(hop_bytes=2), dict(hop_bytes=4)):
        yield SEQ(reader_steps(g, ST(g.op, record_bytes=3, header_bytes=2, footer_bytes=1, shared_name=g.name("r"), **kw), ["fx", "fx"], "r r 5 n u r".split(), f))


@rec("TFRecordReaderV2")
def _(g):
    import os
    tf = tfm()
    for kind in ("", "GZIP", "ZLIB"):
        path = os.path.abspath("made")
        with tf.io.TFRecordWriter(path, kind) as w:
            w.write(b"one"); w.write(b""); w.write(b"three")
        data = open(path, "rb").read()
        yield SEQ(reader_steps(g, ST(g.op, compression_type=kind, shared_name=g.name("r")), ["ft", "ft"], "r r n u 5 5 n u r!".split(), [("ft", data)]))


family("linalg")


@rec("Eig")
def _(g):
    for dt, out in (("float32", "complex64"), ("float64", "complex128"), ("complex64", "complex64"), ("complex128", "complex128")):
        for n in (1, 3):
            x = g.arr(dt, [g.int(1, 2), n, n])
            # The order of eigenvalues and the phases of vectors are not fixed.
            yield C(x, Tout=out, _cmp="spec", _grad=False)
            if dt.startswith("float"):
                yield C(np.triu(x), Tout=out, compute_v=False, _cmp=["close", "spec"], _grad=n > 1, _rtol=1e-4, _atol=1e-4)
    yield C(np.zeros([2, 0, 0], np.float32), Tout="complex64", _grad=False)
    yield C(F32([[1, 2, 3], [4, 5, 6]]), Tout="complex64", _err=True)
    yield C(F32([[np.nan, 2], [4, 5]]), Tout="complex64", _err=True)
    yield C(F32([[1, 2], [4, 5]]), Tout="complex128", _err=True)


family("image")


@rec("StatelessSampleDistortedBoundingBox", "SampleDistortedBoundingBox", "SampleDistortedBoundingBoxV2")
def _(g):
    stateless = g.op.startswith("Stateless")
    for k in range(12):
        dt = g.one(["int32", "int64", "uint8", "int16"])
        size = A([g.int(5, 120), g.int(5, 120), 3], dt)
        n = g.int(0, 2)
        corners = np.sort(g.rng.uniform(0, 1, [1, n, 2, 2]), axis=2).reshape(1, n, 4)
        part = F32(g.one([0.0, 0.1, 0.5, 1.0]))
        kw = dict(max_attempts=g.one([1, 20, 100]), use_image_if_no_bounding_boxes=True, aspect_ratio_range=g.one([[0.75, 1.33], [0.1, 5.0], [1.0, 1.0]]), area_range=g.one([[0.05, 1.0], [0.3, 0.4], [1.0, 1.0]]))
        if stateless:
            yield C(size, F32(corners), part, A([g.int(-9, 99), g.int(0, 99)], g.one(["int32", "int64"])), **kw)
        else:
            kw.update(seed=g.int(1, 10 ** 6), seed2=g.int(1, 10 ** 6))
            ins = [size, F32(corners)] + ([part] if g.op.endswith("V2") else [])
            if not g.op.endswith("V2"):
                kw["min_object_covered"] = float(part)
            yield SEQ([ST(g.op, *ins, **kw), ST(g.op, *ins, **kw)])
    if stateless:
        s = I32([1, 2])
        yield C(I32([10, 10, 3]), np.zeros([1, 0, 4], np.float32), F32(0.1), s, _err=True)
        yield C(I32([10, 10, 3]), F32([[[0, 0, 1.5, 1]]]), F32(0.1), s, _err=True)
        yield C(I32([10, 10, 3]), F32([[[0, 0, 1, 1]]]), F32(-0.1), s, _err=True)
        yield C(I32([10, 10]), F32([[[0, 0, 1, 1]]]), F32(0.1), s, _err=True)
        yield C(I32([10, 10, 3]), F32([[[0, 0, 1, 1]]]), F32(0.1), s, area_range=[0.0, 1.0], _err=True)
        yield C(I32([10, 10, 3]), F32([[[0, 0, 1, 1]]]), F32(0.1), s, max_attempts=0, _err=True)


family("ragged")


@rec("RaggedCross")
def _(g):
    def feature(dt, shape):
        if dt == "string":
            return S(np.array([g.one(["a", "bb", "c d", ""]) for _ in range(int(np.prod(shape)))], object).reshape(shape).tolist()) if np.prod(shape) else np.empty(shape, object)
        return g.rng.integers(-5, 99, shape).astype(np.int64)
    for k in range(10):
        rows = g.int(1, 3)
        order = "".join(g.one("RSD") for _ in range(g.int(1, 3)))
        rv, rs, si, sv, ss, d = [], [], [], [], [], []
        for c in order:
            dt = g.one(["string", "int64"])
            if c == "R":
                lens = g.rng.integers(0, 3, rows)
                rv.append(feature(dt, [int(lens.sum())]))
                rs.append(np.concatenate([[0], np.cumsum(lens)]).astype(g.one([np.int32, np.int64]) if not rs else rs[0].dtype))
            elif c == "S":
                idx = [[r, j] for r in range(rows) for j in range(g.int(0, 2))]
                si.append(I64(idx).reshape(-1, 2))
                sv.append(feature(dt, [len(idx)]))
                ss.append(I64([rows, 3]))
            else:
                d.append(feature(dt, [rows, g.int(1, 2)]))
        hashed = bool(g.int(0, 1))
        yield C(rv, rs, si, sv, ss, d, input_order=order, hashed_output=hashed, num_buckets=g.one([0, 7]) if hashed else 0, hash_key=956888297470,
                out_values_type="int64" if hashed else "string", out_row_splits_type=rs[0].dtype.name if rs else "int64", Nsparse=len(si), ragged_values_types=[dtype_name(x) for x in rv], ragged_splits_types=[dtype_name(x) for x in rs],
                sparse_values_types=[dtype_name(x) for x in sv], dense_types=[dtype_name(x) for x in d], **X)


family("proto")


def declarations():
    """A message with a field of every kind: single, repeated and packed."""
    from google.protobuf import descriptor_pb2 as d
    fs = d.FileDescriptorSet()
    f = fs.file.add()
    f.name, f.package, f.syntax = "t.proto", "t", "proto2"
    e = f.enum_type.add()
    e.name = "E"
    for n, i in (("A", 0), ("B", 2), ("C", -1)):
        v = e.value.add()
        v.name, v.number = n, i
    m = f.message_type.add()
    m.name = "M"
    number = 1
    for n, t in sorted(d.FieldDescriptorProto.Type.items()):
        n = n[5:].lower()
        if n == "group":
            continue
        for label, suffix in ((1, ""), (3, "s")) + (((3, "p"),) if n not in ("string", "bytes", "message") else ()):
            fl = m.field.add()
            fl.name, fl.number, fl.type, fl.label = n + suffix, number, t, label
            number += 1
            if suffix == "p":
                fl.options.packed = True
            if n == "enum":
                fl.type_name = ".t.E"
            if n == "message":
                fl.type_name = ".t.M"
    fl = m.field.add()
    fl.name, fl.number, fl.type, fl.label, fl.default_value = "seven", number, 5, 1, "7"
    return fs


KINDS = {"bool": ["bool"], "bytes": ["string"], "double": ["float64"], "enum": ["int32"], "fixed32": ["uint32", "uint64"], "fixed64": ["uint64"], "float": ["float32", "float64"],
         "int32": ["int32", "int64"], "int64": ["int64"], "message": ["string"], "sfixed32": ["int32", "int64"], "sfixed64": ["int64"], "sint32": ["int32", "int64"], "sint64": ["int64"],
         "string": ["string"], "uint32": ["uint32", "uint64"], "uint64": ["uint64"]}


def values_of(g, kind, dt, shape):
    if dt == "string":
        return S(np.array([g.one(["", "x", "hello"]) if kind != "message" else b"" for _ in range(int(np.prod(shape)))], object).reshape(shape).tolist())
    if dt == "bool":
        return g.rng.integers(0, 2, shape).astype(np.bool_)
    if dt.startswith("float"):
        return g.rng.normal(size=shape).astype(np.float32).astype(NP[dt])
    lo, hi = (0, 2 ** 31 - 1) if dt.startswith("u") else (-2 ** 31, 2 ** 31 - 1)
    if kind == "enum":
        return g.rng.choice([0, 2, -1], shape).astype(np.int32)
    return g.rng.integers(lo, hi, shape).astype(NP[dt])


@rec("EncodeProto")
def _(g):
    src = b"bytes://" + declarations().SerializeToString()
    for kind, dts in KINDS.items():
        for suffix in ("", "s") + (("p",) if kind not in ("string", "bytes", "message") else ()):
            dt = g.one(dts)
            other = g.one(list(KINDS))
            most = 1 if suffix == "" else 3
            shape = g.shape(g.int(1, 2), 1, 3)
            sizes = np.stack([g.rng.integers(0, most + 1, shape), g.rng.integers(0, 3, shape)], -1).astype(np.int32)
            odt = KINDS[other][0]
            yield C(sizes, [values_of(g, kind, dt, shape + [most]), values_of(g, other, odt, shape + [2])], field_names=[kind + suffix, other + "s"] if other + "s" != kind + suffix else [kind + suffix, "seven"],
                    message_type="t.M", descriptor_source=src, **X) if other + "s" != kind + suffix else C(sizes[..., :1], [values_of(g, kind, dt, shape + [most])], field_names=[kind + suffix], message_type="t.M", descriptor_source=src, **X)
    one = I32([[1]])
    yield C(I32([[2]]), [I32([[1]])], field_names=["int32s"], message_type="t.M", descriptor_source=src, _err=True)
    yield C(one, [I64([[1]])], field_names=["enum"], message_type="t.M", descriptor_source=src, _err=True)
    yield C(one, [I32([[1]])], field_names=["nope"], message_type="t.M", descriptor_source=src, _err=True)
    yield C(one, [I32([1])], field_names=["int32"], message_type="t.M", descriptor_source=src, _err=True)
    yield C(one, [I32([[1]])], field_names=["int32"], message_type="t.Nope", descriptor_source=src, _err=True)


@rec("DecodeProtoV2")
def _(g):
    tf = tfm()
    src = b"bytes://" + declarations().SerializeToString()
    for kind, dts in KINDS.items():
        for suffix in ("", "s") + (("p",) if kind not in ("string", "bytes", "message") else ()):
            # TensorFlow drops the sign of packed int32 in tensors of int64.
            dt = dts[0] if (kind, suffix) == ("int32", "p") else g.one(dts)
            most = 1 if suffix == "" else 3
            shape = g.shape(g.int(1, 2), 1, 3)
            sizes = g.rng.integers(0, most + 1, shape + [1]).astype(np.int32)
            b = tf.raw_ops.EncodeProto(sizes=sizes, values=[tf.constant(values_of(g, kind, dt, shape + [most]).tolist() if dt == "string" else values_of(g, kind, dt, shape + [most]))], field_names=[kind + suffix], message_type="t.M", descriptor_source=src)
            yield C(S(b.numpy().tolist()), message_type="t.M", field_names=[kind + suffix, "seven"], output_types=[dt, "int32"], descriptor_source=src, sanitize=bool(g.int(0, 1)), **X)
    ex = tf.train.Example(features=tf.train.Features(feature={"a": tf.train.Feature(int64_list=tf.train.Int64List(value=[1, g.int(2, 9)]))})).SerializeToString()
    kw = dict(message_type="tensorflow.Example", field_names=["features"], output_types=["string"])
    yield C(S([[ex, b""], [b"", ex]]), **kw, **X)
    yield C(S(ex), **kw, **X)
    yield C(S(['features { feature { key: "a" value { int64_list { value: %d } } } }' % g.int(1, 99)]), message_format="text", **kw, **X)
    yield C(S([ex]), **dict(kw, field_names=[], output_types=[]), **X)
    for bad in (b"\xff", b"\x08", b"\x0a\x05a"):
        yield C(S([bad]), **kw, _err=True)
    yield C(S([ex]), **dict(kw, output_types=["int32"]), _err=True)
    yield C(S([ex]), **dict(kw, field_names=["nope"]), _err=True)
    yield C(S([ex]), **dict(kw, message_type="tensorflow.Nope"), _err=True)
    yield C(S([ex]), **dict(kw, descriptor_source=b"bytes://xx"), _err=True)
    yield C(S([ex]), **dict(kw, message_format="other"), _err=True)
    r = lambda b: S([b])
    k = dict(message_type="t.M", descriptor_source=src)
    for b, f, dt in ((b"\xa8\x01\x05\xa8\x01\x06", "int32", "int32"), (b"\xb2\x01\x02\x05\x06\xb0\x01\x07", "int32s", "int32"), (b"\xb8\x01\x02", "int32p", "int32"),
                     (b"\xad\x01\x02\x05\x06\x00", "int32", "int32")):
        yield C(r(b), field_names=[f], output_types=[dt], **k, **X)


family("summary")


@rec("AudioSummaryV2")
def _(g):
    for s in ([2, 5, 2], [1, 4], [3, 0, 1], [0, 4], [4, 6]):
        yield C(S("tag"), g.rng.uniform(-1.2, 1.2, s).astype(np.float32), F32(g.one([44100.0, 44.1, 8000.7])), max_outputs=g.int(1, 3), **X)
    yield C(S("tag"), g.arr("float32", [4]), F32(8000), _err=True)


@rec("TensorSummary")
def _(g):
    yield C(g.arr("float32", [2, 3]), description="d", labels=["a"], display_name="n", **X)
    yield C(S(["x", "yy"]), **X)


@rec("TensorSummaryV2")
def _(g):
    for x in (g.arr("float32", [3]), g.arr("int64", []), S(["x", ""]), g.arr("bool", [2, 2])):
        yield C(S("tag"), x, S(g.one([b"", b"\x12\x01q"])), **X)


family("quantized")


@rec("RequantizePerChannel", "RequantizationRangePerChannel", "QuantizedReshape")
def _(g):
    for k in range(6):
        ch = g.int(1, 4)
        s = [1, g.int(1, 3), 2, ch]
        x = g.rng.integers(-2 ** 31, 2 ** 31, s) // (1 << g.int(0, 12))
        x = Q("qint32", np.abs(x) if g.int(0, 2) == 0 else x)
        lo, hi = -g.rng.uniform(1, 5, ch).astype(np.float32), g.rng.uniform(1, 5, ch).astype(np.float32)
        if g.op == "QuantizedReshape":
            yield C(x, g.one([I32, I64])([-1, 2]), F32(-1), F32(2), **X)
        elif g.op == "RequantizePerChannel":
            for out in ("qint8", "quint8"):
                yield C(x, lo, hi, F32(-2.5 if out == "qint8" else 0), F32(g.rng.uniform(.01, 5)), out_type=out, **X)
        else:
            yield C(x, lo, hi, clip_value_max=g.one([6.0, 0.25, 1e30]), _rtol=1e-6, _atol=1e-9)
    if g.op == "RequantizationRangePerChannel":
        yield C(Q("qint32", np.ones([2, 3])), F32([1, 2]), F32([1, 2, 3]), clip_value_max=1.0, _err=True)


family("dataset")


def elements(files, make, n, bad=0):
    """Steps that write files, make a data set of them, and take its elements."""
    st = [ST("WriteFile", S(name), S(data)) for name, data in files]
    kw = dict(output_types=["string"], output_shapes=[[]])
    st += [make, ST("AnonymousIteratorV3", **kw)]
    d, it = R(len(st) - 2), R(len(st) - 1)
    st.append(ST("MakeIterator", d, it))
    for k in range(n):
        st.append(ST("IteratorGetNext", it, _err=k >= n - bad, **kw))
    return SEQ(st)


def packed(kind, write):
    """The bytes of a file, packed."""
    import gzip, zlib
    data = write
    return gzip.compress(data) if kind == "GZIP" else zlib.compress(data) if kind == "ZLIB" else data


@rec("TextLineDataset")
def _(g):
    for kind in ("", "GZIP", "ZLIB"):
        files = [("f1", packed(kind, b"a\nb\r\n\nc")), ("f2", packed(kind, b"")), ("f3", packed(kind, b"d\n"))]
        yield elements(files, ST(g.op, S(["f1", "f2", "f3"]), S(kind), I64(g.one([0, 256]))), 6, 1)
    yield elements([("f1", b"one\n")], ST(g.op, S("f1"), S(""), I64(0)), 2, 1)
    yield elements([], ST(g.op, S(["nope"]), S(""), I64(0)), 1, 1)
    yield SEQ([ST(g.op, S(["f1"]), S("LZMA"), I64(0), _err=True)])


# The iterators of TensorFlow 2.21 refuse the ops TFRecordDatasetV2 and FixedLengthRecordDataset.
@rec("TFRecordDataset")
def _(g):
    import os
    tf = tfm()
    for kind in ("", "GZIP", "ZLIB"):
        with tf.io.TFRecordWriter(os.path.abspath("made"), kind) as w:
            for text in (b"one", b"", b"three"):
                w.write(text)
        data = open("made", "rb").read()
        more = [I64([0, 19] if kind == "" else [0, 0])] if g.op.endswith("V2") else []
        first = 6 if not more or kind else 5
        yield elements([("f1", data), ("f2", data)], ST(g.op, S(["f1", "f2"]), S(kind), I64(0), *more), first + 1, 1)
    more = [I64([])] if g.op.endswith("V2") else []
    with tf.io.TFRecordWriter(os.path.abspath("made")) as w:
        w.write(b"hello")
    data = bytearray(open("made", "rb").read())
    data[14] ^= 1
    yield elements([("f1", bytes(data))], ST(g.op, S(["f1"]), S(""), I64(0), *more), 1, 1)


@rec("FixedLengthRecordDatasetV2")
def _(g):
    for kind in ("", "GZIP") if g.op.endswith("V2") else ("",):
        more = [S(kind)] if g.op.endswith("V2") else []
        files = [("f1", packed(kind, b"HHabcdefF")), ("f2", packed(kind, b"HHghiF"))]
        yield elements(files, ST(g.op, S(["f1", "f2"]), I64(2), I64(3), I64(1), I64(0), *more), 4, 1)
        yield elements([("f1", packed(kind, b"HHabcdF"))], ST(g.op, S(["f1"]), I64(2), I64(3), I64(1), I64(0), *more), 1, 1)
        yield SEQ([ST(g.op, S(["f1"]), I64(-1), I64(3), I64(1), I64(0), *more, _err=True), ST(g.op, S(["f1"]), I64(0), I64(0), I64(1), I64(0), *more, _err=True)])


family("random")


@rec("SobolSample")
def _(g):
    for dt in ("float32", "float64"):
        for dim, n, skip in ((1, 5, 0), (3, 7, 0), (g.int(2, 40), g.int(1, 9), g.int(0, 100000)), (g.int(100, 1111), 2, g.int(0, 2 ** 30)), (2, 600, 3)):
            yield C(I32(dim), I32(n), I32(skip), dtype=dt, **X)
    yield C(I32(0), I32(1), I32(0), _err=True)
    yield C(I32(1), I32(0), I32(0), _err=True)
    yield C(I32(1), I32(1), I32(-1), _err=True)


@rec("RandomIndexShuffle")
def _(g):
    for dt in ("int32", "int64", "uint32", "uint64"):
        for sd in ("int32", "int64", "uint32", "uint64"):
            n, top = g.int(1, 5), g.one([1, 7, 1000, 70000, 2 ** 31 - 1])
            kw = dict(rounds=g.one([4, 6, 8]))
            idx = g.rng.integers(0, top, n)
            yield C(A(idx[0], dt), A(g.rng.integers(0, 2 ** 31 - 1, 3), sd), A(top, dt), **kw, **X)
            yield C(A(idx, dt), A(g.rng.integers(0, 2 ** 31 - 1, [n, 3]), sd), A(top, dt), **kw, **X)
            yield C(A(idx[0], dt), A(g.rng.integers(0, 2 ** 31 - 1, 3), sd), A(np.full(n, top), dt), **kw, **X)
    yield C(I32([1, 9]), I32([1, 2, 3]), I32(5), _err=True)
    yield C(I32(-1), I32([1, 2, 3]), I32(5), _err=True)
    yield C(I32(1), I32([1, 2]), I32(5), _err=True)


family("dataset")


@rec("GetElementAtIndex")
def _(g):
    kw = dict(output_types=["int64"], output_shapes=[[]])
    st = [ST("RangeDataset", I64(2), I64(20), I64(3), **kw)] + [ST(g.op, R(0), I64(k), _err=k > 5, **kw) for k in (0, 1, 5, 6)]
    yield SEQ(st)


@rec("ExperimentalDatasetCardinality")
def _(g):
    kw = dict(output_types=["int64"], output_shapes=[[]])
    yield SEQ([ST("RangeDataset", I64(2), I64(20), I64(3), **kw), ST(g.op, R(0)), ST("RepeatDataset", R(0), I64(-1), **kw), ST(g.op, R(2))])


@rec("ChooseFastestDataset", "ExperimentalChooseFastestDataset", "AssertPrevDataset")
def _(g):
    kw = dict(output_types=["int64"], output_shapes=[[]])
    st = [ST("RangeDataset", I64(0), I64(3), I64(1), **kw), ST("RangeDataset", I64(0), I64(3), I64(1), **kw)]
    st.append(ST(g.op, [R(0), R(1)], num_experiments=2, **kw) if "Choose" in g.op else ST(g.op, R(0), S([]), **kw))
    st += [ST("AnonymousIteratorV3", **kw), ST("MakeIterator", R(2), R(3))] + [ST("IteratorGetNext", R(3), _err=k == 3, **kw) for k in range(4)]
    yield SEQ(st)


@rec("SlidingWindowDataset", "ExperimentalSlidingWindowDataset")
def _(g):
    kw = dict(output_types=["int64"], output_shapes=[[None]])
    one = dict(output_types=["int64"], output_shapes=[[]])
    for n, size, shift, stride in ((8, 3, 1, 1), (9, 2, 3, 2), (7, 3, 2, 2), (3, 5, 1, 1), (8, 2, 5, 1)):
        for drop in (True, False) if g.op == "SlidingWindowDataset" else (None,):
            own = {} if drop is None else dict(drop_remainder=drop)
            st = [ST("RangeDataset", I64(0), I64(n), I64(1), **one), ST(g.op, R(0), I64(size), I64(shift), I64(stride), **own, **kw), ST("DatasetCardinality", R(1)), ST("AnonymousIteratorV3", **kw), ST("MakeIterator", R(1), R(3))]
            stops = -(-n // shift) if drop is False else max(0, (n - (size - 1) * stride - 1) // shift + 1)
            yield SEQ(st + [ST("IteratorGetNext", R(3), _err=k == stops, **kw) for k in range(stops + 1)])
    yield SEQ([ST("RangeDataset", I64(0), I64(3), I64(1), **one), ST(g.op, R(0), I64(0), I64(1), I64(1), _err=True, **kw)])


@rec("MatchingFilesDataset", "ExperimentalMatchingFilesDataset")
def _(g):
    names = [g.name("found") for _ in range(1)]
    base = names[0]
    files = [(f"{base}_{k}.txt", "x") for k in ("b", "a", "c")] + [(f"{base}_1.bin", "y")]
    yield elements(files, ST(g.op, S(f"{base}_*.txt")), 4, 1)
    yield elements(files, ST(g.op, S([f"{base}_*.bin", f"{base}_?.txt"])), 5, 1)
    yield elements(files, ST(g.op, S(f"{base}_*.none")), 1, 1)


@rec("InitializeTableFromDataset")
def _(g):
    for keys, values, bad in (([1, 2, 5], [10, 20, 50], False), ([1, 1], [10, 20], True), ([], [], True)):
        kw = dict(output_shapes=[[], []])
        st = [ST("AnonymousHashTable", key_dtype="int64", value_dtype="float32"), ST("TensorSliceDataset", [I64(keys), F32(values)], Toutput_types=["int64", "float32"], **kw)]
        st.append(ST(g.op, R(0), R(1), _err=bad))
        yield SEQ(st if bad else st + [ST("LookupTableSizeV2", R(0)), ST("LookupTableFindV2", R(0), I64([5, 1, 7]), F32(-1))])


@rec("ParseExampleDataset", "ParseExampleDatasetV2", "ExperimentalParseExampleDataset")
def _(g):
    tf = tfm()
    F = tf.train.Feature
    def example(k, full=True):
        own = {"z": F(int64_list=tf.train.Int64List(value=list(range(k)))), "d": F(float_list=tf.train.FloatList(value=[k, k + .5])), "r": F(bytes_list=tf.train.BytesList(value=[b"x" * j for j in range(k)]))}
        if full:
            own["a"] = F(int64_list=tf.train.Int64List(value=[k]))
        return tf.train.Example(features=tf.train.Features(feature=own)).SerializeToString()
    rows = S([[example(0), example(2)], [example(3), example(1, False)]])
    for ragged in (False, True) if "Exp" not in g.op[:3] else (False,):
        sparse = dict(sparse_keys=["z"], sparse_types=["int64"])
        types, shapes = ["int64", "float32", "variant"], [[None], [None, 2], [3]]
        own = {}
        if ragged:
            types, shapes = ["int64", "float32", "variant", "variant"], [[None], [None, 2], [], [3]]
            own = dict(ragged_keys=["r"], ragged_value_types=["string"], ragged_split_types=["int64"])
        kw = dict(output_types=types, output_shapes=shapes)
        for dflt in (I64(7), I64([])):
            st = [ST("TensorSliceDataset", [rows], Toutput_types=["string"], output_shapes=[[2]])]
            st.append(ST(g.op, R(0), I64(1), [dflt, F32([])], dense_keys=["a", "d"], Tdense=["int64", "float32"], dense_shapes=[[], [2]], **sparse, **own, **kw))
            st += [ST("AnonymousIteratorV3", **kw), ST("MakeIterator", R(1), R(2))]
            for k in range(2):
                at = len(st)
                bad = k == 1 and np.size(dflt) == 0
                st.append(ST("IteratorGetNext", R(2), _err=bad, **kw))
                if bad:
                    continue
                st.append(ST("DeserializeSparse", R(at, len(types) - 1), dtype="int64", Tserialized="variant"))
                if ragged:
                    st.append(ST("RaggedTensorFromVariant", R(at, 2), input_ragged_rank=1, output_ragged_rank=1, Tvalues="string", Tsplits="int64"))
            yield SEQ(st)


family("csr")

CSR = "SparseTensorToCSRSparseMatrix"


def csr_places(g, dims, n):
    """Places of `n` entries in the order of rows."""
    total = int(np.prod(dims))
    at = np.sort(g.rng.choice(total, min(n, total), replace=False))
    return I64(np.stack(np.unravel_index(at, dims), 1)) if len(at) else I64(np.zeros((0, len(dims))))


def csr_matrix(g, dt, dims, n=None):
    places = csr_places(g, dims, n if n is not None else int(np.prod(dims)) // 2)
    return ST(CSR, places, g.arr(dt, [len(places)], -3, 3), I64(list(dims)))


CSR_DTYPES = ("float32", "float64", "complex64", "complex128")


@rec(CSR)
def _(g):
    for dt in CSR_DTYPES:
        for dims, n in (((3, 4), 5), ((4, 1), 2), ((2, 3, 2), 7), ((3, 3), 0)):
            tail = [ST("CSRSparseMatrixComponents", R(0), I32(k), type=dt) for k in range(dims[0] if len(dims) == 3 else 1)]
            yield SEQ([csr_matrix(g, dt, dims, n), *tail, ST("CSRSparseMatrixToSparseTensor", R(0), type=dt), ST("CSRSparseMatrixToDense", R(0), type=dt), ST("SparseMatrixNNZ", R(0))])
    f = g.arr("float32", [1], -3, 3)
    yield C(I64([[3, 0]]), f, I64([3, 4]), _err=True)
    yield C(I64([[0, 0, 0, 0]]), f, I64([3, 4, 1, 1]), _err=True)
    yield C(I64([[0, 0, 0]]), f, I64([3, 4]), _err=True)
    yield SEQ([csr_matrix(g, "float32", (3, 4)), ST("CSRSparseMatrixComponents", R(0), I32(1), type="float32", _err=True), ST("CSRSparseMatrixToDense", R(0), type="float64", _err=True)])


@rec("DenseToCSRSparseMatrix")
def _(g):
    for dt in CSR_DTYPES:
        for dims in ((3, 4), (2, 3, 2)):
            yield SEQ([ST(g.op, g.arr(dt, dims, -3, 3), csr_places(g, dims, 5)), ST("CSRSparseMatrixToDense", R(0), type=dt), ST("CSRSparseMatrixToSparseTensor", R(0), type=dt)])
    yield C(g.arr("float32", [3, 4], -3, 3), I64([[0, 4]]), _err=True)
    yield C(g.arr("float32", [3], -3, 3), I64([[0]]), _err=True)


@rec("SparseMatrixTranspose")
def _(g):
    for dt in CSR_DTYPES:
        for dims in ((3, 4), (2, 3, 2)):
            for conj in (False, True):
                yield SEQ([csr_matrix(g, dt, dims), ST(g.op, R(0), type=dt, conjugate=conj), ST("CSRSparseMatrixToSparseTensor", R(1), type=dt), ST("SparseMatrixNNZ", R(1))])


@rec("SparseMatrixMatMul")
def _(g):
    ways = (("", False), ("transpose", True), ("adjoint", True))
    for dt in CSR_DTYPES:
        for batch in ((), (2,)):
            for wa, ta in ways:
                for wb, tb in ways:
                    kw = {f"{w}_{o}": True for w, o in ((wa, "a"), (wb, "b")) if w}
                    if g.rng.integers(2):
                        kw["transpose_output"] = True
                    if g.rng.integers(2):
                        kw["conjugate_output"] = True
                    a, b = ((4, 3) if ta else (3, 4)), ((2, 4) if tb else (4, 2))
                    yield SEQ([csr_matrix(g, dt, (*batch, *a)), ST(g.op, R(0), g.arr(dt, [*batch, *b], -3, 3), **kw)])
    f = lambda *s: g.arr("float32", s, -3, 3)
    for b, kw in ((f(3, 2), {}), (f(2, 4, 2), {}), (f(4), {}), (f(4, 2), dict(transpose_a=True, adjoint_a=True)), (g.arr("float64", [4, 2], -3, 3), {})):
        yield SEQ([csr_matrix(g, "float32", (3, 4)), ST(g.op, R(0), b, _err=True, **kw)])


@rec("SparseMatrixSparseMatMul")
def _(g):
    ways = (("", False), ("transpose", True), ("adjoint", True))
    for dt in CSR_DTYPES:
        for batch in ((), (2,)):
            for wa, ta in ways:
                for wb, tb in ways:
                    kw = {f"{w}_{o}": True for w, o in ((wa, "a"), (wb, "b")) if w}
                    a, b = ((4, 3) if ta else (3, 4)), ((2, 4) if tb else (4, 2))
                    yield SEQ([csr_matrix(g, dt, (*batch, *a)), csr_matrix(g, dt, (*batch, *b)), ST(g.op, R(0), R(1), type=dt, **kw), ST("CSRSparseMatrixToDense", R(2), type=dt), ST("SparseMatrixNNZ", R(2))])
    m = lambda *dims: csr_matrix(g, "float32", dims)
    yield SEQ([m(3, 4), m(3, 4), ST(g.op, R(0), R(1), type="float32", _err=True)])
    yield SEQ([m(3, 4), m(1, 4, 3), ST(g.op, R(0), R(1), type="float32", _err=True)])
