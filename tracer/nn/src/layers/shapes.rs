//! What layers ask of the shapes of their inputs, and the errors where those do not fit.

use ferroflow_tracer::{
    error::{Error, Result},
    ops,
    tensor::Tensor,
};

/// The number of dimensions.
pub(super) fn rank(x: &Tensor) -> Result<usize> {
    x.shape().rank().ok_or_else(|| unfit("a tensor of known rank", x))
}

/// Checks the number of dimensions.
pub(super) fn has_rank(x: &Tensor, rank: usize) -> Result<()> {
    match x.shape().rank() {
        Some(found) if found != rank => Err(unfit(&format!("a tensor of rank {rank}"), x)),
        _ => Ok(()),
    }
}

/// The size of a dimension as `int32`: a constant where it is known.
pub(super) fn dim(x: &Tensor, axis: usize) -> Result<Tensor> {
    match x.shape().dim(axis as isize) {
        Some(size) => Ok(Tensor::from(size as i32)),
        None => x.shape_tensor()?.gather(&Tensor::from(axis as i32)),
    }
}

/// Sizes as a shape operand.
pub(super) fn dims(sizes: &[Tensor]) -> Result<Tensor> {
    ops::pack(&sizes.iter().collect::<Vec<_>>())
}

/// The error of a tensor that does not fit a layer.
pub(super) fn unfit(expected: &str, x: &Tensor) -> Error {
    wrong(expected, x.spec().to_string())
}

/// The error of an argument that does not fit.
pub(super) fn wrong(expected: impl Into<String>, found: impl Into<String>) -> Error {
    Error::Conversion { expected: expected.into(), found: found.into() }
}
