"""Runs StableHLO that was written here in XLA, by JAX.

    python judge.py JOBS

JOBS is a file with one JSON object a line: {"case": FOLDER, "model": FOLDER}. FOLDER/case.json of a case of kind
`artifact` has arguments and results (tests/zoo/README.md); the model's folder has `program.mlir` and
`program.mlirbc`, text and portable artifact of the same program. For every job one line of JSON goes to standard
output: {"case": NAME, "status": "pass" or "fail", "why": TEXT}.
"""

import json
import os
import sys

import jax
import ml_dtypes
import numpy as np
from jax._src.interpreters import mlir
from jaxlib import xla_client
from jaxlib.mlir import ir
from jaxlib.mlir.dialects import stablehlo


class Problem(Exception):
    """What a program gives is not what is expected."""


def array(folder, value):
    found = np.load(os.path.join(folder, value["npy"]))
    return found.view(ml_dtypes.bfloat16) if value["dtype"] == "bfloat16" else found


def modules(folder):
    """The text and the portable artifact."""
    context = mlir.make_ir_context()
    with open(os.path.join(folder, "program.mlir")) as file:
        yield "text", ir.Module.parse(file.read(), context)
    with open(os.path.join(folder, "program.mlirbc"), "rb") as file:
        yield "artifact", stablehlo.deserialize_portable_artifact(context, file.read())


def run(module, args):
    device = jax.devices("cpu")[0]
    devices = xla_client.DeviceList((device,))
    program = device.client.compile_and_load(mlir.module_to_bytecode(module), devices, xla_client.CompileOptions())
    results = program.execute_sharded([jax.device_put(arg, device) for arg in args])
    return [np.asarray(shards[0]) for shards in results.disassemble_into_single_device_arrays()]


def check(job):
    with open(os.path.join(job["case"], "case.json")) as file:
        call = json.load(file)["calls"][0]
    args = [array(job["case"], arg) for arg in call["args"]]
    expected = [array(job["case"], value) for value in call["expect"]["list"]]
    for form, module in modules(job["model"]):
        found = run(module, args)
        if len(found) != len(expected):
            raise Problem(f"{form}: {len(found)} results instead of {len(expected)}")
        for index, (a, b) in enumerate(zip(found, expected)):
            if a.dtype != b.dtype or a.shape != b.shape:
                raise Problem(f"{form}: result {index} is {a.dtype}{list(a.shape)} instead of {b.dtype}{list(b.shape)}")
            exact = not np.issubdtype(b.dtype, np.inexact)
            rtol, atol = call.get("rtol", 1e-5), call.get("atol", 1e-5)
            if not (np.array_equal(a, b) if exact else np.allclose(a, b, rtol, atol, equal_nan=True)):
                raise Problem(f"{form}: result {index} is {a.reshape(-1)[:4]} instead of {b.reshape(-1)[:4]}")


def main():
    with open(sys.argv[1]) as file:
        jobs = [json.loads(line) for line in file]
    for job in jobs:
        result = {"case": os.path.basename(job["case"].rstrip("/")), "status": "pass", "why": ""}
        try:
            check(job)
        except Problem as problem:
            result.update(status="fail", why=str(problem))
        except Exception as error:  # whatever XLA raises
            result.update(status="fail", why=f"{type(error).__name__}: {str(error)[:300]}")
        print(json.dumps(result), flush=True)


if __name__ == "__main__":
    main()
