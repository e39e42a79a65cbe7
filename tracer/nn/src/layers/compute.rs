//! The dtype that layers compute in.

use ferroflow_ir::DType;
use ferroflow_tracer::{error::Result, tensor::Tensor, variable::Variable};

/// The input of a layer with such a weight, in the dtype that the layer computes in: that of the
/// input where it is a float, otherwise that of the weight. Integers would round the weights.
pub(super) fn input_for(weight: &Variable, x: &Tensor) -> Result<Tensor> {
    as_float(x, weight.dtype())
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
