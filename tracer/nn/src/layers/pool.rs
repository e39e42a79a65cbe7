//! Layers without weights, as functions.

use super::{
    compute,
    geometry::{check_dimensions, over_images, window},
    shapes::{rank, unfit},
};
use ferroflow_tracer::{error::Result, ops, tensor::Tensor};

/// The largest element of each window: `[batch, ..sizes, channels]`, in one to three dimensions.
/// Windows do not overlap; what is left at the end makes none.
///
/// ```
/// use ferroflow_nn::max_pool;
/// use ferroflow_tracer::Tensor;
/// # fn main() -> ferroflow_tracer::Result<()> {
/// let x = Tensor::from([[[1.0f32], [2.0], [4.0], [3.0], [9.0]]]);
/// assert_eq!(max_pool(&x, [2])?.to_vec::<f32>()?, [2.0, 4.0]);
/// # Ok(())
/// # }
/// ```
///
/// # Errors
///
/// When `x` does not have these dimensions.
pub fn max_pool<const N: usize>(x: &Tensor, window: [usize; N]) -> Result<Tensor> {
    pooled(x, window, ops::max_pool, ops::max_pool3d)
}

/// The mean of each window, as [`max_pool`].
///
/// # Errors
///
/// As [`max_pool`].
pub fn avg_pool<const N: usize>(x: &Tensor, window: [usize; N]) -> Result<Tensor> {
    pooled(x, window, ops::avg_pool, ops::avg_pool3d)
}

/// The mean of each channel: `[batch, .., channels] → [batch, channels]`; of integers in `float32`.
///
/// # Errors
///
/// [`Error::Conversion`](ferroflow_tracer::Error::Conversion) for a tensor of unknown rank.
pub fn global_avg_pool(x: &Tensor) -> Result<Tensor> {
    let axes: Vec<i32> = (1..rank(x)? as i32 - 1).collect();
    compute::input(x)?.mean(&axes)
}

/// All but the first dimension as one: `[batch, ..] → [batch, size]`.
///
/// # Errors
///
/// [`Error::Conversion`](ferroflow_tracer::Error::Conversion) for a tensor whose sizes but the first are not known.
pub fn flatten(x: &Tensor) -> Result<Tensor> {
    let shape = x.shape();
    let sizes = shape.dims().and_then(|dims| dims.get(1..));
    let size = sizes.and_then(|sizes| sizes.iter().copied().product::<Option<usize>>());
    let size = size.ok_or_else(|| unfit("a tensor whose sizes but the first are known", x))?;
    x.reshape(&[-1, size as i64])
}

type Pool = fn(&Tensor, &[i64], &[i64], &str) -> Result<Tensor>;

fn pooled<const N: usize>(
    x: &Tensor,
    window_sizes: [usize; N],
    in_plane: Pool,
    in_space: Pool,
) -> Result<Tensor> {
    check_dimensions(N, 3)?;
    let (pool, sizes) = (if N == 3 { in_space } else { in_plane }, window(&window_sizes, 1));
    over_images::<N>(x, |x| pool(x, &sizes, &sizes, "VALID"))
}
