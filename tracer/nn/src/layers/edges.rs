//! Zeros at the edges, and edges cut off.

use super::{
    Layer, Mode,
    geometry::padded,
    shapes::{DimSize, has_rank, operand, unfit, with_sizes},
};
use ferroflow_tracer::{error::Result, ops, tensor::Tensor};
use ferroflow_tracer_macros::Trackable;

/// Zeros before and after each dimension but those of batch and channels:
/// `[batch, ..sizes, channels]`.
#[derive(Trackable, Debug, Clone, Copy, PartialEq, Eq)]
pub struct ZeroPadding<const N: usize> {
    #[trackable(skip)]
    by: [[usize; 2]; N],
}

/// Zeros around sequences: `[batch, steps, channels]`.
pub type ZeroPadding1D = ZeroPadding<1>;
/// Zeros around images: `[batch, height, width, channels]`.
pub type ZeroPadding2D = ZeroPadding<2>;
/// Zeros around volumes: `[batch, depth, height, width, channels]`.
pub type ZeroPadding3D = ZeroPadding<3>;

impl<const N: usize> ZeroPadding<N> {
    /// So many zeros before and after each dimension.
    pub fn new(by: [[usize; 2]; N]) -> ZeroPadding<N> {
        ZeroPadding { by }
    }
}

impl<const N: usize> Default for ZeroPadding<N> {
    /// A zero on each side.
    fn default() -> ZeroPadding<N> {
        ZeroPadding::new([[1; 2]; N])
    }
}

impl<const N: usize> Layer for ZeroPadding<N> {
    #[track_caller]
    fn call(&self, x: &Tensor, _: Mode) -> Result<Tensor> {
        let _call = crate::called();
        has_rank(x, N + 2)?;
        padded(x, &[&[[0; 2]], &self.by[..], &[[0; 2]]].concat())
    }
}

/// Elements cut off before and after each dimension but those of batch and channels:
/// `[batch, ..sizes, channels]`.
#[derive(Trackable, Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cropping<const N: usize> {
    #[trackable(skip)]
    by: [[usize; 2]; N],
}

/// The middle of sequences: `[batch, steps, channels]`.
pub type Cropping1D = Cropping<1>;
/// The middle of images: `[batch, height, width, channels]`.
pub type Cropping2D = Cropping<2>;
/// The middle of volumes: `[batch, depth, height, width, channels]`.
pub type Cropping3D = Cropping<3>;

impl<const N: usize> Cropping<N> {
    /// So many elements fewer before and after each dimension.
    pub fn new(by: [[usize; 2]; N]) -> Cropping<N> {
        Cropping { by }
    }

    fn check(&self, x: &Tensor) -> Result<()> {
        has_rank(x, N + 2)?;
        let is_left = |axis: usize, [before, after]: [usize; 2]| {
            x.shape().dim(axis as isize + 1).is_none_or(|size| before.saturating_add(after) < size)
        };
        if self.by.iter().enumerate().all(|(axis, &by)| is_left(axis, by)) {
            return Ok(());
        }
        Err(unfit(&format!("a tensor that has elements left without {:?}", self.by), x))
    }
}

impl<const N: usize> Layer for Cropping<N> {
    #[track_caller]
    fn call(&self, x: &Tensor, _: Mode) -> Result<Tensor> {
        let _call = crate::called();
        self.check(x)?;
        let mut sizes = DimSize::of_all(x, 0..N + 2)?;
        for (size, [before, after]) in sizes[1..].iter_mut().zip(self.by) {
            *size = size.scaled(1, -((before + after) as i64))?;
        }
        let before = self.by.iter().map(|by| by[0] as i32);
        let begin: Vec<i32> = [0].into_iter().chain(before).chain([0]).collect();
        with_sizes(ops::slice(x, &Tensor::from(begin), &operand(&sizes)?)?, &sizes)
    }
}
