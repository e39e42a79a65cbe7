"""Makes the case jax_selection: the largest and smallest elements along any axis, by JAX.

Run with TensorFlow 2.21 and JAX 0.10: python jax_selection.py FOLDER
"""

import jax
import numpy as np
import tensorflow as tf
from dataset_models import case
from jax import lax
from jax._src.export import _export
from jax.experimental import jax2tf

# TensorFlow 2.21 reads artifacts up to this version.
_export.hlo.get_version_from_compatibility_requirement = lambda _: "1.13.7"
jax.config.update("jax_hlo_source_file_canonicalization_regex", ".*/")


def selected(x):
    return [lax.approx_max_k(x, 2), lax.approx_max_k(x, 3, reduction_dimension=0), lax.approx_min_k(x, 2, reduction_dimension=1), lax.approx_min_k(x, 1)]


if __name__ == "__main__":
    module = tf.Module()
    converted = jax2tf.convert(selected, with_gradient=False)
    module.selected = tf.function(converted, autograph=False, input_signature=[tf.TensorSpec([4, 5, 3])])
    case("jax_selection", "approximate searches along the last axis and others", module, [("selected", np.random.RandomState(0).randn(4, 5, 3).astype(np.float32))])
