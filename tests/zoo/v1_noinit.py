"""Makes the cases v1_noinit_*: models of TensorFlow 1 that were saved without an op that initialises
them, with the answers of TensorFlow 2's loader, which runs the default one.

Run with TensorFlow 2.21: python v1_noinit.py FOLDER
"""

import base64
import json
import os
import shutil
import sys
import tempfile

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
import numpy as np
import tensorflow as tf

FOLDER = sys.argv[1]
v1 = tf.compat.v1


def stored(folder, name, value):
    value = np.asarray(value)
    if value.dtype.kind in "OSU":
        texts = [text if isinstance(text, bytes) else text.encode() for text in value.reshape(-1)]
        texts = [base64.b64encode(text).decode() for text in texts]
        return {"dtype": "string", "shape": list(value.shape), "values": texts}
    np.save(f"{folder}/io/{name}", value)
    return {"npy": f"io/{name}.npy", "dtype": value.dtype.name, "shape": list(value.shape)}


def case(name, build, feeds):
    """A model that `build` makes, and what its signature gives for each of `feeds`, in turn."""
    folder = f"{FOLDER}/v1_noinit_{name}"
    shutil.rmtree(folder, ignore_errors=True)
    os.makedirs(f"{folder}/io")
    with tf.Graph().as_default() as graph, v1.Session(graph=graph) as session:
        inputs, outputs = build()
        session.run(v1.global_variables_initializer())
        info = v1.saved_model.build_tensor_info
        signature = v1.saved_model.build_signature_def(
            {key: info(tensor) for key, tensor in inputs.items()},
            {key: info(tensor) for key, tensor in outputs.items()},
            "predict",
        )
        builder = v1.saved_model.Builder(f"{folder}/model")
        assets = v1.get_collection(v1.GraphKeys.ASSET_FILEPATHS)
        builder.add_meta_graph_and_variables(
            session, ["serve"], {"serving_default": signature}, assets_collection=assets
        )
        builder.save()
    call = tf.saved_model.load(f"{folder}/model").signatures["serving_default"]
    calls = []
    for number, feed in enumerate(feeds):
        found = call(**{key: tf.constant(value) for key, value in feed.items()})
        name_of = lambda way, key: f"c{number:02}_{way}_{key}"
        kwargs = {key: stored(folder, name_of("in", key), value) for key, value in feed.items()}
        expect = {
            key: stored(folder, name_of("out", key), value.numpy()) for key, value in found.items()
        }
        calls.append(
            {
                "kind": "signature",
                "path": "serving_default",
                "kwargs": kwargs,
                "expect": {"dict": expect},
            }
        )
    about = {
        "name": f"v1_noinit_{name}",
        "kind": "saved_model",
        "source": "v1_noinit.py",
        "tags": ["serve"],
        "calls": calls,
    }
    with open(f"{folder}/case.json", "w") as file:
        json.dump(about, file, indent=1)


def tables():
    x = v1.placeholder(tf.string, [None], "x")
    keys, values = tf.constant(["a", "b"]), tf.constant([1, 2], tf.int64)
    table = tf.lookup.StaticHashTable(tf.lookup.KeyValueTensorInitializer(keys, values), -1)
    path = os.path.join(tempfile.mkdtemp(), "words.txt")
    with open(path, "w") as file:
        file.write("b\nz\n")
    asset = tf.constant(path)
    v1.add_to_collection(v1.GraphKeys.ASSET_FILEPATHS, asset)
    line = tf.lookup.TextFileIndex.LINE_NUMBER
    words = tf.lookup.TextFileInitializer(
        asset, tf.string, tf.lookup.TextFileIndex.WHOLE_LINE, tf.int64, line
    )
    number = tf.lookup.StaticVocabularyTable(words, 1)
    return {"x": x}, {"y": table.lookup(x), "z": number.lookup(x)}


def local_variables(use_resource):
    def build():
        x = v1.placeholder(tf.float32, [2], "x")
        local = [v1.GraphKeys.LOCAL_VARIABLES]
        v1.get_variable("w", initializer=[1.0, 2.0], use_resource=use_resource)
        seen = v1.get_variable(
            "seen", initializer=[10.0, 20.0], collections=local, use_resource=use_resource
        )
        return {"x": x}, {"y": x + seen}

    return build


words = np.array(["b", "z"])
case("tables", tables, [{"x": words}])
for kind, use_resource in (("ref", False), ("resource", True)):
    case(f"local_{kind}", local_variables(use_resource), [{"x": np.float32([1, 2])}])
