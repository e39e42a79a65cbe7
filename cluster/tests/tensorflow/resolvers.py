#!/usr/bin/env python3
"""The cluster that TensorFlow's resolvers find in the environment: as cluster/examples/environment.rs prints it."""

import os

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
from tensorflow.python.distribute.cluster_resolver import SlurmClusterResolver, TFConfigClusterResolver

if "TF_CONFIG" in os.environ:
    resolver = TFConfigClusterResolver()
    spec = resolver.cluster_spec()
else:
    resolver = SlurmClusterResolver(gpus_per_node=64, gpus_per_task=1, auto_set_gpu=False)
    # The task's number is known once the specification is.
    spec = resolver.cluster_spec()
print(int(resolver.task_id), *spec.job_tasks("worker"))
