//! Images in other sizes.

use super::{
    Layer, Mode,
    compute::input,
    shapes::{DimSize, has_rank, operand, repeated},
};
use ferroflow_tracer::{error::Result, ops, tensor::Tensor};
use ferroflow_tracer_macros::Trackable;

/// The way in which pixels between pixels are computed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Interpolation {
    /// The nearest pixel.
    #[default]
    Nearest,
    /// Linear in both directions.
    Bilinear,
    /// Cubic in both directions, by Keys' kernel with -0.5.
    Bicubic,
    /// A Lanczos kernel of radius 3.
    Lanczos3,
    /// A Lanczos kernel of radius 5.
    Lanczos5,
}

/// Images `[batch, height, width, channels]` in another size, pixels being half a pixel from the
/// edges, as `tf.image.resize` computes them, in `float32`.
pub(super) fn resized(
    x: &Tensor,
    [height, width]: [DimSize; 2],
    by: Interpolation,
    antialias: bool,
) -> Result<Tensor> {
    let size = operand(&[height, width])?;
    let half_pixel_centers = true;
    match by {
        Interpolation::Nearest => {
            let attrs =
                ops::ResizeNearestNeighborAttrs { half_pixel_centers, ..Default::default() };
            ops::resize_nearest_neighbor_with(x, &size, &attrs)
        }
        Interpolation::Bilinear if !antialias => {
            let attrs = ops::ResizeBilinearAttrs { half_pixel_centers, ..Default::default() };
            ops::resize_bilinear_with(x, &size, &attrs)
        }
        Interpolation::Bicubic if !antialias => {
            let attrs = ops::ResizeBicubicAttrs { half_pixel_centers, ..Default::default() };
            ops::resize_bicubic_with(x, &size, &attrs)
        }
        Interpolation::Bilinear => by_kernel(x, &size, "triangle", antialias),
        Interpolation::Bicubic => by_kernel(x, &size, "keyscubic", antialias),
        Interpolation::Lanczos3 => by_kernel(x, &size, "lanczos3", antialias),
        Interpolation::Lanczos5 => by_kernel(x, &size, "lanczos5", antialias),
    }
}

fn by_kernel(x: &Tensor, size: &Tensor, kernel: &str, antialias: bool) -> Result<Tensor> {
    let now = operand(&DimSize::of_all(x, 1..3)?)?;
    let float = |sizes: &Tensor| sizes.cast(ferroflow_ir::DType::F32);
    let scale = (float(size)? / float(&now)?)?;
    let attrs = ops::ScaleAndTranslateAttrs { kernel_type: kernel.into(), antialias };
    ops::scale_and_translate_with(x, size, &scale, &Tensor::from([0.0f32; 2]), &attrs)
}

/// Sizes multiplied by factors: `[batch, ..sizes, channels]`, each element being repeated.
#[derive(Trackable, Debug, Clone, Copy, PartialEq, Eq)]
pub struct UpSampling<const N: usize> {
    #[trackable(skip)]
    factors: [usize; N],
    #[trackable(skip)]
    by: Interpolation,
}

/// Longer sequences: `[batch, steps, channels]`.
pub type UpSampling1D = UpSampling<1>;
/// Larger images: `[batch, height, width, channels]`.
pub type UpSampling2D = UpSampling<2>;
/// Larger volumes: `[batch, depth, height, width, channels]`.
pub type UpSampling3D = UpSampling<3>;

impl<const N: usize> UpSampling<N> {
    /// A layer that multiplies sizes by these factors.
    pub fn new(factors: [usize; N]) -> UpSampling<N> {
        UpSampling { factors, by: Interpolation::Nearest }
    }
}

impl UpSampling<2> {
    /// The same layer, which computes pixels between those that are there.
    #[must_use]
    pub fn interpolated(self, by: Interpolation) -> UpSampling<2> {
        UpSampling { by, ..self }
    }
}

impl<const N: usize> Default for UpSampling<N> {
    /// A layer that doubles sizes.
    fn default() -> UpSampling<N> {
        UpSampling::new([2; N])
    }
}

impl<const N: usize> Layer for UpSampling<N> {
    #[track_caller]
    fn call(&self, x: &Tensor, _: Mode) -> Result<Tensor> {
        let _call = crate::called();
        has_rank(x, N + 2)?;
        if self.by == Interpolation::Nearest {
            let mut axes = self.factors.iter().enumerate();
            return axes.try_fold(x.clone(), |x, (axis, &n)| repeated(&x, axis + 1, n));
        }
        let x = input(x)?;
        let size = |axis: usize| DimSize::of(&x, axis)?.scaled(self.factors[axis - 1] as i64, 0);
        resized(&x, [size(1)?, size(2)?], self.by, false)?.cast(x.dtype())
    }
}
