"""Makes the cases jax_*: programs of JAX in SavedModels, with the answers TensorFlow gives.

Run with TensorFlow 2.21 and JAX 0.10: python jax_programs.py FOLDER
"""

import json
import os
import shutil
import sys

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
import jax
import jax.numpy as jnp
import numpy as np
import tensorflow as tf
from jax import lax
from jax._src.export import _export
from jax.experimental import jax2tf

# TensorFlow 2.21 reads artifacts up to this version.
_export.hlo.get_version_from_compatibility_requirement = lambda _: "1.13.7"
jax.config.update("jax_hlo_source_file_canonicalization_regex", ".*/")


def random(*shape, seed=0):
    return np.random.RandomState(seed).randn(*shape).astype(np.float32)


def spec(*shape, dtype=tf.float32):
    return tf.TensorSpec(shape, dtype)


def poly(x):
    """Any sizes: shapes, slices, windows, products, and an assertion that a size is not 0."""
    b, t = x.shape[:2]
    last = jnp.argmax(x.sum(-1), 1)
    return {
        "flat": x.reshape(b * t, -1).sum(1),
        "rows": x[:, 1:] + jnp.arange(t - 1, dtype=jnp.float32)[:, None],
        "pairs": jnp.einsum("btd,bsd->bts", x, x),
        "taken": jnp.take_along_axis(x, last[:, None, None], 1),
        "windows": lax.reduce_window(x, -jnp.inf, lax.max, (1, 2, 1), (1, 2, 1), "VALID"),
        "sorted": jnp.sort(x, 1),
        "mean": x.mean((0, 1)) / t,
        "loop": lax.fori_loop(0, t, lambda i, a: a + x[:, i], jnp.zeros((b, 3))),
    }


def indexing(x, i, u):
    """Gathers, scatters by functions with and without a name, selections of windows."""
    return {
        "applied": x.at[i].apply(lambda v: v * v + 1),
        "unique": x.at[jnp.array([3, 1])].apply(jnp.sin, unique_indices=True),
        "added": x.at[i].add(u),
        "dropped": x.at[i + 3].set(9.0, mode="drop"),
        "batched": jax.vmap(lambda row, j: row.at[j].add(5.0))(x, jnp.arange(5) % 3),
        "picked": jax.vmap(lambda row, j: row[j])(x, jnp.arange(5) % 3),
        "updated": lax.dynamic_update_slice(x, u[:2, :2], (i[1], i[0])),
        "pooled": jax.grad(
            lambda x: (lax.reduce_window(x, -jnp.inf, lax.max, (2, 2), (1, 1), "VALID") ** 2).sum()
        )(x),
        "sorted": lax.sort((i, u[:, 0], u[:, 1]), num_keys=2),
        "largest": lax.top_k(x, 2),
        "folded": lax.reduce(x, np.float32(0), lambda a, b: jnp.sqrt(a * a + b * b), (1,)),
        "places": jnp.argmax(x, 0),
    }


def called(x):
    """A function of TensorFlow inside a program, a loop, random numbers."""
    y = jax2tf.call_tf(lambda v: tf.nn.relu(v) * 2.0, call_tf_graph=True)(x)
    state = jnp.array([1, 2, 3, 4], jnp.uint32)
    philox = lax.RandomAlgorithm.RNG_PHILOX
    return {
        "y": y,
        "loop": lax.while_loop(lambda s: s[0] < 9.0, lambda s: (s[0] * 2, s[1] + x), (1.0, x))[1],
        "branch": lax.switch(jnp.int32(y.sum()) % 3, [jnp.sin, jnp.cos, jnp.tanh], x),
        "uniform": jax.random.uniform(jax.random.key(7, impl="threefry2x32"), (3,)),
        "bits": lax.rng_bit_generator(state, (5,), np.uint32, algorithm=philox),
    }


def layer(x):
    h = jax.nn.softmax(jnp.tanh(x @ random(3, 4, seed=5)))
    return (h * jnp.arange(4.0)).sum(-1)


def exported(f, specs, shapes=None, gradient=False):
    f = jax2tf.convert(f, polymorphic_shapes=shapes, with_gradient=gradient)
    return tf.function(f, autograph=False, input_signature=specs)


class Model(tf.Module):
    def __init__(self):
        self.poly = exported(poly, [spec(None, None, 3)], ["b, t, _"])
        i = spec(5, dtype=tf.int32)
        self.indexing = exported(indexing, [spec(5, 3), i, spec(5, 3)])
        self.called = exported(called, [spec(3)])
        self.layer = exported(layer, [spec(None, 3)], ["b, _"], gradient=True)


class Writer:
    def __init__(self, folder):
        self.folder, self.calls = folder, []
        shutil.rmtree(folder, ignore_errors=True)
        os.makedirs(f"{folder}/io")

    def stored(self, name, value):
        if isinstance(value, (list, tuple)):
            items = [self.stored(f"{name}_{at}", item) for at, item in enumerate(value)]
            return {"tuple" if isinstance(value, tuple) else "list": items}
        if isinstance(value, dict):
            return {"dict": {key: self.stored(f"{name}_{key}", value[key]) for key in value}}
        value = np.asarray(value)
        np.save(f"{self.folder}/io/{name}", value)
        return {"npy": f"io/{name}.npy", "dtype": value.dtype.name, "shape": list(value.shape)}


def main():
    writer = Writer(f"{sys.argv[1]}/jax_programs")
    options = tf.saved_model.SaveOptions(experimental_custom_gradients=True)
    tf.saved_model.save(Model(), f"{writer.folder}/model", options=options)
    model = tf.saved_model.load(f"{writer.folder}/model")
    i = np.array([0, 2, 2, 4, 1], np.int32)
    calls = [
        ("poly", [random(2, 4, 3)]),
        ("poly", [random(3, 5, 3, seed=1)]),
        ("poly", [random(0, 4, 3)]),
        ("indexing", [random(5, 3), i, random(5, 3, seed=2)]),
        ("called", [random(3)]),
        ("layer", [random(4, 3)]),
    ]
    for index, (name, args) in enumerate(calls):
        call = {"kind": "function", "path": name, "args": [], "kwargs": {}}
        call["args"] = [writer.stored(f"c{index}_in{at}", arg) for at, arg in enumerate(args)]
        try:
            results = getattr(model, name)(*args)
            call["expect"] = writer.stored(f"c{index}_out", results)
        except tf.errors.InvalidArgumentError as error:
            message = error.message[:60]
            call["expect"] = {"error": {"class": "InvalidArgumentError", "message": message}}
        writer.calls.append(call)
    x = tf.constant(random(4, 3, seed=3))
    with tf.GradientTape() as tape:
        tape.watch(x)
        total = tf.reduce_sum(model.layer(x))
    dx = tape.gradient(total, x)
    args = [writer.stored("grad_in", x.numpy())]
    expect = {"list": [writer.stored("grad_out", dx.numpy())]}
    gradient = {"kind": "gradient", "path": "layer", "args": args, "variables": [], "order": 1}
    writer.calls.append({**gradient, "expect": expect})
    case = {
        "name": "jax_programs",
        "kind": "saved_model",
        "source": f"jax_programs.py, JAX {jax.__version__}: programs inside XlaCallModule",
        "features": ["jax", "gradients"],
        "tags": ["serve"],
        "calls": writer.calls,
    }
    with open(f"{writer.folder}/case.json", "w") as file:
        json.dump(case, file, indent=1)


main()
