//! Tensors as matrices: all dimensions but the last as rows.

use super::shapes::{unfit, with_shape};
use ferroflow_ir::PartialShape;
use ferroflow_tracer::{
    error::{Error, Result},
    ops,
    tensor::Tensor,
};

/// The product of the last dimension of `x` with a matrix: `[.., m] × [m, n] → [.., n]`, as one
/// product of matrices.
pub(super) fn times(x: &Tensor, matrix: &Tensor) -> Result<Tensor> {
    if x.shape().rank() == Some(2) {
        return x.matmul(matrix);
    }
    let (inputs, outputs) = (size(matrix, 0)?, size(matrix, 1)?);
    with_last(&x.reshape(&[-1, inputs])?.matmul(matrix)?, x, &[outputs])
}

/// The rows of a matrix under the shape of `x`, whose last dimension becomes `last`.
pub(super) fn with_last(rows: &Tensor, x: &Tensor, last: &[i64]) -> Result<Tensor> {
    let shape = x.shape();
    let Some([outer @ .., _]) = shape.dims() else { return Err(no_last(x)) };
    if outer.iter().filter(|dim| dim.is_none()).count() <= 1 {
        let outer = outer.iter().map(|dim| dim.map_or(-1, |dim| dim as i64));
        return rows.reshape(&outer.chain(last.iter().copied()).collect::<Vec<_>>());
    }
    let known = outer.iter().copied().chain(last.iter().map(|&size| usize::try_from(size).ok()));
    let known = PartialShape::ranked(known);
    let rank = outer.len() as i32;
    let outer = ops::slice(&x.shape_tensor()?, &Tensor::from([0]), &Tensor::from([rank]))?;
    let last: Vec<i32> = last.iter().map(|&size| size as i32).collect();
    let shape = ops::concat_v2(&[&outer, &Tensor::from(last)], &Tensor::from(0))?;
    with_shape(ops::reshape(rows, &shape)?, known)
}

/// A size that a layer must know.
pub(super) fn size(x: &Tensor, axis: isize) -> Result<i64> {
    x.shape().dim(axis).map(|size| size as i64).ok_or_else(|| no_last(x))
}

fn no_last(x: &Tensor) -> Error {
    unfit("a tensor with a last dimension of known size", x)
}
