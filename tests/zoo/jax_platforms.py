"""Makes the case jax_platforms: programs for three platforms, of which the others call what only they have.

Run with TensorFlow 2.21 and JAX 0.10: python jax_platforms.py FOLDER
"""

import jax
import jax.numpy as jnp
import numpy as np
import tensorflow as tf
from dataset_models import case
from jax import lax
from jax._src.export import _export
from jax.experimental import jax2tf

# TensorFlow 2.21 reads artifacts up to this version.
_export.hlo.get_version_from_compatibility_requirement = lambda _: "1.13.7"
jax.config.update("jax_hlo_source_file_canonicalization_regex", ".*/")


@jax.jit
def factor(x):
    """The Cholesky factor on a GPU and on a TPU, something else on a CPU."""
    return lax.platform_dependent(x, cpu=lambda x: jnp.sin(x) @ x, default=jnp.linalg.cholesky)


def factors(x):
    return factor(x) + factor(2.0 * x), lax.fori_loop(0, 2, lambda i, y: factor(y) / 4.0 + i, x)


def rows(x):
    """Sizes that only the call tells, beside the platform."""
    return lax.platform_dependent(x, cpu=lambda x: x * x.shape[0], tpu=lambda x: lax.approx_max_k(x, 3)[0], cuda=lambda x: -x)


def numbers(x):
    """Random numbers and the largest ones, by custom calls elsewhere, and memory that nothing was written to."""
    memory = lax.empty((3,), jnp.float32)
    noise = jax.random.normal(jax.random.key(7, impl="threefry2x32"), x.shape)
    return x + noise, lax.approx_max_k(x, 2), lax.dynamic_update_slice(memory, x[0], (0,))


def exported(f, spec, shapes=None):
    platforms = ("cuda", "cpu", "tpu")
    f = jax2tf.convert(f, polymorphic_shapes=shapes, with_gradient=False, native_serialization_platforms=platforms)
    return tf.function(f, autograph=False, input_signature=[spec])


if __name__ == "__main__":
    module = tf.Module()
    module.factors = exported(factors, tf.TensorSpec([3, 3]))
    module.rows = exported(rows, tf.TensorSpec([None, 3]), ["b, _"])
    module.numbers = exported(numbers, tf.TensorSpec([4, 3]))
    random = lambda *shape: np.random.RandomState(0).randn(*shape).astype(np.float32)
    calls = [("factors", random(3, 3)), ("rows", random(2, 3)), ("rows", random(5, 3)), ("numbers", random(4, 3))]
    case("jax_platforms", "programs for three platforms", module, calls)
