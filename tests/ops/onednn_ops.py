"""Recipes of ops that TensorFlow's optimiser makes of others for oneDNN: the recorded calls of the others, by those ops.

Run with TensorFlow 2.21, from the folder of the corpus (it has `generate.py`, `core.py` and `cases`):
    TF_ENABLE_ONEDNN_OPTS=1 python generate.py FOLDER --no-shared --recipes THIS_FILE [--only Op,...] [--seed S]
"""

import gzip
import sys
import core
from core import *

tf = tfm()
HERE = os.path.dirname(os.path.abspath(__file__))
CORPUS = os.path.dirname(os.path.abspath(core.__file__))

TWINS = dict(line.split() for line in """
_MklBatchMatMul BatchMatMul
_MklBatchMatMulV2 BatchMatMulV2
_MklConjugateTranspose ConjugateTranspose
_MklDequantize Dequantize
_MklEinsum Einsum
_MklMatMul MatMul
_MklNativeAvgPool AvgPool
_MklNativeAvgPool3D AvgPool3D
_MklNativeAvgPool3DGrad AvgPool3DGrad
_MklNativeAvgPoolGrad AvgPoolGrad
_MklNativeConv2D Conv2D
_MklNativeConv2DBackpropFilter Conv2DBackpropFilter
_MklNativeConv2DBackpropInput Conv2DBackpropInput
_MklNativeConv3D Conv3D
_MklNativeConv3DBackpropFilterV2 Conv3DBackpropFilterV2
_MklNativeConv3DBackpropInputV2 Conv3DBackpropInputV2
_MklNativeDepthwiseConv2dNative DepthwiseConv2dNative
_MklNativeDepthwiseConv2dNativeBackpropFilter DepthwiseConv2dNativeBackpropFilter
_MklNativeDepthwiseConv2dNativeBackpropInput DepthwiseConv2dNativeBackpropInput
_MklNativeFusedConv2D _FusedConv2D
_MklNativeFusedMatMul _FusedMatMul
_MklQuantizedConv2DAndRelu QuantizedConv2DAndRelu
_MklQuantizedConv2DAndReluAndRequantize QuantizedConv2DAndReluAndRequantize
_MklQuantizedConv2DAndRequantize QuantizedConv2DAndRequantize
_MklQuantizedConv2DWithBias QuantizedConv2DWithBias
_MklQuantizedConv2DWithBiasAndRelu QuantizedConv2DWithBiasAndRelu
_MklQuantizedConv2DWithBiasAndReluAndRequantize QuantizedConv2DWithBiasAndReluAndRequantize
_MklQuantizedConv2DWithBiasAndRequantize QuantizedConv2DWithBiasAndRequantize
_MklQuantizedDepthwiseConv2D QuantizedDepthwiseConv2D
_MklQuantizedDepthwiseConv2DWithBias QuantizedDepthwiseConv2DWithBias
_MklQuantizedDepthwiseConv2DWithBiasAndRelu QuantizedDepthwiseConv2DWithBiasAndRelu
_MklQuantizedDepthwiseConv2DWithBiasAndReluAndRequantize QuantizedDepthwiseConv2DWithBiasAndReluAndRequantize
_MklQuantizedMaxPool QuantizedMaxPool
_MklTranspose Transpose
""".strip().splitlines())

# The part of the table that says which kernel is meant.
LABELS = {"_MklQuantize": b"QuantizedMklOp", "_MklDequantize": b"QuantizedMklOp"}


def label(op):
    return next((v for k, v in LABELS.items() if op.startswith(k)), b"MklNameChangeOp")


def proto(op, name, value):
    """An attribute as a node has it."""
    kind = next(a.type for a in op_def(op).attr if a.name == name)
    fields = {"int": "i", "float": "f", "bool": "b", "string": "s", "type": "type", "shape": "shape"}
    one = lambda kind, v: (v.as_datatype_enum if kind == "type" else v.as_proto() if kind == "shape" else v.encode() if isinstance(v, str) else v)
    AV = tf.compat.v1.AttrValue
    if kind.startswith("list("):
        return AV(list=AV.ListValue(**{fields[kind[5:-1]]: [one(kind[5:-1], v) for v in value]}))
    return AV(**{fields[kind]: one(kind, value)})


def raw(op):
    """A function that adds a node to a graph."""
    def call(**kw):
        od = op_def(op)
        ins = [kw.pop(a.name) for a in od.input_arg]
        attrs = dict(kw)
        for arg, v in zip(od.input_arg, ins):
            if arg.number_attr:
                attrs[arg.number_attr] = len(v)
                if arg.type_attr and v:
                    attrs[arg.type_attr] = v[0].dtype.base_dtype
            elif arg.type_list_attr:
                attrs[arg.type_list_attr] = [x.dtype.base_dtype for x in v]
            elif arg.type_attr:
                attrs[arg.type_attr] = v.dtype.base_dtype
        for a in od.attr:
            if a.name not in attrs and a.HasField("default_value"):
                attrs[a.name] = attr_tf(default_attr(a), a.type)
        outs = [tf.as_dtype(attrs[arg.type_attr]) if arg.type_attr else tf.as_dtype(arg.type) for arg in od.output_arg]
        made = {k: proto(op, k, v) for k, v in attrs.items()}
        if label(op):
            made["_kernel"] = tf.compat.v1.AttrValue(s=label(op))
        node = tf.compat.v1.get_default_graph().create_op(op, list(flat(ins)), outs, name="node", attrs=made)
        return list(node.outputs) if len(outs) > 1 else node.outputs[0]
    return call


def recorded(op):
    for folder in (HERE, os.path.join(CORPUS, "cases")):
        path = os.path.join(folder, op + ".json.gz")
        if os.path.exists(path):
            return json.load(gzip.open(path))["cases"]
    return []


def decode(x):
    if isinstance(x, list):
        return [decode(y) for y in x]
    return Q(x["dtype"], dec_np(x)) if x["dtype"] in QBASE else dec_np(x)


_run_steps = core.run_steps


def run_steps(seq):
    """Calls that oneDNN refuses tell nothing of the ops that it was to stand for."""
    results = _run_steps(seq)
    if any("error" in r for r in results):
        raise Drop("refused: " + str(results)[:200])
    return results


sys.modules["__main__"].run_steps = run_steps

family("onednn")

for name, twin in TWINS.items():
    setattr(tf.raw_ops, name, raw(name))
    core._names[name] = [a.name for a in op_def(name).input_arg]

    @rec(name)
    def _(g, name=name, twin=twin):
        own = {a.name for a in op_def(name).attr}
        inferred = {n for a in op_def(name).input_arg for n in (a.number_attr, a.type_attr, a.type_list_attr)}
        fine = lambda c: "outputs" in c and all(x["dtype"] == "float32" or x["dtype"] in QBASE or x["dtype"] == "uint8" for x in flat(c["outputs"]))
        # Explicit padding of this one is refused: oneDNN takes it for another.
        refused = lambda c: name == "_MklNativeConv2DBackpropInput" and c["attrs"]["padding"] == "EXPLICIT"
        narrow = [c for c in recorded(twin) if fine(c) and not refused(c)]
        n = min(24, len(narrow))
        for k in range(n):
            c = narrow[k * len(narrow) // n]
            attrs = {n: v for n, v in c["attrs"].items() if n in own and n not in inferred}
            yield SEQ([ST(name, *[decode(x) for x in c["inputs"]], _tol=1e-4, **attrs)], "graph")


LABELS.update({"_MklSwish": b"", "_MklFusedMish": b"", "_MklLayerNorm": b""})
ALONE = ("_MklSwish", "_MklFusedMish", "_MklLayerNorm", "_MklNativeConv2DWithBias", "_MklNativePadWithConv2D")

for name in ALONE:
    setattr(tf.raw_ops, name, raw(name))
    core._names[name] = [a.name for a in op_def(name).input_arg]


@rec("_MklSwish", "_MklFusedMish")
def _(g):
    yield SEQ([ST(g.op, F32([-3, -1, 0, .5, 2, 30, -90, np.inf, np.nan]), _tol=1e-5)], "graph")
    for _ in range(3):
        yield SEQ([ST(g.op, g.arr("float32", g.shape(g.int(1, 3)), -8, 8), _tol=1e-5)], "graph")


@rec("_MklLayerNorm")
def _(g):
    for rank in (2, 3):
        n = g.int(2, 9)
        yield SEQ([ST(g.op, g.arr("float32", g.shape(rank - 1) + [n], -3, 3), g.arr("float32", [n]), g.arr("float32", [n]), epsilon=g.one([0.001, 0.1]), _tol=1e-4)], "graph")


@rec("_MklNativeConv2DWithBias", "_MklNativePadWithConv2D")
def _(g):
    pads = g.op.endswith("PadWithConv2D")
    for padding in ("VALID",) if pads else ("VALID", "SAME", "EXPLICIT"):
        for _ in range(3):
            a, b = g.int(1, 3), g.int(1, 3)
            last = A([[0, 0], [g.int(0, 2), g.int(0, 2)], [g.int(0, 2), g.int(0, 2)], [0, 0]], g.one(["int32", "int64"])) if pads else g.arr("float32", [b])
            more = dict(explicit_paddings=[0, 0, 1, 0, 0, 1, 0, 0]) if padding == "EXPLICIT" else {}
            yield SEQ([ST(g.op, g.arr("float32", [g.int(1, 2), 5, 4, a]), g.arr("float32", [2, 2, a, b]), last, strides=[1, g.int(1, 2), g.int(1, 2), 1], padding=padding, _tol=1e-4, **more)], "graph")
