#!/usr/bin/env python3
"""A worker of TensorFlow's MultiWorkerMirroredStrategy beside programs of ferroflow.

    TF_CONFIG=... python worker.py collectives
    TF_CONFIG=... python worker.py train STEPS
    TF_CONFIG=... python worker.py measure

`collectives` prints what the example `peer` of ferroflow-cluster prints, `train` what the example
`multi_worker` of ferroflow prints. `measure` times reductions, as the example `all_reduce` does.
Away from a terminal a worker that is done serves the others until its input ends.
"""
import os
import sys
import time
import zlib

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "2"
os.environ["CUDA_VISIBLE_DEVICES"] = ""

import numpy as np
import tensorflow as tf

strategy = tf.distribute.MultiWorkerMirroredStrategy()
SIZE = strategy.num_replicas_in_sync
RANK = strategy.cluster_resolver.task_id
GROUP = 1


def line(name, values):
    print(name + ":", *[f"{value:.1f}" for value in np.asarray(values).ravel()], flush=True)


def reductions():
    """Keys that the strategy counts itself, from 100 on."""

    @tf.function
    def step(x):
        def reduce(v):
            return tf.distribute.get_replica_context().all_reduce("sum", tf.identity(v))

        return strategy.run(reduce, args=(x,))

    for number, length in enumerate([1, 15, 16, 17, 1000]):
        total = step(tf.fill([length], tf.constant(1000.0 + number)))
        line(f"sum {number}", [total[0], total[-1], total.shape[0]])


def collectives():
    reductions()
    ops = tf.raw_ops
    rows = tf.constant([[10.0 * RANK + i] * 2 for i in range(3)])
    line("gather", ops.CollectiveGatherV2(
        input=rows, group_size=SIZE, group_key=GROUP, instance_key=5000, ordering_token=[]))
    for source in range(SIZE):
        key = 5100 + source
        if source == RANK:
            value = tf.constant([source + 0.5] * 5, tf.float64)
            got = ops.CollectiveBcastSendV2(
                input=value, group_size=SIZE, group_key=GROUP, instance_key=key)
        else:
            got = ops.CollectiveBcastRecvV2(
                group_size=SIZE, group_key=GROUP, instance_key=key, shape=[5], T=tf.float64)
        line(f"broadcast {source}", got)
    parts = tf.constant([[100 * RANK + to] * 3 for to in range(SIZE)], tf.int64)
    mine = ops.CollectiveAllToAllV2(
        input=parts, group_size=SIZE, group_key=GROUP, instance_key=5200, ordering_token=[])
    line("exchange", ops.CollectiveGatherV2(
        input=mine, group_size=SIZE, group_key=GROUP, instance_key=5201, ordering_token=[]))


BATCH, SIDE, CLASSES, CHANNELS, RATE = 12, 8, 10, 6, 0.1


def weights():
    def variable(shape, scale):
        values = scale * np.sin(np.arange(np.prod(shape)) * 1.7)
        return tf.Variable(values.astype(np.float32).reshape(shape))

    return [
        variable([3, 3, 1, CHANNELS], 0.4),
        variable([CHANNELS], 0.1),
        variable([SIDE * SIDE // 4 * CHANNELS, CLASSES], 0.2),
    ]


def batch(step):
    """This worker's part of the batch of a step."""
    i = np.arange(BATCH * SIDE * SIDE)
    images = np.sin(0.37 * (i // (SIDE * SIDE)) + 0.11 * i + step).astype(np.float32)
    classes = ((7 * np.arange(BATCH) + step) % CLASSES).astype(np.int32)
    own = slice(RANK * BATCH // SIZE, (RANK + 1) * BATCH // SIZE)
    return images.reshape([BATCH, SIDE, SIDE, 1])[own], classes[own]


def train(steps):
    with strategy.scope():
        variables = weights()
        tf.Variable(0, dtype=tf.int64)  # The optimizer's number of steps.

    def replica_step(x, y):
        with tf.GradientTape() as tape:
            h = tf.tanh(tf.nn.conv2d(x, variables[0], 1, "SAME") + variables[1])
            h = tf.nn.avg_pool2d(h, 2, 2, "VALID")
            logits = tf.reshape(h, [-1, SIDE * SIDE // 4 * CHANNELS]) @ variables[2]
            losses = tf.nn.sparse_softmax_cross_entropy_with_logits(y, logits)
            loss = tf.reduce_sum(losses) * (1.0 / BATCH)
        replica = tf.distribute.get_replica_context()
        sums = replica.all_reduce("sum", tape.gradient(loss, variables))

        def update(strategy, sums):
            for variable, gradient in zip(variables, sums):
                strategy.extended.update(variable, lambda v, g: v.assign_sub(g * RATE), (gradient,))

        replica.merge_call(update, (sums,))
        return replica.all_reduce("sum", loss)

    @tf.function
    def step(x, y):
        return strategy.run(replica_step, (x, y))

    for number in range(steps):
        loss = float(step(*map(tf.constant, batch(number))))
        checksum = 0
        for variable in variables:
            checksum = zlib.crc32(variable.numpy().tobytes(), checksum)
        print(f"step {number}: loss {loss:.6f}, weights {checksum:08x}", flush=True)


def measure():
    @tf.function(input_signature=[tf.TensorSpec([None], tf.float32), tf.TensorSpec([], tf.int32)])
    def reduce(x, key):
        return tf.raw_ops.CollectiveReduceV2(
            input=x, group_size=SIZE, group_key=GROUP, instance_key=key, ordering_token=[],
            merge_op="Add", final_op="Id")

    sizes = [(4 << 10, 300), (256 << 10, 100), (4 << 20, 30), (64 << 20, 9)]
    for start, (size, rounds) in zip(range(1000, 5000, 1000), sizes):
        mine, times = tf.ones([size // 4]), []
        for number in range(rounds):
            key = tf.constant(start + number)
            begun = time.perf_counter()
            total = reduce(mine, key)
            total._numpy()
            times.append((time.perf_counter() - begun) * 1e3)
        times.sort()
        print(f"{size >> 10:>6} KiB: least {times[0]:.3f} ms, median {times[len(times) // 2]:.3f} ms")


if sys.argv[1] == "measure":
    measure()
elif sys.argv[1] == "collectives":
    collectives()
else:
    train(int(sys.argv[2]))
sys.stdout.flush()
if not sys.stdin.isatty():
    # The others may still be asking for what this task computed: whoever has started it closes its input.
    os.close(1)
    sys.stdin.read()
os._exit(0)
