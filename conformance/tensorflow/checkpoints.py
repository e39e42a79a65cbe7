"""Checkpoints that Rust has written: TensorFlow restores them, and trains on from there.

`judge.py` says what a case is, and gives `close`, which compares arrays.
"""

import base64
import os

import numpy as np
import tensorflow as tf

OBJECT_GRAPH = "_CHECKPOINTABLE_OBJECT_GRAPH"
EXACT = {"rtol": 0, "atol": 0}
NEAR = {"rtol": 1e-6, "atol": 1e-7}
# Keras makes its steps of single ops, which round elsewhere than an op for all of it.
KERAS = {"rtol": 1e-6, "atol": 1e-6}


def made(case, tree, variables):
    """The objects of a tree, with variables that are zero; `variables` gets these and their values."""
    kind, content = next(iter(tree.items()))
    if kind == "variable":
        value = case.argument(content)
        variables.append((tf.Variable(tf.zeros_like(value)), content))
        return variables[-1][0]
    if kind == "list":
        return [made(case, item, variables) for item in content]
    if kind == "dict":
        return {key: made(case, item, variables) for key, item in content.items()}
    module = tf.Module()
    for name, item in content.items():
        setattr(module, name, made(case, item, variables))
    return module


def check(case, close, problem):
    """A checkpoint that Rust wrote of its own objects."""
    if "saver_adam" in case.json:
        return saver_adam(case, close, case.json["saver_adam"])
    path = tf.train.latest_checkpoint(case.model)
    if path is None or os.path.basename(path) != case.json["prefix"]:
        raise problem(f"the latest checkpoint is {path}")
    if "keras_adam" in case.json:
        return keras_adam(case, close, path, case.json["keras_adam"])
    if "keras" in case.json:
        return keras_layers(case, close, path, case.json["keras"])
    variables = []
    objects = {name: made(case, item, variables) for name, item in case.json["tree"].items()}
    adam = case.json.get("adam")
    if adam:
        objects["optimizer"] = tf.compat.v1.train.AdamOptimizer(adam["learning_rate"])
    status = tf.train.Checkpoint(**objects).restore(path)
    for number, (variable, value) in enumerate(variables):
        close(case, EXACT, value, variable, f"variable {number}")
    if adam:
        variable, gradient = objects[adam["of"]], case.argument(adam["gradient"])
        objects["optimizer"].apply_gradients([(gradient, variable)])
        close(case, NEAR, adam["next"], variable, "the next step")
    status.assert_consumed()


def keras_layers(case, close, path, described):
    """A network of Keras gives the same with the weights of the checkpoint, all of which it takes."""
    import keras
    x = case.argument(described["x"])
    layers = [getattr(keras.layers, name)(**config) for name, config in described["layers"]]
    model = keras.Sequential([keras.Input(x.shape[1:])] + layers)
    for variable in model.variables:
        if variable.dtype == "float32":
            variable.assign(tf.fill(variable.shape, np.nan))
    tf.train.Checkpoint(model=model).restore(path).assert_nontrivial_match()
    close(case, {}, described["y"], model(x), "with restored weights")


def keras_adam(case, close, path, adam):
    """An optimizer of Keras, which learns all it knows from the checkpoint, takes the next step."""
    import keras
    values = [case.argument(case.json["tree"][name]["variable"]) for name in adam["names"]]
    variables = [keras.Variable(np.zeros(value.shape, "float32")) for value in values]
    optimizer = keras.optimizers.Adam(0.5)
    optimizer.build(variables)
    objects = {name: variable.value for name, variable in zip(adam["names"], variables)}
    tf.train.Checkpoint(optimizer=optimizer, **objects).restore(path).assert_nontrivial_match()
    for name, variable in zip(adam["names"], variables):
        close(case, EXACT, case.json["tree"][name]["variable"], variable.value, f"`{name}`")
    close_rate = abs(float(optimizer.learning_rate.numpy()) - adam["learning_rate"])
    assert close_rate < 1e-7, "the learning rate is restored"
    gradients = [case.argument(gradient) for gradient in adam["gradients"]]
    optimizer.apply(gradients, variables)
    for name, variable, value in zip(adam["names"], variables, adam["next"]):
        close(case, KERAS, value, variable.value, f"the next step of `{name}`")


def saver_adam(case, close, adam):
    """A graph of TensorFlow 1 restores by name, and takes the next step."""
    v1 = tf.compat.v1
    with tf.Graph().as_default(), v1.Session() as session:
        value = case.array(adam["next"])
        w = v1.get_variable("w", value.shape, use_resource=True)
        gradient = tf.constant(case.array(adam["gradient"]))
        step = v1.train.AdamOptimizer(adam["learning_rate"]).apply_gradients([(gradient, w)])
        v1.train.Saver().restore(session, os.path.join(case.model, case.json["prefix"]))
        session.run(step)
        close(case, NEAR, adam["next"], session.run(w), "the next step")


def check_again(case, close, problem):
    """A checkpoint of TensorFlow, which objects of Rust took over and wrote."""
    prefix = os.path.join(case.model, os.path.basename(case.json["prefix"]))
    entries = case.json["entries"]
    reader = tf.train.load_checkpoint(prefix)
    for name, value in entries.items():
        if name != OBJECT_GRAPH:
            close(case, EXACT, value, reader.get_tensor(name), f"`{name}`")
    if OBJECT_GRAPH in entries:
        old = base64.b64decode(entries[OBJECT_GRAPH]["values"][0])
        by_structure(case, close, problem, prefix, graph_of(old), graph_of(reader.get_tensor(OBJECT_GRAPH)))
    else:
        by_name(case, close, prefix)


def graph_of(content):
    from tensorflow.core.protobuf import trackable_object_graph_pb2
    return trackable_object_graph_pb2.TrackableObjectGraph.FromString(content)


def key_of(node):
    keys = [attribute.checkpoint_key for attribute in node.attributes]
    return keys[0] if keys else None


def slots_of(graph):
    """Which variables are kept for which, by their keys."""
    return sorted((slot.slot_name, key_of(graph.nodes[slot.original_variable_node_id]),
                   key_of(graph.nodes[slot.slot_variable_node_id]))
                  for node in graph.nodes for slot in node.slot_variables)


def by_structure(case, close, problem, prefix, old, new):
    """Objects of the structure that the first checkpoint had restore the second."""
    if slots_of(old) != slots_of(new):
        raise problem(f"slots {slots_of(new)} instead of {slots_of(old)}")
    reader = tf.train.load_checkpoint(prefix)
    nodes = []
    for node in old.nodes:
        key = key_of(node)
        nodes.append(tf.Module() if key is None else
                     tf.Variable(tf.zeros_like(reader.get_tensor(key))))
    for made_node, node in zip(nodes, old.nodes):
        for child in node.children:
            made_node._track_trackable(nodes[child.node_id], child.local_name, overwrite=True)
    status = tf.train.Checkpoint(root=nodes[0]).read(prefix)
    status.assert_existing_objects_matched()
    if not slots_of(old):
        status.assert_consumed()
    kept = {slot.slot_variable_node_id for node in old.nodes for slot in node.slot_variables}
    for number, (made_node, node) in enumerate(zip(nodes, old.nodes)):
        key = key_of(node)
        if key is not None and number not in kept:
            close(case, EXACT, case.json["entries"][key], made_node, f"`{key}`")


def by_name(case, close, prefix):
    """A saver of TensorFlow 1 restores all variables."""
    v1 = tf.compat.v1
    with tf.Graph().as_default(), v1.Session() as session:
        variables = {}
        for number, (name, value) in enumerate(case.json["entries"].items()):
            variables[name] = v1.get_variable(f"v{number}", value["shape"], tf.as_dtype(value["dtype"]),
                                              use_resource=True)
        v1.train.Saver(variables).restore(session, prefix)
        for name, variable in variables.items():
            close(case, EXACT, case.json["entries"][name], session.run(variable), f"`{name}`")
