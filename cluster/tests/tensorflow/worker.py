#!/usr/bin/env python3
"""A worker of TensorFlow's MultiWorkerMirroredStrategy that reduces vectors with the others.

    TF_CONFIG=... python worker.py STEPS LENGTH

In step s it brings 1000 + s everywhere and prints the sum's first and last elements, as the example
`peer` of ferroflow-cluster does.
"""
import os
import sys

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "2"
os.environ["CUDA_VISIBLE_DEVICES"] = ""

import tensorflow as tf

steps, length = int(sys.argv[1]), int(sys.argv[2])
strategy = tf.distribute.MultiWorkerMirroredStrategy()


@tf.function
def step(x):
    def reduce(v):
        return tf.distribute.get_replica_context().all_reduce("sum", tf.identity(v))

    return strategy.run(reduce, args=(x,))


for number in range(steps):
    total = step(tf.fill([length], tf.constant(1000.0 + number))).numpy()
    print(f"step {number}: {total[0]} {total[-1]}", flush=True)
sys.stdout.flush()
os._exit(0)
