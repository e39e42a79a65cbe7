//! Images: `[batch, height, width, channels]`.

mod color;
mod crop;
mod draw;
mod glimpse;
mod resize;
mod suppress;
mod taps;
mod transform;

use super::Build;
use crate::number::Number;
pub(super) use resize::Resize;

pub(super) const KERNELS: &[&[(&str, Build)]] = &[
    color::KERNELS,
    crop::KERNELS,
    draw::KERNELS,
    glimpse::KERNELS,
    resize::KERNELS,
    suppress::KERNELS,
    transform::KERNELS,
];

/// The elements in single precision.
fn to_floats<T: Number + num_traits::AsPrimitive<f32>>(x: &[T]) -> Vec<f32> {
    x.iter().map(|x| x.as_()).collect()
}
