"""A case of the zoo with gradients: the folder, the model as TensorFlow saved and loaded it, and its calls."""

import json
import os
import shutil
import sys

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
import numpy as np
import tensorflow as tf


class GradientCase:
    def __init__(self, name, module, options=None):
        self.name, self.folder, self.calls = name, f"{sys.argv[1]}/{name}", []
        shutil.rmtree(self.folder, ignore_errors=True)
        os.makedirs(f"{self.folder}/io")
        tf.saved_model.save(module, f"{self.folder}/model", options=options)
        self.model = tf.saved_model.load(f"{self.folder}/model")

    def stored(self, name, value):
        np.save(f"{self.folder}/io/{name}", value)
        return {"npy": f"io/{name}.npy", "dtype": value.dtype.name, "shape": list(value.shape)}

    def write(self, what):
        case = {
            "name": self.name,
            "kind": "saved_model",
            "source": f"{self.name}.py: {what}",
            "features": ["gradients"],
            "tags": ["serve"],
            "calls": self.calls,
        }
        with open(f"{self.folder}/case.json", "w") as file:
            json.dump(case, file, indent=1)
            file.write("\n")
