//! Bounds on gradients.

use ferroflow_tracer::{error::Result, gradients::TensorGradient, tensor::Tensor};

/// Bounds of gradients before they are applied.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub enum Clip {
    /// Not at all.
    #[default]
    None,
    /// Each element to `±` this.
    Value(f64),
    /// The norm of each gradient to at most this.
    Norm(f64),
    /// The norm of all gradients together to at most this.
    GlobalNorm(f64),
}

impl Clip {
    /// The bounded gradients.
    ///
    /// # Errors
    ///
    /// When one is not of floats.
    pub fn apply(self, gradients: &[TensorGradient]) -> Result<Vec<TensorGradient>> {
        match self {
            Clip::None => Ok(gradients.to_vec()),
            Clip::Value(bound) => {
                let clip =
                    |g: &TensorGradient| g.map_values(|rows| clip_by_value(rows, -bound, bound));
                gradients.iter().map(clip).collect()
            }
            Clip::Norm(bound) => {
                let clip = |g: &TensorGradient| g.map_values(|rows| clip_by_norm(rows, bound));
                gradients.iter().map(clip).collect()
            }
            Clip::GlobalNorm(bound) => Ok(clip_by_global_norm(gradients, bound)?.0),
        }
    }
}

/// Elements brought into a range.
///
/// # Errors
///
/// When the tensor is not of numbers that have an order.
#[track_caller]
pub fn clip_by_value(x: &Tensor, low: f64, high: f64) -> Result<Tensor> {
    x.minimum(high)?.maximum(low)
}

/// A tensor scaled down such that its norm is at most `bound`.
///
/// # Errors
///
/// When the tensor is not of floats.
#[track_caller]
pub fn clip_by_norm(x: &Tensor, bound: f64) -> Result<Tensor> {
    let squares = x.square()?.sum_all()?;
    let is_zero = squares.greater(0.0)?.logical_not()?;
    let norm = is_zero.select(&squares.ones_like()?, &squares)?.sqrt()?;
    let norm = is_zero.select(&squares, &norm)?;
    (x * bound)? / norm.maximum(bound)?
}

/// The norm of all gradients together.
///
/// # Errors
///
/// When there is none, or one is not of floats.
#[track_caller]
pub fn global_norm(gradients: &[TensorGradient]) -> Result<Tensor> {
    let mut total: Option<Tensor> = None;
    for gradient in gradients {
        let squares = gradient.values().square()?.sum_all()?;
        total = Some(match total {
            None => squares,
            Some(total) => (total + &squares.cast(gradients[0].dtype())?)?,
        });
    }
    total.unwrap_or_else(|| Tensor::from(0.0f32)).sqrt()
}

/// Gradients scaled down such that the norm of all of them together is at most `bound`, and that
/// norm before. If it is not finite, nor are the results.
///
/// ```
/// use ferroflow_nn::optimizers::clip_by_global_norm;
/// use ferroflow_tracer::{TensorGradient, Tensor};
/// # fn main() -> ferroflow_tracer::Result<()> {
/// let gradients = [3.0f32, 4.0].map(|g| TensorGradient::Dense(Tensor::from(g)));
/// let (clipped, norm) = clip_by_global_norm(&gradients, 1.0)?;
/// assert_eq!(norm.to_scalar::<f32>()?, 5.0);
/// assert_eq!(clipped[1].clone().dense()?.to_scalar::<f32>()?, 0.8);
/// # Ok(())
/// # }
/// ```
///
/// # Errors
///
/// When one is not of floats.
#[track_caller]
pub fn clip_by_global_norm(
    gradients: &[TensorGradient],
    bound: f64,
) -> Result<(Vec<TensorGradient>, Tensor)> {
    let norm = global_norm(gradients)?;
    // A norm that is not finite makes NaN of everything.
    let invalid = (&norm * 0.0)?;
    let scale = ((bound / norm.maximum(bound)?)? + &invalid)?;
    let scaled = |gradient: &TensorGradient| {
        gradient.map_values(|values| values * scale.cast(values.dtype())?)
    };
    Ok((gradients.iter().map(scaled).collect::<Result<_>>()?, norm))
}
