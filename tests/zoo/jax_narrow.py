"""Makes the case jax_narrow: elements narrower than a byte, and the kinds of 8-bit floats, by JAX.

Run with TensorFlow 2.21 and JAX 0.10: python jax_narrow.py FOLDER
"""

import jax
import jax.numpy as jnp
import numpy as np
import tensorflow as tf
from dataset_models import case
from jax._src.export import _export
from jax.experimental import jax2tf

# TensorFlow 2.21 reads artifacts up to this version.
_export.hlo.get_version_from_compatibility_requirement = lambda _: "1.13.7"
jax.config.update("jax_hlo_source_file_canonicalization_regex", ".*/")
FLOATS = (jnp.float8_e4m3fn, jnp.float8_e5m2, jnp.float8_e4m3b11fnuz, jnp.float8_e4m3fnuz, jnp.float8_e5m2fnuz)


def floats(x):
    return [x.astype(dtype).astype(jnp.float32) for dtype in FLOATS]


def integers(x, k):
    small = k.astype(jnp.int4)
    ways = [small + jnp.int4(3), small * jnp.int4(-2), small[::-1], jnp.concatenate([small, small], 1), jnp.maximum(small, small[::-1]), jnp.clip(small, -1, 1), small[:, 1:]]
    return [x.astype(dtype).astype(jnp.int32) for dtype in (jnp.int4, jnp.uint4, jnp.int2, jnp.uint2)], [way.astype(jnp.int8) for way in ways]


if __name__ == "__main__":
    module = tf.Module()
    for function, specs in ((floats, [tf.TensorSpec([4, 6])]), (integers, [tf.TensorSpec([4, 6]), tf.TensorSpec([2, 5], tf.int32)])):
        converted = jax2tf.convert(function, with_gradient=False)
        setattr(module, function.__name__, tf.function(converted, autograph=False, input_signature=specs))
    random = np.random.RandomState(0)
    x = random.randn(4, 6).astype(np.float32)
    wide = x * np.array([1, 30, 300, 1e-3, 1e5, -1e-9], np.float32)
    k = random.randint(-3, 4, (2, 5)).astype(np.int32)
    case("jax_narrow", "narrow integers and floats", module, [("floats", wide), ("integers", x * 5, k)])
