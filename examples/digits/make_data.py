"""Writes the data of the example: 1797 digits of 8x8 pixels with values from 0 to 16.

They are the test set of "Optical Recognition of Handwritten Digits" (E. Alpaydin, C. Kaynak, 1998, UCI Machine Learning
Repository, https://doi.org/10.24432/C50P49, licence CC BY 4.0), which scikit-learn carries.
"""

import gzip
import pathlib
import struct

import numpy as np
from sklearn.datasets import load_digits


def write_idx(path, array):
    header = struct.pack(">BBBB", 0, 0, 0x08, array.ndim) + struct.pack(f">{array.ndim}I", *array.shape)
    path.write_bytes(gzip.compress(header + array.astype(np.uint8).tobytes(), mtime=0))


digits = load_digits()
folder = pathlib.Path(__file__).parent
write_idx(folder / "images.idx3.gz", digits.images)
write_idx(folder / "labels.idx1.gz", digits.target)
