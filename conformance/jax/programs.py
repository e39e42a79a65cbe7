"""Programs of JAX as portable artifacts, with JAX's results and gradients.

    python programs.py FOLDER [NAME ...]

writes a case for each: FOLDER/jax_NAME/program.mlirbc, case.json (kind `artifact`) and arrays in io/. A gradient is
that of the sum of all floating results by the floating arguments.
"""

import json
import os
import sys

import jax
import jax.numpy as jnp
import numpy as np
from jax import export, lax, nn, random
from jax.scipy import linalg as sl
from jax.scipy import special

jax.config.update("jax_enable_x64", False)
jax.config.update("jax_hlo_source_file_canonicalization_regex", ".*")
R = np.random.RandomState
PROGRAMS = {}


def f32(*shape, seed=0, scale=1.0):
    return (R(seed + len(shape)).randn(*shape) * scale).astype(np.float32)


def positive(*shape, seed=0):
    return (R(seed).rand(*shape) + 0.5).astype(np.float32)


def i32(high, *shape, seed=0):
    return R(seed).randint(0, high, shape).astype(np.int32)


def spd(n, seed=0):
    x = f32(n, n, seed=seed)
    return (x @ x.T + n * np.eye(n)).astype(np.float32)


def program(*args, gradient=True, rtol=None, atol=None, sizes=None, doubles=False):
    """`sizes`: the shapes of the arguments, with letters for sizes that the artifact leaves open."""
    def add(function):
        PROGRAMS[function.__name__] = (function, args, gradient, rtol, atol, sizes, doubles)
        return function
    return add


@program(f32(3, 4), positive(3, 4))
def elementwise(x, y):
    return jnp.sin(x) * jnp.exp(-y) + jnp.log1p(y) / jnp.sqrt(y) - jnp.tanh(x) ** 3 + jnp.arctan2(x, y) + jnp.cbrt(y) + jnp.expm1(x) + nn.sigmoid(x)


@program(positive(3, 4), f32(3, 4, scale=0.4))
def special_functions(x, y):
    return special.gammaln(x), special.digamma(x), special.erf(y), special.erfc(y), special.i0e(y), special.i1(y)


@program(positive(3, 4), f32(3, 4, scale=0.4), gradient=False)
def more_special_functions(x, y):
    return special.erfinv(y * 0.5), special.ndtri(nn.sigmoid(y)), special.polygamma(1, x), special.zeta(x + 2, x), special.betainc(x, x + 1, nn.sigmoid(y)), special.gammainc(x, x), special.gammaincc(x, x + 1), special.log_ndtr(y), special.expi(x), special.bernoulli(4)


@program(f32(3, 4), f32(3, 4, seed=9))
def comparisons(x, y):
    return jnp.where(x > y, x, y * 2), jnp.clip(x, -0.5, 0.5), jnp.sign(x), jnp.floor(y * 3), jnp.round(y * 3), lax.rem(x * 5, positive(3, 4)), jnp.mod(x, 0.7), jnp.isfinite(x / jnp.abs(y)), jnp.copysign(x, y)


@program(i32(100, 5), i32(7, 5, seed=3), gradient=False)
def integers(a, b):
    u = a.astype(jnp.uint32)
    return a // (b + 1), a % (b + 1), a << b, a >> 1, u >> 2, a & b, a | b, a ^ b, ~a, lax.population_count(a), lax.clz(a), -a, jnp.power(b, 3), jnp.uint8(a) + jnp.uint8(200), jnp.int8(a * 3)


@program(f32(2, 3, 4), f32(2, 4, 5), f32(5, 3))
def dots(x, y, z):
    return jnp.einsum("bij,bjk->bik", x, y), jnp.einsum("bij,bjk,ki->b", x, y, z), jnp.tensordot(x, z, [[1], [1]]), jnp.outer(x[0, 0], z[0])


@program(f32(2, 9, 9, 3), f32(3, 3, 3, 4), f32(3, 3, 1, 6))
def convolutions(x, w, d):
    dims = ("NHWC", "HWIO", "NHWC")
    return (lax.conv_general_dilated(x, w, (2, 2), "SAME", dimension_numbers=dims),
            lax.conv_general_dilated(x, w, (1, 1), [(1, 0), (2, 1)], rhs_dilation=(2, 2), dimension_numbers=dims),
            lax.conv_general_dilated(x, d, (1, 1), "VALID", dimension_numbers=dims, feature_group_count=3),
            lax.conv_transpose(x, w, (2, 2), "SAME", dimension_numbers=dims))


@program(f32(2, 3, 8), f32(4, 3, 3), f32(1, 2, 5, 5, 5), f32(3, 2, 2, 2, 2))
def convolutions_of_other_ranks(x, w, v, k):
    return lax.conv_general_dilated(x, w, (1,), "SAME", lhs_dilation=(1,)), lax.conv_general_dilated(v, k, (1, 2, 1), "VALID"), lax.conv_general_dilated(x, w, (1,), [(2, 2)], lhs_dilation=(2,))


@program(f32(2, 8, 8, 3))
def pools(x):
    window, strides = (1, 2, 2, 1), (1, 2, 2, 1)
    return (lax.reduce_window(x, -jnp.inf, lax.max, window, strides, "VALID"),
            lax.reduce_window(x, 0.0, lax.add, window, (1, 1, 1, 1), "SAME") / 4,
            nn.relu(x).mean((1, 2)), lax.reduce_window(x, jnp.inf, lax.min, window, (1, 1, 1, 1), "SAME"))


@program(f32(6, 4), i32(6, 5), i32(4, 3))
def gathers(x, i, j):
    return x[i], x[:, j], x[i[:3], j], jnp.take_along_axis(x, (j % 4)[:, None] * jnp.ones((1, 4), jnp.int32), 0), x[1:5:2, ::-1], jnp.take(x, i + 4, axis=0, mode="clip"), jnp.take(x, i + 4, axis=0, mode="fill", fill_value=7.0)


@program(f32(6, 4), i32(6, 3), f32(3, 4, seed=4))
def scatters(x, i, u):
    return x.at[i].set(u[0]), x.at[i].add(u), x.at[:, 1].min(0.0), x.at[2:4, 1:3].set(0.5), x.at[i, 1].max(u[:, 0]), x.at[i + 4].add(1.0, mode="drop")


@program(f32(6, 4), i32(6, 3), gradient=False)
def combinations(x, i):
    pairs = lax.reduce((x, x * 2), (0.0, 1.0), lambda a, b: (a[0] + b[0], a[1] * b[1]), (1,))
    return x.at[i].multiply(2.0), jax.ops.segment_prod(x, jnp.arange(6) % 3, 3), pairs, lax.reduce_window(jnp.abs(x) + 1, 1.0, lax.mul, (2, 2), (1, 1), "VALID")


@program(f32(5, 6), i32(9, 5, 6))
def sorts(x, k):
    values, indices = lax.top_k(x, 3)
    return jnp.sort(x), jnp.argsort(k, stable=True), values, indices, jnp.argmax(x, 1), jnp.argmin(x), lax.sort((k, x), num_keys=2), jnp.median(x, 1), jnp.sort(x, 0, descending=True)


@program(f32(4, 7))
def scans(x):
    return jnp.cumsum(x, 1), jnp.cumprod(x * 0.5, 0), lax.cummax(x, 1), lax.cumlogsumexp(x, 1), lax.associative_scan(lambda a, b: a * 0.5 + b, x, axis=1), jnp.diff(x), jnp.cumsum(x, 1)[:, ::-1]


@program(f32(3, 4), np.float32(0.1))
def loops(x, rate):
    def body(carry, t):
        return carry * (1 - rate) + jnp.sin(t), carry.sum()
    last, sums = lax.scan(body, x[0], x)
    return last, sums, lax.fori_loop(0, 5, lambda i, a: a * 1.1 + i, x)


@program(f32(3), gradient=False)
def open_loops(x):
    return lax.while_loop(lambda c: c[0].sum() < 100, lambda c: (c[0] * 2 + 1, c[1] + 1), (jnp.abs(x), 0)), jax.vmap(lambda a: lax.while_loop(lambda b: b < 10, lambda b: b + jnp.abs(a) + 1, a))(x)


@program(f32(3), i32(3))
def branches(x, i):
    picked = lax.switch(jnp.clip(i.sum(), 0, 2), [lambda v: v * 2, jnp.sin, lambda v: v - 1], x)
    return picked, lax.cond(x.sum() > 0, lambda v: v ** 2, lambda v: -v, x), jax.vmap(lambda a, k: lax.switch(k % 2, [jnp.cos, jnp.exp], a))(x, jnp.arange(3))


@program(f32(2, 5, 8), f32(8, 24, scale=0.3), f32(8, 8, scale=0.3))
def attention(x, qkv, out):
    q, k, v = jnp.split((x @ qkv).reshape(2, 5, 3, 2, 4), 3, 2)
    q, k, v = (t[:, :, 0].transpose(0, 2, 1, 3) for t in (q, k, v))
    scores = jnp.where(jnp.tril(jnp.ones((5, 5), bool)), q @ k.swapaxes(-1, -2) / 2, -1e9)
    return x + (nn.softmax(scores) @ v).transpose(0, 2, 1, 3).reshape(2, 5, 8) @ out


@program(f32(2, 6, 8), f32(8), f32(8, seed=5))
def normalizations(x, scale, shift):
    mean, var = x.mean(-1, keepdims=True), x.var(-1, keepdims=True)
    layer = (x - mean) * lax.rsqrt(var + 1e-6) * scale + shift
    rms = x * lax.rsqrt((x * x).mean(-1, keepdims=True) + 1e-6) * scale
    return layer, rms, nn.standardize(x, axis=(1, 2)), nn.log_softmax(x), special.logsumexp(x, 1), x / jnp.linalg.norm(x, axis=-1, keepdims=True)


@program(f32(4, 6))
def activations(x):
    return nn.gelu(x), nn.gelu(x, approximate=False), nn.silu(x), nn.elu(x), nn.selu(x), nn.softplus(x), nn.mish(x), nn.relu6(x * 4), nn.hard_swish(x * 4), nn.leaky_relu(x), nn.glu(x), nn.celu(x), nn.squareplus(x), nn.log_sigmoid(x)


@program(f32(4, 3, 5), f32(4, 8, scale=0.4), f32(5, 32, scale=0.4), f32(8, 32, scale=0.4))
def lstm(x, h0, w, u):
    def step(carry, x):
        h, c = carry
        i, f, g, o = jnp.split(x @ w + h @ u, 4, -1)
        c = nn.sigmoid(f) * c + nn.sigmoid(i) * jnp.tanh(g)
        h = nn.sigmoid(o) * jnp.tanh(c)
        return (h, c), h
    (h, c), hs = lax.scan(step, (h0[:3], h0[1:]), x)
    return h, c, hs


@program(np.uint32([3, 7]), gradient=False)
def threefry(key):
    k = random.wrap_key_data(key)
    a, b, c = random.split(k, 3)
    return random.bits(a, (5,)), random.uniform(b, (3, 4)), random.randint(c, (6,), 0, 100), random.permutation(a, 10), random.bernoulli(b, 0.3, (8,)), random.key_data(random.fold_in(c, 5)), random.choice(a, jnp.arange(20), (4,), replace=False)


@program(np.uint32([1, 2]), gradient=False)
def random_floats(key):
    k = random.wrap_key_data(key)
    a, b, c, d = random.split(k, 4)
    return random.normal(a, (4, 5)), random.truncated_normal(b, -1, 1, (6,)), random.gumbel(c, (5,)), random.exponential(d, (5,)), random.categorical(a, jnp.log(jnp.arange(1.0, 6)), shape=(7,)), random.laplace(b, (4,)), random.cauchy(c, (4,)), random.rademacher(d, (6,)), random.gamma(a, 2.0, (5,)), random.beta(b, 2.0, 3.0, (3,)), random.poisson(c, 4.0, (5,))


@program(spd(4), f32(4, 3), rtol=1e-4)
def cholesky(a, b):
    l = jnp.linalg.cholesky(a)
    return l, sl.solve_triangular(l, b, lower=True), sl.cho_solve((l, True), b), 2 * jnp.log(jnp.diagonal(l)).sum()


@program(f32(4, 4) + 3 * np.eye(4, dtype=np.float32), f32(4, 2), gradient=False, rtol=1e-4, atol=1e-4)
def solving(a, b):
    return jnp.linalg.solve(a, b), jnp.linalg.inv(a), jnp.linalg.det(a), sl.lu_factor(a)[0]


@program(f32(5, 3), gradient=False, rtol=1e-4, atol=1e-4)
def orthogonal(a):
    q, r = jnp.linalg.qr(a)
    return jnp.abs(q), jnp.abs(r)


@program(spd(4), rtol=1e-4, atol=1e-4)
def eigenvalues(a):
    w, v = jnp.linalg.eigh(a)
    return w, jnp.abs(v), jnp.linalg.eigvalsh(a * 2)


@program(f32(5, 3), rtol=1e-4, atol=1e-4)
def singular_values(a):
    u, s, v = jnp.linalg.svd(a, full_matrices=False)
    return s, jnp.abs(u), (u * s) @ v, jnp.linalg.pinv(a), jnp.linalg.norm(a, 2)


@program(f32(3, 8), rtol=1e-4)
def fourier(x):
    y = jnp.fft.rfft(x)
    return y.real, y.imag, jnp.abs(jnp.fft.fft(x)), jnp.fft.irfft(y * 2), jnp.abs(jnp.fft.fft2(x)), jnp.fft.ifft(x + 1j * x).real


@program(f32(3, 4), f32(3, 4, seed=2))
def complex_numbers(x, y):
    z = x + 1j * y
    return jnp.abs(z), (z * z.conj()).real, jnp.angle(z), jnp.exp(z).imag, (z / (1 + z * 1j)).real, jnp.sqrt(z).real, jnp.log(z).imag, jnp.sin(z).real, jnp.tanh(z).imag


@program(f32(4, 5), f32(5, 3, seed=1), rtol=2e-2, atol=2e-2)
def narrow_types(x, w):
    a, b = x.astype(jnp.bfloat16), w.astype(jnp.bfloat16)
    return (a @ b).astype(jnp.float32), jnp.dot(a, b, preferred_element_type=jnp.float32), (x.astype(jnp.float16) * 2).astype(jnp.float32), lax.reduce_precision(x, 8, 7)


@program(f32(10), i32(4, 10))
def segments(x, ids):
    return jax.ops.segment_sum(x, ids, 4), jax.ops.segment_max(x, ids, 4), jnp.bincount(ids, length=5), nn.one_hot(ids, 4)


@program(f32(5, 6), i32(3, 2))
def slices(x, i):
    return lax.dynamic_slice(x, (i[0], i[1]), (2, 3)), lax.dynamic_update_slice(x, jnp.ones((2, 2)), (i[1], i[0])), jnp.roll(x, 2, 1), jnp.pad(x, ((1, 2), (0, 1)), constant_values=3.0), jnp.pad(x, 2, mode="reflect"), jnp.tile(x, (2, 1)), jnp.repeat(x, 2, 0), jnp.flip(x, 0), lax.pad(x, 0.0, ((1, 1, 1), (-1, 0, 0))), jnp.concatenate([x, x * 2], 1), jnp.stack([x, -x]), jnp.rot90(x), jnp.triu(x)


@program(f32(4, 5))
def reductions(x):
    return x.sum(), x.mean(0), x.max(1), x.prod(1), x.std(0), jnp.any(x > 1, 1), jnp.all(x > -3), jnp.argmax(x), jnp.quantile(x, 0.3, axis=1), jnp.nanmean(x, 1), jnp.count_nonzero(x > 0), lax.reduce(x, 0.0, lambda a, b: a + b, (0,)), lax.reduce_and(x > -3, (0, 1)), jnp.ptp(x, 0)


@program(np.sort(f32(8)), f32(5, seed=3), f32(8, seed=4))
def interpolations(x, at, y):
    return jnp.interp(at, x, y), jnp.searchsorted(x, at), jnp.digitize(at, x), jnp.histogram(y, bins=4, range=(-2, 2))[0], jnp.polyval(y[:4], at), jnp.convolve(y, at, mode="same"), jnp.unique(jnp.round(y), size=6, fill_value=9.0), jnp.nonzero(y > 0, size=8, fill_value=-1)[0], jnp.trapezoid(y, x), jnp.gradient(y)


@jax.custom_jvp
def clipped(x):
    return jnp.clip(x, -1, 1)


clipped.defjvp(lambda primals, tangents: (clipped(primals[0]), tangents[0] * 0.5))


@program(f32(3, 4))
def higher_order(x):
    g = jax.grad(lambda v: (jnp.sin(v) * v).sum())
    return g(x), jax.jvp(jnp.tanh, (x,), (jnp.ones_like(x),))[1], jax.hessian(lambda v: (v ** 3).sum())(x[0]), jax.jacrev(lambda v: jnp.outer(v, v).sum(0))(x[1])


@program(f32(3, 5), i32(5, 3))
def losses(logits, labels):
    picked = jnp.take_along_axis(nn.log_softmax(logits), labels[:, None], 1)
    return -picked.mean(), jnp.mean((logits - 1) ** 2), jnp.abs(logits).sum(), jnp.logaddexp(logits, 0.0).sum(), optax_like(logits)


def optax_like(x):
    return jnp.where(jnp.abs(x) < 1, 0.5 * x * x, jnp.abs(x) - 0.5).mean()


@program(f32(8, 4, scale=0.5), f32(4, 16, scale=0.3), f32(16, scale=0.1), f32(16, 1, scale=0.3), f32(8, 1, seed=8))
def training_step(x, w1, b1, w2, y):
    def loss(params):
        w1, b1, w2 = params
        return jnp.mean((nn.relu(x @ w1 + b1) @ w2 - y) ** 2)
    value, grads = jax.value_and_grad(loss)((w1, b1, w2))
    return (value, *(p - 0.1 * g for p, g in zip((w1, b1, w2), grads)))


@program(f32(1, 6, 8, scale=0.5), f32(1, 8, 8, seed=2), i32(6, 1))
def cache(x, kept, at):
    kept = lax.dynamic_update_slice(kept, x[:, :1], (0, at[0], 0))
    scores = jnp.einsum("bqd,bkd->bqk", x, kept) * jnp.where(jnp.arange(8) <= at[0], 1.0, 0.0)
    return kept, nn.softmax(scores) @ kept


@program(f32(2, 4, 4, 3))
def images(x):
    return jax.image.resize(x, (2, 8, 8, 3), "bilinear"), jax.image.resize(x, (2, 2, 2, 3), "nearest"), jax.image.resize(x, (2, 7, 5, 3), "cubic"), lax.conv_general_dilated_patches(x, (2, 2), (1, 1), "VALID", dimension_numbers=("NHWC", "HWIO", "NHWC"))


@program(f32(3, 4), rtol=1e-4)
def checkpointed(x):
    @jax.checkpoint
    def block(v):
        return jnp.tanh(v @ v.T) @ v
    return block(block(x)), jax.jit(lambda v: v * 2, inline=False)(x), lax.map(lambda r: r / r.sum(), positive(3, 4) * nn.sigmoid(x))


@program(f32(4, 4) * 0.3, gradient=False, rtol=1e-4, atol=1e-5)
def matrix_functions(a):
    return sl.expm(a), jnp.linalg.matrix_power(a, 3), jnp.kron(a[:2, :2], a[2:, 2:]), jnp.trace(a), jnp.linalg.multi_dot([a, a, a])


@program(f32(2, 4), i32(256, 3, seed=1).astype(np.uint8), gradient=False, rtol=1e-5, atol=1e-5)
def packed_weights(x, k):
    w = R(0).randint(-8, 8, (4, 3)).astype(np.int8)
    small = jnp.asarray(w, jnp.int4)
    parts = lax.bitcast_convert_type(k, jnp.int4)
    ways = [small + jnp.int4(-3), jnp.maximum(small, jnp.int4(-4)), small >> 1, lax.shift_right_logical(small, jnp.int4(1)), lax.clz(parts), jnp.cumsum(small, 0, dtype=jnp.int4), jnp.max(small, 0), small.at[1].add(small[0]), parts, small.astype(jnp.uint4) >> 1]
    return [x @ (small.astype(jnp.float32) * 0.1), x @ jnp.asarray(np.clip(w, -2, 1), jnp.int2).astype(jnp.float32), jnp.argmax(small, 0), lax.bitcast_convert_type(parts, jnp.uint8), jnp.sort(small, 0).astype(jnp.int8)] + [way.astype(jnp.int8) for way in ways]


@program(i32(256, 2, 3, 6, 6), i32(256, 4, 3, 3, 3, seed=1), i32(2**31 - 1, 1, 1, 5, 5), gradient=False)
def integer_convolutions(x, w, large):
    narrow = [lax.conv(x.astype(dtype), w.astype(dtype), (1, 1), "SAME") for dtype in (jnp.int8, jnp.uint8, jnp.int16, jnp.int32)]
    return [*narrow, lax.conv(large, large[:, :, 1:3, 2:4] - 2**30, (1, 1), "VALID"), lax.conv_general_dilated(x.astype(jnp.int8), w.astype(jnp.int8), (2, 1), "SAME", preferred_element_type=jnp.int32)]


@program(f32(4, 5), gradient=False, rtol=1e-5, atol=1e-5)
def windows_from_any_value(x):
    window = lambda *args: lax.reduce_window(x, *args)
    return window(1.0, lax.add, (2, 2), (1, 1), "SAME"), window(2.0, lax.mul, (2, 3), (1, 2), "SAME"), lax.reduce_window(x, 3.0, lax.add, (2, 2), (1, 1), ((1, 2), (0, 1)), base_dilation=(2, 1)), lax.cumlogsumexp(x + 2j)


@program(f32(3, 5, 3), np.array([[[0, 1, 2], [0, 3, 4], [0, 5, 6]], [[1, 2, 3], [2, 4, 6], [1, 0, 1]]], np.float32), f32(2, 4), f32(2, 4, 1, seed=3), gradient=False, rtol=1e-4, atol=1e-4)
def triangles(a, singular, diagonal, b):
    complex_ = a + 0.5j * jnp.roll(a, 1, 1)
    return lax.linalg.lu(a), lax.linalg.lu(jnp.swapaxes(a, 1, 2)), lax.linalg.lu(singular), lax.linalg.lu(complex_), lax.linalg.cholesky(singular), lax.linalg.cholesky(singular + 0j), lax.linalg.tridiagonal_solve(diagonal * 0.1, diagonal + 3, diagonal * 0.2, b)


@program(f32(3, 4, 4), gradient=False, rtol=2e-4, atol=2e-4)
def general_eigenvalues(a):
    values, vectors = jnp.linalg.eig(a)
    own, left = lax.linalg.eig(a, compute_right_eigenvectors=False)
    rows = jnp.conj(jnp.swapaxes(left, 1, 2))
    ordered = jnp.sort(values, axis=-1)
    length = lambda v: jnp.sum(jnp.abs(v) ** 2, -2)
    return ordered, a @ vectors - vectors * values[:, None], rows @ a - own[:, :, None] * rows, length(vectors), length(left), jnp.sort(jnp.linalg.eigvals(a + 1j), axis=-1)


@program(f32(2, 5, 3), f32(3, 4), rtol=1e-4, atol=1e-4, gradient=False)
def singular_values_alone(tall, wide):
    values = lambda a, full: jnp.linalg.svd(a, full_matrices=full, compute_uv=False)
    ranks = jnp.linalg.matrix_rank(tall), jnp.linalg.matrix_rank(wide[:, :1] * wide[:1])
    norms = jnp.linalg.norm(wide, 2), jnp.linalg.norm(wide, "nuc"), jnp.linalg.cond(tall)
    return values(tall, False), values(tall, True), values(wide, False), values(wide, True), *ranks, *norms


@program(f32(0, 3, 3), f32(0, 4), gradient=False)
def nothing_updated(matrices, rows):
    """Nothing that indices are in."""
    at = jnp.array([1, 2])
    return jnp.linalg.inv(matrices), jnp.linalg.solve(matrices, matrices), rows.at[at].add(1.0), rows.at[:, at].set(2.0), rows[:, 1:1].at[at].max(1.0)


@program(spd(4), gradient=False, rtol=1e-4, atol=1e-4)
def matrix_roots(a):
    return sl.sqrtm(a), sl.sqrtm(a + 0.1j)


@program(f32(2, 5, 5), f32(1, 1), gradient=False, rtol=2e-4, atol=2e-4)
def condensed_matrices(a, single):
    whole = a + 1j * jnp.swapaxes(a, 1, 2)
    adjoint = lambda x: jnp.conj(jnp.swapaxes(x, 1, 2))
    diagonals = [lax.linalg.tridiagonal(x + adjoint(x), lower=lower) for x in (a, whole) for lower in (True, False)]
    return sl.hessenberg(a[0], calc_q=True), lax.linalg.hessenberg(a), lax.linalg.hessenberg(whole), diagonals, lax.linalg.hessenberg(single), lax.linalg.tridiagonal(single)


@program(f32(3, 6, 6), gradient=False, rtol=5e-4, atol=5e-4)
def real_schur_forms(a):
    """What does not depend on the order of eigenvalues, nor on signs."""
    shifted = a.at[0].set(jnp.roll(jnp.eye(6), 1, 0)).at[1, 2:, :2].set(0.0).at[2, 3].set(0.0)
    t, z = lax.linalg.schur(shifted)
    zt = jnp.swapaxes(z, 1, 2)
    only_t = lax.linalg.schur(shifted, compute_schur_vectors=False)[0]
    return z @ t @ zt, z @ zt, jnp.tril(t, -2), jnp.sort(jnp.abs(jnp.linalg.eigvals(t)), -1), jnp.sort(jnp.abs(jnp.linalg.eigvals(only_t)), -1), sl.funm(a[0] / 8, jnp.exp)


@program(np.stack([spd(3), spd(3, 1)]), f32(2, 3, 2), gradient=False, rtol=1e-4, atol=1e-4, sizes=("b, 3, 3", "b, 3, 2"))
def systems_of_any_size(a, b):
    return jnp.linalg.cholesky(a), jnp.linalg.solve(a, b), jnp.linalg.det(a), jnp.linalg.inv(a), jnp.linalg.eigvalsh(a), jnp.abs(jnp.linalg.qr(b)[1]), jnp.linalg.svd(b, compute_uv=False)


@program(f32(1, 2, 3), f32(3, 2, 5), f32(2, 1, 4, 4), f32(3, 1, 2, 2), gradient=False)
def windows_that_are_too_long(lines, filters, images, squares):
    lines_of = lambda **options: lax.conv_general_dilated(lines, filters, (1,), **options)
    dilated = lax.conv_general_dilated(images, squares, (1, 1), "VALID", rhs_dilation=(5, 1))
    return lines_of(padding="VALID"), lines_of(padding=[(1, 1)]), lines_of(padding=[(-2, 0)], lhs_dilation=(2,)), dilated


@program(np.array([0, 1, 2j, 2 - 1j, -3], np.complex64), gradient=False)
def complex_limits(z):
    cut = jnp.array([complex(-1, -0.0), complex(-1, 0.0), complex(-4, -1e-20), 3 + 4j, -2j, 0, complex(-np.inf, 2)], jnp.complex64)
    return lax.pow(z, z * 0), jnp.power(z[1:], z[1:]), lax.rsqrt(cut), lax.atan2(cut[2:5], z[1:4])


@program(np.stack([spd(3) + 1j * np.triu(f32(3, 3), 1) - 1j * np.triu(f32(3, 3), 1).T, spd(3, 1)]), f32(2, 4, 3) + 1j * f32(2, 4, 3, seed=3), gradient=False, rtol=1e-9, atol=1e-9, doubles=True)
def complex_doubles(a, b):
    a, b = a.astype(jnp.complex128), b.astype(jnp.complex128)
    values, vectors = jnp.linalg.eigh(a)
    u, s, vh = jnp.linalg.svd(b, full_matrices=False)
    singular = jnp.linalg.svd(b, compute_uv=False)
    return values, vectors * values[:, None] @ jnp.conj(jnp.swapaxes(vectors, 1, 2)), jnp.linalg.eigvalsh(a), s, u * s[:, None] @ vh, singular, jnp.linalg.pinv(b), jnp.linalg.norm(b[0], 2), jnp.linalg.matrix_rank(b)


@program(np.array([3, 1.1, -2, 1000, -0.0, 1e-3, 0.3, -500], np.float32), gradient=False)
def bits_of_narrow_floats(x):
    types = [jnp.float8_e4m3fn, jnp.float8_e5m2, jnp.float8_e4m3b11fnuz, jnp.float8_e4m3fnuz, jnp.float8_e5m2fnuz]
    bits = [lax.bitcast_convert_type(x.astype(dtype), jnp.uint8) for dtype in types]
    back = [lax.bitcast_convert_type(own, dtype).astype(jnp.float32) for own, dtype in zip(bits, types)]
    four = lax.bitcast_convert_type(x.astype(jnp.float4_e2m1fn), jnp.uint4)
    again = lax.bitcast_convert_type(four ^ jnp.uint4(9), jnp.float4_e2m1fn)
    after = [lax.nextafter(x.astype(dtype), jnp.ones_like(x, dtype)).astype(jnp.float32) for dtype in types[:2]]
    return *bits, *back, four.astype(jnp.int32), again.astype(jnp.float32), *after


@program(f32(5, 3), np.array([[2, 0, 3], [0, 0, -1]], np.float32), i32(1, 2) + np.array([3, 1], np.int32), rtol=1e-5)
def products_of_rows(x, factors, at):
    rows = x.at[at].multiply(factors, unique_indices=True)
    return rows, x.at[:, 1].multiply(2.5, unique_indices=True)


@program(f32(4, 3), gradient=False)
def sharded(x):
    mesh = jax.sharding.Mesh(np.array(jax.devices()[:1]), ("x",))
    return lax.with_sharding_constraint(x * 2, jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec("x")))


def is_float(x):
    return jnp.issubdtype(jnp.asarray(x).dtype, jnp.floating)


def stored(folder, name, value):
    value = np.asarray(value)
    dtype = value.dtype.name
    np.save(f"{folder}/io/{name}", value.view(np.uint16) if dtype == "bfloat16" else value)
    return {"npy": f"io/{name}.npy", "dtype": dtype, "shape": list(value.shape)}


def write(root, name):
    with jax.enable_x64(PROGRAMS[name][-1]):
        write_in_this_precision(root, name)


def write_in_this_precision(root, name):
    function, args, gradient, rtol, atol, sizes, _ = PROGRAMS[name]
    folder = f"{root}/jax_{name}"
    os.makedirs(f"{folder}/io", exist_ok=True)
    jitted = jax.jit(function)
    with open(f"{folder}/program.mlirbc", "wb") as file:
        specs = export.symbolic_args_specs(args, sizes) if sizes else args
        file.write(export.export(jitted, platforms=["cpu"])(*specs).mlir_module_serialized)
    given = [stored(folder, f"in_{i}", a) for i, a in enumerate(args)]
    results = [stored(folder, f"out_{i}", v) for i, v in enumerate(jax.tree.leaves(jitted(*args)))]
    common = {"args": given} | ({"rtol": rtol} if rtol else {}) | ({"atol": atol} if atol else {})
    calls = [{"kind": "run", **common, "expect": {"list": results}}]
    if gradient:
        floats = [i for i, a in enumerate(args) if is_float(a)]
        total = lambda *a: sum(v.astype(jnp.float32).sum() for v in jax.tree.leaves(function(*a)) if is_float(v))
        found = [stored(folder, f"grad_{i}", g) for i, g in zip(floats, jax.jit(jax.grad(total, floats))(*args))]
        calls.append({"kind": "gradient", **common, "expect": {"list": found}})
    case = {"name": f"jax_{name}", "kind": "artifact", "source": f"programs.py, JAX {jax.__version__}", "calls": calls}
    with open(f"{folder}/case.json", "w") as file:
        json.dump(case, file, indent=1)
        file.write("\n")


if __name__ == "__main__":
    for name in sys.argv[2:] or PROGRAMS:
        write(sys.argv[1], name)
