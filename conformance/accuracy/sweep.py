"""Compares scalar functions, and their gradients, with TensorFlow's over the whole range of numbers.

    python sweep.py PROGRAM [--device DEVICE] [--seed N] [--signature NAME ...]

saves a model of all functions in each float type, runs it by PROGRAM (`ferroflow`, built with any features) and prints
the functions with elements whose error is more than 8 units in the last place and three times TensorFlow's. Errors are
those against TensorFlow's `float64`. Near roots, and where TensorFlow rounds a small result to 0, such elements are
harmless: who reads the list looks at the worst of them.
"""

import argparse
import os
import subprocess
import tempfile

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
import numpy as np
import tensorflow as tf

RAW = tf.raw_ops
UNARY = """Abs Acos Acosh Asin Asinh Atan Atanh BesselI0 BesselI0e BesselI1 BesselI1e BesselJ0 BesselJ1 BesselK0 BesselK0e BesselK1
BesselK1e BesselY0 BesselY1 Ceil Cos Cosh Dawsn Digamma Erf Erfc Erfinv Exp Expint Expm1 Floor FresnelCos FresnelSin Lgamma Log Log1p
Ndtri Neg Reciprocal Rint Round Rsqrt Sigmoid Sign Sin Sinh Spence Sqrt Square Tan Tanh""".split()
FEATURES = "Elu LeakyRelu Relu Relu6 Selu Softplus Softsign".split()
FLAT = {"Abs", "Ceil", "Floor", "Neg", "Rint", "Round", "Sign"}
BINARY = """Add DivNoNan FloorDiv FloorMod Maximum Minimum Mul MulNoNan NextAfter Pow RealDiv SquaredDifference Sub TruncateMod Xdivy
Xlog1py Xlogy""".split()
OF_OUTPUT = "InvGrad RsqrtGrad SigmoidGrad SqrtGrad TanhGrad".split()
OF_FEATURES = {"SoftplusGrad": "features", "SoftsignGrad": "features", "EluGrad": "outputs", "SeluGrad": "outputs"}
TYPES = tf.float32, tf.float64, tf.float16, tf.bfloat16
# The last unit of 1, the least normal number and the largest.
LIMITS = {"float32": (2.0**-23, 1.2e-38, 3.4e38), "float64": (2.0**-52, 2.3e-308, 1.7e308), "float16": (2.0**-10, 6.2e-5, 65504.0), "bfloat16": (2.0**-7, 1.2e-38, 3.38e38)}


def gradient(function):
    def of(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = function(x)
        return tape.gradient(y, x)
    return of


def unary():
    found = {name: lambda x, op=getattr(RAW, name): op(x=x) for name in UNARY}
    found |= {name: lambda x, op=getattr(RAW, name): op(features=x) for name in FEATURES}
    found |= {"gelu": tf.nn.gelu, "gelu_tanh": lambda x: tf.nn.gelu(x, approximate=True), "silu": tf.nn.silu, "log_sigmoid": tf.math.log_sigmoid}
    found |= {"mish": lambda x: x * tf.tanh(tf.nn.softplus(x)), "logit": lambda x: tf.math.log(x / (1 - x))}
    return found | {f"d_{name}": gradient(function) for name, function in found.items() if name not in FLAT}


def binary():
    found = {name: lambda x, y, op=getattr(RAW, name): op(x=x, y=y) for name in BINARY}
    found |= {name: lambda x, y, op=getattr(RAW, name): op(y=x, dy=y) for name in OF_OUTPUT}
    found |= {name: lambda x, y, op=getattr(RAW, name), of=of: op(gradients=x, **{of: y}) for name, of in OF_FEATURES.items()}
    found |= {"Atan2": lambda x, y: tf.atan2(x, y), "hypot": lambda x, y: tf.sqrt(x * x + y * y), "logaddexp": tf.experimental.numpy.logaddexp}
    found |= {"Igamma": lambda x, y: tf.math.igamma(tf.abs(x), tf.abs(y)), "Igammac": lambda x, y: tf.math.igammac(tf.abs(x), tf.abs(y))}
    found |= {"Zeta": lambda x, y: tf.math.zeta(tf.abs(x) + 1.0000001, tf.abs(y))}
    return found | {"Polygamma": lambda x, y: tf.math.polygamma(tf.floor(tf.minimum(tf.abs(x), 8.0)), tf.abs(y))}


def of_type(functions, dtype, arity):
    """The functions that TensorFlow has for a type, as one."""
    def has(function):
        try:
            function(*[tf.constant([0.5, 0.25], dtype)] * arity)
            return True
        except (tf.errors.OpError, AttributeError, TypeError, ValueError):
            return False

    kept = {name: function for name, function in functions.items() if has(function)}
    signature = [tf.TensorSpec([None], dtype, name) for name in "xy"[:arity]]
    return tf.function(lambda *args: {name: function(*args) for name, function in kept.items()}, input_signature=signature, autograph=False)


def numbers(random):
    """Of all bits, of moderate sizes, around 1, in even steps, and the limits; none that TensorFlow flushes."""
    n = 6000
    with np.errstate(all="ignore"):
        bits = random.randint(0, 2**32, n, dtype=np.uint32).view(np.float32)
        moderate = random.randn(n) * 10 ** random.uniform(-4, 3, n)
        ends = [0.0, -0.0, 1, -1, np.inf, -np.inf, np.nan, 0.5, -0.5, 2, 1e-37, 3e38]
        x = np.concatenate([bits, moderate, random.uniform(-1.2, 1.2, n), np.linspace(-20, 20, 4001), ends]).astype(np.float32)
        return np.where((np.abs(x) < 1.2e-38) & (x != 0), np.float32(0.5), x)


def narrowed(x, dtype):
    return tf.cast(tf.clip_by_value(x, -6e4, 6e4) if dtype == tf.float16 else x, dtype)


def errors(found, exact, limits):
    unit, least, largest = limits
    with np.errstate(all="ignore"):
        exact = np.where(np.abs(exact) > largest * (1 + unit), np.sign(exact) * np.inf, exact)
        error = np.abs(found - exact) / (np.maximum(np.abs(exact), least) * unit)
    same = (found == exact) | (np.isnan(found) & np.isnan(exact))
    return np.where(same, 0, np.where(np.isnan(error), np.inf, error))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("--device")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--signature", nargs="*")
    flags = parser.parse_args()
    random, folder = np.random.RandomState(flags.seed), tempfile.mkdtemp()
    x = numbers(random)
    args = {"x": x, "y": numbers(random)[random.permutation(len(x))]}
    for name, value in args.items():
        np.save(f"{folder}/{name}.npy", value)
    typed = {f"{kind}_{dtype.name}": (of_type(table, dtype, arity), dtype, arity) for dtype in TYPES for kind, table, arity in (("unary", unary(), 1), ("binary", binary(), 2))}

    def signature(function, dtype, arity):
        wide = tf.float64 if dtype == tf.float64 else tf.float32
        call = lambda *args: {name: tf.cast(y, wide) for name, y in function(*(narrowed(x, dtype) for x in args)).items()}
        return tf.function(call, input_signature=[tf.TensorSpec([None], tf.float32, name) for name in "xy"[:arity]], autograph=False)

    chosen = {name: parts for name, parts in typed.items() if name in (flags.signature or typed)}
    signatures = {name: signature(*parts) for name, parts in chosen.items()}
    tf.saved_model.save(tf.Module(), f"{folder}/model", signatures=signatures)
    for name, (_, dtype, arity) in chosen.items():
        own = dict(list(args.items())[:arity])
        theirs = signatures[name](*(tf.constant(value) for value in own.values()))
        kind = name.split("_")[0]
        exact = typed[f"{kind}_float64"][0](*(tf.cast(narrowed(value, dtype), tf.float64) for value in own.values()))
        inputs = ";".join(f"{key}={folder}/{key}.npy" for key in own)
        command = [flags.program, "run", "--signature_def", name, "--inputs", inputs, "--outdir", f"{folder}/{name}"]
        subprocess.run(command + (["--device", flags.device] if flags.device else []) + [f"{folder}/model"], check=True, stdout=subprocess.DEVNULL)
        for key, value in theirs.items():
            ours, reference = np.load(f"{folder}/{name}/{key}.npy").astype(np.float64), exact[key].numpy()
            limits, value = LIMITS[dtype.name], value.numpy().astype(np.float64)
            error, error_theirs = errors(ours, reference, limits), errors(value, reference, limits)
            differs = (ours != value) & ~(np.isnan(ours) & np.isnan(value)) & (error > 8) & (error > 3 * error_theirs + 4)
            if differs.any():
                at = np.argmax(np.where(differs, np.minimum(error, 1e300), -1))
                of = ", ".join(f"{key} {float(value[at])!r}" for key, value in own.items())
                print(f"{name} {key}: {differs.sum()} of {len(x)}, worst {error[at]:.3g} units (TensorFlow {error_theirs[at]:.3g}) at {of}: {ours[at]!r}, TensorFlow {value[at]!r}")


if __name__ == "__main__":
    main()
