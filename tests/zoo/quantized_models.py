"""Makes the case quant_convolutions: convolutions of integers with scales and zero points.

Run with TensorFlow 2.21: python quantized_models.py FOLDER
"""

import numpy as np
import tensorflow as tf
from dataset_models import case
from tensorflow.core.util.quantization import uniform_quant_ops_attr_pb2 as attr

R = tf.raw_ops
AXES = attr.UniformQuantizedConvolutionDimensionNumbersAttr(
    input_batch_dimension=0, input_feature_dimension=3, input_spatial_dimensions=[1, 2], kernel_input_feature_dimension=2, kernel_output_feature_dimension=3,
    kernel_spatial_dimensions=[0, 1], output_batch_dimension=0, output_feature_dimension=3, output_spatial_dimensions=[1, 2]).SerializeToString()
WHOLE = -(2**31), 2**31 - 1


def quantized(x, scales, zeros, axis=-1):
    return R.UniformQuantize(input=x, scales=scales, zero_points=zeros, Tout=tf.qint8, quantization_min_val=-128, quantization_max_val=127, quantization_axis=axis)


def both(x, k, scales, zeros, axis, output, **window):
    """The convolution of integers, and that of reals with integers."""
    kernel = quantized(k, scales, zeros, axis)
    common = dict(rhs=kernel, rhs_scales=scales, rhs_zero_points=zeros, rhs_quantization_min_val=-128, rhs_quantization_max_val=127, rhs_quantization_axis=axis, **window)
    sums = R.UniformQuantizedConvolution(
        lhs=quantized(x, 0.02, 3), lhs_scales=0.02, lhs_zero_points=3, output_scales=output, output_zero_points=zeros, Tout=tf.qint32, lhs_quantization_min_val=-128,
        lhs_quantization_max_val=127, output_quantization_min_val=WHOLE[0], output_quantization_max_val=WHOLE[1], output_quantization_axis=axis, **common)
    return tf.bitcast(sums, tf.int32), R.UniformQuantizedConvolutionHybrid(lhs=x, Tout=tf.float32, **common)


class Convolutions(tf.Module):
    @tf.function(input_signature=[tf.TensorSpec([2, 5, 6, 2]), tf.TensorSpec([3, 3, 2, 4])])
    def windows(self, x, k):
        scales, zeros = tf.constant([0.01, 0.02, 0.03, 0.04]), tf.constant([0, 1, -2, 0])
        call = lambda **window: both(x, k, scales, zeros, 3, scales * 0.01, dimension_numbers=AXES, **window)
        whole = both(x, k, 0.02, 0, -1, 0.002, dimension_numbers=AXES, padding="SAME")
        return [call(padding="SAME", window_strides=[2, 1]), call(padding="VALID", window_strides=[1, 2]),
                call(padding="EXPLICIT", explicit_padding=[1, 0, 0, 2], lhs_dilation=[1, 2], rhs_dilation=[1, 2]), whole]

    @tf.function(input_signature=[tf.TensorSpec([1, 4, 5, 5]), tf.TensorSpec([6, 2, 3, 3])])
    def groups(self, x, k):
        """Features first, which needs no axes, in two groups."""
        return both(x, k, 0.02, 0, -1, 0.002, padding="SAME", feature_group_count=2)

    @tf.function(input_signature=[tf.TensorSpec([None, 6]), tf.TensorSpec([6, 4])])
    def halves(self, x, w):
        """Matrix products of bfloat16."""
        x, w = tf.cast(x, tf.bfloat16), tf.cast(w, tf.bfloat16)
        products = x @ w, tf.matmul(w, x, transpose_a=True, transpose_b=True), tf.stack([x, x * 2]) @ tf.stack([w, w])
        return [tf.cast(product, tf.float32) for product in products]


def random(*shape, seed):
    return np.random.RandomState(seed).randn(*shape).astype(np.float32)


if __name__ == "__main__":
    x, k = random(2, 5, 6, 2, seed=0), random(3, 3, 2, 4, seed=1)
    case("quant_convolutions", "UniformQuantizedConvolution, whole and hybrid; products of bfloat16", Convolutions(),
         [("windows", x, k), ("windows", x * 0, k), ("groups", random(1, 4, 5, 5, seed=2), random(6, 2, 3, 3, seed=3)), ("halves", random(3, 6, seed=4), random(6, 4, seed=5))],
         {"halves": 0.01})  # TensorFlow rounds products of bfloat16 with oneDNN, and cuts them off without.
