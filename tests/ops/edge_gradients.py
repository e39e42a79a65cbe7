"""Recipes of values that are infinite or not numbers, and of gradients where derivatives are, or are multiplied by zero.

Run as more_ops.py. Each case has all pairs (or triples) of the special values below and of the cotangents.
"""

import core
from core import *

VALUES = [0.0, -0.0, 1.0, -1.0, 2.0, -2.0, 0.5, -0.25, float("inf"), -float("inf"), float("nan"), 2e-38, 1e30, -1e30, 6.0, 3.0]
COTANGENTS = [0.0, 1.5, -0.0, -2.0]

_random = core.rand_like


def rand_like(rng, t):
    n = int(np.prod(t.shape))
    if n % len(COTANGENTS):
        return _random(rng, t)
    a = np.resize(np.asarray(COTANGENTS), n).reshape(tuple(t.shape))
    return tfm().constant(a.astype(NP[t.dtype.base_dtype.name]))


core.rand_like = rand_like

UNARY = """Abs Acos Acosh Asin Asinh Atan Atanh BesselI0e BesselI1e Ceil Cos Cosh Digamma Elu Erf Erfc Erfinv Exp Expm1
Floor Inv LeakyRelu Lgamma Log Log1p Ndtri Neg Reciprocal Relu Relu6 Rint Round Rsqrt Selu Sigmoid Sign Sin Sinh
Softplus Softsign Sqrt Square Tan Tanh""".split()

BINARY = """Add AddV2 Sub Mul Div RealDiv DivNoNan MulNoNan Maximum Minimum Pow SquaredDifference Xdivy Xlogy Xlog1py Atan2
FloorDiv FloorMod Mod TruncateMod""".split()

OF_OUTPUT = "InvGrad ReciprocalGrad RsqrtGrad SigmoidGrad SqrtGrad TanhGrad".split()

OF_INPUT = "EluGrad LeakyReluGrad Relu6Grad ReluGrad SeluGrad SoftplusGrad SoftsignGrad".split()

family("edges")


def grid(n, dt):
    axes = np.meshgrid(*[np.asarray(VALUES)] * n, indexing="ij")
    return [np.repeat(a.reshape(-1), len(COTANGENTS)).astype(NP[dt]) for a in axes]


@rec(*UNARY)
def _(g):
    for dt in ("float32", "float64", "float16", "bfloat16"):
        yield C(*grid(1, dt))


@rec(*BINARY, *OF_OUTPUT, *OF_INPUT)
def _(g):
    for dt in ("float32", "float64", "float16", "bfloat16"):
        yield C(*grid(2, dt))


# Rows with ties, zeros, infinities and numbers that are none.
ROWS = [
    [0.0, 0.0, 0.0, 0.0],
    [1.0, 3.0, 3.0, -2.0],
    [0.0, 2.0, -1.0, 4.0],
    [0.0, 2.0, 0.0, 4.0],
    [float("inf"), 1.0, 2.0, 3.0],
    [-float("inf"), 1.0, 2.0, -float("inf")],
    [float("nan"), 1.0, 5.0, 0.0],
    [1.0, float("inf"), float("inf"), -1.0],
]


def rows(dt):
    return np.asarray(ROWS).astype(NP[dt])


@rec("Max", "Min", "Prod", "Sum", "Mean", "EuclideanNorm")
def _(g):
    for dt in ("float32", "float64"):
        for axes in ([1], [0], [0, 1]):
            for keep in (False, True):
                yield C(rows(dt), I32(axes), keep_dims=keep)


@rec("Cumsum", "Cumprod", "CumulativeLogsumexp")
def _(g):
    for dt in ("float32", "float64"):
        for axis in (0, 1):
            for exclusive in (False, True):
                for reverse in (False, True):
                    yield C(rows(dt), I32(axis), exclusive=exclusive, reverse=reverse)


@rec("Softmax", "LogSoftmax", "L2Loss")
def _(g):
    for dt in ("float32", "float64"):
        yield C(rows(dt))


@rec("SoftmaxCrossEntropyWithLogits")
def _(g):
    for dt in ("float32", "float64"):
        yield C(rows(dt)[:4], np.abs(rows(dt)[[1, 0, 2, 3]]) / 4)


@rec("SegmentMax", "SegmentMin", "SegmentProd", "SegmentSum", "SegmentMean")
def _(g):
    for dt in ("float32", "float64"):
        # Which number a segment has that holds others than numbers depends on the order of TensorFlow's vectors.
        yield C(rows(dt)[:6], I32([0, 0, 0, 1, 1, 3]))


@rec("UnsortedSegmentMax", "UnsortedSegmentMin", "UnsortedSegmentProd", "UnsortedSegmentSum")
def _(g):
    for dt in ("float32", "float64"):
        yield C(rows(dt)[:6], I32([0, 2, 0, -1, 1, 2]), I32(4))


@rec("TopKV2")
def _(g):
    for dt in ("float32", "float64"):
        yield C(rows(dt)[:6], I32(3))


@rec("ClipByValue")
def _(g):
    for dt in ("float32", "float64"):
        yield C(rows(dt), np.asarray(-1.0, NP[dt]), np.asarray(2.0, NP[dt]))


@rec("MaxPool", "AvgPool")
def _(g):
    for dt in ("float32",):
        x = rows(dt).reshape(1, 8, 4, 1)
        for pad in ("SAME", "VALID"):
            yield C(x, ksize=[1, 2, 2, 1], strides=[1, 2, 1, 1], padding=pad)
            yield C(x, ksize=[1, 3, 2, 1], strides=[1, 1, 2, 1], padding=pad)


@rec("FakeQuantWithMinMaxArgs")
def _(g):
    yield C(rows("float32"), min=-2.0, max=2.5)


@rec("FakeQuantWithMinMaxVars")
def _(g):
    yield C(rows("float32"), np.float32(-2.0), np.float32(2.5))


@rec("FakeQuantWithMinMaxVarsPerChannel")
def _(g):
    yield C(rows("float32"), F32([-2.0, -1.0, -0.5, -3.0]), F32([2.5, 1.0, 3.0, 4.0]))


@rec("FakeQuantWithMinMaxArgsGradient")
def _(g):
    yield C(rows("float32"), rows("float32")[::-1].copy(), min=-2.0, max=2.5)


@rec("FakeQuantWithMinMaxVarsGradient")
def _(g):
    yield C(rows("float32"), rows("float32")[::-1].copy(), np.float32(-2.0), np.float32(2.5))


@rec("FakeQuantWithMinMaxVarsPerChannelGradient")
def _(g):
    yield C(rows("float32"), rows("float32")[::-1].copy(), F32([-2.0, -1.0, -0.5, -3.0]), F32([2.5, 1.0, 3.0, 4.0]))


@rec("LSTMBlockCell")
def _(g):
    for clip in (-1.0, 3.0):
        x = rows("float32")[:, :3].copy()
        f = lambda *s: g.arr("float32", s, -1, 1)
        yield C(x, f(8, 2), f(8, 2), f(5, 8), f(2), f(2), f(2), f(8), cell_clip=clip, use_peephole=False, forget_bias=1.0)


@rec("BlockLSTMV2")
def _(g):
    # TensorFlow's gradient is not the derivative: it takes the gates in another order.
    for clip in (0.0, 3.0):
        x = np.stack([rows("float32")[:, :3], rows("float32")[:, 1:]])
        f = lambda *s: g.arr("float32", s, -1, 1)
        yield C(I64(2), x, f(8, 2), f(8, 2), f(5, 8), f(2), f(2), f(2), f(8), cell_clip=clip, use_peephole=False, _grad=False)
