"""Makes the case jax_reducers: functions of scalars that branch, by which reductions, windows and scatters combine.

Run with TensorFlow 2.21 and JAX 0.10: python jax_reducers.py FOLDER
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


def closer(a, b):
    """The number that is closer to 1."""
    return lax.cond(jnp.abs(a - 1.0) < jnp.abs(b - 1.0), lambda: a, lambda: b)


def reduced(x, i, u):
    dims = lax.ScatterDimensionNumbers(update_window_dims=(1,), inserted_window_dims=(0,), scatter_dims_to_operand_dims=(0,))
    return (
        lax.reduce(x, np.float32(9), closer, (1,)),
        lax.reduce_window(x, np.float32(9), closer, (2, 2), (1, 1), "SAME"),
        x.at[i].apply(lambda v: lax.cond(v > 0, lambda: v * 2, lambda: v - 1)),
        lax.scatter_add(x, i[:, None], u, dims),
    )


if __name__ == "__main__":
    module = tf.Module()
    specs = [tf.TensorSpec([4, 5]), tf.TensorSpec([3], tf.int32), tf.TensorSpec([3, 5])]
    converted = jax2tf.convert(reduced, with_gradient=False)
    module.reduced = tf.function(converted, autograph=False, input_signature=specs)
    random = lambda *shape: (2 * np.random.RandomState(0).randn(*shape)).astype(np.float32)
    case("jax_reducers", "functions of scalars that branch", module, [("reduced", random(4, 5), np.array([2, 0, 2], np.int32), random(3, 5))])
