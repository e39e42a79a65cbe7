"""Inputs and weights made of seeds as bench/inputs.rs makes them, and what results are compared by."""
import math
import struct

import torch

# The most elements that are made at once.
CHUNK = 1 << 22


class Place:
    """Where tensors are made."""

    device = "cpu"


def f32(x):
    return struct.unpack("f", struct.pack("f", x))[0]


def sizes(text):
    return [int(size) for size in text.split("x")]


def unsigned(x, shift):
    """A shift to the right that brings in zeros."""
    return (x >> shift) & ((1 << (64 - shift)) - 1)


def numbers(seed, begin, end):
    """64 random bits for each index: splitmix64 of `seed * 1000003 + index`."""
    signed = lambda x: x - (1 << 64) if x >> 63 else x
    z = (torch.arange(begin, end, device=Place.device) + seed * 1000003) * signed(0x9E3779B97F4A7C15)
    z = (z ^ unsigned(z, 30)) * signed(0xBF58476D1CE4E5B9)
    z = (z ^ unsigned(z, 27)) * signed(0x94D049BB133111EB)
    return z ^ unsigned(z, 31)


def floats(seed, dims, low, high):
    """Numbers between `low` and `high`, of 24 bits each."""
    out = torch.empty(math.prod(dims), device=Place.device)
    for begin in range(0, len(out), CHUNK):
        part = out[begin : begin + CHUNK]
        part.copy_(unsigned(numbers(seed, begin, begin + len(part)), 40))
    return out.mul_(2.0**-24).mul_(f32(high - low)).add_(low).reshape(dims)


def ids(seed, dims, modulus):
    bits = numbers(seed, 0, math.prod(dims))
    # The remainder of unsigned numbers, by halves.
    high, low = unsigned(bits, 32) % modulus, bits & 0xFFFFFFFF
    return ((high * ((1 << 32) % modulus) + low) % modulus).reshape(dims)


class Weights:
    """Weights in the order in which they are asked for, as in bench/gpu/weights.rs."""

    def __init__(self):
        self.made = 0

    def between(self, dims, low, high):
        self.made += 1
        return floats(999 + self.made, dims, f32(low), f32(high))

    def scaled(self, dims, fan_in, variance):
        bound = f32(math.sqrt(f32(3 * variance / fan_in)))
        return self.between(dims, -bound, bound)


def check(results):
    """The numbers of bench/gpu/check.rs; None where there is none."""
    mass, squares, probe, n = 0.0, 0.0, 0.0, 0
    for result in results:
        flat = result.flatten()
        for begin in range(0, len(flat), CHUNK):
            x = flat[begin : begin + CHUNK].double()
            weights = unsigned(numbers(999, n, n + len(x)), 40).double() * 2.0**-23 - 1.0
            mass, squares = mass + x.abs().sum().item(), squares + (x * x).sum().item()
            probe, n = probe + (x * weights).sum().item(), n + len(x)
    found = {"mass": mass, "norm": math.sqrt(squares), "probe": probe}
    return {key: x if math.isfinite(x) else None for key, x in found.items()} | {"n": n}
