//! Images at random in training: rotated, zoomed, moved, and sheared.

use super::{
    image::over_batches,
    in_training::{check_range, for_each},
};
use crate::layers::{
    Layer, Mode, SeedGenerator,
    compute::input,
    shapes::{DimSize, operand, with_sizes},
};
use ferroflow_ir::DType;
use ferroflow_tracer::{error::Result, ops, tensor::Tensor};
use ferroflow_tracer_macros::Trackable;
use std::f64::consts::TAU;

/// The pixels outside of an image.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub enum FillMode {
    /// The image mirrored at its edges.
    #[default]
    Reflect,
    /// The image from its other side.
    Wrap,
    /// A value.
    Constant(f32),
    /// The nearest pixel of the image.
    Nearest,
}

/// In training, each image of `[batch, height, width, channels]` rotated around its center.
#[derive(Trackable, Debug, Clone)]
pub struct RandomRotation {
    #[trackable(skip)]
    factor: [f64; 2],
    warp: Warp,
}

/// In training, each image of `[batch, height, width, channels]` zoomed around its center.
#[derive(Trackable, Debug, Clone)]
pub struct RandomZoom {
    #[trackable(skip)]
    height: [f64; 2],
    #[trackable(skip)]
    width: Option<[f64; 2]>,
    warp: Warp,
}

/// In training, each image of `[batch, height, width, channels]` moved.
#[derive(Trackable, Debug, Clone)]
pub struct RandomTranslation {
    #[trackable(skip)]
    height: [f64; 2],
    #[trackable(skip)]
    width: [f64; 2],
    warp: Warp,
}

/// In training, each image of `[batch, height, width, channels]` sheared from its upper left corner.
#[derive(Trackable, Debug, Clone)]
pub struct RandomShear {
    #[trackable(skip)]
    x: [f64; 2],
    #[trackable(skip)]
    y: [f64; 2],
    warp: Warp,
}

/// The way in which images are mapped.
#[derive(Trackable, Debug, Clone, Default)]
struct Warp {
    #[trackable(skip)]
    fill: FillMode,
    #[trackable(skip)]
    nearest: bool,
    seed_generator: SeedGenerator,
}

impl RandomRotation {
    /// A layer of angles between two parts of a full turn; positive ones are counter-clockwise.
    ///
    /// # Errors
    ///
    /// [`Error::Conversion`](ferroflow_tracer::Error::Conversion) when they are not in order from
    /// -1 to 1.
    pub fn new(factor: [f64; 2]) -> Result<RandomRotation> {
        check_range(factor, [-1.0, 1.0])?;
        Ok(RandomRotation { factor, warp: Warp::default() })
    }
}

impl RandomZoom {
    /// A layer that shows a part from 1 and the first to 1 and the second number of the height, and
    /// of the width: more than 1 zooms out. Without numbers for the width it keeps the aspect
    /// ratio.
    ///
    /// # Errors
    ///
    /// [`Error::Conversion`](ferroflow_tracer::Error::Conversion) when numbers are not in order
    /// from above -1 to 1.
    pub fn new(height: [f64; 2], width: Option<[f64; 2]>) -> Result<RandomZoom> {
        for factor in [Some(height), width].into_iter().flatten() {
            check_range(factor, [-1.0 + f64::EPSILON, 1.0])?;
        }
        Ok(RandomZoom { height, width, warp: Warp::default() })
    }
}

impl RandomTranslation {
    /// A layer that moves images down and to the right by parts, between two numbers each, of their
    /// height and width.
    ///
    /// # Errors
    ///
    /// [`Error::Conversion`](ferroflow_tracer::Error::Conversion) when numbers are not in order
    /// from
    /// -1 to 1.
    pub fn new(height: [f64; 2], width: [f64; 2]) -> Result<RandomTranslation> {
        check_range(height, [-1.0, 1.0])?;
        check_range(width, [-1.0, 1.0])?;
        Ok(RandomTranslation { height, width, warp: Warp::default() })
    }
}

impl RandomShear {
    /// A layer that moves pixels to the left by parts of their row's index, and up by parts of their
    /// column's, between two numbers each; half of the images are sheared the other way.
    ///
    /// # Errors
    ///
    /// [`Error::Conversion`](ferroflow_tracer::Error::Conversion) when numbers are not in order
    /// from -1 to 1.
    pub fn new(x: [f64; 2], y: [f64; 2]) -> Result<RandomShear> {
        check_range(x, [-1.0, 1.0])?;
        check_range(y, [-1.0, 1.0])?;
        Ok(RandomShear { x, y, warp: Warp::default() })
    }
}

/// The options of layers that map images.
macro_rules! warping {
    ($($layer:ident)*) => {$(
        impl $layer {
            /// The same layer, with these pixels outside of images.
            #[must_use]
            pub fn filled(self, fill: FillMode) -> $layer {
                $layer { warp: Warp { fill, ..self.warp }, ..self }
            }

            /// The same layer, which takes the nearest pixels instead of interpolating.
            #[must_use]
            pub fn nearest(self) -> $layer {
                $layer { warp: Warp { nearest: true, ..self.warp }, ..self }
            }

            /// The same layer, whose numbers are drawn by a seed; 0 is none.
            #[must_use]
            pub fn seeded(self, seed: i64) -> $layer {
                $layer { warp: Warp { seed_generator: SeedGenerator::new(seed), ..self.warp }, ..self }
            }
        }

        impl Layer for $layer {
            #[track_caller]
            fn call(&self, x: &Tensor, mode: Mode) -> Result<Tensor> {
                let _call = crate::called();
                let x = input(x)?;
                if mode == Mode::Inference {
                    return Ok(x);
                }
                over_batches(&x, |x| self.warp.apply(x, self.matrix(x)?))
            }
        }
    )*};
}

warping!(RandomRotation RandomZoom RandomTranslation RandomShear);

/// The first two rows of a matrix that maps positions `(x, y, 1)` of results to positions of
/// images, all `[batch, 1]`.
type AffineMap = [Tensor; 6];

impl RandomRotation {
    fn matrix(&self, x: &Tensor) -> Result<AffineMap> {
        let angle = for_each(x, 2, self.factor.map(|part| part * TAU), &self.warp.seed_generator)?;
        let (cos, sin) = (angle.cos()?, angle.sin()?);
        let [cy, cx] = center(x)?;
        let to_x = ((&cx - (&cos * &cx)?)? + (&sin * &cy)?)?;
        let to_y = ((&cy - (&sin * &cx)?)? - (&cos * &cy)?)?;
        Ok([cos.clone(), sin.neg()?, to_x, sin, cos, to_y])
    }
}

impl RandomZoom {
    fn matrix(&self, x: &Tensor) -> Result<AffineMap> {
        let part = |factor: [f64; 2]| {
            for_each(x, 2, factor.map(|part| 1.0 + part), &self.warp.seed_generator)
        };
        let height = part(self.height)?;
        let width = match self.width {
            Some(width) => part(width)?,
            None => height.clone(),
        };
        let ([cy, cx], zero) = (center(x)?, height.zeros_like()?);
        let (to_x, to_y) = ((cx * (1.0 - &width)?)?, (cy * (1.0 - &height)?)?);
        Ok([width, zero.clone(), to_x, zero, height, to_y])
    }
}

impl RandomTranslation {
    fn matrix(&self, x: &Tensor) -> Result<AffineMap> {
        let by = |axis: usize, factor: [f64; 2]| {
            let size = DimSize::of(x, axis)?.tensor().cast(DType::F32)?;
            (for_each(x, 2, factor, &self.warp.seed_generator)? * size)?.neg()
        };
        let down = by(1, self.height)?;
        let right = by(2, self.width)?;
        let (one, zero) = (down.ones_like()?, down.zeros_like()?);
        Ok([one.clone(), zero.clone(), right, zero, one, down])
    }
}

impl RandomShear {
    fn matrix(&self, x: &Tensor) -> Result<AffineMap> {
        let number = |range: [f64; 2]| for_each(x, 2, range, &self.warp.seed_generator);
        let is_back = number([0.0, 1.0])?.greater(0.5)?;
        let turned = |by: Tensor| is_back.select(&by.neg()?, &by);
        let down = turned(number(self.y)?)?;
        let right = turned(number(self.x)?)?;
        let (one, zero) = (down.ones_like()?, down.zeros_like()?);
        Ok([one.clone(), right, zero.clone(), down, one, zero])
    }
}

/// The center of images: row and column.
fn center(x: &Tensor) -> Result<[Tensor; 2]> {
    let middle = |axis: usize| {
        let size = DimSize::of(x, axis)?.tensor().cast(DType::F32)?;
        (size - 1.0)? * 0.5
    };
    Ok([middle(1)?, middle(2)?])
}

impl Warp {
    fn apply(&self, x: &Tensor, map: AffineMap) -> Result<Tensor> {
        let zero = map[0].zeros_like()?;
        let parts: Vec<&Tensor> = map.iter().chain([&zero, &zero]).collect();
        let matrix = ops::concat_v2(&parts, &Tensor::from(1))?;
        projected(x, &matrix, self.fill, self.nearest)
    }
}

/// Images mapped by matrices `[batch, 8]` from positions of results to positions of images.
pub(super) fn projected(
    x: &Tensor,
    matrix: &Tensor,
    fill: FillMode,
    is_nearest: bool,
) -> Result<Tensor> {
    let (mode, value) = match fill {
        FillMode::Reflect => ("REFLECT", 0.0),
        FillMode::Wrap => ("WRAP", 0.0),
        FillMode::Constant(value) => ("CONSTANT", value),
        FillMode::Nearest => ("NEAREST", 0.0),
    };
    let attrs = ops::ImageProjectiveTransformV3Attrs { fill_mode: mode.into() };
    let (sizes, value) = (DimSize::of_all(x, 0..4)?, Tensor::from(value));
    let (size, by) = (operand(&sizes[1..3])?, if is_nearest { "NEAREST" } else { "BILINEAR" });
    let y = ops::image_projective_transform_v3_with(x, matrix, &size, &value, by, &attrs)?;
    with_sizes(y, &sizes)
}
