#!/usr/bin/env python3
"""A server of TensorFlow, which computes for clients until its standard input ends.

    python server.py PORT
"""
import os
import sys

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
os.environ["CUDA_VISIBLE_DEVICES"] = ""

import tensorflow as tf

cluster = tf.train.ClusterSpec({"worker": {0: "127.0.0.1:" + sys.argv[1]}})
server = tf.distribute.Server(cluster, job_name="worker", task_index=0, protocol="grpc")
print("ready", flush=True)
sys.stdin.read()
os._exit(0)
