//! Layers that put elements under another shape.

use super::{
    Layer, Mode,
    shapes::{DimSize, has_rank, rank, reshaped, unfit, wrong},
};
use ferroflow_tracer::{error::Result, ops, tensor::Tensor};
use ferroflow_tracer_macros::Trackable;

/// All but the first dimension as one: `[batch, ..] → [batch, size]`.
///
/// # Errors
///
/// [`Error::Conversion`](ferroflow_tracer::Error::Conversion) for a tensor whose sizes but the
/// first are not known.
pub fn flatten(x: &Tensor) -> Result<Tensor> {
    let shape = x.shape();
    let sizes = shape.dims().and_then(|dims| dims.get(1..));
    let size = sizes.and_then(|sizes| sizes.iter().copied().product::<Option<usize>>());
    let size = size.ok_or_else(|| unfit("a tensor whose sizes but the first are known", x))?;
    x.reshape(&[-1, size as i64])
}

/// All but the first dimension as one: `[batch, ..] → [batch, size]`. As [`flatten`], also where
/// sizes are not known.
#[derive(Trackable, Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Flatten;

impl Layer for Flatten {
    #[track_caller]
    fn call(&self, x: &Tensor, _: Mode) -> Result<Tensor> {
        let _call = crate::called();
        let sizes = DimSize::of_all(x, 0..rank(x)?)?;
        let Some((batch, rest)) = sizes.split_first() else {
            return Err(unfit("a tensor with a first dimension", x));
        };
        let size = rest.iter().try_fold(DimSize::Known(1), |product, size| product.times(size))?;
        reshaped(x, &[batch.clone(), size])
    }
}

/// The input as it is, with its mask.
#[doc(alias("Identity"))]
#[derive(Trackable, Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct IdentityLayer;

impl Layer for IdentityLayer {
    #[track_caller]
    fn call(&self, x: &Tensor, _: Mode) -> Result<Tensor> {
        let _call = crate::called();
        Ok(x.clone())
    }

    fn supports_masking(&self) -> bool {
        true
    }
}

/// Elements under another shape: `[batch, ..] → [batch, ..sizes]`.
#[derive(Trackable, Debug, Clone, PartialEq)]
pub struct Reshape {
    #[trackable(skip)]
    sizes: Vec<i64>,
}

impl Reshape {
    /// A layer to these sizes, of which one may be -1: it follows from the others.
    ///
    /// # Errors
    ///
    /// [`Error::Conversion`](ferroflow_tracer::Error::Conversion) for other negative sizes, and
    /// more than one that follows.
    pub fn new(sizes: impl Into<Vec<i64>>) -> Result<Reshape> {
        let sizes = sizes.into();
        let n_open = sizes.iter().filter(|&&size| size == -1).count();
        if n_open > 1 || sizes.iter().any(|&size| size < -1) {
            return Err(wrong("sizes, of which one may be -1", format!("{sizes:?}")));
        }
        Ok(Reshape { sizes })
    }

    /// The size that follows from the others.
    fn open(&self, x: &Tensor) -> Result<DimSize> {
        let known: i64 = self.sizes.iter().filter(|&&size| size != -1).product();
        let rest = DimSize::of_all(x, 1..rank(x)?)?;
        let all = rest.iter().try_fold(DimSize::Known(1), |product, size| product.times(size))?;
        match all {
            DimSize::Known(all) => Ok(DimSize::Known(all / known.max(1) as usize)),
            DimSize::Late(all) => Ok(DimSize::Late(all.floor_div(known.max(1))?)),
        }
    }
}

impl Layer for Reshape {
    #[track_caller]
    fn call(&self, x: &Tensor, _: Mode) -> Result<Tensor> {
        let _call = crate::called();
        let mut sizes = vec![DimSize::of(x, 0)?];
        for &size in &self.sizes {
            let open = || self.open(x);
            sizes.push(
                usize::try_from(size).map_or_else(|_| open(), |size| Ok(DimSize::Known(size)))?,
            );
        }
        reshaped(x, &sizes)
    }
}

/// The dimensions behind the batch in another order.
#[derive(Trackable, Debug, Clone, PartialEq)]
pub struct Permute {
    #[trackable(skip)]
    order: Vec<i32>,
}

impl Permute {
    /// A layer to this order of the dimensions, which are counted from 1: `[2, 1]` makes
    /// `[batch, b, a]` of `[batch, a, b]`.
    ///
    /// # Errors
    ///
    /// [`Error::Conversion`](ferroflow_tracer::Error::Conversion) when it is not a permutation.
    pub fn new(order: impl Into<Vec<i32>>) -> Result<Permute> {
        let order = order.into();
        let mut sorted = order.clone();
        sorted.sort_unstable();
        if sorted.into_iter().ne(1..=order.len() as i32) {
            return Err(wrong("a permutation of dimensions from 1", format!("{order:?}")));
        }
        Ok(Permute { order })
    }
}

impl Layer for Permute {
    #[track_caller]
    fn call(&self, x: &Tensor, _: Mode) -> Result<Tensor> {
        let _call = crate::called();
        has_rank(x, self.order.len() + 1)?;
        x.transpose(&[&[0], &self.order[..]].concat())
    }
}

/// A vector repeated: `[batch, size] → [batch, n, size]`.
#[derive(Trackable, Debug, Clone, Copy, PartialEq, Eq)]
pub struct RepeatVector {
    #[trackable(skip)]
    n: usize,
}

impl RepeatVector {
    /// A layer that repeats so many times.
    pub fn new(n: usize) -> RepeatVector {
        RepeatVector { n }
    }
}

impl Layer for RepeatVector {
    #[track_caller]
    fn call(&self, x: &Tensor, _: Mode) -> Result<Tensor> {
        let _call = crate::called();
        has_rank(x, 2)?;
        ops::tile(&x.expand_dims(1)?, &Tensor::from([1, self.n as i32, 1]))
    }
}
