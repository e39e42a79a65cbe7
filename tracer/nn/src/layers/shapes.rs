//! What layers ask of the shapes of their inputs, and the errors where those do not fit.

use ferroflow_tracer::{
    error::{Error, Result},
    tensor::Tensor,
};

/// The number of dimensions.
pub(super) fn rank(x: &Tensor) -> Result<usize> {
    x.shape().rank().ok_or_else(|| unfit("a tensor of known rank", x))
}

/// The error of a tensor that does not fit a layer.
pub(super) fn unfit(expected: &str, x: &Tensor) -> Error {
    wrong(expected, x.spec().to_string())
}

/// The error of an argument that does not fit.
pub(super) fn wrong(expected: impl Into<String>, found: impl Into<String>) -> Error {
    Error::Conversion { expected: expected.into(), found: found.into() }
}
