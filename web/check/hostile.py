"""Writes `hostile/`: a SavedModel whose signatures take all the time or memory they are given."""

import pathlib

import tensorflow as tf


@tf.function(input_signature=[tf.TensorSpec([None], tf.float32)])
def endless(x):
    return {"output": tf.while_loop(lambda y: tf.reduce_all(y > -1.0), lambda y: [y * 0.5 + 1.0], [x])[0]}


@tf.function(input_signature=[tf.TensorSpec([], tf.int32)])
def product(n):
    x = tf.ones([n, n]) * tf.cast(n, tf.float32)
    return {"output": tf.reduce_sum(x @ x @ x @ x)}


@tf.function(input_signature=[tf.TensorSpec([], tf.int32)])
def memory(n):
    return {"output": tf.cumsum(tf.ones([n]))[-1:]}


module = tf.Module()
module.endless, module.product, module.memory = endless, product, memory
signatures = {"endless": endless, "product": product, "memory": memory}
tf.saved_model.save(module, str(pathlib.Path(__file__).parent / "hostile"), signatures=signatures)
