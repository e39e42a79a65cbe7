//! The dtype that layers compute in, and statistics in it.

use ferroflow_ir::DType;
use ferroflow_tracer::{error::Result, ops, tensor::Tensor, variable::Variable};

/// The input of a layer with such a weight, in the dtype that the layer computes in: that of the
/// input where it is a float, otherwise that of the weight. Integers would round the weights.
pub(super) fn input_for(weight: &Variable, x: &Tensor) -> Result<Tensor> {
    as_float(x, weight.dtype())
}

/// The input of a layer that may have no weight.
pub(super) fn input_for_some(weight: Option<&Variable>, x: &Tensor) -> Result<Tensor> {
    as_float(x, weight.map_or(DType::F32, Variable::dtype))
}

/// The input of a layer without weights: integers as `float32`.
pub(super) fn input(x: &Tensor) -> Result<Tensor> {
    as_float(x, DType::F32)
}

fn as_float(x: &Tensor, otherwise: DType) -> Result<Tensor> {
    let dtype = x.dtype();
    if dtype.is_float() || dtype.is_complex() { Ok(x.clone()) } else { x.cast(otherwise) }
}

/// The dtype that statistics are taken in.
pub(super) fn wide(dtype: DType) -> DType {
    match dtype {
        DType::F16 | DType::BF16 => DType::F32,
        other => other,
    }
}

/// The mean over axes, which become dimensions of size 1.
pub(super) fn mean(x: &Tensor, axes: &[i32]) -> Result<Tensor> {
    ops::mean_with(x, &Tensor::from(axes), &ops::MeanAttrs { keep_dims: true })
}

/// The sum over axes, which become dimensions of size 1.
pub(super) fn sum(x: &Tensor, axes: &[i32]) -> Result<Tensor> {
    ops::sum_with(x, &Tensor::from(axes), &ops::SumAttrs { keep_dims: true })
}

/// The largest element over axes, which become dimensions of size 1.
pub(super) fn max(x: &Tensor, axes: &[i32]) -> Result<Tensor> {
    ops::max_with(x, &Tensor::from(axes), &ops::MaxAttrs { keep_dims: true })
}

/// Mean and biased variance over axes, which become dimensions of size 1.
pub(super) fn moments(x: &Tensor, axes: &[i32]) -> Result<(Tensor, Tensor)> {
    let center = mean(x, axes)?;
    let variance = mean(&ops::squared_difference(x, &center)?, axes)?;
    Ok((center, variance))
}

/// Vectors of length 1 along axes: `x / √Σx²`, where the length is `epsilon` at least. Sums are in
/// `float32` at least.
pub(super) fn unit(x: &Tensor, axes: &[i32], epsilon: f64) -> Result<Tensor> {
    let wide = x.cast(wide(x.dtype()))?;
    let squares = sum(&wide.square()?, axes)?.maximum(epsilon * epsilon)?;
    (wide * ops::rsqrt(&squares)?)?.cast(x.dtype())
}
