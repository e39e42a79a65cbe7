//! Images: `[batch, height, width, channels]`.

mod area;
mod bilinear;
pub(super) mod color;
pub(super) mod crop;
pub(super) mod distorted_box;
pub(super) mod draw;
mod equal_order;
pub(super) mod glimpse;
pub(super) mod resize;
pub(super) mod suppress;
pub(super) mod transform;

use crate::number::Number;
pub(super) use {bilinear::BilinearResize, resize::Resize};

/// The elements in single precision.
fn to_floats<T: Number + num_traits::AsPrimitive<f32>>(x: &[T]) -> Vec<f32> {
    x.iter().map(|x| x.as_()).collect()
}
