//! Indices as vectors.

use crate::layers::shapes::{rank, wrong};
use ferroflow_ir::DType;
use ferroflow_tracer::{
    error::Result,
    ops::{self, IntoOperand},
    tensor::Tensor,
};

/// The form in which indices are returned.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum OutputMode {
    /// The indices.
    #[default]
    Int,
    /// A vector for each index, with a 1 at it: `[..] → [.., depth]`; a last dimension of size 1 is
    /// dropped before.
    OneHot,
    /// A vector for each example, with a 1 at each of its indices: `[batch, n] → [batch, depth]`.
    MultiHot,
    /// A vector for each example, with the number of times that an index is there.
    Count,
    /// [`Count`](OutputMode::Count), each number times the weight of its index. Only a
    /// [`Lookup`](super::Lookup) has weights.
    TfIdf,
}

impl OutputMode {
    /// Indices below `depth` in this form; others are left out. Forms other than the indices are of
    /// this dtype.
    pub(super) fn of(self, x: &Tensor, depth: usize, dtype: DType) -> Result<Tensor> {
        let x =
            if self != OutputMode::Int && rank(x)? == 0 { x.expand_dims(0)? } else { x.clone() };
        match self {
            OutputMode::Int => Ok(x),
            OutputMode::OneHot => one_hot(&without_last(&x)?, depth, dtype),
            OutputMode::MultiHot => counted(&x, depth, dtype, None, true),
            OutputMode::Count | OutputMode::TfIdf => counted(&x, depth, dtype, None, false),
        }
    }

    /// Checks that the form needs no weights.
    pub(super) fn check_unweighted(self) -> Result<()> {
        if self == OutputMode::TfIdf {
            return Err(wrong("an output mode without weights", "TfIdf"));
        }
        Ok(())
    }
}

/// The sums of weights, `[batch, n]`, or ones, by index: `[batch, n] → [batch, depth]`.
pub(super) fn counted(
    x: &Tensor,
    depth: usize,
    dtype: DType,
    weights: Option<&Tensor>,
    binary: bool,
) -> Result<Tensor> {
    if rank(x)? <= 2 {
        let size = (depth as i64).into_operand(x.dtype())?;
        let none = Tensor::from(Vec::<f32>::new()).cast(dtype)?;
        let attrs = ops::DenseBincountAttrs { binary_output: binary };
        return ops::dense_bincount_with(x, &size, weights.unwrap_or(&none), &attrs);
    }
    let vectors = one_hot(x, depth, dtype)?;
    match weights {
        Some(weights) => (vectors * weights.expand_dims(-1)?)?.sum(&[1]),
        None if binary => vectors.max(&[1]),
        None => vectors.sum(&[1]),
    }
}

fn one_hot(x: &Tensor, depth: usize, dtype: DType) -> Result<Tensor> {
    let (one, zero) = (Tensor::from(1i32).cast(dtype)?, Tensor::from(0i32).cast(dtype)?);
    ops::one_hot(x, &Tensor::from(depth as i32), &one, &zero)
}

/// The tensor without a last dimension of size 1.
fn without_last(x: &Tensor) -> Result<Tensor> {
    if rank(x)? > 1 && x.shape().dim(-1) == Some(1) {
        return ops::squeeze_with(x, &ops::SqueezeAttrs { squeeze_dims: vec![-1] });
    }
    Ok(x.clone())
}
