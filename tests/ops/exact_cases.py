"""Adds calls, with TensorFlow's results, that must be the same to the last bit: bytes are made of images, and numbers
between two steps, bins or thresholds fall to one of them. Their tolerance is for devices.

    python exact_cases.py [OP ...]
"""

import base64, gzip, json, os, sys
from pathlib import Path

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
os.environ["TF_ENABLE_ONEDNN_OPTS"] = "0"
import numpy as np
import tensorflow as tf

NOTE = "exact"
WITHOUT_T = ("Mfcc", "ExtractGlimpseV2", "RFFT", "RFFT2D", "IRFFT", "IRFFT2D", "CombinedNonMaxSuppression", "UniformQuantizedDotHybrid", "QuantizeV2", "StringLower", "StringToNumber", "StringUpper")
FEATURES = "Elu", "Selu", "Softplus", "Softsign", "Relu6"
R = np.random.RandomState(7)


def tensor(given):
    if isinstance(given, list):
        return [tensor(one) for one in given]
    value, dtype = np.asarray(given.numpy(), object if given.dtype == tf.string else None), given.dtype.name
    if dtype == "string":
        return {"dtype": dtype, "shape": list(value.shape), "values": [base64.b64encode(v).decode() for v in value.reshape(-1)]}
    return {"dtype": dtype, "shape": list(value.shape), "b64": base64.b64encode(value.tobytes()).decode()}


def call(op, inputs, infers=None, **attrs):
    given = {name: tf.convert_to_tensor(value) for name, value in inputs.items()}
    found = getattr(tf.raw_ops, op)(**given, **attrs)
    found = list(found) if isinstance(found, tuple) else [found]
    attrs = {name: value.name if isinstance(value, tf.DType) else value for name, value in attrs.items()}
    if op not in WITHOUT_T and "FakeQuant" not in op:
        attrs["T"] = next(iter(given.values())).dtype.name
    attrs |= infers or {}
    return {"attrs": attrs, "inputs": [tensor(value) for value in given.values()], "outputs": [tensor(value) for value in found], "compare": "exact", "rtol": 1e-5, "atol": 1e-3, "note": NOTE}


def images(dtype, *shape):
    return R.randint(0, 256, shape).astype(dtype)


def sizes():
    for height, width, channels, to in ((8, 9, 3, (5, 12)), (13, 7, 1, (6, 3)), (5, 4, 4, (11, 4)), (6, 6, 3, (6, 6))):
        for dtype in ("uint8", "float32"):
            yield images(dtype, 2, height, width, channels), np.array(to, np.int32)


def resized(op):
    for x, size in sizes():
        for aligned, centred in ((False, True), (False, False), (True, False)):
            if op != "ResizeArea":
                yield call(op, {"images": x, "size": size}, align_corners=aligned, half_pixel_centers=centred)
            elif not centred:
                yield call(op, {"images": x, "size": size}, align_corners=aligned)


def scaled(op):
    for x, size in sizes():
        scale = (size / x.shape[1:3]).astype(np.float32)
        for kernel in ("lanczos3", "gaussian", "triangle", "keyscubic", "mitchellcubic"):
            yield call(op, {"images": x, "size": size, "scale": scale, "translation": np.zeros(2, np.float32)}, kernel_type=kernel, antialias=bool(size[0] % 2))


def coloured(op):
    name = "delta" if op == "AdjustHue" else "scale"
    for x in (R.rand(3, 4, 3), R.randn(3, 4, 3), np.round(R.randn(3, 4, 3)), -R.rand(2, 3, 3), R.rand(2, 2, 3) * 255):
        for by in (0.3, -0.9, 1.7):
            by = np.float32(by if op == "AdjustHue" else abs(by))
            yield call(op, {"images": x.astype(np.float32), name: by})


def between_steps(op):
    ranges = ((-1.3, 2.1, 8, False), (-3.7, 0.9, 4, True), (-0.2, 3.3, 8, True), (-1.0, 1.0, 8, False))
    # In these, steps that are counted by a product and by a division lead to different ones. The division of a
    # device is not exact.
    ranges += () if op == "FakeQuantWithMinMaxVars" else ((-1.3130227, 2.7520857, 4, False), (-1.2312294, 3.2568374, 8, False), (-3.8360822, 1.8662102, 16, False), (-1.2865245, 0.26754403, 8, False))
    for low, high, bits, narrow in ranges:
        low, high = np.float32(low), np.float32(high)
        x = ((np.arange(48) - 24) * (high - low) / (2**bits - 1) / 2).astype(np.float32)
        attrs = {"num_bits": bits, "narrow_range": narrow}
        if op == "FakeQuantWithMinMaxArgs":
            yield call(op, {"inputs": x}, min=float(low), max=float(high), **attrs)
        elif op == "FakeQuantWithMinMaxVars":
            yield call(op, {"inputs": x, "min": low, "max": high}, **attrs)
        else:
            ends = {"min": np.array([low, 2 * low, low / 3], np.float32), "max": np.array([high, high / 2, high], np.float32)}
            yield call(op, {"inputs": x.reshape(16, 3), **ends}, **attrs)


def at_thresholds(op):
    # Devices have no doubles, which tell tenths from the ends of bins.
    for scale in (1, 2, 3, 10) if op == "ApproximateEqual" else (1, 2, 3):
        x, y = (R.randint(-10, 11, (2, 3, 7)) / np.float32(scale)).astype(np.float32)
        if op == "ApproximateEqual":
            # Every third pair is as far apart as is allowed, or nearly.
            y = np.where(R.randint(0, 3, x.shape) == 0, x + np.float32(0.5) * R.choice(np.array([-1, 1], np.float32), x.shape), y)
            yield call(op, {"x": x, "y": y}, tolerance=0.5)
        else:
            for low, high, bins in ((-2, 1, 5), (-1, 1, 10), (-0.7, 2, 7)):
                yield call(op, {"values": x, "value_range": np.array([low, high], np.float32), "nbins": np.int32(bins)}, dtype=tf.int32)


def equal_scores(op):
    for boxes, classes, levels in ((5, 1, 2), (12, 2, 3), (40, 3, 4), (90, 4, 3), (60, 1, 1000)):
        corners = R.randint(0, 30, (1, boxes, 1, 2))
        corners = (np.concatenate([corners, corners + R.randint(1, 8, corners.shape)], -1) / 32).astype(np.float32)
        scores = (R.randint(0, levels, (1, boxes, classes)) / np.float32(50)).astype(np.float32)
        given = {"boxes": corners, "scores": scores, "max_output_size_per_class": np.int32(20), "max_total_size": np.int32(30), "iou_threshold": np.float32(0.5), "score_threshold": np.float32(0.01)}
        yield call(op, given, pad_per_class=boxes % 4 == 0, clip_boxes=True)


def fixed_point(op):
    for x, size in sizes():
        if x.dtype == np.uint8:
            for aligned, centred in ((False, True), (False, False), (True, False)):
                given = {"images": tf.bitcast(x, tf.quint8), "size": size, "min": np.float32(-1), "max": np.float32(2)}
                yield call(op, given, align_corners=aligned, half_pixel_centers=centred)


def rounded_rows(op):
    for scale in (1, 2, 8, 10):
        x = (R.randint(-30, 30, (6, 4)) / np.float32(scale)).astype(np.float32)
        w = tf.bitcast(R.randint(-100, 100, (4, 3)).astype(np.int8), tf.qint8)
        given = {"lhs": x, "rhs": w, "rhs_scales": np.float32(0.02), "rhs_zero_points": np.int32(3)}
        attrs = {"Tlhs": tf.float32, "Trhs": tf.qint8}
        case = call(op, given, Tout=tf.float32, rhs_quantization_axis=-1, rhs_quantization_min_val=-128, rhs_quantization_max_val=127)
        case["attrs"] |= {name: dtype.name for name, dtype in attrs.items()}
        yield case


def flags(op):
    for fill in ("", " ", "+", "-", "0", "#"):
        for width in (-1, 0, 9):
            yield call(op, {"input": np.array([1.5, -2.25, 0, 1e9], np.float32)}, precision=-1, scientific=False, shortest=False, width=width, fill=fill)
            yield call(op, {"input": np.array([3, -4], np.int32)}, precision=-1, scientific=False, shortest=False, width=width, fill=fill)


def rows_of_texts(op):
    for shape in ((2,), (2, 1), (2, 1, 1), (1, 2), (2, 2), (0, 1)):
        texts = np.array([f"text {at}".encode() for at in range(np.prod(shape))], object).reshape(shape)
        yield call(op, {"data": tf.constant(texts, tf.string, shape), "method": tf.constant("farmhash64")})


def with_nul(op):
    texts = tf.constant(["\0Nul\0", "aB\0C", "\u00c4\u00e9\0\u00fc", "", "Ab"])
    for encoding in ("", "utf-8"):
        yield call(op, {"input": texts}, encoding=encoding)


def complex_matrices(op):
    for shape in ((3, 2), (4,), (2, 2, 1), ()):
        for summarize in (1, 3, -1):
            x = tf.zeros(shape, tf.complex64)
            given = tf.raw_ops.StringFormat(inputs=[x], template="z: {}", placeholder="{}", summarize=summarize)
            attrs = {"T": ["complex64"], "template": "z: {}", "placeholder": "{}", "summarize": summarize}
            yield {"attrs": attrs, "inputs": [tensor(x)], "outputs": [tensor(given)], "compare": "exact", "rtol": 0.0, "atol": 0.0, "note": NOTE}


def with_payload(op):
    for dtype in (tf.float32, tf.float64):
        yield call(op, {"string_tensor": tf.constant(["nan(1)", "NaN", "-nan(a_1)", "1.5"])}, out_type=dtype)


def narrow(op):
    x = np.array([0.5, 0.25, 0.75, 0.1, 1.0, 0.0, 0.9980392], np.float32)
    for dtype in (tf.quint8, tf.qint8, tf.quint16, tf.qint16):
        for round_mode in ("HALF_TO_EVEN", "HALF_AWAY_FROM_ZERO"):
            for narrow_range in (False, True):
                for least, most in ((0.0, 1.0), (-1.0, 1.0), (-0.3, 0.7)):
                    given = {"input": x, "min_range": np.float32(least), "max_range": np.float32(most)}
                    yield call(op, given, T=dtype, mode="SCALED", round_mode=round_mode, narrow_range=narrow_range)


def complex_limits(op):
    for dtype in (tf.complex64, tf.complex128):
        ends = [complex(a, b) for a in (-np.inf, -1e30, -1000.0, 1000.0, np.inf) for b in (0.0, 1.0, -2.0, 3.1)]
        yield call(op, {"x": tf.constant(ends, dtype)})


def limits(op):
    """Where results are limits of functions, vectors must reach them."""
    ends = [0.0, 1.0, 2.0, 3.5, 5.0, 11.0, 16.0, 20.0, 30.0, 60.0, 110.0, 200.0, 1e3, 7e4, 1e10, 1e30, np.inf]
    ends = np.array(ends + [-x for x in ends] + [np.nan], np.float64)
    for dtype in (tf.float32, tf.float64):
        x = tf.cast(ends, dtype)
        name = "features" if op in FEATURES else "x"
        try:
            y = tf.cast(getattr(tf.raw_ops, op)(**{name: x}), tf.float64).numpy()
        except (tf.errors.InvalidArgumentError, tf.errors.NotFoundError):
            continue
        kept = np.flatnonzero(np.isin(y, [0.0, 1.0, -1.0, 2.0, np.inf, -np.inf, 6.0]) | np.isnan(y) | (y == ends))
        yield call(op, {name: tf.tile(tf.gather(x, kept), [3])})
    if op == "Sigmoid":
        yield from complex_limits(op)


def saturated(op):
    """Where an exponential is 0 or 1, and where it is not."""
    ends = [-6e4, -100.0, -30.0, -20.0, -12.0, -1e-5, -1e-9, -1e-30, 0.0, 1e-9, 2.0]
    for dtype in (tf.float32, tf.float64, tf.bfloat16, tf.half):
        y = tf.raw_ops.Selu(features=tf.cast(tf.constant(ends * 3, tf.float64), dtype))
        yield call(op, {"gradients": tf.ones_like(y), "outputs": y})


def of_nothing(op):
    last = {"RFFT": [[0]], "IRFFT": [[0]], "RFFT2D": [[2, 0], [0, 4], [0, 0]], "IRFFT2D": [[2, 0], [0, 4], [0, 0]]}[op]
    for lengths in last:
        for shape in ((2, 0), (0, 4)):
            x = np.zeros(shape, np.complex64 if op[0] == "I" else np.float32)
            attrs = {"Treal": tf.float32} if op[0] == "I" else {"Tcomplex": tf.complex64}
            yield call(op, {"input": x, "fft_length": np.array(lengths, np.int32)}, **attrs)


def many(dtype):
    """So many ones that a sum of 16 bits would stop before."""
    return tf.ones([3000, 2], dtype), np.zeros(3000, np.int32), np.arange(3000, dtype=np.int32)


def known(op):
    """Calls of which results were wrong: NaN that was lost, sums of 16 bits, values that broadcast."""
    nan = float("nan")
    if op == "TensorStridedSliceUpdate":
        for shape in ((), (3,), (1, 3), (2, 1), (1, 1), (2, 3)):
            inputs = {"input": np.zeros((4, 5), np.float32), "begin": np.array([0, 1], np.int32), "end": np.array([4, 4], np.int32), "strides": np.array([2, 1], np.int32)}
            value = np.arange(1, 1 + np.prod(shape, dtype=int), dtype=np.float32).reshape(shape)
            yield call(op, {**inputs, "value": value}, infers={"Index": "int32"})
    elif op == "SparseSegmentSumGrad":
        for dtype in (tf.half, tf.bfloat16, tf.float32):
            grad, indices, ids = many(dtype)
            yield call(op, {"grad": grad, "indices": indices, "segment_ids": ids, "output_dim0": 2}, infers={"Tidx": "int32", "Tsegmentids": "int32"})
    elif op == "Conv2DBackpropFilter":
        for dtype in (tf.half, tf.bfloat16):
            x = tf.ones([1, 50, 60, 1], dtype)
            inputs = {"input": x, "filter_sizes": np.ones(4, np.int32), "out_backprop": x}
            yield call(op, inputs, strides=[1, 1, 1, 1], padding="VALID")
    elif op == "HSVToRGB":
        for dtype in (tf.float32, tf.float64, tf.half):
            yield call(op, {"images": tf.constant([[nan, 0.9, 0.24], [0.3, nan, 0.5], [0.3, 0.5, nan], [0.3, 0.5, 0.25]], dtype)})
    elif op == "Mfcc":
        for x in (-1.0, nan, 0.0):
            yield {**call(op, {"spectrogram": np.full((1, 2, 257), x, np.float32), "sample_rate": 16000}), "compare": "close"}
    elif op == "MaxPool3D":
        for size in (1, 2):
            x = np.arange(8.0, dtype=np.float32).reshape(1, 2, 2, 2, 1)
            for at in range(8):
                x.reshape(-1)[at] = nan
                yield call(op, {"input": x}, ksize=[1, size, size, size, 1], strides=[1, 1, 1, 1, 1], padding="VALID")
                x.reshape(-1)[at] = at
    elif op == "ExtractVolumePatches":
        x = np.arange(16.0, dtype=np.float32).reshape(1, 2, 2, 4, 1)
        yield call(op, {"input": x}, ksizes=[1] * 5, strides=[1, 1, 1, 2, 1], padding="SAME")
    elif op == "SparseSplit":
        for axis in (-1, -2):
            inputs = {"split_dim": np.int64(axis), "indices": np.array([[0, 0], [0, 3], [1, 1]], np.int64), "values": np.array([1.0, 2.0, 3.0], np.float32), "shape": np.array([2, 4], np.int64)}
            yield call(op, inputs, infers={"T": "float32"}, num_split=2)
    elif op == "RandomGammaGrad":
        alpha, sample = [1.0, 2.5, 2.5, 0.5, 3.0], [0.0, 0.0, 4.7e6, 0.0, 2.0]
        for dtype in (tf.float32, tf.float64):
            yield {**call(op, {"alpha": tf.constant(alpha, dtype), "sample": tf.constant(sample, dtype)}), "compare": "close"}
    elif op == "ExtractGlimpseV2":
        inputs = {"input": np.ones((2, 4, 4, 1), np.float32), "size": np.array([2, 2], np.int32), "offsets": np.array([[nan, 0.0], [0.0, 0.0]], np.float32)}
        yield call(op, inputs, centered=True, normalized=False, uniform_noise=False, noise="zero")
    elif op == "ResizeArea":
        yield from resized(op)
        x = np.arange(4.0, dtype=np.float32).reshape(1, 4, 1, 1)
        yield {**call(op, {"images": x, "size": np.array([2, 3], np.int32)}, align_corners=True), "compare": "close"}


MAKERS = {
    "SeluGrad": saturated,
    **{op: known for op in ("TensorStridedSliceUpdate", "SparseSegmentSumGrad", "Conv2DBackpropFilter", "HSVToRGB", "Mfcc", "MaxPool3D", "ExtractVolumePatches", "SparseSplit", "RandomGammaGrad", "ExtractGlimpseV2")},
    **{op: limits for op in ("Tanh", "Erf", "Erfc", "Sigmoid", "Softplus", "Softsign", "Elu", "Selu", "Relu6", "Exp", "Expm1", "Log", "Log1p", "Sqrt", "Rsqrt", "Atan", "Asinh", "Acosh", "Atanh", "Sinh", "Cosh", "Sin", "Cos", "Lgamma", "Digamma", "Ndtri", "Erfinv", "Sign", "Floor", "Ceil", "Rint", "Round", "Square", "Reciprocal", "BesselI1e")},
    "RFFT": of_nothing, "RFFT2D": of_nothing, "IRFFT": of_nothing, "IRFFT2D": of_nothing,
    "Fingerprint": rows_of_texts, "StringLower": with_nul, "StringUpper": with_nul, "StringToNumber": with_payload, "QuantizeV2": narrow, "StringFormat": complex_matrices,
    "ResizeBilinear": resized, "ResizeBicubic": resized, "ResizeArea": known, "ScaleAndTranslate": scaled, "AdjustHue": coloured, "AdjustSaturation": coloured,
    "FakeQuantWithMinMaxArgs": between_steps, "FakeQuantWithMinMaxVars": between_steps, "FakeQuantWithMinMaxVarsPerChannel": between_steps,
    "ApproximateEqual": at_thresholds, "HistogramFixedWidth": at_thresholds, "CombinedNonMaxSuppression": equal_scores, "QuantizedResizeBilinear": fixed_point,
    "UniformQuantizedDotHybrid": rounded_rows, "AsString": flags,
}

if __name__ == "__main__":
    for op in sys.argv[1:] or MAKERS:
        maker = MAKERS[op]
        path = Path(__file__).with_name(f"{op}.json.gz")
        data = {"op": op, "tf": tf.__version__, "family": "exact", "cases": []}
        if path.exists():
            data = json.loads(gzip.decompress(path.read_bytes()))
        kept = [case for case in data["cases"] if case.get("note") not in (NOTE, "exact images")]
        first = max((case["id"] for case in kept), default=-1) + 1
        added = [{"id": first + index, **case} for index, case in enumerate(maker(op))]
        data["cases"] = kept + added
        path.write_bytes(gzip.compress(json.dumps(data, separators=(",", ":")).encode(), mtime=0))
        print(op, len(kept), "+", len(added))
