"""Adds calls of image ops, with TensorFlow's results, that must be the same to the last bit: bytes are made of them.
Their tolerance is for devices.

    python image_cases.py
"""

import base64, gzip, json, os
from pathlib import Path

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
os.environ["TF_ENABLE_ONEDNN_OPTS"] = "0"
import numpy as np
import tensorflow as tf

NOTE = "exact images"
R = np.random.RandomState(7)


def tensor(value):
    return {"dtype": str(value.dtype), "shape": list(value.shape), "b64": base64.b64encode(value.tobytes()).decode()}


def call(op, inputs, **attrs):
    arrays = [np.asarray(value) for value in inputs.values()]
    found = getattr(tf.raw_ops, op)(**inputs, **attrs).numpy()
    attrs = attrs | {"T": str(arrays[0].dtype)}
    return {"attrs": attrs, "inputs": [tensor(value) for value in arrays], "outputs": [tensor(found)], "compare": "exact", "rtol": 1e-5, "atol": 1e-3, "note": NOTE}


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


MAKERS = {"ResizeBilinear": resized, "ResizeBicubic": resized, "ResizeArea": resized, "ScaleAndTranslate": scaled, "AdjustHue": coloured, "AdjustSaturation": coloured}

if __name__ == "__main__":
    for op, maker in MAKERS.items():
        path = Path(__file__).with_name(f"{op}.json.gz")
        data = {"op": op, "tf": tf.__version__, "family": "image", "cases": []}
        if path.exists():
            data = json.loads(gzip.decompress(path.read_bytes()))
        kept = [case for case in data["cases"] if case.get("note") != NOTE]
        first = max((case["id"] for case in kept), default=-1) + 1
        added = [{"id": first + index, **case} for index, case in enumerate(maker(op))]
        data["cases"] = kept + added
        path.write_bytes(gzip.compress(json.dumps(data, separators=(",", ":")).encode(), mtime=0))
        print(op, len(kept), "+", len(added))
