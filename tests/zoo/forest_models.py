"""Makes the cases forest_*: models of TensorFlow Decision Forests.

Run with TensorFlow 2.19, tensorflow-decision-forests 1.12 and ydf 0.12: python forest_models.py FOLDER
"""

import base64
import json
import os
import shutil
import sys
import tempfile

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
os.environ["TF_USE_LEGACY_KERAS"] = "1"
import numpy as np
import pandas as pd
import tensorflow as tf
import tensorflow_decision_forests as tfdf
import ydf

N = 240
COLOURS = ["red", "green", "blue", "dark green", "black"]
WORDS = "a the lazy quick fox dog jumps over and runs".split()


def table(seed, n=N):
    r = np.random.default_rng(seed)
    words = [" ".join(r.choice(WORDS, r.integers(0, 5))) for _ in range(n)]
    frame = pd.DataFrame({
        "height": r.normal(size=n).astype("f4"),
        "weight": r.gamma(2.0, size=n).astype("f4"),
        "count": r.integers(0, 12, n),
        "colour": r.choice(COLOURS, n),
        "old": r.integers(0, 2, n).astype("f4"),
        "tall": r.random(n) > 0.6,
        "text": words,
    })
    noise = r.normal(size=n) * 0.3
    has_fox = frame["text"].str.contains("fox")
    score = frame["height"] + (frame["colour"] == "red") * 1.5 - 0.1 * frame["count"] + has_fox + frame["old"] * 0.5 + frame["tall"] + noise
    frame["value"] = score.astype("f4")
    frame["two"] = np.where(score > 0.5, "yes", "no")
    frame["many"] = pd.cut(score, 4, labels=["low", "middle", "high", "top"]).astype(str)
    frame["number"] = (score > 0.3).astype(int) + (score > 1.2)
    frame["group"] = np.array([f"g{i % 12}" for i in range(n)])
    frame["relevance"] = np.clip(np.round(score + 1), 0, 4).astype("f4")
    frame["treatment"] = r.integers(0, 2, n)
    frame["healed"] = ((score + frame["treatment"]) > 0.7).astype(int)
    frame["events"] = r.poisson(np.exp(np.clip(score, -2, 2))).astype("f4")
    return frame


PLAIN = ["height", "weight", "count", "colour", "old"]


def with_gaps(frame):
    """Rows with missing and unknown values."""
    frame = frame.copy()
    frame.loc[frame.index[::3], "height"] = np.nan
    frame.loc[frame.index[1::4], "colour"] = ""
    frame.loc[frame.index[2::5], "colour"] = "never seen"
    return frame


def arrays(frame, columns):
    return {c: np.array(frame[c].to_list(), object if frame[c].dtype == object else None) for c in columns}


def stored(folder, name, value):
    value = value.numpy() if hasattr(value, "numpy") else np.asarray(value)
    if value.dtype == object:
        flat = [v if isinstance(v, bytes) else v.encode() for v in value.reshape(-1)]
        return {"dtype": "string", "shape": list(value.shape), "values": [base64.b64encode(v).decode() for v in flat]}
    np.save(f"{folder}/io/{name}", value)
    return {"npy": f"io/{name}.npy", "dtype": value.dtype.name, "shape": list(value.shape)}


def case(name, source, save, calls):
    folder = f"{sys.argv[1]}/{name}"
    shutil.rmtree(folder, ignore_errors=True)
    os.makedirs(f"{folder}/io")
    save(f"{folder}/model")
    for extra in ("keras_metadata.pb", "fingerprint.pb"):
        if os.path.exists(f"{folder}/model/{extra}"):
            os.remove(f"{folder}/model/{extra}")
    loaded = tf.saved_model.load(f"{folder}/model")
    signature = loaded.signatures["serving_default"]
    takes = signature.structured_input_signature[1]
    listed = []
    for given in calls:
        args = {k: tf.constant(given[k], spec.dtype) for k, spec in takes.items()}
        key = f"c{len(listed):02}"
        kwargs = {k: stored(folder, f"{key}_{k}", v) for k, v in args.items()}
        found = signature(**args)
        expect = {"dict": {k: stored(folder, f"{key}_out_{k}", v) for k, v in found.items()}}
        listed.append({"kind": "signature", "path": "serving_default", "kwargs": kwargs, "expect": expect})
    with open(f"{folder}/case.json", "w") as file:
        json.dump({"name": name, "kind": "saved_model", "source": f"forest_models.py: {source}", "library": "tensorflow_decision_forests", "tags": ["serve"], "calls": listed}, file, indent=1)
        file.write("\n")


def keras(name, source, model, label, columns, ragged=(), **options):
    """A model of the Keras front end, trained on a table."""
    frame = table(len(name))

    def split(features, *rest):
        return ({k: tf.strings.split(v) if k in ragged else v for k, v in features.items()}, *rest)

    used = frame[columns + [label]]
    data = tfdf.keras.pd_dataframe_to_tf_dataset(used, label=label, **options).map(split)
    model.fit(data, verbose=0)
    test = table(99, 40)
    save = (lambda path: save_split(model, columns, path)) if ragged else model.save
    case(name, source, save, [arrays(test, columns), arrays(with_gaps(test), columns), arrays(test[:1], columns)])


def save_split(model, columns, path):
    """Saves a function that splits the text before it asks the model."""
    module = tf.Module()
    module.model = model
    types = {"count": tf.int64, "colour": tf.string, "text": tf.string}

    @tf.function(input_signature=[tf.TensorSpec([None], types.get(c, tf.float32), name=c) for c in columns])
    def predict(*values):
        features = dict(zip(columns, values))
        return {"prediction": model({**features, "text": tf.strings.split(features["text"])})}

    module.predict = predict
    tf.saved_model.save(module, path, signatures={"serving_default": predict})


def direct(name, source, learner, columns, test=None, **options):
    """A model of ydf, saved without Keras."""
    model = learner.train(table(len(name)), verbose=0)
    model.set_node_format(ydf.NodeFormat.BLOB_SEQUENCE_GZIP)
    test = table(99, 40) if test is None else test
    case(name, source, lambda path: model.to_tensorflow_saved_model(path, mode="tf", **options), [arrays(test, columns), arrays(test[:1], columns)])


def leaves(name, source, columns):
    """The leaves that examples reach, by the op that has no front end in Keras."""
    from tensorflow_decision_forests.tensorflow.ops.inference import api

    model = ydf.RandomForestLearner(label="two", features=columns, num_trees=4, **R).train(table(len(name)), verbose=0)
    with tempfile.TemporaryDirectory() as folder:
        model.save(folder + "/model")
        module = tf.Module()
        module.forest = api.ModelV2(folder + "/model", verbose=False, output_types=["LEAVES"])

        @tf.function(input_signature=[tf.TensorSpec([None], tf.float32, name=c) for c in columns])
        def reach(*values):
            return {"leaves": module.forest.apply_get_leaves(dict(zip(columns, values)))}

        module.reach = reach
        test = table(99, 40)
        case(name, source, lambda path: tf.saved_model.save(module, path, signatures={"serving_default": reach}), [arrays(test, columns)])


K = tfdf.keras
SMALL = {"random_seed": 5, "num_threads": 1, "verbose": 0, "max_depth": 4}
R = {"random_seed": 5, "num_threads": 1, "max_depth": 4}

CASES = {
    "forest_boosted_two": lambda n: keras(n, "boosted trees, two classes, missing values", K.GradientBoostedTreesModel(num_trees=12, **SMALL), "healed", PLAIN),
    "forest_boosted_many": lambda n: keras(n, "boosted trees, three classes", K.GradientBoostedTreesModel(num_trees=6, **SMALL), "number", PLAIN),
    "forest_boosted_rank": lambda n: keras(n, "boosted trees, ranking", K.GradientBoostedTreesModel(task=K.Task.RANKING, num_trees=6, ranking_group="group", **SMALL), "relevance", PLAIN + ["group"], task=K.Task.RANKING),
    "forest_votes": lambda n: keras(n, "a random forest that votes", K.RandomForestModel(num_trees=9, winner_take_all=True, **SMALL), "number", PLAIN),
    "forest_shares": lambda n: keras(n, "a random forest of shares, a split for missing values", K.RandomForestModel(num_trees=6, winner_take_all=False, missing_value_policy="LOCAL_IMPUTATION", **SMALL), "number", PLAIN),
    "forest_oblique": lambda n: keras(n, "a regression with oblique splits", K.RandomForestModel(task=K.Task.REGRESSION, num_trees=5, split_axis="SPARSE_OBLIQUE", **SMALL), "value", PLAIN, task=K.Task.REGRESSION),
    "forest_sets": lambda n: keras(n, "sets of words", K.GradientBoostedTreesModel(task=K.Task.REGRESSION, num_trees=8, **SMALL), "value", PLAIN + ["text"], ragged=("text",), task=K.Task.REGRESSION),
    "forest_cart": lambda n: keras(n, "a single tree", K.CartModel(**SMALL), "number", PLAIN),
    "forest_uplift": lambda n: keras(n, "uplift of a treatment", K.RandomForestModel(task=K.Task.CATEGORICAL_UPLIFT, uplift_treatment="treatment", num_trees=5, **SMALL), "healed", PLAIN + ["treatment"], task=K.Task.CATEGORICAL_UPLIFT),
    "forest_ydf_two": lambda n: direct(n, "of ydf: two classes by names", ydf.GradientBoostedTreesLearner(label="two", features=PLAIN + ["tall"], num_trees=10, **R), PLAIN + ["tall"]),
    "forest_ydf_discrete": lambda n: direct(n, "of ydf: discretized numbers, Poisson", ydf.GradientBoostedTreesLearner(label="events", task=ydf.Task.REGRESSION, loss="POISSON", features=["height", "weight", "colour"], discretize_numerical_columns=True, num_discretized_numerical_bins=16, num_trees=10, **R), ["height", "weight", "colour"]),
    "forest_leaves": lambda n: leaves(n, "leaves of a random forest", ["height", "weight", "old"]),
}

for name, make in CASES.items():
    if not sys.argv[2:] or name in sys.argv[2:]:
        make(name)
