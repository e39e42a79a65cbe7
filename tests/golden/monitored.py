"""Writes the graphs and the checkpoint of monitored/ with TensorFlow 2.21: python monitored.py [OUT_DIR]

A linear regression with a global step, a saver and a summary, as a MetaGraph with the collections
that a Scaffold fills: with resource variables, with reference variables, and before there was a
Scaffold. The checkpoint is that of a MonitoredSession after three steps.

A variable in two parts, whose saver knows the slices.

Texts that go through two queues, are parsed as numbers and come in batches of two, twice each.
"""
import os
import shutil
import sys

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
import numpy as np
import tensorflow as tf

v1 = tf.compat.v1
v1.disable_eager_execution()
OUT = sys.argv[1] if len(sys.argv) > 1 else os.path.dirname(os.path.abspath(__file__))
OUT = os.path.join(OUT, "monitored")


def linear(use_resource):
    x = v1.placeholder_with_default(np.float32([1, 2, 3, 4]), [4], name="x")
    with v1.variable_scope("", use_resource=use_resource):
        w = v1.get_variable("w", initializer=np.float32(0.0))
        b = v1.get_variable("b", initializer=np.float32(0.0))
        step = v1.train.get_or_create_global_step()
    y = 2.0 * x + 1.0
    loss = tf.reduce_mean(tf.square(w * x + b - y), name="loss")
    optimizer = v1.train.GradientDescentOptimizer(0.05)
    optimizer.minimize(loss, global_step=step, name="train")
    v1.summary.scalar("loss", loss)


def queues(texts):
    text = v1.train.input_producer(texts, num_epochs=2, shuffle=False).dequeue()
    batch = v1.train.batch([tf.strings.to_number(text)], 2)
    tf.identity(batch, name="batch")
    v1.train.get_or_create_global_step()


def parts():
    halves = v1.fixed_size_partitioner(2)
    p = v1.get_variable("p", [4], initializer=v1.zeros_initializer(), partitioner=halves)
    step = v1.train.get_or_create_global_step()
    ops = [part.assign_add([1.0, 2.0]).op for part in p] + [step.assign_add(1).op]
    tf.group(*ops, name="train")
    return v1.train.Saver().as_saver_def()


def write(name, saver_def=None):
    meta_graph = v1.train.export_meta_graph(saver_def=saver_def)
    meta_graph.meta_info_def.Clear()
    for node in meta_graph.graph_def.node:
        node.attr.pop("_output_shapes", None)
    with open(os.path.join(OUT, name), "wb") as file:
        file.write(meta_graph.SerializeToString(deterministic=True))


shutil.rmtree(OUT, ignore_errors=True)
os.makedirs(OUT)
for name, use_resource in ("linear", True), ("references", False):
    with tf.Graph().as_default():
        linear(use_resource)
        if use_resource:
            write("plain.meta")
        v1.train.Scaffold().finalize()
        write(name + ".meta")
for name, texts in ("queues", ["1", "2", "3"]), ("bad_queues", ["1", "2", "x"]):
    with tf.Graph().as_default():
        queues(texts)
        write(name + ".meta")
with tf.Graph().as_default():
    write("parts.meta", parts())
trained = os.path.join(OUT, "trained")
with tf.Graph().as_default() as graph:
    linear(True)
    scaffold = v1.train.Scaffold(saver=v1.train.Saver(save_relative_paths=True))
    saver = v1.train.CheckpointSaverHook(trained, save_steps=3, scaffold=scaffold)
    creator = v1.train.ChiefSessionCreator(scaffold)
    hooks = [saver, v1.train.StopAtStepHook(last_step=3)]
    with v1.train.MonitoredSession(creator, hooks) as session:
        while not session.should_stop():
            session.run("train")
for name in os.listdir(trained):
    if not name.startswith(("checkpoint", "model.ckpt-3.index", "model.ckpt-3.data")):
        os.remove(os.path.join(trained, name))
with open(os.path.join(trained, "checkpoint"), "w") as file:
    file.write('model_checkpoint_path: "model.ckpt-3"\nall_model_checkpoint_paths: "model.ckpt-3"\n')
