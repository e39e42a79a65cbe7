//! Several tensors merged into one: sums, products, means, extremes, and dot products.
//!
//! Tensors of fewer dimensions get dimensions of size 1 behind that of the batch. Values with masks are
//! merged by [`Merge`](super::Merge).
//!
//! ```
//! use ferroflow_nn::merge;
//! use ferroflow_tracer::Tensor;
//! # fn main() -> ferroflow_tracer::Result<()> {
//! let (a, b) = (Tensor::from([[1.0f32, 2.0]]), Tensor::from([[3.0f32, 0.0]]));
//! assert_eq!(merge::add(&[&a, &b])?.to_vec::<f32>()?, [4.0, 2.0]);
//! assert_eq!(merge::maximum(&[&a, &b])?.to_vec::<f32>()?, [3.0, 2.0]);
//! assert_eq!(merge::dot(&a, &b, [-1, -1])?.to_vec::<f32>()?, [3.0]);
//! # Ok(())
//! # }
//! ```

use super::{
    compute::unit,
    shapes::{self, DimSize, rank, reshaped, unfit, wrong},
};
use ferroflow_tracer::{error::Result, ops, tensor::Tensor};

/// The sum.
///
/// # Errors
///
/// [`Error::Conversion`](ferroflow_tracer::Error::Conversion) of no tensors; when shapes or dtypes do
/// not fit.
pub fn add(xs: &[&Tensor]) -> Result<Tensor> {
    folded(xs, |a, b| a + b)
}

/// The difference of two.
///
/// # Errors
///
/// As [`add`].
pub fn subtract(x: &Tensor, y: &Tensor) -> Result<Tensor> {
    folded(&[x, y], |a, b| a - b)
}

/// The product of elements.
///
/// # Errors
///
/// As [`add`].
pub fn multiply(xs: &[&Tensor]) -> Result<Tensor> {
    folded(xs, |a, b| a * b)
}

/// The mean.
///
/// # Errors
///
/// As [`add`].
pub fn average(xs: &[&Tensor]) -> Result<Tensor> {
    let n = ops::IntoOperand::into_operand(xs.len() as f64, ferroflow_ir::DType::F64)?;
    let sum = add(xs)?;
    &sum / n.cast(sum.dtype())?
}

/// The largest elements.
///
/// # Errors
///
/// As [`add`].
pub fn maximum(xs: &[&Tensor]) -> Result<Tensor> {
    folded(xs, |a, b| a.maximum(b))
}

/// The smallest elements.
///
/// # Errors
///
/// As [`add`].
pub fn minimum(xs: &[&Tensor]) -> Result<Tensor> {
    folded(xs, |a, b| a.minimum(b))
}

/// Tensors behind each other along an axis.
///
/// # Errors
///
/// When their other dimensions differ, or there is no such axis.
pub fn concatenate(xs: &[&Tensor], axis: i32) -> Result<Tensor> {
    ops::concat_v2(xs, &Tensor::from(axis))
}

/// The dot products of `x` and `y` along one axis of each, for each example: the sizes of the axes
/// are equal, and the other dimensions of `x` and `y` follow each other in the result. Of two
/// matrices it is `[batch, 1]`.
///
/// # Errors
///
/// [`Error::Conversion`](ferroflow_tracer::Error::Conversion) for axes that are not there, or are
/// that of the batch; when sizes differ.
pub fn dot(x: &Tensor, y: &Tensor, axes: [i32; 2]) -> Result<Tensor> {
    let (a, b) = (dot_axis(x, axes[0])?, dot_axis(y, axes[1])?);
    let (x_rest, y_rest) = (others(x, a)?, others(y, b)?);
    let sizes = |x: &Tensor, rest: &[usize]| DimSize::of_all(x, rest.iter().copied());
    let (x_sizes, y_sizes) = (sizes(x, &x_rest)?, sizes(y, &y_rest)?);
    let product = |sizes: &[DimSize]| {
        sizes.iter().try_fold(DimSize::Known(1), |product, size| product.times(size))
    };
    let batch = DimSize::of(x, 0)?;
    let x = x.transpose(&order(&[&[0], &x_rest[..], &[a]]))?;
    let y = y.transpose(&order(&[&[0, b], &y_rest[..]]))?;
    let last = DimSize::of(&x, x_rest.len() + 1)?;
    let x = reshaped(&x, &[batch.clone(), product(&x_sizes)?, last.clone()])?;
    let y = reshaped(&y, &[DimSize::of(&y, 0)?, DimSize::of(&y, 1)?, product(&y_sizes)?])?;
    let mut sizes = [&[batch], &x_sizes[..], &y_sizes[..]].concat();
    if sizes.len() == 1 {
        sizes.push(DimSize::Known(1));
    }
    reshaped(&x.matmul(&y)?, &sizes)
}

/// The cosines of `x` and `y`: [`dot`] of vectors of length 1.
///
/// # Errors
///
/// As [`dot`].
pub fn cosine(x: &Tensor, y: &Tensor, axes: [i32; 2]) -> Result<Tensor> {
    dot(&unit(x, &[axes[0]], 1e-7)?, &unit(y, &[axes[1]], 1e-7)?, axes)
}

pub(super) fn folded(
    xs: &[&Tensor],
    f: impl Fn(&Tensor, &Tensor) -> Result<Tensor>,
) -> Result<Tensor> {
    let xs = aligned(xs)?;
    let Some((first, rest)) = xs.split_first() else {
        return Err(wrong("a tensor at least", "none"));
    };
    rest.iter().try_fold(first.clone(), |y, x| f(&y, x))
}

/// The tensors with as many dimensions as that of the most.
fn aligned(xs: &[&Tensor]) -> Result<Vec<Tensor>> {
    let ranks = xs.iter().map(|x| rank(x)).collect::<Result<Vec<_>>>()?;
    let most = ranks.iter().copied().max().unwrap_or_default();
    let widened = |x: &Tensor, by: usize| (0..by).try_fold(x.clone(), |x, _| x.expand_dims(1));
    xs.iter().zip(ranks).map(|(x, rank)| widened(x, most - rank)).collect()
}

fn dot_axis(x: &Tensor, axis: i32) -> Result<usize> {
    match shapes::axis(x, axis)? {
        0 => Err(unfit("an axis that is not that of the batch", x)),
        axis => Ok(axis),
    }
}

/// The dimensions but the first and this one.
fn others(x: &Tensor, axis: usize) -> Result<Vec<usize>> {
    Ok((1..rank(x)?).filter(|&other| other != axis).collect())
}

fn order(parts: &[&[usize]]) -> Vec<i32> {
    parts.concat().into_iter().map(|axis| axis as i32).collect()
}
