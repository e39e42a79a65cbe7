//! Pooling to results of a fixed size.

use super::{
    Layer, Mode, compute,
    shapes::{has_rank, unfit, wrong},
};
use ferroflow_tracer::{error::Result, ops, tensor::Tensor};
use ferroflow_tracer_macros::Trackable;

/// The mean of each window, as many of them as the result has elements: `[batch, ..sizes, channels]` to
/// these sizes, in one to three dimensions. Window `i` of `n` is from `⌊i·size/n⌋` to
/// `⌈(i + 1)·size/n⌉`, so that windows may overlap.
///
/// ```
/// use ferroflow_nn::{AdaptiveAveragePooling1D, Layer, Mode};
/// use ferroflow_tracer::Tensor;
/// # fn main() -> ferroflow_tracer::Result<()> {
/// let x = Tensor::from([[[1.0f32], [2.0], [4.0], [3.0], [9.0]]]);
/// let layer = AdaptiveAveragePooling1D::new([2])?;
/// assert_eq!(layer.call(&x, Mode::Inference)?.to_vec::<f32>()?, [7.0 / 3.0, 16.0 / 3.0]);
/// # Ok(())
/// # }
/// ```
#[derive(Trackable, Debug, Clone, Copy, PartialEq, Eq)]
pub struct AdaptiveAveragePooling<const N: usize> {
    #[trackable(skip)]
    sizes: [usize; N],
}

/// The largest element of each window, as [`AdaptiveAveragePooling`].
#[derive(Trackable, Debug, Clone, Copy, PartialEq, Eq)]
pub struct AdaptiveMaxPooling<const N: usize> {
    #[trackable(skip)]
    sizes: [usize; N],
}

/// Means of sequences: `[batch, steps, channels]`.
pub type AdaptiveAveragePooling1D = AdaptiveAveragePooling<1>;
/// Means of images: `[batch, height, width, channels]`.
pub type AdaptiveAveragePooling2D = AdaptiveAveragePooling<2>;
/// Means of volumes: `[batch, depth, height, width, channels]`.
pub type AdaptiveAveragePooling3D = AdaptiveAveragePooling<3>;
/// Largest elements of sequences: `[batch, steps, channels]`.
pub type AdaptiveMaxPooling1D = AdaptiveMaxPooling<1>;
/// Largest elements of images: `[batch, height, width, channels]`.
pub type AdaptiveMaxPooling2D = AdaptiveMaxPooling<2>;
/// Largest elements of volumes: `[batch, depth, height, width, channels]`.
pub type AdaptiveMaxPooling3D = AdaptiveMaxPooling<3>;

/// The layers, and the reduction of a window.
macro_rules! adaptive {
    ($($layer:ident, $reduce:path, |$x:ident| $input:expr;)*) => {$(
        impl<const N: usize> $layer<N> {
            /// A layer to these sizes.
            ///
            /// # Errors
            ///
            /// [`Error::Conversion`](ferroflow_tracer::Error::Conversion) for a size of 0.
            pub fn new(sizes: [usize; N]) -> Result<$layer<N>> {
                if sizes.contains(&0) {
                    return Err(wrong("sizes above zero", format!("{sizes:?}")));
                }
                Ok($layer { sizes })
            }
        }

        impl<const N: usize> Layer for $layer<N> {
            fn call(&self, $x: &Tensor, _: Mode) -> Result<Tensor> {
                has_rank($x, N + 2)?;
                let axes = self.sizes.iter().zip(1i32..);
                axes.fold($input, |x, (&size, axis)| pooled(&x?, axis, size, $reduce))
            }
        }
    )*};
}

adaptive! {
    AdaptiveAveragePooling, compute::mean, |x| compute::input(x);
    AdaptiveMaxPooling, compute::max, |x| Ok(x.clone());
}

/// Windows along one axis, each reduced to one element. Means and largest elements of windows over
/// several axes are those along one after the other.
fn pooled(
    x: &Tensor,
    axis: i32,
    n: usize,
    reduce: impl Fn(&Tensor, &[i32]) -> Result<Tensor>,
) -> Result<Tensor> {
    let size = x.shape().dim(axis as isize).filter(|&size| size > 0);
    let size = size.ok_or_else(|| unfit("a tensor of known sizes above zero", x))?;
    let window = |index: usize| {
        let (begin, end) = (index * size / n, ((index + 1) * size).div_ceil(n));
        let rank = x.shape().rank().unwrap_or_default();
        let (mut begins, mut sizes) = (vec![0i32; rank], vec![-1i32; rank]);
        (begins[axis as usize], sizes[axis as usize]) = (begin as i32, (end - begin) as i32);
        reduce(&ops::slice(x, &Tensor::from(begins), &Tensor::from(sizes))?, &[axis])
    };
    let windows = (0..n).map(window).collect::<Result<Vec<Tensor>>>()?;
    if let [whole] = &windows[..] {
        return Ok(whole.clone());
    }
    ops::concat_v2(&windows.iter().collect::<Vec<_>>(), &Tensor::from(axis))
}
