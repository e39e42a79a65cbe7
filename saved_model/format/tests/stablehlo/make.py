"""Makes artifacts of one program in several versions of the format.

Run with JAX 0.10: python make.py FOLDER
"""

import sys

import jax
import jax.numpy as jnp
from jax import lax
from jax._src.interpreters.mlir import make_ir_context
from jaxlib.mlir import ir
from jaxlib.mlir.dialects import stablehlo

jax.config.update("jax_include_full_tracebacks_in_locations", False)


def program(x):
    halved = lax.while_loop(lambda y: y.max() > 4.0, lambda y: y / 2.0 + jnp.cos(x).sum(), x)
    sorted_rows = jnp.sort(halved, axis=1)
    pooled = lax.reduce_window(sorted_rows, -jnp.inf, lax.max, (1, 2), (1, 1), "VALID")
    return jnp.where(x.sum() > 0.0, pooled @ jnp.eye(2, 3), 1.0)


exported = jax.export.export(jax.jit(program), platforms=["cpu"])(
    jax.ShapeDtypeStruct((2, 3), jnp.float32)
)
with make_ir_context():
    module = ir.Module.parse(str(exported.mlir_module()))
    for version in ["0.9.0", "0.14.0", "1.0.0", "1.13.7"]:
        artifact = stablehlo.serialize_portable_artifact(module, version)
        with open(f"{sys.argv[1]}/v{version.replace('.', '_')}.mlirbc", "wb") as file:
            file.write(artifact)
