//! Pooling, as functions and as layers.

use super::{
    Layer, LayerValue, Mode, compute,
    geometry::{Padding, check_dimensions, check_sizes, over_images, padding_name, window},
    shapes::rank,
    value::where_masked,
};
use ferroflow_tracer::{error::Result, ops, tensor::Tensor};
use ferroflow_tracer_macros::Trackable;

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
    MaxPooling::new(window).pooled(x)
}

/// The mean of each window, as [`max_pool`].
///
/// # Errors
///
/// As [`max_pool`].
pub fn avg_pool<const N: usize>(x: &Tensor, window: [usize; N]) -> Result<Tensor> {
    AveragePooling::new(window).pooled(x)
}

/// The mean of each channel: `[batch, .., channels] → [batch, channels]`; of integers in `float32`.
///
/// # Errors
///
/// [`Error::Conversion`](ferroflow_tracer::Error::Conversion) for a tensor of unknown rank.
pub fn global_avg_pool(x: &Tensor) -> Result<Tensor> {
    GlobalAveragePooling::default().call(x, Mode::Inference)
}

/// The largest element of each window: `[batch, ..sizes, channels]`, over one to three dimensions.
#[derive(Trackable, Debug, Clone, PartialEq)]
pub struct MaxPooling<const N: usize> {
    #[trackable(skip)]
    window: PoolWindow<N>,
}

/// Maxima over sequences: `[batch, steps, channels]`.
pub type MaxPooling1D = MaxPooling<1>;
/// Maxima over images: `[batch, height, width, channels]`.
pub type MaxPooling2D = MaxPooling<2>;
/// Maxima over volumes: `[batch, depth, height, width, channels]`.
pub type MaxPooling3D = MaxPooling<3>;

/// The mean of each window, without what is outside: `[batch, ..sizes, channels]`, over one to
/// three dimensions.
#[derive(Trackable, Debug, Clone, PartialEq)]
pub struct AveragePooling<const N: usize> {
    #[trackable(skip)]
    window: PoolWindow<N>,
}

/// Means over sequences: `[batch, steps, channels]`.
pub type AveragePooling1D = AveragePooling<1>;
/// Means over images: `[batch, height, width, channels]`.
pub type AveragePooling2D = AveragePooling<2>;
/// Means over volumes: `[batch, depth, height, width, channels]`.
pub type AveragePooling3D = AveragePooling<3>;

#[derive(Debug, Clone, PartialEq)]
struct PoolWindow<const N: usize> {
    sizes: [usize; N],
    strides: [usize; N],
    padding: Padding,
}

/// Constructors of a layer with a window.
macro_rules! windowed {
    ($($layer:ident, $in_plane:ident, $in_space:ident;)*) => {$(
        impl<const N: usize> $layer<N> {
            /// Windows of these sizes that do not overlap; elements left at the end are ignored.
            pub fn new(sizes: [usize; N]) -> $layer<N> {
                let padding = Padding::Valid;
                $layer { window: PoolWindow { sizes, strides: sizes, padding } }
            }

            /// The same windows, at other distances.
            #[must_use]
            pub fn with_strides(self, strides: [usize; N]) -> $layer<N> {
                $layer { window: PoolWindow { strides, ..self.window } }
            }

            /// Windows that reach over the edges.
            #[must_use]
            pub fn same(self) -> $layer<N> {
                $layer { window: PoolWindow { padding: Padding::Same, ..self.window } }
            }

            fn pooled(&self, x: &Tensor) -> Result<Tensor> {
                self.window.pooled(x, ops::$in_plane, ops::$in_space)
            }
        }
    )*};
}

windowed! {
    MaxPooling, max_pool, max_pool3d;
    AveragePooling, avg_pool, avg_pool3d;
}

impl<const N: usize> Layer for MaxPooling<N> {
    #[track_caller]
    fn call(&self, x: &Tensor, _: Mode) -> Result<Tensor> {
        let _call = crate::called();
        self.pooled(x)
    }
}

impl<const N: usize> Layer for AveragePooling<N> {
    #[track_caller]
    fn call(&self, x: &Tensor, _: Mode) -> Result<Tensor> {
        let _call = crate::called();
        self.pooled(&compute::input(x)?)
    }
}

type Pool = fn(&Tensor, &[i64], &[i64], &str) -> Result<Tensor>;

impl<const N: usize> PoolWindow<N> {
    fn pooled(&self, x: &Tensor, in_plane: Pool, in_space: Pool) -> Result<Tensor> {
        check_dimensions(N, 3)?;
        check_sizes(&[&self.sizes, &self.strides])?;
        let (sizes, strides) = (window(&self.sizes, 1), window(&self.strides, 1));
        let pool = if N == 3 { in_space } else { in_plane };
        over_images::<N>(x, |x| pool(x, &sizes, &strides, padding_name(self.padding)))
    }
}

/// The largest element of each channel: `[batch, .., channels] → [batch, channels]`.
#[doc(alias("GlobalMaxPooling1D", "GlobalMaxPooling2D", "GlobalMaxPooling3D"))]
#[derive(Trackable, Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct GlobalMaxPooling {
    /// Whether the other dimensions stay, with a size of 1.
    #[trackable(skip)]
    pub keep_dims: bool,
}

/// The mean of each channel: `[batch, .., channels] → [batch, channels]`.
#[doc(alias("GlobalAveragePooling1D", "GlobalAveragePooling2D", "GlobalAveragePooling3D"))]
#[derive(Trackable, Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct GlobalAveragePooling {
    /// Whether the other dimensions stay, with a size of 1.
    #[trackable(skip)]
    pub keep_dims: bool,
}

impl Layer for GlobalMaxPooling {
    #[track_caller]
    fn call(&self, x: &Tensor, _: Mode) -> Result<Tensor> {
        let _call = crate::called();
        let axes = positions(x)?;
        if self.keep_dims { compute::max(x, &axes) } else { x.max(&axes) }
    }
}

impl Layer for GlobalAveragePooling {
    #[track_caller]
    fn call(&self, x: &Tensor, _: Mode) -> Result<Tensor> {
        let _call = crate::called();
        let (x, axes) = (compute::input(x)?, positions(x)?);
        if self.keep_dims { compute::mean(&x, &axes) } else { x.mean(&axes) }
    }

    /// Of sequences, the mean of the steps that count.
    #[track_caller]
    fn propagate(&self, x: &LayerValue, mode: Mode) -> Result<LayerValue> {
        let _call = crate::called();
        let mask = x.mask.as_ref().filter(|_| x.tensor.shape().rank() == Some(3));
        let Some(mask) = mask else { return Ok(x.with_unmasked(self.call(&x.tensor, mode)?)) };
        let values = compute::input(&x.tensor)?;
        let weights = mask.expand_dims(-1)?.cast(values.dtype())?;
        let sum = |x: &Tensor| if self.keep_dims { compute::sum(x, &[1]) } else { x.sum(&[1]) };
        let kept = where_masked(mask, &values, &values.zeros_like()?)?;
        Ok(x.with_unmasked((sum(&kept)? / sum(&weights)?)?))
    }
}

/// The dimensions between batch and channels.
fn positions(x: &Tensor) -> Result<Vec<i32>> {
    Ok((1..rank(x)? as i32 - 1).collect())
}
