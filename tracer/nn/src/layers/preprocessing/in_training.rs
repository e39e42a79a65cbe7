//! Layers that change images at random in training only, and the numbers they draw.

use crate::layers::{
    SeedGenerator,
    shapes::{DimSize, operand, with_sizes, wrong},
};
use ferroflow_ir::DType;
use ferroflow_tracer::{error::Result, tensor::Tensor};

/// A change of batches of images by numbers drawn for them.
pub(super) trait ImageAugmentation {
    /// The changed images: floats `[batch, height, width, channels]`.
    fn augmented(&self, x: &Tensor) -> Result<Tensor>;
}

/// A seed for layers that draw numbers.
macro_rules! seeded {
    ($($layer:ident)*) => {$(
        impl $layer {
            /// The same layer, whose numbers are drawn by a seed; 0 is none.
            #[must_use]
            pub fn seeded(self, seed: i64) -> $layer {
                self.drawing_by($crate::layers::SeedGenerator::new(seed))
            }

            /// The same layer, whose numbers are drawn by the seeds of another object.
            #[must_use]
            pub(super) fn drawing_by(self, seed_generator: $crate::layers::SeedGenerator) -> $layer {
                $layer { seed_generator, ..self }
            }
        }
    )*};
}

/// Layers of augmentations, with seeds: inference changes nothing but integers to `float32`.
macro_rules! in_training {
    ($($layer:ident)*) => {
        $crate::layers::preprocessing::in_training::seeded!($($layer)*);
        $(
            impl $crate::layers::Layer for $layer {
                #[track_caller]
                fn call(&self, x: &Tensor, mode: $crate::layers::Mode) -> Result<Tensor> {
                    let _call = $crate::called();
                    let x = $crate::layers::compute::input(x)?;
                    if mode == $crate::layers::Mode::Inference {
                        return Ok(x);
                    }
                    $crate::layers::preprocessing::image::over_batches(&x, |x| self.augmented(x))
                }
            }
        )*
    };
}

/// Layers of augmentations that have a factor and a range of values, with their documentation and that
/// of the factor.
macro_rules! factor_layers {
    ($($(#[$doc:meta])* $layer:ident, $factor:literal;)*) => {
        $(
            $(#[$doc])*
            #[derive(ferroflow_tracer_macros::Trackable, Debug, Clone)]
            pub struct $layer {
                #[trackable(skip)]
                factor: [f64; 2],
                #[trackable(skip)]
                range: [f64; 2],
                seed_generator: $crate::layers::SeedGenerator,
            }

            impl $layer {
                #[doc = concat!("A layer of ", $factor, " between two numbers, for values of this range.")]
                ///
                /// # Errors
                ///
                /// [`Error::Conversion`](ferroflow_tracer::Error::Conversion) when the numbers are not in
                /// order from 0 to 1, or those of the range are not in order.
                pub fn new(factor: [f64; 2], range: [f64; 2]) -> Result<$layer> {
                    $crate::layers::preprocessing::in_training::check_factor(factor, range)?;
                    Ok($layer { factor, range, seed_generator: Default::default() })
                }
            }
        )*
        $crate::layers::preprocessing::in_training::in_training!($($layer)*);
    };
}

pub(super) use {factor_layers, in_training, seeded};

/// A number between two for each image, in a tensor of this rank: `[batch, 1, ..]`.
pub(super) fn for_each(
    x: &Tensor,
    rank: usize,
    range: [f64; 2],
    seeds: &SeedGenerator,
) -> Result<Tensor> {
    let mut sizes = vec![DimSize::Known(1); rank];
    sizes[0] = DimSize::of(x, 0)?;
    with_sizes(drawn(&operand(&sizes)?, range, seeds)?, &sizes)
}

/// Numbers of `float32` between two.
pub(super) fn drawn(
    shape: &Tensor,
    [low, high]: [f64; 2],
    seeds: &SeedGenerator,
) -> Result<Tensor> {
    (seeds.uniform(shape, DType::F32)? * (high - low))? + low
}

/// Whether each image is chosen, with a probability between two: a bool `[batch, 1, 1, 1]`.
pub(super) fn chosen(x: &Tensor, factor: [f64; 2], seeds: &SeedGenerator) -> Result<Tensor> {
    let probability = for_each(x, 4, factor, seeds)?;
    for_each(x, 4, [0.0, 1.0], seeds)?.less(&probability)
}

/// Values of a range as those of another.
pub(super) fn in_range(x: &Tensor, from: [f64; 2], to: [f64; 2]) -> Result<Tensor> {
    if from == to {
        return Ok(x.clone());
    }
    let part = ((x - from[0])? / (from[1] - from[0]))?;
    (part * (to[1] - to[0]))? + to[0]
}

/// Values cut to a range.
pub(super) fn clipped(x: &Tensor, [low, high]: [f64; 2]) -> Result<Tensor> {
    x.maximum(low)?.minimum(high)
}

/// Checks that two numbers are in order within limits.
pub(super) fn check_range(range: [f64; 2], [low, high]: [f64; 2]) -> Result<()> {
    if low <= range[0] && range[0] <= range[1] && range[1] <= high {
        return Ok(());
    }
    Err(wrong(format!("two numbers in order from {low} to {high}"), format!("{range:?}")))
}

/// Checks that probabilities or parts are in order from 0 to 1, and that a range of values is one.
pub(super) fn check_factor(factor: [f64; 2], values: [f64; 2]) -> Result<()> {
    check_range(factor, [0.0, 1.0])?;
    check_values(values)
}

/// Checks that a range of values has a lower and an upper end.
pub(super) fn check_values([low, high]: [f64; 2]) -> Result<()> {
    if low < high && (high - low).is_finite() {
        return Ok(());
    }
    Err(wrong("a range of values in order", format!("{:?}", [low, high])))
}
