//! Images at random in training: in another perspective.

use super::{
    in_training::{ImageAugmentation, check_range, chosen, drawn, in_training},
    warp::{FillMode, projected},
};
use crate::layers::{
    SeedGenerator,
    shapes::{DimSize, operand},
};
use ferroflow_ir::DType;
use ferroflow_tracer::{error::Result, ops, tensor::Tensor};
use ferroflow_tracer_macros::Trackable;

/// In training, some images of `[batch, height, width, channels]` mapped so that their corners are
/// where random points are. What is outside of an image has a value.
#[derive(Trackable, Debug, Clone)]
pub struct RandomPerspective {
    #[trackable(skip)]
    factor: [f64; 2],
    #[trackable(skip)]
    scale: f64,
    #[trackable(skip)]
    fill: f32,
    #[trackable(skip)]
    is_nearest: bool,
    seed_generator: SeedGenerator,
}

impl RandomPerspective {
    /// A layer with probabilities between two numbers, and corners that move by half of this part
    /// of height and width at most.
    ///
    /// # Errors
    ///
    /// [`Error::Conversion`](ferroflow_tracer::Error::Conversion) when the probabilities are not in
    /// order from 0 to 1, or the part is not from 0 to 1.
    pub fn new(factor: [f64; 2], scale: f64) -> Result<RandomPerspective> {
        check_range(factor, [0.0, 1.0])?;
        check_range([scale, scale], [0.0, 1.0])?;
        let seed_generator = SeedGenerator::default();
        Ok(RandomPerspective { factor, scale, fill: 0.0, is_nearest: false, seed_generator })
    }

    /// The same layer, with this value outside of images.
    #[must_use]
    pub fn filled(self, fill: f32) -> RandomPerspective {
        RandomPerspective { fill, ..self }
    }

    /// The same layer, which takes the nearest pixels instead of interpolating.
    #[must_use]
    pub fn nearest(self) -> RandomPerspective {
        RandomPerspective { is_nearest: true, ..self }
    }
}

in_training!(RandomPerspective);

impl ImageAugmentation for RandomPerspective {
    fn augmented(&self, x: &Tensor) -> Result<Tensor> {
        let is_moved = chosen(x, self.factor, &self.seed_generator)?;
        let sizes = operand(&[DimSize::of(x, 0)?, DimSize::Known(4), DimSize::Known(2)])?;
        let range = [-0.5 * self.scale, 0.5 * self.scale];
        let parts = drawn(&sizes, range, &self.seed_generator)?;
        let corners = corners(x)?;
        let points = (&corners + (&corners * parts)?)?;
        let matrix = homography(&corners, &points)?;
        let y = projected(x, &matrix, FillMode::Constant(self.fill), self.is_nearest)?;
        is_moved.select(&y, x)
    }
}

/// The corners of images, column and row: `[1, 4, 2]`.
fn corners(x: &Tensor) -> Result<Tensor> {
    let last = |axis: usize| DimSize::of(x, axis)?.tensor().cast(DType::F32)? - 1.0;
    let last = ops::pack(&[&last(2)?, &last(1)?])?;
    Tensor::from([[[0.0f32, 0.0], [1.0, 0.0], [0.0, 1.0], [1.0, 1.0]]]) * last
}

/// The coefficients `[batch, 8]` of the projective map that takes four points `[batch, 4, 2]` to
/// corners `[1, 4, 2]`: the solution of two linear equations for each point (Heckbert 1989, 2.2.3).
fn homography(corners: &Tensor, points: &Tensor) -> Result<Tensor> {
    let targets = (corners + points.zeros_like()?)?;
    let [one, none] = [points.ones_like()?, points.zeros_like()?].map(|x| column(&x, 0));
    let (one, none) = (one?, none?);
    let equations = |axis: usize| {
        let own = ops::concat_v2(&[points, &one], &Tensor::from(-1))?;
        let other = ops::concat_v2(&[&none, &none, &none], &Tensor::from(-1))?;
        let ratio = (column(&targets, axis)?.neg()? * points)?;
        let order = if axis == 0 { [&own, &other, &ratio] } else { [&other, &own, &ratio] };
        ops::concat_v2(&order, &Tensor::from(-1))
    };
    let attrs = ops::PackAttrs { axis: 2 };
    let matrix = ops::pack_with(&[&equations(0)?, &equations(1)?], &attrs)?;
    let solution =
        ops::matrix_solve(&matrix.reshape(&[-1, 8, 8])?, &targets.reshape(&[-1, 8, 1])?)?;
    solution.reshape(&[-1, 8])
}

/// A coordinate of points: `[batch, 4, 1]`.
fn column(points: &Tensor, axis: usize) -> Result<Tensor> {
    Ok(ops::split(&Tensor::from(-1), points, 2)?[axis].clone())
}
