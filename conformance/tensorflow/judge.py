"""Loads SavedModels and checkpoints with TensorFlow and checks what they give.

    python judge.py JOBS

JOBS is a file with one JSON object a line: {"case": FOLDER, "model": FOLDER}. The case is described by
FOLDER/case.json, as tests/zoo/README.md says. For every job one line of JSON goes to standard output:
{"case": NAME, "status": "pass" or "fail", "why": TEXT}.

A model is loaded as objects and by the session-style loader; both must give the same for signatures.
"""

import base64
import collections
import importlib
import json
import os
import sys

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("TF_ENABLE_ONEDNN_OPTS", "0")
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "-1")

import numpy as np
import tensorflow as tf

try:
    import tensorflow_text  # noqa: F401, registers its ops
except ImportError:
    pass

import checkpoints

RAW = {"bfloat16": np.uint16, "qint8": np.int8, "quint8": np.uint8, "qint16": np.int16,
       "quint16": np.uint16, "qint32": np.int32}


class Problem(Exception):
    """What a model gives is not what is expected."""


class Case:
    """A case: what it says, and the model it is about."""

    def __init__(self, job):
        self.folder, self.model = job["case"], job["model"]
        with open(os.path.join(self.folder, "case.json")) as file:
            self.json = json.load(file)
        self.tags = self.json.get("tags")
        if "library" in self.json:
            importlib.import_module(self.json["library"])
        self._object = None
        self._sessions = {}

    @property
    def object(self):
        if self._object is None:
            self._object = tf.saved_model.load(self.model, tags=self.tags)
        return self._object

    def session(self, of="runs"):
        """The session that has the state of these calls."""
        if of not in self._sessions:
            graph = tf.Graph()
            with graph.as_default():
                session = tf.compat.v1.Session(graph=graph)
                loader = tf.compat.v1.saved_model.loader
                self.meta_graph = loader.load(session, self.tags or ["serve"], self.model)
            self._sessions[of] = session
        return self._sessions[of]

    def at(self, path):
        found = self.object
        for part in path.split(".") if path not in ("", "__call__") else []:
            if hasattr(found, "keys") and part in found:
                found = found[part]
            elif part.isdigit() and hasattr(found, "__getitem__"):
                found = found[int(part)]
            else:
                found = getattr(found, part)
        return found

    def array(self, value):
        if "values" in value:
            texts = [base64.b64decode(text) for text in value["values"]]
            return np.array(texts, dtype=object).reshape(value["shape"])
        array = np.load(os.path.join(self.folder, value["npy"]), allow_pickle=False)
        return array.view(tf.as_dtype(value["dtype"]).as_numpy_dtype) \
            if value["dtype"] in RAW and array.dtype == RAW[value["dtype"]] else array

    def argument(self, value):
        if "py" in value:
            return value["py"]
        if "py_dtype" in value:
            return tf.as_dtype(value["py_dtype"])
        if "py_shape" in value:
            return tf.TensorShape(value["py_shape"])
        if "tuple" in value:
            return tuple(self.argument(item) for item in value["tuple"])
        if "list" in value:
            return [self.argument(item) for item in value["list"]]
        if "dict" in value:
            return {key: self.argument(item) for key, item in value["dict"].items()}
        if "namedtuple" in value:
            fields = value["namedtuple"]["fields"]
            kind = collections.namedtuple(value["namedtuple"]["type"], [key for key, _ in fields])
            return kind(*[self.argument(item) for _, item in fields])
        if "ragged" in value:
            parts = value["ragged"]
            return tf.RaggedTensor.from_row_splits(
                self.argument(parts["values"]), self.argument(parts["row_splits"]))
        if "sparse" in value:
            parts = value["sparse"]
            return tf.SparseTensor(*[self.argument(parts[part])
                                     for part in ("indices", "values", "dense_shape")])
        array = self.array(value)
        return tf.constant(array, tf.string) if "values" in value else tf.constant(array)


def close(case, call, expected, found, where):
    """Checks a result; `where` is the way to it."""
    tag = next(iter(expected)) if len(expected) == 1 else None
    if tag == "dict":
        found = dict(found)
        if sorted(found) != sorted(expected["dict"]):
            raise Problem(f"{where}: {sorted(found)} instead of {sorted(expected['dict'])}")
        for key, value in expected["dict"].items():
            close(case, call, value, found[key], f"{where}.{key}")
    elif tag in ("list", "tuple", "namedtuple"):
        values = expected[tag] if tag != "namedtuple" else \
            [value for _, value in expected[tag]["fields"]]
        if len(found) != len(values):
            raise Problem(f"{where}: {len(found)} values instead of {len(values)}")
        for index, (value, item) in enumerate(zip(values, found)):
            close(case, call, value, item, f"{where}[{index}]")
    elif tag in ("ragged", "sparse", "indexed_slices"):
        for part, value in expected[tag].items():
            close(case, call, value, getattr(found, part), f"{where}.{part}")
    elif tag == "spec":
        shape = None if found.shape.rank is None else list(found.shape)
        if found.dtype.name != expected["spec"]["dtype"] or shape != expected["spec"]["shape"]:
            raise Problem(f"{where}: {found.dtype.name}{shape} instead of {expected['spec']}")
    elif tag in ("py", "py_dtype", "py_shape"):
        if found != case.argument(expected):
            raise Problem(f"{where}: {found} instead of {expected}")
    else:
        close_arrays(case, call, expected, found, where)


def close_arrays(case, call, expected, found, where):
    array = found.numpy() if hasattr(found, "numpy") else np.asarray(found)
    array = np.asarray(array)
    wanted = case.array(expected)
    if list(array.shape) != list(wanted.shape):
        raise Problem(f"{where}: shape {array.shape} instead of {wanted.shape}")
    if "values" in expected:
        same = array.reshape(-1).tolist() == wanted.reshape(-1).tolist()
    elif array.dtype.kind in "fc" or array.dtype.name == "bfloat16":
        wide = np.complex128 if array.dtype.kind == "c" else np.float64
        same = np.allclose(array.astype(wide), wanted.astype(wide), call.get("rtol", 1e-5),
                           call.get("atol", 1e-5), equal_nan=True)
    else:
        if array.dtype.names:
            array = array[array.dtype.names[0]]
        same = np.array_equal(array, wanted.astype(array.dtype))
    if not same:
        raise Problem(f"{where}: {array.reshape(-1)[:5]} instead of {wanted.reshape(-1)[:5]}")


def gradients(function, args, variables, order):
    """The gradients of the sum of all results; of order 2, those of the sum of the gradients."""
    def total(tensors):
        return tf.add_n([tf.reduce_sum(tensor) for tensor in tf.nest.flatten(tensors)])
    args = [tf.convert_to_tensor(arg) for arg in args]
    with tf.GradientTape() as outer:
        outer.watch(args)
        with tf.GradientTape() as inner:
            inner.watch(args)
            target = total(function(*args))
        if order == 2:
            target = total(inner.gradient(target, args))
    return outer.gradient(target, args + variables)


def give(case, call):
    """What a call gives."""
    kind, path = call["kind"], call.get("path", "")
    args = [case.argument(value) for value in call.get("args") or []]
    kwargs = {name: case.argument(value) for name, value in (call.get("kwargs") or {}).items()}
    if kind == "signature":
        if case.json.get("loader") == "session":
            return in_session(case, call, "runs")
        return dict(case.object.signatures[path](**kwargs))
    if kind == "function":
        return case.at(path)(*args, **kwargs)
    if kind == "gradient":
        return gradients(case.at(path), args, [case.at(name) for name in call["variables"]], call["order"])
    if kind == "variable":
        return tf.convert_to_tensor(case.at(path))
    if kind == "assign":
        case.at(path).assign(args[0])
        return None
    if kind == "graph_run":
        feeds = {name: case.array(value) for name, value in call["feeds"].items()}
        session = case.session()
        graph = session.graph
        targets = [graph.get_operation_by_name(name) for name in call.get("targets", [])]
        return session.run([{name: name for name in call["fetches"]}, targets], feeds)[0]
    raise Problem(f"unknown kind of call {kind}")


def in_session(case, call, of):
    """What a signature gives in a session."""
    session = case.session(of)
    signature = case.meta_graph.signature_def[call["path"]]
    fed = lambda value: value["py"] if "py" in value else case.array(value)
    feeds = {signature.inputs[name].name: fed(value) for name, value in call["kwargs"].items()}
    return session.run({name: info.name for name, info in signature.outputs.items()}, feeds)


def has_session(case):
    """Makes the session for signatures. Some models have none: those for devices that are not here."""
    open_session = lambda of: of.session("signatures")
    try:
        open_session(case)
        return True
    except Exception:  # whatever TensorFlow raises
        if raised_by_original(case, open_session):
            return False
        raise


def raised_by_original(case, ask):
    """Whether TensorFlow raises for the model that was saved again, too."""
    original = os.path.join(case.folder, "model")
    if not os.path.isdir(original):
        return False
    try:
        ask(Case({"case": case.folder, "model": original}))
        return False
    except Exception:  # whatever TensorFlow raises
        return True


def given_in_session(case, call):
    """What a signature gives in a session; nothing where the model that was saved again gave nothing
    either, being at odds with its own signature."""
    ask = lambda of: in_session(of, call, "signatures")
    try:
        return ask(case)
    except Exception:  # whatever TensorFlow raises
        if raised_by_original(case, ask):
            return None
        raise


def is_plain(case, call):
    """Whether a signature takes and gives tensors only, so that a session can be asked at once."""
    signature = case.meta_graph.signature_def[call["path"]]
    infos = [*signature.inputs.values(), *signature.outputs.values()]
    return all(info.name for info in infos) and not any(
        set(value) & {"sparse", "ragged"} for value in call["kwargs"].values())


def check(case):
    if case.json["kind"] == "object_checkpoint":
        return checkpoints.check(case, close_arrays, Problem)
    if case.json["kind"] in ("checkpoint", "v1_checkpoint"):
        return checkpoints.check_again(case, close_arrays, Problem)
    is_fresh = True
    for number, call in enumerate(case.json["calls"]):
        where = f"call {number} {call['kind']} {call.get('path', '')}"
        must_fail = "error" in (call.get("expect") or {})
        try:
            found = give(case, call)
        except Problem:
            raise
        except Exception as error:  # whatever TensorFlow raises
            # TensorFlow differentiates some functions where they were traced only, and not once loaded.
            is_gradient = call["kind"] == "gradient"
            if must_fail or is_gradient and raised_by_original(case, lambda of: give(of, call)):
                continue
            raise Problem(f"{where}: {type(error).__name__}: {str(error)[:300]}") from error
        if must_fail:
            raise Problem(f"{where}: a result instead of an error")
        if call["kind"] == "assign":
            is_fresh = False
            continue
        close(case, call, call["expect"], found, where)
        # A session has state of its own, which is that of the file.
        is_session = case.json.get("loader") == "session"
        if call["kind"] == "signature" and is_fresh and not is_session and has_session(case):
            if is_plain(case, call):
                found = given_in_session(case, call)
                if found is not None:
                    close(case, call, call["expect"], found, f"{where} in a session")
        is_fresh = is_fresh and call["kind"] in ("signature", "variable")
    for name in case.json.get("also", []):
        ALSO[name](case)


def keras_layer(case):
    """Keras takes the model as a layer."""
    import keras
    for call in case.json["calls"]:
        if call["kind"] == "signature" and len(call["kwargs"]) == 1:
            layer = keras.layers.TFSMLayer(case.model, call_endpoint=call["path"])
            (value,) = call["kwargs"].values()
            close(case, call, call["expect"], layer(case.argument(value)), "as a Keras layer")


def lite(case):
    """The converter to TensorFlow Lite takes the model, and its interpreter gives the same."""
    converter = tf.lite.TFLiteConverter.from_saved_model(case.model)
    converter.target_spec.supported_ops = [tf.lite.OpsSet.TFLITE_BUILTINS,
                                           tf.lite.OpsSet.SELECT_TF_OPS]
    interpreter = tf.lite.Interpreter(model_content=converter.convert())
    signatures = interpreter.get_signature_list()
    for call in case.json["calls"]:
        if call["kind"] == "signature" and call["path"] in signatures:
            runner = interpreter.get_signature_runner(call["path"])
            inputs = {name: case.array(value) for name, value in call["kwargs"].items()}
            close(case, call, call["expect"], runner(**inputs), "in TensorFlow Lite")


def frozen(case):
    """The frozen graph of a signature gives the same."""
    said = case.json["frozen"]
    graph_def = tf.compat.v1.GraphDef()
    with open(os.path.join(case.folder, "io", "frozen.pb"), "rb") as file:
        graph_def.ParseFromString(file.read())
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        tf.import_graph_def(graph_def, name="")
        for call in case.json["calls"]:
            if call["kind"] == "signature" and call["path"] == said["key"]:
                feeds = {said["inputs"][name]: case.array(value)
                         for name, value in call["kwargs"].items()}
                close(case, call, call["expect"], session.run(said["outputs"], feeds), "frozen")


def resaved(case):
    """What TensorFlow saves of the loaded model is loaded again."""
    import tempfile
    with tempfile.TemporaryDirectory() as folder:
        tf.saved_model.save(case.object, folder, signatures=dict(case.object.signatures))
        tf.saved_model.load(folder)


ALSO = {"keras_layer": keras_layer, "lite": lite, "resaved": resaved, "frozen": frozen}


def main():
    with open(sys.argv[1]) as file:
        jobs = [json.loads(line) for line in file]
    for job in jobs:
        name = os.path.basename(job["case"].rstrip("/"))
        try:
            check(Case(job))
            result = {"case": name, "status": "pass", "why": ""}
        except Problem as problem:
            result = {"case": name, "status": "fail", "why": str(problem)}
        except Exception as error:  # whatever TensorFlow raises
            why = f"{type(error).__name__}: {str(error)[:300]}"
            result = {"case": name, "status": "fail", "why": why}
        print(json.dumps(result), flush=True)


if __name__ == "__main__":
    main()
