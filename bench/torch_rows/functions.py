"""Functions of a few ops: those of bench/gpu/ops.rs. Each gives a function and its arguments."""
import math

import torch
import torch.nn.functional as F

from .inputs import Place, f32, floats, sizes


def elementwise(rest):
    (n,) = sizes(rest.removeprefix("chain_"))

    def chain(x, y):
        t = F.relu(x * y + x)
        t = torch.clamp(t * 1.5 - y, max=3.0)
        return t * x + 1.0

    return chain, (floats(1, [n], -2.0, 2.0), floats(2, [n], 0.5, 1.5))


def gemm(rest):
    format, n = rest.split("_")
    n = int(n)
    dtype = torch.bfloat16 if format == "bf16" else torch.float32
    if format == "tf32":
        if Place.device != "cuda" or torch.cuda.get_device_capability() < (8, 0):
            raise RuntimeError(f"not available: {Place.device} has no TF32")
        torch.backends.cuda.matmul.allow_tf32 = True
    return torch.matmul, tuple(floats(seed, [n, n], -1.0, 1.0).to(dtype) for seed in (11, 12))


def softmax(rest):
    return lambda x: F.softmax(x, -1), (floats(3, sizes(rest.removeprefix("f32_")), -2.0, 2.0),)


def layer_norm(rest):
    rows, columns = sizes(rest.removeprefix("f32_"))
    args = floats(3, [rows, columns], -2.0, 2.0), floats(4, [columns], 0.5, 1.5), floats(5, [columns], -0.5, 0.5)
    return lambda x, gain, offset: F.layer_norm(x, [columns], gain, offset, 1e-5), args


def attention(rest):
    format, dims = rest.split("_")
    dtype = torch.bfloat16 if format == "bf16" else torch.float32
    return F.scaled_dot_product_attention, tuple(floats(s, sizes(dims), -1.0, 1.0).to(dtype) for s in (21, 22, 23))


def launch(rest):
    kind, n = rest.split("_")
    n = int(n)

    def chain(x, a, b):
        for i in range(n):
            x = x * a if i % 2 == 0 else x + b
        return x

    def mixed(x, w):
        for i in range(n):
            x = x @ w if i % 2 == 0 else x.tanh()
        return x

    if kind == "chain":
        bounds = [(31, -1.0, 1.0), (32, 0.5, 1.0), (33, -0.5, 0.5)]
        return chain, tuple(floats(seed, [256], low, high) for seed, low, high in bounds)
    bound = f32(math.sqrt(3.0 / 16.0))
    return mixed, (floats(31, [16, 16], -1.0, 1.0), floats(32, [16, 16], -bound, bound))
